/*
 * lanes.h - threads that move the data of owners over TCP and Unix sockets, and the lock that
 * separates them from the rest of the daemon.
 *
 * A lane is the set of data connections that one thread serves. The loop has a lane, too: every
 * data connection begins there, and with --threads 1 stays there. Otherwise it moves to the lane
 * with the fewest connections once its session is known. A session has one data connection and a
 * store has one session, so one thread at a time serves a store.
 *
 * One reader-writer lock guards all stores, sessions and connections. A lane's thread is a reader
 * while it moves bytes of one connection: it reads the session and its image, and changes only the
 * image's bytes, the connection and the lane. The loop is the writer, between daemon_lock() and
 * daemon_unlock() in each of its callbacks. So is a job that has the turn, on behalf of the loop.
 * The writer ("inside the lock") uses all state of the daemon as if there were no other thread. A
 * cut is therefore complete when it returns, and only the loop closes connections. Readers and the
 * writer take turns.
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

/* Counters of the traffic of data connections. */
struct traffic {
	uint64_t received_bytes;
	uint64_t acknowledged_chains; /* chains applied and acknowledged */
};

struct lane {
	struct data_link *links;
	unsigned count;
	uint8_t *buffer; /* for recv() in target_tcp.c */
	struct traffic traffic;
	/* Times that the thread has spun, plus 1. Links store it when data arrives, so it tells
	 * which links have moved since the thread last slept. */
	uint64_t spin_count;
	uint64_t last_data_ns;     /* time when data last arrived */
	bool has_new_data;         /* data has arrived since the lane's thread last reset this */
	bool has_unreported_bytes; /* a link has received bytes that poll() does not report */
	/* The following members are for lanes with a thread. */
	struct daemon *daemon;
	int epoll_fd; /* descriptor to poll the links; -1: the loop's own lane */
	int wake_fd;  /* eventfd that wakes the thread when no socket of the lane does */
	/* Number of links that were ever taken from the lane: now, and when the thread last looked
	 * at its list of links. */
	uint64_t links_taken, links_taken_seen;
	pthread_t thread;
};

/* Starts `threads` threads; with 1, the loop serves all data. Starts fewer if the host has no more.
 * Returns 0, or -1 if memory is out. */
int lanes_open(struct daemon *daemon, unsigned threads);
/* Stops the threads. Nothing reads from the connections of their lanes any more. */
void lanes_stop(struct daemon *daemon);
/* Call after all connections are closed. */
void lanes_close(struct daemon *daemon);

/* Take and release the lock as the writer. Callbacks of the loop that use stores, sessions or data
 * connections do so between the two. */
void daemon_lock(struct daemon *daemon);
void daemon_unlock(struct daemon *daemon);
/* Defines the callback `name` of an event: it calls run() inside the lock with the event's
 * argument, a `type` that has the daemon in `member`. run() may free the argument. */
#define DAEMON_CALLBACK(name, type, member, run)                     \
	static void name(evutil_socket_t fd, short what, void *arg)  \
	{                                                            \
		struct daemon *daemon = ((const type *)arg)->member; \
                                                                     \
		(void)fd;                                            \
		(void)what;                                          \
		daemon_lock(daemon);                                 \
		run(arg);                                            \
		daemon_unlock(daemon);                               \
	}
/* For assertions: returns true if the caller, which is not a lane's thread, is inside the lock. */
bool daemon_has_lock(const struct daemon *daemon);

/* The following functions must be called inside the lock. */
/* Returns a lane by its index (0: the loop's), or NULL if there is no such lane. */
struct lane *daemon_get_lane(struct daemon *daemon, unsigned index);
/* Returns the sum of the traffic of all lanes. */
struct traffic daemon_sum_traffic(struct daemon *daemon);
/* Returns how many times the threads of all lanes have spun. */
uint64_t daemon_spin_count(struct daemon *daemon);
/* Returns the time when data last arrived in any lane. */
uint64_t daemon_last_data_ns(struct daemon *daemon);
/* Returns true if threads move the data. */
bool lanes_are_running(const struct daemon *daemon);
/* Returns the lane with the fewest links, or NULL if there are no threads. */
struct lane *lanes_least_loaded(struct daemon *daemon);
/* Wakes the lane's thread to look at lane->has_unreported_bytes. Any thread may call it. */
void lane_wake(const struct lane *lane);

/* Tells the loop that a link has ended and must be closed. For a lane's thread. */
void lane_report_ended(const struct lane *lane);

#endif
