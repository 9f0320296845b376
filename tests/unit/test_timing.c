/*
 * test_timing.c - how long commits took: which are timed, what they count for, and who is told. The
 * clock of these mirrors moves by a microsecond at each look.
 */
#include "owner.h"

#include "../../client/core/timing.h"

struct unit_fixture unit_fixture = { owner_setup_one, owner_teardown };

enum { MANY = 64000, GAP_MAX = 2 * PS_TIMING_EVERY - 1, US = 1000 };

static struct perseas_latency latency_of(struct owner *o)
{
	struct perseas_latency latency;

	assert_int_equal(perseas_latency(o->p, &latency), 0);
	return latency;
}

/* Over a fabric on which each commit has to wait, each is timed and counts once. */
TEST(each_commit_that_waits_is_timed, struct owner *o)
{
	struct perseas_latency latency;
	struct perseas_stat stat;

	for (int i = 0; i < 100; i++)
		assert_int_equal(owner_put(o, 0, 100, (uint8_t)i), 0);
	latency = latency_of(o);
	stat = owner_stat(o);
	assert_true(latency.timed == 100 && latency.count == 100 && stat.timed == 100);
	assert_true(stat.range_bytes == 100 * 100 && stat.doubts == 0);
	assert_in_range(latency.max_ns, US, 20 * US);
	assert_in_range(latency.sum_ns, 100 * US, 100 * 20 * US);
	assert_true(stat.latency_max_ns == latency.max_ns);
	assert_true(stat.latency_p50_ns == perseas_latency_percentile(&latency, 50));
	assert_true(stat.latency_p99_ns <= stat.latency_p999_ns &&
	            stat.latency_p50_ns <= stat.latency_p99_ns &&
	            stat.latency_p999_ns <= stat.latency_max_ns && stat.latency_p50_ns >= US);
}

/* A transaction that sends nothing says nothing about the mirrors. */
TEST(what_sends_nothing_is_not_counted, struct owner *o)
{
	perseas_tx_t *tx = owner_tx(o);

	assert_int_equal(perseas_commit(tx, 0), 0);
	tx = owner_tx(o);
	assert_int_equal(perseas_set_range(tx, o->bytes, 8), 0);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(latency_of(o).count, 0);
	assert_int_equal(owner_stat(o).latency_max_ns, 0);
	assert_int_equal(owner_stat(o).range_bytes, 0);
}

/* Where nothing waits, some are drawn: one of 64 in the mean, never more than 127 apart, and they
 * stand for all of them. */
TEST(some_of_those_that_do_not_wait_stand_for_all, struct owner *o)
{
	struct perseas_latency latency;
	unsigned since = 0, most = 0, least = GAP_MAX;
	uint64_t timed = 0;

	o->d->staged = false;
	owner_reopen(o);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(owner_put(o, 0, 8, (uint8_t)i), 0);
		since++;
		if (o->p->commit.stat.timed == timed)
			continue;
		timed = o->p->commit.stat.timed;
		most = since > most ? since : most;
		least = timed > 1 && since < least ? since : least;
		since = 0;
	}
	latency = latency_of(o);
	assert_in_range(timed, MANY / 64 * 9 / 10, MANY / 64 * 11 / 10);
	assert_true(latency.count == 64 * timed);
	assert_in_range(most, 120, GAP_MAX);
	assert_in_range(least, 1, 8);
	assert_in_range(latency.sum_ns / latency.count, US, 2 * US);
}

/* Every 64th transaction is long: it is not drawn more often, or less, than the others. */
TEST(a_pattern_of_the_application_has_no_part_in_it, struct owner *o)
{
	uint64_t timed = 0, long_ones = 0;

	o->d->staged = false;
	owner_reopen(o);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(owner_put(o, 0, i % 64 ? 8 : SIZE, (uint8_t)i), 0);
		long_ones += o->p->commit.stat.timed != timed && i % 64 == 0;
		timed = o->p->commit.stat.timed;
	}
	assert_in_range(long_ones, 4, 40);
}

/* A commit that had to wait, although the fabric copies at once, is always timed, and counts
 * once. */
TEST(one_in_doubt_counts_once, struct owner *o)
{
	struct perseas_latency before, after;

	o->d->staged = false;
	owner_reopen(o);
	before = latency_of(o);
	o->d->mirrors[0].hold = DIRECT_HOLD_COMPLETIONS;
	assert_int_equal(owner_put(o, 0, 8, 1), PERSEAS_EINDOUBT);
	after = latency_of(o);
	assert_true(after.timed == before.timed + 1 && after.count == before.count + 1);
	assert_in_range(after.max_ns, 5000000000 - 100 * US, 5000000000 + 100 * US);
	assert_int_equal(owner_stat(o).doubts, 1);
	assert_int_equal(perseas_flush(o->p), PERSEAS_EINDOUBT);
	assert_int_equal(owner_stat(o).doubts, 1);
	o->d->mirrors[0].hold = DIRECT_HOLD_NOTHING;
	direct_release(o->d, 0, 1000);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_true(latency_of(o).count == after.count);
	assert_int_equal(owner_stat(o).commits, 0);
}

TEST(differences_have_percentiles_too, struct owner *o)
{
	struct perseas_latency latency;

	assert_int_equal(perseas_latency(NULL, &latency), PERSEAS_EINVAL);
	assert_int_equal(perseas_latency(o->p, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_latency_percentile(NULL, 50), 0);
	assert_int_equal(owner_put(o, 0, 8, 1), 0);
	latency = latency_of(o);
	assert_true(perseas_latency_percentile(&latency, 50) == latency.max_ns);
	memset(latency.counts, 0, sizeof(latency.counts));
	assert_int_equal(perseas_latency_percentile(&latency, 50), 0);
	latency.counts[20] = 1;
	assert_true(perseas_latency_percentile(&latency, 50) == perseas_latency_bound(20));
	assert_true(perseas_latency_bound(PERSEAS_LATENCY_BUCKETS - 1) == UINT64_MAX);
	assert_true(perseas_latency_bound(PERSEAS_LATENCY_BUCKETS) == UINT64_MAX);
}

/* With its sign of life an owner tells what it counted. */
TEST(mirrors_are_told_of_them, struct owner *o)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	struct perseas_latency latency;
	struct ps_latency told;
	struct why why;
	perseas_tx_t *tx;

	for (int i = 0; i < 9; i++)
		assert_int_equal(owner_put(o, 0, 100, (uint8_t)i), 0);
	tx = owner_tx(o);
	assert_int_equal(perseas_abort(tx), 0);
	direct_keep(o->d, o->p);
	assert_int_equal(store_status(o->d->mirrors[0].stores, STORE, &status, &why), 0);
	assert_non_null(status.figures);
	assert_int_equal(status.figures->commits, 9);
	assert_int_equal(status.figures->aborts, 1);
	assert_int_equal(status.figures->range_bytes, 900);
	assert_int_equal(status.figures->in_doubt, 0);
	ps_latency_load(&told, status.figures->commit);
	latency = latency_of(o);
	assert_memory_equal(told.counts, latency.counts, sizeof(told.counts));
	assert_true(told.sum_ns == latency.sum_ns && told.max_ns == latency.max_ns);
}
