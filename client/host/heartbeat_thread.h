/*
 * heartbeat_thread.h - a thread that sends heartbeats for control_socket.c. Nothing that the handle
 * or its keeper waits for delays it: heartbeats stop only if the process is stopped or has ended.
 */
#ifndef PERSEAS_CLIENT_HEARTBEAT_THREAD_H
#define PERSEAS_CLIENT_HEARTBEAT_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct ps_heartbeats {
	/* Lock of the caller, which guards this struct and what `send` reads. */
	pthread_mutex_t *lock;
	/* Sends the heartbeats that are due. Returns the time of the next one, by ps_monotonic(),
	 * or PS_NEVER to sleep until ps_heartbeats_wake. Called with the lock. */
	uint64_t (*send)(void *arg);
	void *arg;
	pthread_cond_t woken;
	pthread_t thread;
	bool running, over; /* the thread was started; it must end */
};

void ps_heartbeats_init(struct ps_heartbeats *heartbeats, pthread_mutex_t *lock,
                        uint64_t (*send)(void *arg), void *arg);

/* Wakes the thread because something may be due earlier, and starts it first if necessary. If it
 * cannot be started, no heartbeats are sent. The caller holds the lock. */
void ps_heartbeats_wake(struct ps_heartbeats *heartbeats);

/* Ends the thread, and waits for that. The caller does not hold the lock. */
void ps_heartbeats_end(struct ps_heartbeats *heartbeats);

#endif
