/*
 * excess_loop.c - while memory is shared with owners, checks once a second whether an owner has
 * extended the files that it was given, and cuts its session when no request is running. The daemon
 * calls it after it has shared memory and after it has loaded images.
 */
#include "daemon.h"

#include <event2/event.h>

static void run_cut(struct job *job)
{
	struct daemon *daemon = (struct daemon *)((char *)job - offsetof(struct daemon, excess));

	(void)stores_cut_excess(daemon->stores);
}

static void cut_excess(struct daemon *daemon)
{
	if (daemon->phase == DAEMON_ENDING || daemon->exclusive_job ||
	    stores_excess(daemon->stores) == 0)
		return;
	if (daemon->deferred || daemon_defer(daemon, daemon->excess_timer))
		return;
	daemon->excess = (struct job){ .run = run_cut };
	daemon_run_exclusive(daemon, &daemon->excess);
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;

	(void)fd;
	(void)what;
	daemon_enter(daemon);
	cut_excess(daemon);
	if (stores_share_memory(daemon->stores))
		daemon_watch_excess(daemon);
	daemon_leave(daemon);
}

int daemon_open_excess(struct daemon *daemon)
{
	daemon->excess_timer = evtimer_new(daemon->base, on_second, daemon);
	return daemon->excess_timer ? 0 : -1;
}

void daemon_close_excess(struct daemon *daemon)
{
	if (daemon->excess_timer)
		event_free(daemon->excess_timer);
}

void daemon_watch_excess(struct daemon *daemon)
{
	if (!evtimer_pending(daemon->excess_timer, NULL))
		evtimer_add(daemon->excess_timer, &(struct timeval){ .tv_sec = 1 });
}
