/*
 * beats.c - the thread that sends signs of life. control_socket.c wakes it; it must not wait for
 * anything but the time, and takes no lock but that of the connections.
 */
#include "beats.h"

#include "../core/env.h"

#include <signal.h>
#include <time.h>

static void wait_until(struct ps_beats *beats, uint64_t until_ns)
{
	const struct timespec until = { (time_t)(until_ns / 1000000000),
		                        (long)(until_ns % 1000000000) };

	if (until_ns == PS_NEVER)
		pthread_cond_wait(&beats->woken, beats->lock);
	else
		pthread_cond_timedwait(&beats->woken, beats->lock, &until);
}

static void *run(void *arg)
{
	struct ps_beats *beats = arg;

	pthread_mutex_lock(beats->lock);
	while (!beats->over)
		wait_until(beats, beats->send(beats->arg));
	pthread_mutex_unlock(beats->lock);
	return NULL;
}

/* Signals are for the application's threads. */
static bool start(struct ps_beats *beats)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&beats->thread, NULL, run, beats);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error == 0;
}

void ps_beats_init(struct ps_beats *beats, pthread_mutex_t *lock, uint64_t (*send)(void *arg),
                   void *arg)
{
	pthread_condattr_t clock;

	*beats = (struct ps_beats){ .lock = lock, .send = send, .arg = arg };
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&beats->woken, &clock);
	pthread_condattr_destroy(&clock);
}

void ps_beats_wake(struct ps_beats *beats)
{
	if (!beats->running)
		beats->running = start(beats);
	else
		pthread_cond_signal(&beats->woken);
}

void ps_beats_end(struct ps_beats *beats)
{
	pthread_mutex_lock(beats->lock);
	beats->over = true;
	pthread_cond_signal(&beats->woken);
	pthread_mutex_unlock(beats->lock);
	if (beats->running)
		pthread_join(beats->thread, NULL);
	pthread_cond_destroy(&beats->woken);
}
