/*
 * lock_table.c - see lock_table.h. locks.c decides which transaction may have a lock.
 */
#include "lock_table.h"

#include <stdlib.h>

enum { LOCKS = 1024 }; /* number of hash chains, a power of 2 */

static struct ps_lock **hash_chain(struct perseas *p, uint64_t key)
{
	return &p->serialization.lock_table[(key * 0x9e3779b97f4a7c15u >> 32) % LOCKS];
}

struct ps_lock *ps_lock_find(struct perseas *p, uint64_t key)
{
	struct ps_lock *lock = p->serialization.lock_table ? *hash_chain(p, key) : NULL;

	while (lock && lock->key != key)
		lock = lock->next;
	return lock;
}

struct ps_lock *ps_lock_find_or_make(struct perseas *p, uint64_t key)
{
	struct ps_lock *lock = ps_lock_find(p, key), **chain;

	if (lock)
		return lock;
	if (!p->serialization.lock_table)
		p->serialization.lock_table = calloc(LOCKS, sizeof(*p->serialization.lock_table));
	lock = p->serialization.lock_table ? calloc(1, sizeof(*lock)) : NULL;
	if (!lock)
		return NULL;
	chain = hash_chain(p, key);
	lock->key = key;
	lock->next = *chain;
	return *chain = lock;
}

void ps_lock_drop_if_unused(struct perseas *p, struct ps_lock *lock)
{
	struct ps_lock **link = hash_chain(p, lock->key);

	if (lock->holds || lock->wants)
		return;
	while (*link != lock)
		link = &(*link)->next;
	*link = lock->next;
	free(lock);
}

static void free_holds(struct ps_lock_hold *hold)
{
	while (hold) {
		struct ps_lock_hold *next = hold->next;

		free(hold);
		hold = next;
	}
}

static void free_wants(struct ps_lock_want *want)
{
	while (want) {
		struct ps_lock_want *next = want->next_of_tx;

		free(want);
		want = next;
	}
}

void ps_locks_free(struct perseas *p)
{
	for (const struct perseas_tx *tx = p->commit.all_list; tx; tx = tx->next_in_pool)
		free_wants(tx->lock_wants);
	for (unsigned i = 0; p->serialization.lock_table && i < LOCKS; i++) {
		for (struct ps_lock *lock = p->serialization.lock_table[i], *next; lock;
		     lock = next) {
			next = lock->next;
			free_holds(lock->holds);
			free(lock);
		}
	}
	free(p->serialization.lock_table);
}

unsigned ps_locks_count(const struct perseas_tx *tx)
{
	unsigned count = 0;

	for (const struct ps_lock_hold *hold = tx->lock_holds; hold; hold = hold->next_of_tx)
		count++;
	return count;
}

void ps_lock_add_want(struct ps_lock_want *want)
{
	want->next = want->lock->wants;
	want->lock->wants = want;
}

void ps_lock_remove_want(const struct ps_lock_want *want)
{
	struct ps_lock_want **link = &want->lock->wants;

	while (*link != want)
		link = &(*link)->next;
	*link = want->next;
}

static void release_hold(struct ps_lock_hold *hold)
{
	struct ps_lock_hold **link = &hold->lock->holds;

	while (*link != hold)
		link = &(*link)->next;
	*link = hold->next;
	ps_lock_drop_if_unused(hold->tx->p, hold->lock);
	free(hold);
}

void ps_locks_release(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;
	struct ps_lock_hold *hold = tx->lock_holds;

	while (hold) {
		struct ps_lock_hold *next = hold->next_of_tx;

		release_hold(hold);
		hold = next;
	}
	if (tx->traits & PS_TX_SERIAL)
		ps_turn_give_to_next(p);
	if (tx->lock_holds)
		ps_wake_blocked(p);
	tx->lock_holds = NULL;
	tx->refused_lock.has_refused_lock = false;
	tx->lock_age = tx->read_seq = 0;
	tx->traits &= (uint8_t) ~(PS_TX_SERIAL | PS_TX_LOCKS);
}

static void drop_lock_wants(struct perseas_tx *tx)
{
	while (tx->lock_wants) {
		struct ps_lock_want *want = tx->lock_wants;

		tx->lock_wants = want->next_of_tx;
		ps_lock_remove_want(want);
		ps_lock_drop_if_unused(tx->p, want->lock);
		free(want);
	}
}

void ps_serialization_end_tx(struct perseas_tx *tx)
{
	ps_assert_locked(tx->p);
	if (tx->lock_wants) {
		drop_lock_wants(tx);
		ps_wake_blocked(tx->p);
	}
	ps_locks_release(tx);
}
