/*
 * biased.h - a lock that is nearly free for a thread that takes it again and again while no other
 * does (Dice, Moir and Scherer, "Quickly reacquirable locks", 2003). The heap has one, which a
 * transaction takes for each object: an atomic operation would be a good part of that cost.
 *
 * The thread that has taken the lock often enough in a row becomes its favorite. While the favorite
 * holds the lock it is inside a section (section.h), which is closed when the favorite changes:
 * another thread takes the mutex, clears the favorite, and waits until the old one is not inside.
 *
 * Each thread has a seat with a section of its own. If a thread is preempted between entering its
 * section and checking that it is still the favorite, it later leaves its own section, not that of
 * the new favorite.
 *
 * A thread that holds the lock must not wait for anything, and must not take the lock again.
 */
#ifndef PERSEAS_CLIENT_BIASED_H
#define PERSEAS_CLIENT_BIASED_H

#include "section.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ps_env;

enum {
	/* Takes in a row that make a favorite, at first. */
	PS_BIASED_FIRST_THRESHOLD = 256,
	/* The most that this grows to: it doubles each time a favorite is revoked. */
	PS_BIASED_LAST_THRESHOLD = 1 << 14,
};

/* Belongs to a thread that is, or was, the favorite. Lives as long as the lock. */
struct ps_seat {
	struct ps_seat *next;
	uintptr_t thread;          /* the thread that the seat belongs to */
	struct ps_section section; /* entered while the thread holds the lock without the mutex */
};

struct ps_biased {
	struct ps_seat *_Atomic favorite; /* NULL: no favorite */
	/* The seat through which the lock is held; NULL: through the mutex. */
	struct ps_seat *held_seat;
	/* The env whose barrier works; NULL: the lock never has a favorite. */
	struct ps_env *env;
	pthread_mutex_t mutex;
	/* Guarded by the mutex. */
	struct ps_seat *seats;
	uintptr_t last_thread;      /* the thread that took the mutex last */
	unsigned same_thread_count; /* how often in a row `last_thread` took it */
	/* how often in a row a thread must take it to become the favorite */
	unsigned takes_in_a_row_until_favorite;
};

/* Initializes a lock. env's barrier must work, and env must outlive the lock; NULL: no barrier
 * works. */
void ps_biased_init(struct ps_biased *lock, struct ps_env *env);
void ps_biased_destroy(struct ps_biased *lock);

void ps_biased_lock_slowly(struct ps_biased *lock);
void ps_biased_unlock_slowly(struct ps_biased *lock);

/* Returns a number for the calling thread that no other living thread has. */
static inline uintptr_t ps_biased_this_thread(void)
{
#if defined(__x86_64__)
	uintptr_t self;

	/* The ABI keeps the thread pointer at %fs:0. Reading it is pthread_self without a call. */
	__asm__("mov %%fs:0, %0" : "=r"(self));
	return self;
#else
	return (uintptr_t)pthread_self();
#endif
}

/* Takes the lock. May sleep while another thread holds it. */
static inline void ps_biased_lock(struct ps_biased *lock)
{
	struct ps_seat *seat = atomic_load_explicit(&lock->favorite, memory_order_acquire);

	if (seat && seat->thread == ps_biased_this_thread()) {
		ps_section_enter(&seat->section);
		if (atomic_load_explicit(&lock->favorite, memory_order_relaxed) == seat) {
			lock->held_seat = seat;
			return;
		}
		ps_section_leave(&seat->section);
	}
	ps_biased_lock_slowly(lock);
}

static inline void ps_biased_unlock(struct ps_biased *lock)
{
	if (lock->held_seat)
		ps_section_leave(&lock->held_seat->section);
	else
		ps_biased_unlock_slowly(lock);
}

#endif
