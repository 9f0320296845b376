/*
 * test_apart_retry.c - how long a retry waits whose transaction is older than those that have the
 * lock, or may come to have it. test_apart.c has what every retry does.
 */
#include "apart_rig.h"

struct unit_fixture unit_fixture = { setup, owner_teardown };

/* Ends one reader after the next one got the lock, or was refused. */
static void read_on(struct owner *o)
{
	perseas_tx_t *next = begin(o, 0, 100 + waits);
	const bool refused = perseas_lock(next, 1, SHARED) != 0;

	if (refused)
		assert_int_equal(perseas_abort(next), 0);
	commit_held(o);
	if (!refused)
		held = next;
}

/* A retry whose writer is older than all who have the lock ends, though they never all let go. */
TEST(test_a_retry_does_not_wait_for_younger_readers, struct owner *o)
{
	perseas_tx_t *tx;

	held = begin_with(o, 0, 2, 1, SHARED);
	tx = begin(o, 0, 1);
	retry(tx, 1, EXCLUSIVE, read_on);
	assert_int_equal(waits, 1);
	assert_int_equal(perseas_lock(tx, 1, EXCLUSIVE), 0);
	assert_int_equal(waits, 2);
	assert_int_equal(perseas_commit(tx, 0), 0);
}

/* A SERIAL one waits for younger ones, too: it would not wait for the lock while it has the turn,
 * which it gives up meanwhile. */
