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
	pthread_mutex_t *lock;       /* the caller's: guards what `send` looks at, and this */
	uint64_t (*send)(void *arg); /* sends what is due, under the lock; by ps_monotonic(), when
	                                 the next is; PS_NEVER: not before the thread is woken */
	void *arg;
	pthread_cond_t woken;
	pthread_t thread;
	bool running, over;
};

void ps_heartbeats_init(struct ps_heartbeats *heartbeats, pthread_mutex_t *lock,
                        uint64_t (*send)(void *arg), void *arg);

/* Under the lock: something may be due earlier. Starts the thread if there is none; where none can
 * be had, nothing is sent. */
void ps_heartbeats_wake(struct ps_heartbeats *heartbeats);

/* Without the lock; when it returns the thread has ended. */
void ps_heartbeats_end(struct ps_heartbeats *heartbeats);

#endif
