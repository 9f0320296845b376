/*
 * test_runs.c - how much missing memory is fetched at once: large pages where they come fast, but
 * granules to the first of those who wait, and to all of them where large pages come slowly.
 */
#include "../../client/demand/demand.h"
#include "../support/unit.h"

enum {
	RUN = 16,
	FAST = 1000,
	LONG_AGO = 5,
	QUIET_AT = 1000000,
	SINGLES = 3,
	SETTLE = 50,
	QUIET = 70,
};

static const struct ps_pager_ops ops = {
	.run = RUN,
	.fast = FAST,
	.singles = SINGLES,
	.settle = SETTLE,
	.quiet = QUIET,
};

static void assert_runs(struct ps_demand *d, uint64_t now, unsigned waited_for, unsigned rest)
{
	const struct ps_runs runs = ps_runs_now(d, now);

	assert_int_equal(runs.waited_for, waited_for);
	assert_int_equal(runs.rest, rest);
}

/* Nobody has waited for a while: then a run harms nobody. */
TEST(test_before_a_run_has_come)
{
	struct ps_demand d = { .ops = &ops, .quiet_at = QUIET_AT };

	assert_runs(&d, QUIET_AT - 1, 1, 1);
	assert_runs(&d, QUIET_AT, 1, RUN);
	ps_runs_note(&d, RUN - 1, LONG_AGO, LONG_AGO + 1);
	assert_runs(&d, QUIET_AT - 1, 1, 1);
}

TEST(test_a_run_is_fast_or_slow)
{
	struct ps_demand fast = { .ops = &ops, .quiet_at = QUIET_AT };
	struct ps_demand slow = { .ops = &ops, .quiet_at = QUIET_AT };

	ps_runs_note(&fast, RUN, LONG_AGO, LONG_AGO + FAST);
	assert_runs(&fast, 0, RUN, RUN);
	ps_runs_note(&slow, RUN, LONG_AGO, LONG_AGO + FAST + 1);
	assert_runs(&slow, 0, 1, 1);
	assert_runs(&slow, QUIET_AT, 1, RUN);
}

/* Three were asked for at once, and come one after another. */
TEST(test_what_counts_is_the_time_after_the_one_before)
{
	struct ps_demand d = { .ops = &ops, .quiet_at = QUIET_AT };

	for (uint64_t i = 1; i <= 3; i++)
		ps_runs_note(&d, RUN, LONG_AGO, LONG_AGO + i * FAST);
	assert_runs(&d, 0, RUN, RUN);
}

/* One that is slow for once changes nothing, many do. */
TEST(test_what_is_usual_counts)
{
	struct ps_demand d = { .ops = &ops, .quiet_at = QUIET_AT };
	uint64_t now = LONG_AGO;

	for (unsigned i = 0; i < 20; i++, now += FAST / 2)
		ps_runs_note(&d, RUN, now, now + FAST / 2);
	ps_runs_note(&d, RUN, now, now + 2 * FAST);
	assert_runs(&d, 0, RUN, RUN);
	for (unsigned i = 0; i < 20; i++, now += 2 * FAST)
		ps_runs_note(&d, RUN, now, now + 2 * FAST);
	assert_runs(&d, 0, 1, 1);
}

/* While somebody waits all the time, one of many requests shows whether runs are fast by now. */
TEST(test_a_run_is_tried_now_and_then)
{
	struct ps_demand d = { .ops = &ops, .quiet_at = QUIET_AT };
	unsigned runs = 0;

	ps_runs_note(&d, RUN, LONG_AGO, LONG_AGO + 2 * FAST);
	for (unsigned i = 0; i < 6400; i++)
		if (ps_runs_now(&d, 0).rest == RUN) {
			runs++;
			ps_runs_note(&d, RUN, LONG_AGO, LONG_AGO + 4 * FAST + i * 2 * FAST);
		}
	assert_int_equal(runs, 100);
}

/* What nobody waits for has a limit, which a fast fabric does not lift. */
TEST(test_a_limited_rate)
{
	struct ps_demand d = { .ops = &ops, .quiet_at = QUIET_AT, .rate = 1 };

	ps_runs_note(&d, RUN, LONG_AGO, LONG_AGO + 1);
	assert_runs(&d, 0, 1, 1);
	assert_runs(&d, QUIET_AT, 1, RUN);
}

/* The first who wait get a granule each, and those after them a run. */
TEST(test_the_first_who_wait_get_granules)
{
	struct ps_demand d = { .ops = &ops };

	ps_runs_note(&d, RUN, LONG_AGO, LONG_AGO + FAST);
	for (int mappings = 0; mappings < 2; mappings++) {
		ps_runs_begin(&d, QUIET_AT);
		for (unsigned i = 0; i < SINGLES; i++) {
			assert_runs(&d, QUIET_AT, 1, RUN);
			ps_runs_wait(&d, QUIET_AT);
		}
		assert_runs(&d, QUIET_AT, RUN, RUN);
		ps_runs_wait(&d, QUIET_AT);
		assert_runs(&d, QUIET_AT, RUN, RUN);
	}
}

/* Soon after something was mapped, and after somebody waited, no two runs of the rest are under
 * way, and none where nobody knows how long they take. */
TEST(test_who_is_likely_to_wait)
{
	struct ps_demand d = { .ops = &ops };

	ps_runs_begin(&d, LONG_AGO);
	assert_true(ps_runs_now(&d, LONG_AGO + SETTLE - 1).alone);
	assert_runs(&d, LONG_AGO + SETTLE - 1, 1, 1);
	assert_false(ps_runs_now(&d, LONG_AGO + SETTLE).alone);
	assert_runs(&d, LONG_AGO + SETTLE, 1, RUN);
	ps_runs_wait(&d, LONG_AGO + SETTLE);
	assert_true(ps_runs_now(&d, LONG_AGO + SETTLE + QUIET - 1).alone);
	assert_false(ps_runs_now(&d, LONG_AGO + SETTLE + QUIET).alone);
	/* Something else is mapped: who waited lately may still do so. */
	ps_runs_wait(&d, LONG_AGO + SETTLE);
	ps_runs_begin(&d, LONG_AGO + SETTLE);
	assert_true(ps_runs_now(&d, LONG_AGO + SETTLE + QUIET - 1).alone);
}

/* Who waits for all of it is not about to touch what was mapped; but another thread may have waited
 * for a page just now. */
TEST(test_who_waits_for_all_of_it)
{
	struct ps_demand d = { .ops = &ops, .waits_whole = 1 };

	ps_runs_begin(&d, LONG_AGO);
	assert_false(ps_runs_now(&d, LONG_AGO).alone);
	assert_runs(&d, LONG_AGO, 1, RUN);
	ps_runs_wait(&d, LONG_AGO);
	assert_true(ps_runs_now(&d, LONG_AGO + QUIET - 1).alone);
	assert_runs(&d, LONG_AGO + QUIET - 1, 1, 1);
	assert_runs(&d, LONG_AGO + QUIET, 1, RUN);
}
