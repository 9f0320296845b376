/*
 * test_apart_retry.c - how long a retry waits whose transaction is older than those that have the
 * lock, or may come to have it. test_apart.c has what every retry does.
 */
#include "apart_rig.h"

/* One reader ends, and before it does the next has the lock, unless it is refused. */
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
static void test_a_retry_does_not_wait_for_younger_readers(void **state)
{
	struct owner *o = *state;
	perseas_tx_t *tx;

	held = begin(o, 0, 2);
	assert_int_equal(perseas_lock(held, 1, SHARED), 0);
	tx = begin(o, 0, 1);
	assert_int_equal(perseas_lock(tx, 1, EXCLUSIVE), PERSEAS_ECONFLICT);
	meanwhile = read_on;
	assert_int_equal(perseas_retry(tx), 0);
	assert_int_equal(waits, 1);
	assert_int_equal(perseas_lock(tx, 1, EXCLUSIVE), 0);
	assert_int_equal(waits, 2);
	assert_int_equal(perseas_commit(tx, 0), 0);
}

static void take_turn(struct owner *o)
{
	assert_int_equal(perseas_commit(begin(o, PERSEAS_SERIAL, 2), 0), 0);
	commit_held(o);
}

/* A SERIAL one waits for younger ones, too: it would not wait for the lock while it has the turn,
 * which it gives up meanwhile. */
static void test_a_serial_retry_waits_for_younger_ones(void **state)
{
	struct owner *o = *state;
	perseas_tx_t *tx = begin(o, PERSEAS_SERIAL, 1);

	assert_int_equal(perseas_lock(tx, 9, SHARED), 0);
	held = begin(o, 0, 2);
	assert_int_equal(perseas_lock(held, 1, EXCLUSIVE), 0);
	o->d->thread = 1;
	assert_int_equal(perseas_lock(tx, 1, SHARED), PERSEAS_ECONFLICT);
	meanwhile = take_turn;
	assert_int_equal(perseas_retry(tx), 0);
	assert_int_equal(waits, 1);
	assert_int_equal(perseas_lock(tx, 1, SHARED), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_false(o->p->apart.taken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, owner_teardown)
		TEST(test_a_retry_does_not_wait_for_younger_readers),
		TEST(test_a_serial_retry_waits_for_younger_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
