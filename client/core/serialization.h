/*
 * serialization.h - transactions that the library serializes: SERIAL ones, which take turns
 * (turn.c), and those that lock what they use (locks.c); and how often a transaction that met a
 * conflict is tried again (conflict.c).
 *
 * A transaction releases its turn and its locks when it ends, right after it was posted and before
 * it is acknowledged. Mirrors take transactions in the order in which they were posted (I3), so a
 * transaction that is posted later cannot survive one whose changes it read. A transaction that
 * changes nothing has no place in that order: its commit waits until mirrors hold what was posted
 * when it got its turn, or its last lock.
 */
#ifndef PERSEAS_CLIENT_SERIALIZATION_H
#define PERSEAS_CLIENT_SERIALIZATION_H

#include "handle.h"

/* Before the handle is used. */
void ps_serial_init(struct perseas *p);
/* With it, before its transactions. */
void ps_locks_free(struct perseas *p);

/* perseas_begin with PERSEAS_SERIAL. Takes the lock; waits for the turn. */
int ps_serial_begin(struct perseas *p, struct perseas_tx **tx);

/* Waits until it is the calling thread's turn: 0, EINVAL, or why no transaction can begin. Locked;
 * lets go of the lock. */
int ps_serial_await(struct perseas *p);

/* It is the turn of the next, if there is one. Locked. */
void ps_serial_pass(struct perseas *p);

/* The transaction has this turn from now on. */
void ps_serial_take(struct perseas_tx *tx);

/* How many locks the transaction has. Locked. */
unsigned ps_locks_count(const struct perseas_tx *tx);

/* The transaction ends: its turn passes on, its locks are released. Locked. */
void ps_apart_end(struct perseas_tx *tx);

/* Commits a transaction that changed nothing: it ends, and waits for what it may have read. 1, or
 * EINDOUBT, EFENCED. Locked; lets go of the lock. */
int ps_apart_leave(struct perseas_tx *tx);

/* Returns 0 if the calling thread may wait for others, EINVAL in a child of fork, or why no
 * transaction can begin. Locked. */
int ps_apart_may_wait(struct perseas *p);

/* Waits as long as b->ops->must_wait() says. Returns 0, an error of ps_apart_may_wait, or ECONFLICT
 * if the wait would deadlock. Locked; lets go of the lock. */
int ps_apart_await(struct perseas *p, struct ps_blocked *b);

/* perseas_retry, with a pause when the transaction has let go of everything, and before it begins
 * again. After ECONFLICT, as its wait would deadlock, it is still open, and has nothing: it must be
 * ended. Not locked. */
int ps_retry_after(struct perseas_tx *tx, uint64_t pause_ns);

/* conflict.c: sleeps so long. Not locked. */
void ps_apart_pause(struct perseas *p, uint64_t pause_ns);

/* EINVAL in a child of fork, where nobody would ever let go, and no segment is mapped; else 0. */
int ps_apart_here(const struct perseas *p);

/* Who waits asks again. Locked. */
static inline void ps_apart_wake(struct perseas *p)
{
	if (p->apart.blocked)
		p->env->ops->broadcast(p->env, &p->apart.changed);
}

#endif
