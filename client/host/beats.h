/*
 * beats.h - a thread that sends signs of life, for control_socket.c. Nothing that the handle or its
 * keeper waits for holds it up: only a process that is stopped, or gone, falls silent.
 */
#ifndef PERSEAS_CLIENT_BEATS_H
#define PERSEAS_CLIENT_BEATS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct ps_beats {
	pthread_mutex_t *lock;       /* the caller's: guards what `send` looks at, and this */
	uint64_t (*send)(void *arg); /* sends what is due, under the lock; by ps_monotonic(), when
	                                 the next is; PS_NEVER: not before the thread is woken */
	void *arg;
	pthread_cond_t woken;
	pthread_t thread;
	bool running, over;
};

void ps_beats_init(struct ps_beats *beats, pthread_mutex_t *lock, uint64_t (*send)(void *arg),
                   void *arg);

/* Under the lock: something may be due earlier. Starts the thread if there is none; where none can
 * be had, nothing is sent. */
void ps_beats_wake(struct ps_beats *beats);

/* Without the lock; when it returns the thread has ended. */
void ps_beats_end(struct ps_beats *beats);

#endif
