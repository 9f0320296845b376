/*
 * test_conflict.c - how often, and after which pauses, work that met a conflict is done again
 * (conflict.c). The clock is that of the rig: what a pause lasts is counted, and not measured.
 */
#include "owner.h"

enum { TRIES = 16, SLACK_NS = 100000, EXCLUSIVE = PERSEAS_LOCK_EXCLUSIVE };

static struct owner *pausing;
static perseas_tx_t *other; /* what it conflicts with */
static unsigned pauses;
static uint8_t seen_in_pause;

static void see_pause(void *arg)
{
	(void)arg;
	pauses++;
	seen_in_pause = pausing->bytes[0];
}

static int setup(void **state)
{
	if (owner_setup_one(state) || owner_open(*state, PERSEAS_TRACKED | PERSEAS_CHECK_OVERLAP))
		return -1;
	pausing = *state;
	owner_map(pausing);
	pausing->d->on_pause = see_pause;
	pauses = 0;
	return 0;
}

struct unit_fixture unit_fixture = { setup, owner_teardown };

/* Tries until it is told to stop: how often it was told to go on. Each pause is twice the last. */
static unsigned try_until_refused(struct owner *o, perseas_tx_t *tx, unsigned *tries)
{
	unsigned count = 0;
	int rc;

	for (;;) {
		const uint64_t before = o->d->now;

		rc = perseas_retry_conflict(o->p, tx, tries);
		if (rc)
			break;
		assert_in_range(o->d->now - before, 1000ull << count,
		                (1000ull << count) + SLACK_NS);
		count++;
		assert_int_equal(*tries, count);
	}
	assert_int_equal(rc, PERSEAS_ECONFLICT);
	return count;
}

/* A transaction with TRACK meets another one that never ends. */
TEST(test_a_begin_is_tried_so_often, struct owner *o)
{
	unsigned tries = 0;
	perseas_tx_t *tx;

	other = owner_tx(o);
	assert_int_equal(perseas_begin(o->p, PERSEAS_TRACK, &tx), PERSEAS_ECONFLICT);
	assert_int_equal(try_until_refused(o, NULL, &tries), TRIES);
	assert_says(o, "must be alone"); /* what conflicted is not forgotten */
	assert_int_equal(perseas_abort(other), 0);
}

/* Two declare the same bytes, and neither ends. */
TEST(test_a_transaction_is_tried_so_often, struct owner *o)
{
	perseas_tx_t *tx = owner_tx(o);
	unsigned tries = 0;

	other = owner_tx(o);
	assert_int_equal(perseas_set_range(other, o->bytes + 8, 8), 0);
	assert_int_equal(perseas_set_range(tx, o->bytes + 8, 8), PERSEAS_ECONFLICT);
	assert_int_equal(try_until_refused(o, tx, &tries), TRIES);
	assert_int_equal(perseas_set_range(tx, o->bytes, 1), 0); /* it is open */
	o->bytes[0] = 5;
	assert_int_equal(perseas_retry_conflict(o->p, tx, &tries), PERSEAS_ECONFLICT);
	assert_int_equal(o->bytes[0], 5); /* and as it was */
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(perseas_abort(other), 0);
}

static void end_other(void *arg)
{
	see_pause(arg);
	if (pauses == 1)
		assert_int_equal(perseas_set_range(other, pausing->bytes, 8), 0);
	assert_int_equal(perseas_abort(other), 0);
	pausing->d->on_pause = see_pause;
}

/* In its pause it has nothing: so the other one, which wants the same, can go on. */
TEST(test_it_is_taken_back_before_its_pause, struct owner *o)
{
	perseas_tx_t *tx = owner_tx(o);
	const uint8_t before = o->bytes[0];
	unsigned tries = 5; /* a pause of more than the clock takes to be looked at */

	assert_int_equal(perseas_set_range(tx, o->bytes, 8), 0);
	o->bytes[0] = (uint8_t)(before + 1);
	other = owner_tx(o);
	assert_int_equal(perseas_set_range(other, o->bytes + 8, 8), 0);
	assert_int_equal(perseas_set_range(tx, o->bytes + 8, 8), PERSEAS_ECONFLICT);
	o->d->on_pause = end_other;
	assert_int_equal(perseas_retry_conflict(o->p, tx, &tries), 0);
	assert_int_equal(pauses, 1);
	assert_int_equal(seen_in_pause, before);
	assert_int_equal(perseas_set_range(tx, o->bytes + 8, 8), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
}

/* A refused lock is reported when it is free, however often it was refused. */
TEST(test_a_lock_does_not_count, struct owner *o)
{
	unsigned tries = TRIES;
	perseas_tx_t *tx;

	other = owner_tx(o);
	assert_int_equal(perseas_lock(other, 1, EXCLUSIVE), 0);
	tx = owner_tx(o);
	assert_int_equal(perseas_lock(tx, 1, EXCLUSIVE), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_abort(other), 0);
	assert_int_equal(perseas_retry_conflict(o->p, tx, &tries), 0);
	assert_int_equal(tries, TRIES);
	assert_int_equal(pauses, 0);
	assert_int_equal(perseas_lock(tx, 1, EXCLUSIVE), 0);
	/* Now it has the lock: what it meets next is another conflict. */
	assert_int_equal(perseas_retry_conflict(o->p, tx, &tries), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_abort(tx), 0);
}

TEST(test_what_is_refused, struct owner *o)
{
	struct perseas another = { 0 };
	perseas_tx_t *tx = owner_tx(o);
	unsigned tries = 0;

	assert_int_equal(perseas_retry_conflict(NULL, tx, &tries), PERSEAS_EINVAL);
	assert_int_equal(perseas_retry_conflict(o->p, tx, NULL), PERSEAS_EINVAL);
	assert_says(o, "a place to count");
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(perseas_retry_conflict(o->p, tx, &tries), PERSEAS_EENDED);
	assert_int_equal(tries, 0);
	tx = owner_tx(o);
	tx->p = &another;
	assert_int_equal(perseas_retry_conflict(o->p, tx, &tries), PERSEAS_EINVAL);
	tx->p = o->p;
	assert_says(o, "another handle's");
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(pauses, 0);
}
