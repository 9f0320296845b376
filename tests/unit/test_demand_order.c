/*
 * test_demand_order.c - in which order memory comes that nobody waits for, and how fast: what the
 * newest transactions changed comes first, and options.fetch_rate is kept.
 */
#include "demand_rig.h"

#include "../../client/demand/demand.h"

#include <time.h>

enum { HOT = 900000, GRANULES = (SIZE + (128 << 10) - 1) / (128 << 10) };

static int setup(void **state)
{
	return rig_setup(state, false);
}

/* Commits at a place of its own, and dies with the store open. */
static int put_and_die(struct rig *rig)
{
	return rig_open(rig, 0, 0) || rig_map(rig) || rig_put(rig, HOT, 300, 77);
}

static void test_what_changed_last_comes_first(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_apart(rig, put_and_die), 0);
	rig_begin(rig);
	atomic_store(&rig_shut, false);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_int_equal(rig_first / (128 << 10), HOT / (128 << 10));
	assert_int_equal(rig_look(rig->bytes + HOT + 299), 77);
}

/* A log of transactions that went on for longer than what is read of it. */
static int put_much_and_die(struct rig *rig)
{
	int rc = rig_open(rig, 0, 0) || rig_map(rig);

	for (int i = 0; i < 40 && !rc; i++)
		rc = rig_put(rig, 0, 100000, (uint8_t)i);
	return rc || rig_put(rig, HOT, 300, 77);
}

static void test_a_long_log_is_read_from_its_end(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(rig_apart(rig, put_much_and_die), 0);
	assert_int_equal(rig_open(rig, PERSEAS_TAKEOVER, PERSEAS_RECOVERY_ON_DEMAND), 0);
	/* The newest, and as many of the others as 256 KiB hold. */
	assert_int_equal(rig->p->demand->hot_count, 3);
	assert_int_equal(rig->p->demand->hot[0].offset, HOT);
	assert_int_equal(rig->p->demand->hot[2].offset, 0);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The first comes by itself, and the next after 36 hours; what is touched comes at once. */
static void test_who_waits_is_not_held_up_by_the_rate(void **state)
{
	struct rig *rig = *state;

	rig->rate = 1;
	rig_begin(rig);
	atomic_store(&rig_shut, false);
	for (uint64_t i = SIZE / 2; i < SIZE; i += 4001)
		assert_int_equal(rig_look(rig->bytes + i), rig_byte(i));
	assert_int_equal(perseas_wait_whole(rig->p, 10), PERSEAS_EUNREACHABLE);
}

static void test_the_rate_is_kept(void **state)
{
	struct rig *rig = *state;
	uint64_t begin;

	rig->rate = 1 << 20; /* a granule in 125 ms */
	begin = now_ms();
	rig_begin(rig);
	atomic_store(&rig_shut, false);
	assert_int_equal(perseas_wait_whole(rig->p, -1), 0);
	assert_true(now_ms() - begin >= (GRANULES - 1) * 125);
	assert_int_equal(rig_wrong(rig), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_changed_last_comes_first, setup,
		                                rig_teardown),
		cmocka_unit_test_setup_teardown(test_a_long_log_is_read_from_its_end, setup,
		                                rig_teardown),
		cmocka_unit_test_setup_teardown(test_who_waits_is_not_held_up_by_the_rate, setup,
		                                rig_teardown),
		cmocka_unit_test_setup_teardown(test_the_rate_is_kept, setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
