/*
 * lanes.h - the threads that carry the data of owners over TCP and Unix sockets, and what keeps
 * them apart from the rest of the daemon.
 *
 * A lane is the data connections that one thread serves. The loop has a lane of its own: every data
 * connection begins there, and with --threads 1 stays there. Otherwise its session moves it to the
 * lane that has the fewest. A session has one data connection and a store one session, so a store
 * belongs to one thread at a time.
 *
 * All stores, sessions and connections are guarded by one lock for readers and a writer. A lane's
 * thread is a reader while it moves bytes of one connection: it looks at the session and its image,
 * and changes nothing but the image's bytes, the connection and the lane. The loop is the writer,
 * between daemon_enter() and daemon_leave() in each of its callbacks, and so is a job that has the
 * turn, on its behalf: whoever is inside uses all of the daemon's state as if there were no other
 * thread. So a cut is over when it returns, and a connection is closed on the loop alone. Readers
 * and the writer let each other in by turns.
 */
#ifndef PERSEAS_SERVER_LANES_H
#define PERSEAS_SERVER_LANES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct data_link;
struct event;
struct lanes;

/* What data connections have brought. */
struct traffic {
	uint64_t bytes;  /* received */
	uint64_t chains; /* applied and answered */
};

struct lane {
	struct data_link *links;
	unsigned count;
	uint8_t *buffer; /* that recv() fills; target_tcp.c's */
	struct traffic traffic;
	uint64_t spins;   /* times that it has spun: marks the links that moved since */
	uint64_t data_ns; /* when data came last */
	bool moved;       /* data came since its thread last asked */
	bool again;       /* a link has bytes that no poll tells of */
	/* Of a lane with a thread: */
	struct daemon *daemon;
	int epoll; /* -1: the loop's own lane */
	int wake;  /* an eventfd: there is something that no connection's socket tells of */
	uint64_t changes, seen; /* links that were taken from it, ever and before the last poll */
	pthread_t thread;
};

/* Starts so many threads; 1: none, the loop serves all. Fewer where the host gives no more. -1: out
 * of memory. */
int lanes_open(struct daemon *daemon, unsigned threads);
/* Ends the threads: from now on nobody reads from the connections of their lanes. */
void lanes_stop(struct daemon *daemon);
/* After all connections were closed. */
void lanes_close(struct daemon *daemon);

/* Around each of the loop's callbacks that uses stores, sessions or data connections. */
void daemon_enter(struct daemon *daemon);
void daemon_leave(struct daemon *daemon);
/*
 * Defines a callback of an event that calls `run`, inside, with its argument: a `type` that has the
 * daemon at this member, and that may be gone when `run` returns.
 */
#define DAEMON_CALLBACK(name, type, member, run)                     \
	static void name(evutil_socket_t fd, short what, void *arg)  \
	{                                                            \
		struct daemon *daemon = ((const type *)arg)->member; \
                                                                     \
		(void)fd;                                            \
		(void)what;                                          \
		daemon_enter(daemon);                                \
		run(arg);                                            \
		daemon_leave(daemon);                                \
	}
/* For assertions: may the caller, which is no lane's thread, use them? */
bool daemon_is_inside(const struct daemon *daemon);

/* Inside, for target_tcp.c and for counting: all lanes, the loop's first; NULL after the last. */
struct lane *daemon_lane(struct daemon *daemon, unsigned index);
struct traffic daemon_traffic(struct daemon *daemon);
uint64_t daemon_spins(struct daemon *daemon);
uint64_t daemon_data_ns(struct daemon *daemon);
/* Is data carried by threads? */
bool lanes_run(const struct daemon *daemon);
/* The lane with a thread that has the fewest links; NULL: there are no threads. */
struct lane *lanes_pick(struct daemon *daemon);
/* Makes its thread look at lane->again. Any thread's. */
void lane_wake(const struct lane *lane);

/* For a lane's thread: a link has ended, and the loop is to close it. */
void lane_tell_ended(const struct lane *lane);

#endif
