/*
 * names_loop.c - notices when files of images are removed or renamed, and has the images copied to
 * new files. main.c opens it when the daemon serves. The kernel reports changes of names in the
 * memory directory. Whether that and the spill directory are in place is checked every second,
 * because nothing reports a file system that is unmounted.
 */
#include "daemon.h"

#include "../host/jobs.h"
#include "../host/pause.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHECK_MS = 1000, /* time between two checks */
	/* Delay of the check after a change, because several files are usually removed together,
	 * and then their folder. */
	CHANGE_DELAY_MS = 200,
	FAULT = 512,
};

struct names_loop {
	struct job job; /* must be first */
	struct daemon *daemon;
	struct event *check_timer; /* runs the check every CHECK_MS, or earlier after a change */
	struct event *changed;     /* names changed; NULL: the kernel does not report changes */
	bool is_repairing;         /* the job that repairs images is running */
	bool reports_all;          /* the kernel reports all changes of names */
	bool due;                  /* names may have changed since the last check */
	struct pause pause;        /* time between two repairs */
	char memory_fault[FAULT];  /* what is wrong with the memory directory */
	char spill_fault[FAULT];   /* what is wrong with the spill directory */
};

static struct memory *memory_of(const struct names_loop *names)
{
	return stores_memory(names->daemon->stores);
}

static void schedule_check(struct names_loop *names, unsigned ms)
{
	const struct timeval time = { .tv_sec = ms / 1000, .tv_usec = (long)(ms % 1000) * 1000 };

	evtimer_add(names->check_timer, &time);
}

static void on_file_names_changed(evutil_socket_t fd, short what, void *arg)
{
	struct names_loop *names = arg;

	(void)fd;
	(void)what;
	daemon_lock(names->daemon);
	daemon_note_non_owner_event(names->daemon);
	names->reports_all = memory_of(names)->ops->read_changes(memory_of(names));
	/* Continuous changes must not postpone the check. */
	if (!names->due)
		schedule_check(names, CHANGE_DELAY_MS);
	names->due = true;
	daemon_unlock(names->daemon);
}

/* --- repairs --- */

static void run_repair(struct job *job)
{
	stores_repair_names(((struct names_loop *)job)->daemon->stores);
}

/* Starts the repair, which runs while no other job does. If jobs are running, the check's event
 * calls this again when they have ended. */
static void begin_repair(struct names_loop *names)
{
	struct daemon *daemon = names->daemon;

	if (names->is_repairing || !pause_is_over(&names->pause, daemon_now_ns()) ||
	    (daemon->event_after_jobs && daemon->event_after_jobs != names->check_timer) ||
	    daemon_defer_event_until_no_jobs(daemon, names->check_timer))
		return;
	names->is_repairing = true;
	names->job.run = run_repair;
	daemon_run_exclusive_job(daemon, &names->job);
}

static void end_repair(struct names_loop *names)
{
	if (!names->is_repairing || !names->job.over)
		return;
	names->is_repairing = false;
	pause_begin(&names->pause, daemon_now_ns());
	names->due = true;
}

/* --- checks --- */

/* Logs the fault if it is another one than before. Returns true if the fault has changed. */
static bool log_changed_fault(char before[FAULT], const char fault[FAULT], const char *event)
{
	if (strcmp(fault, before) == 0)
		return false;
	memcpy(before, fault, FAULT);
	if (fault[0])
		log_event(LOG_LEVEL_ERROR, event, NULL, "%s", fault);
	return true;
}

/* Restores the memory directory and the spill directory if they are missing. */
static void check_directories(struct names_loop *names)
{
	struct memory *memory = memory_of(names);
	char fault[FAULT] = "";

	if (memory->ops->restore_directory)
		(void)memory->ops->restore_directory(memory, fault, sizeof(fault));
	names->due |= log_changed_fault(names->memory_fault, fault, "memory-directory");
	memset(fault, 0, sizeof(fault));
	(void)stores_restore_spill_directory(names->daemon->stores, fault, sizeof(fault));
	(void)log_changed_fault(names->spill_fault, fault, "spill-directory");
}

static void check_file_names(struct names_loop *names)
{
	struct memory *memory = memory_of(names);

	end_repair(names);
	check_directories(names);
	if (!names->reports_all) {
		names->reports_all = memory->ops->read_changes && memory->ops->read_changes(memory);
		names->due = true;
	}
	if (names->due && stores_check_names(names->daemon->stores, &names->due))
		begin_repair(names);
}

static void on_names_check_timer(evutil_socket_t fd, short what, void *arg)
{
	struct names_loop *names = arg;

	(void)fd;
	(void)what;
	daemon_lock(names->daemon);
	daemon_note_non_owner_event(names->daemon);
	check_file_names(names);
	schedule_check(names, CHECK_MS);
	daemon_unlock(names->daemon);
}

/* --- start and end --- */

static void watch_file_names(struct names_loop *names)
{
	struct memory *memory = memory_of(names);
	const int fd = memory->ops->watch_names ? memory->ops->watch_names(memory) : -1;

	if (fd >= 0)
		names->changed = event_new(names->daemon->base, fd, EV_READ | EV_PERSIST,
		                           on_file_names_changed, names);
	if (!names->changed)
		return;
	event_priority_set(names->changed, PRIORITY_NON_OWNERS);
	event_add(names->changed, NULL);
}

void names_loop_open(struct daemon *daemon)
{
	struct names_loop *names = calloc(1, sizeof(*names));

	if (!names)
		return;
	names->check_timer = evtimer_new(daemon->base, on_names_check_timer, names);
	if (!names->check_timer) {
		free(names);
		return;
	}
	event_priority_set(names->check_timer, PRIORITY_NON_OWNERS);
	names->daemon = daemon;
	daemon->names = names;
	watch_file_names(names);
	schedule_check(names, 0);
}

void names_loop_close(struct daemon *daemon)
{
	struct names_loop *names = daemon->names;

	if (!names)
		return;
	daemon->names = NULL;
	if (names->changed)
		event_free(names->changed);
	if (daemon->event_after_jobs == names->check_timer)
		daemon->event_after_jobs = NULL;
	event_free(names->check_timer);
	free(names);
}
