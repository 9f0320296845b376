/*
 * excess_loop.c - while memory is shared with owners, checks once a second whether an owner has
 * extended the files that it was given, and cuts its session when no request is running. The daemon
 * calls it after it has shared memory and after it has loaded images.
 */
#include "daemon.h"

#include <event2/event.h>

static void run_cut_excess(struct job *job)
{
	struct daemon *daemon = (struct daemon *)((char *)job -
	                                          offsetof(struct daemon, cut_excess_job));

	(void)stores_cut_excess(daemon->stores);
}

static void check_excess(struct daemon *daemon)
{
	if (daemon->phase == DAEMON_ENDING || daemon->exclusive_job ||
	    stores_excess(daemon->stores) == 0)
		return;
	if (daemon->event_after_jobs ||
	    daemon_defer_event_until_no_jobs(daemon, daemon->memory_excess_timer))
		return;
	daemon->cut_excess_job = (struct job){ .run = run_cut_excess };
	daemon_run_exclusive_job(daemon, &daemon->cut_excess_job);
}

static void on_excess_timer(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;

	(void)fd;
	(void)what;
	daemon_lock(daemon);
	check_excess(daemon);
	if (stores_share_memory(daemon->stores))
		daemon_start_excess_checks(daemon);
	daemon_unlock(daemon);
}

int daemon_open_excess_check(struct daemon *daemon)
{
	daemon->memory_excess_timer = evtimer_new(daemon->base, on_excess_timer, daemon);
	return daemon->memory_excess_timer ? 0 : -1;
}

void daemon_close_excess_check(struct daemon *daemon)
{
	if (daemon->memory_excess_timer)
		event_free(daemon->memory_excess_timer);
}

void daemon_start_excess_checks(struct daemon *daemon)
{
	if (!evtimer_pending(daemon->memory_excess_timer, NULL))
		evtimer_add(daemon->memory_excess_timer, &(struct timeval){ .tv_sec = 1 });
}
