/*
 * biased.c - the slow path of a biased lock, through its mutex: for threads that are not the
 * favorite, and for all while there is no favorite. See biased.h.
 */
#include "biased.h"

#include "env.h"

#include <stdlib.h>

void ps_biased_init(struct ps_biased *lock, struct ps_env *env)
{
	*lock = (struct ps_biased){ .env = env,
		                    .takes_in_a_row_until_favorite = PS_BIASED_FIRST_THRESHOLD };
	pthread_mutex_init(&lock->mutex, NULL);
}

void ps_biased_destroy(struct ps_biased *lock)
{
	while (lock->seats) {
		struct ps_seat *seat = lock->seats;

		lock->seats = seat->next;
		free(seat);
	}
	pthread_mutex_destroy(&lock->mutex);
}

/* Clears the favorite, and waits until the thread of `seat` is not inside its section. Caller holds
 * the mutex. */
static void revoke_favorite(struct ps_biased *lock, const struct ps_seat *seat)
{
	atomic_store_explicit(&lock->favorite, NULL, memory_order_relaxed);
	ps_section_fence(lock->env);
	while (ps_section_is_entered(&seat->section))
		ps_section_closer_sleep_briefly(lock->env);
	lock->same_thread_count = 0;
	if (lock->takes_in_a_row_until_favorite < PS_BIASED_LAST_THRESHOLD)
		lock->takes_in_a_row_until_favorite *= 2;
}

void ps_biased_lock_slowly(struct ps_biased *lock)
{
	const struct ps_seat *favorite;

	pthread_mutex_lock(&lock->mutex);
	favorite = atomic_load_explicit(&lock->favorite, memory_order_relaxed);
	if (favorite)
		revoke_favorite(lock, favorite);
	lock->held_seat = NULL;
}

/* Returns the thread's seat, which may be new, or NULL if out of memory. Caller holds the mutex. */
static struct ps_seat *find_or_make_seat(struct ps_biased *lock, uintptr_t thread)
{
	struct ps_seat *seat = lock->seats;

	while (seat && seat->thread != thread)
		seat = seat->next;
	if (seat)
		return seat;
	seat = calloc(1, sizeof(*seat));
	if (!seat)
		return NULL;
	seat->thread = thread;
	seat->next = lock->seats;
	return lock->seats = seat;
}

void ps_biased_unlock_slowly(struct ps_biased *lock)
{
	const uintptr_t self = ps_biased_this_thread();

	lock->same_thread_count = self == lock->last_thread ? lock->same_thread_count + 1 : 1;
	lock->last_thread = self;
	if (lock->env && lock->same_thread_count >= lock->takes_in_a_row_until_favorite)
		atomic_store_explicit(&lock->favorite, find_or_make_seat(lock, self),
		                      memory_order_release);
	pthread_mutex_unlock(&lock->mutex);
}
