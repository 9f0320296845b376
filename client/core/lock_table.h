/*
 * lock_table.h - the table of the locks that a handle's transactions hold or want (locks.c). A lock
 * exists while a transaction holds or wants it. Callers hold p->lock.
 */
#ifndef PERSEAS_CLIENT_LOCK_TABLE_H
#define PERSEAS_CLIENT_LOCK_TABLE_H

#include "serialization.h"

struct ps_lock {
	struct ps_lock *next; /* next lock in the same hash chain */
	uint64_t key;
	struct ps_lock_hold *holds; /* the transactions that hold the lock */
	struct ps_lock_want *wants; /* the transactions that want the lock */
};

/* A lock that a transaction holds. */
struct ps_lock_hold {
	/* `next`: the lock's next holder. `next_of_tx`: the transaction's next lock. */
	struct ps_lock_hold *next, *next_of_tx;
	struct perseas_tx *tx;
	struct ps_lock *lock;
	bool is_exclusive;
};

/* A lock that a transaction waits for, or would wait for if it could. Younger transactions do not
 * get the lock first. */
struct ps_lock_want {
	/* `next`: the lock's next want. `next_of_tx`: the transaction's next want. */
	struct ps_lock_want *next, *next_of_tx;
	const struct perseas_tx *tx;
	struct ps_lock *lock;
	bool is_exclusive;
};

/* Returns the lock with this key, or NULL if no transaction holds or wants it. */
struct ps_lock *ps_lock_find(struct perseas *p, uint64_t key);

/* Returns the lock with this key, which may be new. Returns NULL if out of memory. */
struct ps_lock *ps_lock_find_or_make(struct perseas *p, uint64_t key);

/* Frees the lock if no transaction holds or wants it. */
void ps_lock_drop_if_unused(struct perseas *p, struct ps_lock *lock);

/* Add a want to its lock's list, and remove it. */
void ps_lock_add_want(struct ps_lock_want *want);
void ps_lock_remove_want(const struct ps_lock_want *want);

/* Releases a transaction's locks and its turn. The transaction keeps its wants. */
void ps_locks_release(struct perseas_tx *tx);

#endif
