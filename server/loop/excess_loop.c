/*
 * excess_loop.c - looks once a second, while memory is shared, whether an owner made the files that
 * it was given longer. The daemon calls it when it has given memory, and when it has loaded images.
 * Whoever exceeds its share is cut off while no request is under way.
 */
#include "daemon.h"

#include <event2/event.h>

static void run_cut(struct job *job)
{
	struct daemon *daemon = (struct daemon *)((char *)job - offsetof(struct daemon, excess));

	(void)stores_cut_excess(daemon->stores);
}

static void look(struct daemon *daemon)
{
	if (daemon->phase == DAEMON_ENDING || daemon->alone || stores_excess(daemon->stores) == 0)
		return;
	if (daemon->deferred || daemon_defer(daemon, daemon->second))
		return;
	daemon->excess = (struct job){ .run = run_cut };
	daemon_alone(daemon, &daemon->excess);
}

static void on_second(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *daemon = arg;

	(void)fd;
	(void)what;
	daemon_enter(daemon);
	look(daemon);
	if (stores_share_memory(daemon->stores))
		daemon_watch_excess(daemon);
	daemon_leave(daemon);
}

int daemon_open_excess(struct daemon *daemon)
{
	daemon->second = evtimer_new(daemon->base, on_second, daemon);
	return daemon->second ? 0 : -1;
}

void daemon_close_excess(struct daemon *daemon)
{
	if (daemon->second)
		event_free(daemon->second);
}

void daemon_watch_excess(struct daemon *daemon)
{
	if (!evtimer_pending(daemon->second, NULL))
		evtimer_add(daemon->second, &(struct timeval){ .tv_sec = 1 });
}
