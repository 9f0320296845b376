/*
 * heartbeat_thread.c - see heartbeat_thread.h. The thread waits for nothing but the time and
 * wake-ups, and takes no lock but the connections'.
 */
#include "heartbeat_thread.h"

#include "../core/env.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <time.h>

static void wait_until(struct ps_heartbeats *heartbeats, uint64_t until_ns)
{
	const struct timespec until = { (time_t)(until_ns / 1000000000),
		                        (long)(until_ns % 1000000000) };

	if (until_ns == PS_NEVER)
		pthread_cond_wait(&heartbeats->woken, heartbeats->lock);
	else
		pthread_cond_timedwait(&heartbeats->woken, heartbeats->lock, &until);
}

static void *run_heartbeats(void *arg)
{
	struct ps_heartbeats *heartbeats = arg;

	pthread_mutex_lock(heartbeats->lock);
	while (!heartbeats->over)
		wait_until(heartbeats, heartbeats->send(heartbeats->arg));
	pthread_mutex_unlock(heartbeats->lock);
	return NULL;
}

/* Starts the thread with all signals blocked: they belong to the application's threads. */
static bool start_thread(struct ps_heartbeats *heartbeats)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&heartbeats->thread, NULL, run_heartbeats, heartbeats);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error == 0;
}

void ps_heartbeats_init(struct ps_heartbeats *heartbeats, pthread_mutex_t *lock,
                        uint64_t (*send)(void *arg), void *arg)
{
	pthread_condattr_t clock;

	*heartbeats = (struct ps_heartbeats){ .lock = lock, .send = send, .arg = arg };
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&heartbeats->woken, &clock);
	pthread_condattr_destroy(&clock);
}

void ps_heartbeats_wake(struct ps_heartbeats *heartbeats)
{
	assert(pthread_mutex_trylock(heartbeats->lock) == EBUSY);
	if (!heartbeats->running)
		heartbeats->running = start_thread(heartbeats);
	else
		pthread_cond_signal(&heartbeats->woken);
}

void ps_heartbeats_end(struct ps_heartbeats *heartbeats)
{
	pthread_mutex_lock(heartbeats->lock);
	heartbeats->over = true;
	pthread_cond_signal(&heartbeats->woken);
	pthread_mutex_unlock(heartbeats->lock);
	if (heartbeats->running)
		pthread_join(heartbeats->thread, NULL);
	pthread_cond_destroy(&heartbeats->woken);
}
