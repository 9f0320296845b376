/*
 * deadlock.h - which threads wait for which, over all handles of the process. Inside one handle the
 * rules of turn.c and locks.c let no cycle of waiting threads close. A thread that has a turn or
 * a lock in one store and waits in another can close one: its wait is refused.
 *
 * The edges of the wait-for graph are not stored. Each handle has a list of its blocked threads,
 * and for each of these the threads that it waits for follow from the handle's turn, locks and
 * wants. So only a wait that begins can close a cycle: a thread that gets a turn or a lock is
 * running, has no edges of its own, and edges that come to lead to it close nothing. Each wait is
 * therefore examined once, when it begins.
 *
 * A thread puts itself on the list first, and then searches with the locks of all handles. Of two
 * threads that close a cycle together, the second to search finds the first on the list. Before it
 * takes these locks a thread looks in a table of counters whether any thread that it waits for is
 * blocked: if none is, it closes no cycle.
 */
#ifndef PERSEAS_CLIENT_DEADLOCK_H
#define PERSEAS_CLIENT_DEADLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct perseas;
struct ps_blocked;

/* The callback of a search, called with each thread that another thread waits for. */
struct ps_visit {
	/* Returns true to end the search. */
	bool (*thread)(void *arg, uintptr_t thread);
	void *arg; /* passed to `thread` */
};

/* The caller holds the lock of the handle that the thread is blocked in. */
struct ps_blocked_ops {
	/* Returns true while the thread must wait. Called only by the thread itself. */
	bool (*must_wait)(const struct ps_blocked *b);
	/* Visits each thread that must release something before this thread can go on, until a
	 * visit returns true. Returns true if one did. Called by any thread. */
	bool (*visit_blockers)(const struct ps_blocked *b, const struct ps_visit *visit);
};

/* A thread that waits for a turn or a lock (serialization.h). Lives on that thread's stack. */
struct ps_blocked {
	const struct ps_blocked_ops *ops;
	struct perseas *p;
	uintptr_t thread;
	struct ps_blocked *next; /* next blocked thread of the same handle */
	struct ps_blocked
		*next_pending; /* next thread that the search has reached but not expanded */
	bool is_reached;       /* the search has reached this thread */
};

/* Add a handle to the list of all handles of the process, and remove it. Caller holds the lock of
 * no handle. */
void ps_deadlock_add_handle(struct perseas *p);
void ps_deadlock_remove_handle(struct perseas *p);

/* Add the calling thread to the handle's list of blocked threads, and remove it. Caller holds
 * p->lock. */
void ps_deadlock_add_thread(struct perseas *p, struct ps_blocked *b);
void ps_deadlock_remove_thread(struct ps_blocked *b);

/* Returns true if the calling thread must wait, and its wait would close a cycle of threads that
 * wait for each other. Caller holds b->p->lock, which is released in between. */
bool ps_deadlock_closes_cycle(struct ps_blocked *b);

#endif
