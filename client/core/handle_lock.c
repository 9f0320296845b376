/*
 * handle_lock.c - acquiring the handle's lock under contention, and identifying the calling thread
 * and process.
 */
#include "serialization.h"

#include <stdatomic.h>
#include <unistd.h>

enum { LOCK_TRIES = 50, LOCK_PAUSES = 16 }; /* some microseconds altogether */

void ps_handle_lock_contended(struct perseas *p)
{
	for (unsigned i = 0; i < LOCK_TRIES; i++) {
		for (unsigned pause = 0; pause < LOCK_PAUSES; pause++)
			ps_cpu_relax();
		if (!pthread_mutex_trylock(&p->lock))
			return;
	}
	pthread_mutex_lock(&p->lock);
}

uintptr_t ps_this_thread(struct perseas *p)
{
	static atomic_uintptr_t threads;
	static _Thread_local uintptr_t number;

	if (p->env->ops->thread)
		return p->env->ops->thread(p->env);
	/* The number is not an address, because a later thread may get the address of one that has
	 * ended. */
	if (!number)
		number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
	return number;
}

int ps_check_same_process(const struct perseas *p)
{
	if (p->serialization.opener_pid == getpid())
		return 0;
	return ps_fail(p, PERSEAS_EINVAL,
	               "a child of fork has neither its parent's threads nor the memory of its "
	               "segments: it must open store '%s' itself",
	               p->store);
}

void ps_sleep_for(struct perseas *p, uint64_t pause_ns)
{
	const uint64_t until = ps_now(p) + pause_ns;

	while (ps_now(p) < until)
		p->env->ops->pause(p->env, PS_UNWOKEN, NULL, 0, until);
}
