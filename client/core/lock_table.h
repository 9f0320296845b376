/*
 * lock_table.h - the locks that transactions of a handle have and want (locks.c). A lock exists
 * while a transaction has it or wants it. The caller of each function holds p->lock.
 */
#ifndef PERSEAS_CLIENT_LOCK_TABLE_H
#define PERSEAS_CLIENT_LOCK_TABLE_H

#include "serialization.h"

struct ps_lock {
	struct ps_lock *next; /* of its chain */
	uint64_t key;
	struct ps_hold *holds;
	struct ps_want *wants;
};

/* A transaction has a lock. */
struct ps_hold {
	struct ps_hold *next, *more; /* of the lock; of the transaction */
	struct perseas_tx *tx;
	struct ps_lock *lock;
	bool exclusive;
};

/* A transaction waits for a lock, or would wait if it could: it gets the lock before younger
 * transactions do. */
struct ps_want {
	struct ps_want *next, *more; /* of the lock; of the transaction */
	const struct perseas_tx *tx;
	struct ps_lock *lock;
	bool exclusive;
};

/* Returns the lock of this key, or NULL if no transaction has it or wants it. */
struct ps_lock *ps_lock_find(struct perseas *p, uint64_t key);

/* Returns the lock of this key, which may be new; NULL: out of memory. */
struct ps_lock *ps_lock_find_or_make(struct perseas *p, uint64_t key);

/* Frees the lock if no transaction has it or wants it. */
void ps_lock_drop_if_unused(struct perseas *p, struct ps_lock *lock);

/* Puts a want on the list of its lock, or takes it off. */
void ps_want_add(struct ps_want *want);
void ps_want_remove(const struct ps_want *want);

/* Releases a transaction's locks and its turn. It still wants the locks that it was refused. */
void ps_locks_let_go(struct perseas_tx *tx);

#endif
