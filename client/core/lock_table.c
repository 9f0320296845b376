/*
 * lock_table.c - see lock_table.h. locks.c decides which transaction may have a lock.
 */
#include "lock_table.h"

#include <stdlib.h>

enum { LOCKS = 1024 }; /* chains of them: a power of 2 */

static struct ps_lock **place(struct perseas *p, uint64_t key)
{
	return &p->apart.locks[(key * 0x9e3779b97f4a7c15u >> 32) % LOCKS];
}

struct ps_lock *ps_lock_find(struct perseas *p, uint64_t key)
{
	struct ps_lock *lock = p->apart.locks ? *place(p, key) : NULL;

	while (lock && lock->key != key)
		lock = lock->next;
	return lock;
}

struct ps_lock *ps_lock_find_or_make(struct perseas *p, uint64_t key)
{
	struct ps_lock *lock = ps_lock_find(p, key), **chain;

	if (lock)
		return lock;
	if (!p->apart.locks)
		p->apart.locks = calloc(LOCKS, sizeof(*p->apart.locks));
	lock = p->apart.locks ? calloc(1, sizeof(*lock)) : NULL;
	if (!lock)
		return NULL;
	chain = place(p, key);
	lock->key = key;
	lock->next = *chain;
	return *chain = lock;
}

void ps_lock_drop_if_unused(struct perseas *p, struct ps_lock *lock)
{
	struct ps_lock **link = place(p, lock->key);

	if (lock->holds || lock->wants)
		return;
	while (*link != lock)
		link = &(*link)->next;
	*link = lock->next;
	free(lock);
}

static void free_holds(struct ps_hold *hold)
{
	while (hold) {
		struct ps_hold *next = hold->next;

		free(hold);
		hold = next;
	}
}

static void free_wants(struct ps_want *want)
{
	while (want) {
		struct ps_want *more = want->more;

		free(want);
		want = more;
	}
}

void ps_locks_free(struct perseas *p)
{
	for (const struct perseas_tx *tx = p->commit.all_list; tx; tx = tx->all)
		free_wants(tx->wants);
	for (unsigned i = 0; p->apart.locks && i < LOCKS; i++) {
		for (struct ps_lock *lock = p->apart.locks[i], *next; lock; lock = next) {
			next = lock->next;
			free_holds(lock->holds);
			free(lock);
		}
	}
	free(p->apart.locks);
}

unsigned ps_locks_count(const struct perseas_tx *tx)
{
	unsigned count = 0;

	for (const struct ps_hold *hold = tx->holds; hold; hold = hold->more)
		count++;
	return count;
}

void ps_want_add(struct ps_want *want)
{
	want->next = want->lock->wants;
	want->lock->wants = want;
}

void ps_want_remove(const struct ps_want *want)
{
	struct ps_want **link = &want->lock->wants;

	while (*link != want)
		link = &(*link)->next;
	*link = want->next;
}

static void release(struct ps_hold *hold)
{
	struct ps_hold **link = &hold->lock->holds;

	while (*link != hold)
		link = &(*link)->next;
	*link = hold->next;
	ps_lock_drop_if_unused(hold->tx->p, hold->lock);
	free(hold);
}

void ps_locks_let_go(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;
	struct ps_hold *hold = tx->holds;

	while (hold) {
		struct ps_hold *more = hold->more;

		release(hold);
		hold = more;
	}
	if (tx->more & PS_MORE_SERIAL)
		ps_serial_pass(p);
	if (tx->holds)
		ps_apart_wake(p);
	tx->holds = NULL;
	tx->refused.is = false;
	tx->age = tx->saw = 0;
	tx->more &= (uint8_t) ~(PS_MORE_SERIAL | PS_MORE_LOCKS);
}

static void want_nothing(struct perseas_tx *tx)
{
	while (tx->wants) {
		struct ps_want *want = tx->wants;

		tx->wants = want->more;
		ps_want_remove(want);
		ps_lock_drop_if_unused(tx->p, want->lock);
		free(want);
	}
}

void ps_apart_end(struct perseas_tx *tx)
{
	ps_assert_locked(tx->p);
	if (tx->wants) {
		want_nothing(tx);
		ps_apart_wake(tx->p);
	}
	ps_locks_let_go(tx);
}
