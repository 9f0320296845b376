/*
 * apart_rig.h - what the tests of turns and locks share: one thread plays several, and what the
 * others do while one waits happens inside its wait.
 */
#ifndef PERSEAS_TESTS_APART_RIG_H
#define PERSEAS_TESTS_APART_RIG_H

#include "owner.h"

enum { SHARED = PERSEAS_LOCK_SHARED, EXCLUSIVE = PERSEAS_LOCK_EXCLUSIVE };

/* The owner whose wait is running at the moment. */
static struct owner *waiting;
static void (*meanwhile)(struct owner *o);
static unsigned waits;
static perseas_tx_t *held; /* by who is waited for */

static inline void on_wait(struct direct *d)
{
	const uintptr_t me = d->thread;

	waits++;
	if (waits > 10)
		fail_msg("it waits for ever");
	d->thread = 100;
	if (meanwhile)
		meanwhile(waiting);
	d->thread = me;
}

static inline int setup(void **state)
{
	if (owner_setup_three(state))
		return -1;
	waiting = *state;
	waiting->d->on_wait = on_wait;
	waiting->d->thread = 1;
	meanwhile = NULL;
	waits = 0;
	return 0;
}

static inline perseas_tx_t *begin(struct owner *o, unsigned flags, uintptr_t thread)
{
	perseas_tx_t *tx;

	o->d->thread = thread;
	if (perseas_begin(o->p, flags, &tx))
		fail_msg("%s", perseas_message(o->p));
	return tx;
}

/* Begins a transaction of this thread that has the lock of `key`. */
static inline perseas_tx_t *begin_with(struct owner *o, unsigned flags, uintptr_t thread,
                                       uint64_t key, int mode)
{
	perseas_tx_t *tx = begin(o, flags, thread);

	assert_int_equal(perseas_lock(tx, key, mode), 0);
	return tx;
}

/* The transaction is refused the lock, and a retry waits while `while_it_waits` happens. */
static inline void retry(perseas_tx_t *tx, uint64_t key, int mode,
                         void (*while_it_waits)(struct owner *o))
{
	assert_int_equal(perseas_lock(tx, key, mode), PERSEAS_ECONFLICT);
	meanwhile = while_it_waits;
	assert_int_equal(perseas_retry(tx), 0);
}

static inline void put(struct owner *o, perseas_tx_t *tx, unsigned at, uint8_t value)
{
	assert_int_equal(perseas_set_range(tx, o->bytes + at, 1), 0);
	o->bytes[at] = value;
}

static inline void commit_held(struct owner *o)
{
	(void)o;
	assert_int_equal(perseas_commit(held, 0), 0);
}

/* Another thread has the turn before. */
static inline void take_turn(struct owner *o)
{
	assert_int_equal(perseas_commit(begin(o, PERSEAS_SERIAL, 2), 0), 0);
	commit_held(o);
}

static inline void abort_held(struct owner *o)
{
	(void)o;
	assert_int_equal(perseas_abort(held), 0);
}

#endif