TEST(test_a_serial_retry_waits_for_younger_ones, struct owner *o)
{
	perseas_tx_t *tx = begin_with(o, PERSEAS_SERIAL, 1, 9, SHARED);

	held = begin_with(o, 0, 2, 1, EXCLUSIVE);
	o->d->thread = 1;
	retry(tx, 1, SHARED, take_turn);
	assert_int_equal(waits, 1);
	assert_int_equal(perseas_lock(tx, 1, SHARED), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_false(o->p->serialization.is_turn_taken);
}

/* --- a SERIAL writer among readers that overlap --- */

enum { KEYS = 2, TRIES = 2 * KEYS };

static perseas_tx_t *readers[KEYS];

/* Before one reader of a lock ends the next has it, unless it is refused. */
static void read_all_on(struct owner *o)
{
	static uintptr_t thread = 100;

	for (unsigned i = 0; i < KEYS; i++) {
		perseas_tx_t *next = begin(o, 0, thread++), *last = readers[i];
		const bool refused = perseas_lock(next, i, SHARED) != 0;

		readers[i] = refused ? NULL : next;
		if (refused)
			assert_int_equal(perseas_abort(next), 0);
		if (last)
			assert_int_equal(perseas_commit(last, 0), 0);
	}
	o->d->thread = 1;
}

static void end_readers(void)
{
	for (unsigned i = 0; i < KEYS; i++) {
		if (readers[i])
			assert_int_equal(perseas_commit(readers[i], 0), 0);
		readers[i] = NULL;
	}
}

/* Readers come before each of its steps. */
static int lock_in_a_crowd(struct owner *o, perseas_tx_t *tx, uint64_t key, int mode)
{
	read_all_on(o);
	return perseas_lock(tx, key, mode);
}

static int lock_all(struct owner *o, perseas_tx_t *tx)
{
	int rc = 0;

	for (unsigned i = 0; i < KEYS && !rc; i++)
		rc = lock_in_a_crowd(o, tx, i, EXCLUSIVE);
	assert_true(!rc || rc == PERSEAS_ECONFLICT);
	return rc;
}

/* Each lock has a reader at any time unless readers are refused. The writer gets all locks after as
 * many tries as it has locks, since each refuses it once. */
TEST(test_a_serial_writer_is_not_overtaken, struct owner *o)
{
	perseas_tx_t *tx;
	unsigned tries = 0;
	uint64_t age = 0;

	meanwhile = read_all_on;
	read_all_on(o);
	tx = begin(o, PERSEAS_SERIAL, 1);
	while (lock_all(o, tx)) {
		assert_true(!age || tx->lock_age == age);
		age = tx->lock_age;
		if (++tries > TRIES)
			fail_msg("it is refused for ever");
		read_all_on(o);
		assert_int_equal(perseas_retry(tx), 0);
	}
	assert_int_equal(tries, KEYS);
	assert_int_equal(perseas_commit(tx, 0), 0);
	/* Then readers have the locks again. */
	read_all_on(o);
	assert_true(readers[0] && readers[1]);
	end_readers();
}

/* A reader that wants to write, too, comes before younger readers. */
TEST(test_a_serial_reader_that_writes_is_not_overtaken, struct owner *o)
{
	perseas_tx_t *tx = begin_with(o, PERSEAS_SERIAL, 1, 9, SHARED);
	unsigned tries = 0;
	int rc;

	held = begin_with(o, 0, 2, 0, EXCLUSIVE);
	o->d->thread = 1;
	retry(tx, 0, SHARED, commit_held);
	meanwhile = read_all_on;
	do {
		if (tries)
			assert_int_equal(perseas_retry(tx), 0);
		rc = lock_in_a_crowd(o, tx, 0, SHARED);
		if (!rc)
			rc = lock_in_a_crowd(o, tx, 0, EXCLUSIVE);
	} while (rc && tries++ < TRIES);
	assert_int_equal(rc, 0);
	assert_int_equal(tries, 1);
	assert_int_equal(perseas_commit(tx, 0), 0);
	end_readers();
}

/* While it waits for its turn, too, nobody younger gets what it was refused. Who has the turn, and
 * wants the same, gives the turn up. */
static perseas_tx_t *between;

static void come_between(struct owner *o)
{
	if (waits == 1) {
		between = begin(o, PERSEAS_SERIAL, 3);
		commit_held(o);
		return;
	}
	assert_int_equal(waits, 2);
	assert_int_equal(perseas_lock(between, 0, SHARED), PERSEAS_ECONFLICT);
	assert_says(o, "an older transaction's");
	assert_int_equal(perseas_abort(between), 0);
}

TEST(test_who_waits_for_its_turn_is_not_overtaken, struct owner *o)
{
	perseas_tx_t *tx = begin(o, PERSEAS_SERIAL, 1);

	held = begin_with(o, 0, 2, 0, SHARED);
	o->d->thread = 1;
	retry(tx, 0, EXCLUSIVE, come_between);
	assert_int_equal(waits, 2);
	assert_int_equal(perseas_lock(tx, 0, EXCLUSIVE), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
}

/* A transaction that was refused because of the retry gets the lock after it, though the retry
 * never had the lock. */
TEST(test_it_leaves_nothing_behind, struct owner *o)
{
	perseas_tx_t *oldest = begin_with(o, 0, 2, 0, SHARED), *young;

	held = begin(o, PERSEAS_SERIAL, 1);
	assert_int_equal(perseas_lock(held, 0, EXCLUSIVE), PERSEAS_ECONFLICT);
	young = begin(o, 0, 3);
	assert_int_equal(perseas_lock(young, 0, SHARED), PERSEAS_ECONFLICT);
	meanwhile = abort_held;
	o->d->watched = &o->p->serialization.recheck;
	o->d->broadcasts = 0;
	assert_int_equal(perseas_retry(young), 0);
	assert_int_equal(waits, 1);
	assert_int_equal(o->d->broadcasts, 1);
	assert_int_equal(perseas_lock(young, 0, SHARED), 0);
	assert_int_equal(perseas_commit(young, 0), 0);
	assert_int_equal(perseas_commit(oldest, 0), 0);
}

/* An older one is not kept from a lock by it: no two wait for each other. */
static perseas_tx_t *older;

static void ask_as_the_older(struct owner *o)
{
	assert_int_equal(perseas_lock(older, 0, SHARED), 0);
	assert_int_equal(perseas_commit(older, 0), 0);
	commit_held(o);
}

TEST(test_an_older_one_goes_first, struct owner *o)
{
	perseas_tx_t *tx;

	older = begin_with(o, 0, 2, 9, SHARED);
	tx = begin_with(o, PERSEAS_SERIAL, 1, 8, SHARED);
	held = begin_with(o, 0, 3, 0, SHARED);
	o->d->thread = 1;
	retry(tx, 0, EXCLUSIVE, ask_as_the_older);
	assert_int_equal(waits, 1);
	assert_int_equal(perseas_lock(tx, 0, EXCLUSIVE), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
}

/* The handle is closed while a transaction wants locks that others hold: no memory leaks. */
TEST(test_close_while_one_is_wanted, struct owner *o)
{
	perseas_tx_t *tx = begin(o, PERSEAS_SERIAL, 1);

	held = begin_with(o, 0, 2, 0, SHARED);
	assert_int_equal(perseas_lock(held, 1, SHARED), 0);
	o->d->thread = 1;
	assert_int_equal(perseas_lock(tx, 0, EXCLUSIVE), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_lock(tx, 1, EXCLUSIVE), PERSEAS_ECONFLICT);
	owner_close(o);
}
