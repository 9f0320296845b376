/*
 * biased.h - a lock that costs next to nothing for a thread that takes it again and again while no
 * other does (Dice, Moir and Scherer, "Quickly reacquirable locks", 2003). The heap has one, which
 * a transaction takes for each object: an atomic operation is a good part of what that costs.
 *
 * The thread that has taken it often enough in a row becomes its favourite. What the favourite does
 * with the lock is a section (section.h), which is closed when the favourite changes: another
 * thread takes the mutex, sets the favourite to none, and waits until the old one is not inside.
 *
 * Each thread has a seat with a section of its own, which it keeps: a thread that is sent to sleep
 * between entering and its second look, and wakes when another thread is the favourite, leaves its
 * own section and not that one's.
 *
 * A thread that has the lock must not wait for anything, and must not take the lock again.
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
	PS_BIASED_FEW = 256, /* times in a row after which a thread is the favourite at first */
	PS_BIASED_MANY = 1 << 14, /* the same at most: it doubles each time that another comes */
};

/* Belongs to a thread that is, or was, the favourite. Exists until the lock is destroyed. */
struct ps_seat {
	struct ps_seat *next;
	uintptr_t thread;
	struct ps_section section; /* while the thread has the lock without the mutex */
};

struct ps_biased {
	struct ps_seat *_Atomic favourite; /* NULL: there is none */
	struct ps_seat *by;                /* who has the lock has it so; NULL: by the mutex */
	struct ps_env *env;                /* its barrier works; NULL: there is never a favourite */
	pthread_mutex_t mutex;
	/* With the mutex. */
	struct ps_seat *seats;
	uintptr_t last;  /* the thread that took it last */
	unsigned times;  /* so often in a row */
	unsigned wanted; /* so often it must, to become the favourite */
};

/* env: whose barrier works, and which outlives the lock; NULL: none does. */
void ps_biased_init(struct ps_biased *lock, struct ps_env *env);
void ps_biased_destroy(struct ps_biased *lock);

void ps_biased_lock_slowly(struct ps_biased *lock);
void ps_biased_unlock_slowly(struct ps_biased *lock);

/* The calling thread: no other one that lives has this number. */
static inline uintptr_t ps_biased_self(void)
{
#if defined(__x86_64__)
	uintptr_t self;

	/* The thread pointer, which the ABI has there: pthread_self without a call. */
	__asm__("mov %%fs:0, %0" : "=r"(self));
	return self;
#else
	return (uintptr_t)pthread_self();
#endif
}

/* May sleep for as long as another thread has it. */
static inline void ps_biased_lock(struct ps_biased *lock)
{
	struct ps_seat *seat = atomic_load_explicit(&lock->favourite, memory_order_acquire);

	if (seat && seat->thread == ps_biased_self()) {
		ps_section_enter(&seat->section);
		if (atomic_load_explicit(&lock->favourite, memory_order_relaxed) == seat) {
			lock->by = seat;
			return;
		}
		ps_section_leave(&seat->section);
	}
	ps_biased_lock_slowly(lock);
}

static inline void ps_biased_unlock(struct ps_biased *lock)
{
	if (lock->by)
		ps_section_leave(&lock->by->section);
	else
		ps_biased_unlock_slowly(lock);
}

#endif
