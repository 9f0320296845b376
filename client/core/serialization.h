/*
 * serialization.h - transactions that the library serializes: SERIAL ones, which take turns
 * (turn.c), and those that lock what they use (locks.c). Also how often a transaction that met a
 * conflict is retried (conflict.c).
 *
 * A transaction releases its turn and its locks when it ends, after it was posted and before it is
 * acknowledged. Mirrors take transactions in the order of posting (I3), so a transaction posted
 * later cannot survive one whose changes it read. A transaction that changed nothing has no place
 * in that order: its commit waits until mirrors hold what was posted when it got its turn, or its
 * last lock.
 */
#ifndef PERSEAS_CLIENT_SERIALIZATION_H
#define PERSEAS_CLIENT_SERIALIZATION_H

#include "handle.h"

/* Makes the queue of turns empty. Called before the handle is used. */
void ps_serialization_init(struct perseas *p);
/* Frees all locks. Called when the handle is freed, before its transactions are. */
void ps_locks_free(struct perseas *p);

/* Implements perseas_begin with PERSEAS_SERIAL: waits for the turn. Takes p->lock. */
int ps_serial_begin(struct perseas *p, struct perseas_tx **tx);

/* Waits until it is the calling thread's turn. Returns 0, EINVAL if the thread has the turn
 * already, ECONFLICT if the wait would deadlock, or why no transaction can begin. Caller holds
 * p->lock, which is released meanwhile. */
int ps_turn_await(struct perseas *p);

/* Passes the turn to the next waiting thread, if there is one. Caller holds p->lock. */
void ps_turn_give_to_next(struct perseas *p);

/* Gives the turn that the calling thread has to a transaction. Caller holds p->lock. */
void ps_turn_give_to_tx(struct perseas_tx *tx);

/* Returns how many locks the transaction holds. Caller holds p->lock. */
unsigned ps_locks_count(const struct perseas_tx *tx);

/* Ends a transaction's part in serialization: passes on its turn, releases its locks, and drops its
 * wants. Caller holds p->lock. */
void ps_serialization_end_tx(struct perseas_tx *tx);

/* Commits a transaction that changed nothing: ends it, then waits until W mirrors hold what it may
 * have read. Returns 1, or EINDOUBT, EFENCED. Caller holds p->lock, which is released meanwhile. */
int ps_commit_read_only_tx(struct perseas_tx *tx);

/* Returns 0 if the calling thread may wait for others, EINVAL in a child of fork, or why no
 * transaction can begin. Caller holds p->lock. */
int ps_check_may_wait(struct perseas *p);

/* Waits while b->ops->must_wait() returns true. Returns 0, an error of ps_check_may_wait, or
 * ECONFLICT if the wait would deadlock. Caller holds p->lock, which is released meanwhile. */
int ps_await_blocker(struct perseas *p, struct ps_blocked *b);

/* Implements perseas_retry, with a pause after the transaction has released everything and before
 * it begins again. If it returns ECONFLICT, because the wait would deadlock, the transaction is
 * still open without locks or turn, and the caller must end it. Caller does not hold p->lock. */
int ps_retry_tx_after_pause(struct perseas_tx *tx, uint64_t pause_ns);

/* Sleeps for pause_ns. Caller does not hold p->lock. */
void ps_sleep_for(struct perseas *p, uint64_t pause_ns);

/* Returns 0; or EINVAL in a child of fork, where no thread would ever release a lock and no segment
 * is mapped. */
int ps_check_same_process(const struct perseas *p);

/* Wakes the blocked threads, which check again whether they must wait. Caller holds p->lock. */
static inline void ps_wake_blocked(struct perseas *p)
{
	if (p->serialization.blocked_threads)
		p->env->ops->broadcast(p->env, &p->serialization.recheck);
}

#endif
