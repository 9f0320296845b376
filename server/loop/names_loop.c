/*
 * names_loop.c - notices when files of images are removed or renamed, and has the images copied to
 * new files. main.c opens it when the daemon serves. The kernel reports changes of names in the
 * memory directory. Whether the directory itself is in place is checked every second, because
 * nothing reports a file system that is unmounted.
 */
#include "daemon.h"

#include "../host/jobs.h"
#include "../host/pause.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

enum {
	LOOK_MS = 1000, /* between two checks */
	/* Delay of the check after a change, because several files are usually removed together,
	 * and then their folder. */
	SOON_MS = 200,
};

struct names_loop {
	struct job job; /* must be first */
	struct daemon *daemon;
	struct event *look;    /* timer: every LOOK_MS, or earlier */
	struct event *changed; /* NULL: the kernel does not report changes */
	bool under_way;        /* the job is running */
	bool told;             /* the kernel reports all changes */
	bool due;              /* names may have changed since the last check */
	struct pause pause;    /* between two repairs */
	char trouble[512];     /* what is wrong with the directory */
};

static struct memory *memory_of(const struct names_loop *names)
{
	return stores_memory(names->daemon->stores);
}

static void check_in(struct names_loop *names, unsigned ms)
{
	const struct timeval time = { .tv_sec = ms / 1000, .tv_usec = (long)(ms % 1000) * 1000 };

	evtimer_add(names->look, &time);
}

static void on_changed(evutil_socket_t fd, short what, void *arg)
{
	struct names_loop *names = arg;

	(void)fd;
	(void)what;
	daemon_enter(names->daemon);
	daemon_note_other_event(names->daemon);
	names->told = memory_of(names)->ops->seen(memory_of(names));
	/* Continuous changes must not postpone the check. */
	if (!names->due)
		check_in(names, SOON_MS);
	names->due = true;
	daemon_leave(names->daemon);
}

/* --- repairs --- */

static void run_mending(struct job *job)
{
	stores_mend_names(((struct names_loop *)job)->daemon->stores);
}

/* Runs alone. If other jobs are running, the timer event calls this again when they have ended. */
static void begin_repair(struct names_loop *names)
{
	struct daemon *daemon = names->daemon;

	if (names->under_way || !pause_is_over(&names->pause, daemon_now_ns()) ||
	    (daemon->deferred && daemon->deferred != names->look) ||
	    daemon_defer(daemon, names->look))
		return;
	names->under_way = true;
	names->job.run = run_mending;
	daemon_run_exclusive(daemon, &names->job);
}

static void end_mending(struct names_loop *names)
{
	if (!names->under_way || !names->job.over)
		return;
	names->under_way = false;
	pause_begin(&names->pause, daemon_now_ns());
	names->due = true;
}

/* --- checks --- */

/* Logs each fault of the directory once. */
static void check_directory(struct names_loop *names)
{
	struct memory *memory = memory_of(names);
	char trouble[sizeof(names->trouble)] = "";

	if (memory->ops->settle)
		(void)memory->ops->settle(memory, trouble, sizeof(trouble));
	if (strcmp(trouble, names->trouble) == 0)
		return;
	names->due = true;
	memcpy(names->trouble, trouble, sizeof(trouble));
	if (trouble[0])
		log_event(LOG_LEVEL_ERROR, "memory-directory", NULL, "%s", trouble);
}

static void check_names(struct names_loop *names)
{
	struct memory *memory = memory_of(names);

	end_mending(names);
	check_directory(names);
	if (!names->told) {
		names->told = memory->ops->seen && memory->ops->seen(memory);
		names->due = true;
	}
	if (names->due && stores_check_names(names->daemon->stores, &names->due))
		begin_repair(names);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	struct names_loop *names = arg;

	(void)fd;
	(void)what;
	daemon_enter(names->daemon);
	daemon_note_other_event(names->daemon);
	check_names(names);
	check_in(names, LOOK_MS);
	daemon_leave(names->daemon);
}

/* --- start and end --- */

static void watch_names(struct names_loop *names)
{
	struct memory *memory = memory_of(names);
	const int fd = memory->ops->watch ? memory->ops->watch(memory) : -1;

	if (fd >= 0)
		names->changed = event_new(names->daemon->base, fd, EV_READ | EV_PERSIST,
		                           on_changed, names);
	if (!names->changed)
		return;
	event_priority_set(names->changed, PRIORITY_OTHERS);
	event_add(names->changed, NULL);
}

void names_open(struct daemon *daemon)
{
	struct names_loop *names = calloc(1, sizeof(*names));

	if (!names)
		return;
	names->look = evtimer_new(daemon->base, on_look, names);
	if (!names->look) {
		free(names);
		return;
	}
	event_priority_set(names->look, PRIORITY_OTHERS);
	names->daemon = daemon;
	daemon->names = names;
	watch_names(names);
	check_in(names, 0);
}

void names_close(struct daemon *daemon)
{
	struct names_loop *names = daemon->names;

	if (!names)
		return;
	daemon->names = NULL;
	if (names->changed)
		event_free(names->changed);
	if (daemon->deferred == names->look)
		daemon->deferred = NULL;
	event_free(names->look);
	free(names);
}
