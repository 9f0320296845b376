/*
 * deadlock.c - see deadlock.h. Called by threads that are about to sleep. A transaction that gets
 * its turn and its locks at once must touch nothing here.
 */
#include "deadlock.h"

#include "handle.h"

#include <stdatomic.h>

enum { COUNTERS = 256 };

/* All handles of the process. The lock is acquired before that of any handle. */
static struct {
	pthread_mutex_t lock;
	struct perseas *handles;
} process = { PTHREAD_MUTEX_INITIALIZER, NULL };

static atomic_uint handle_count;

/* Number of blocked threads, by a hash of the thread. A thread counts itself before it reads the
 * counters of others: if two threads wait for each other, the later one sees the earlier one. */
static atomic_uint blocked_count[COUNTERS];

/* --- handles --- */

/* Runs in a child of fork: the parent's handles are useless there, and a thread that the child does
 * not have may hold the lock. */
static void forget_handles_in_child(void)
{
	process.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	process.handles = NULL;
	atomic_store(&handle_count, 0);
}

static void register_fork_handler(void)
{
	pthread_atfork(NULL, NULL, forget_handles_in_child);
}

void ps_deadlock_add_handle(struct perseas *p)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_fork_handler);
	pthread_mutex_lock(&process.lock);
	p->serialization.next_handle = process.handles;
	process.handles = p;
	atomic_fetch_add(&handle_count, 1);
	pthread_mutex_unlock(&process.lock);
}

void ps_deadlock_remove_handle(struct perseas *p)
{
	struct perseas **link;

	pthread_mutex_lock(&process.lock);
	for (link = &process.handles; *link && *link != p;)
		link = &(*link)->serialization.next_handle;
	if (*link) {
		*link = p->serialization.next_handle;
		atomic_fetch_sub(&handle_count, 1);
	}
	pthread_mutex_unlock(&process.lock);
}

/* --- blocked threads --- */

static atomic_uint *blocked_counter_of(uintptr_t thread)
{
	return &blocked_count[((uint64_t)thread * 0x9e3779b97f4a7c15u >> 32) % COUNTERS];
}

void ps_deadlock_add_thread(struct perseas *p, struct ps_blocked *b)
{
	ps_assert_locked(p);
	b->p = p;
	b->thread = ps_this_thread(p);
	b->next = p->serialization.blocked_threads;
	p->serialization.blocked_threads = b;
	atomic_fetch_add(blocked_counter_of(b->thread), 1);
}

void ps_deadlock_remove_thread(struct ps_blocked *b)
{
	struct ps_blocked **link = &b->p->serialization.blocked_threads;

	ps_assert_locked(b->p);
	while (*link != b)
		link = &(*link)->next;
	*link = b->next;
	atomic_fetch_sub(blocked_counter_of(b->thread), 1);
}

/* --- the search --- */

struct search {
	uintptr_t thread;           /* the thread at which a cycle begins and ends */
	struct ps_blocked *pending; /* list of threads that were reached and not yet expanded */
};

/* Returns true if the thread may be blocked. A blocked thread with the same hash also makes it
 * true. */
static bool may_be_blocked(void *unused, uintptr_t thread)
{
	(void)unused;
	return atomic_load(blocked_counter_of(thread)) != 0;
}

static bool mark_thread_reached(void *arg, uintptr_t thread)
{
	struct search *s = arg;

	if (thread == s->thread)
		return true;
	for (const struct perseas *p = process.handles; p; p = p->serialization.next_handle) {
		for (struct ps_blocked *b = p->serialization.blocked_threads; b; b = b->next) {
			if (b->thread != thread || b->is_reached)
				continue;
			b->is_reached = true;
			b->next_pending = s->pending;
			s->pending = b;
		}
	}
	return false;
}

/* Returns true if the thread of `from` waits, directly or not, for itself. Caller holds the locks
 * of all handles. */
static bool waits_for_itself(const struct ps_blocked *from)
{
	struct search search = { from->thread, NULL };
	const struct ps_visit visit = { mark_thread_reached, &search };
	bool found;

	for (const struct perseas *p = process.handles; p; p = p->serialization.next_handle)
		for (struct ps_blocked *b = p->serialization.blocked_threads; b; b = b->next)
			b->is_reached = false;
	found = from->ops->visit_blockers(from, &visit);
	while (!found && search.pending) {
		const struct ps_blocked *b = search.pending;

		search.pending = b->next_pending;
		found = b->ops->visit_blockers(b, &visit);
	}
	return found;
}

bool ps_deadlock_closes_cycle(struct ps_blocked *b)
{
	const struct ps_visit visit = { may_be_blocked, NULL };
	struct perseas *p = b->p;
	bool closes;

	if (atomic_load(&handle_count) < 2 || !b->ops->visit_blockers(b, &visit))
		return false;
	pthread_mutex_unlock(&p->lock);
	pthread_mutex_lock(&process.lock);
	for (struct perseas *other = process.handles; other;
	     other = other->serialization.next_handle)
		ps_lock(other);
	closes = b->ops->must_wait(b) && waits_for_itself(b);
	for (struct perseas *other = process.handles; other;
	     other = other->serialization.next_handle)
		if (other != p)
			pthread_mutex_unlock(&other->lock);
	pthread_mutex_unlock(&process.lock);
	return closes;
}
