/*
 * test_latency.c - the buckets in which latencies are counted: which time belongs where, what
 * percentiles say, and how counts travel.
 */
#include "../../proto/base/latency.h"
#include "../support/unit.h"

TEST(every_time_is_in_the_bucket_that_ends_after_it)
{
	static const uint64_t times[] = { 0,           1,           15,        16,   17,
		                          31,          32,          33,        1000, 123456789,
		                          68719476735, 68719476736, UINT64_MAX };

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		unsigned bucket = ps_latency_bucket(times[i]);

		assert_in_range(bucket, 0, PS_LATENCY_BUCKETS - 1);
		assert_true(times[i] <= ps_latency_end(bucket));
		assert_true(bucket == 0 || times[i] > ps_latency_end(bucket - 1));
	}
	assert_int_equal(ps_latency_bucket(UINT64_MAX), PS_LATENCY_BUCKETS - 1);
}

/* No gap, no overlap, and a sixteenth wide at most. */
TEST(buckets_follow_each_other)
{
	for (unsigned i = 0; i + 1 < PS_LATENCY_BUCKETS; i++) {
		uint64_t end = ps_latency_end(i), first = i ? ps_latency_end(i - 1) + 1 : 0;

		assert_int_equal(ps_latency_bucket(first), i);
		assert_int_equal(ps_latency_bucket(end), i);
		assert_int_equal(ps_latency_bucket(end + 1), i + 1);
		assert_true(end - first <= first / 16);
	}
	assert_true(ps_latency_end(PS_LATENCY_BUCKETS - 1) == UINT64_MAX);
}

TEST(percentiles_are_those_of_the_counts)
{
	struct ps_latency l = { .sum_ns = 0 };

	l.max_ns = 7;
	assert_int_equal(ps_latency_percentile(&l, 50), 0);
	l.max_ns = 0;
	for (uint64_t ns = 1; ns <= 1000; ns++)
		ps_latency_add(&l, ns * 1000, 2);
	assert_int_equal(ps_latency_total(&l), 2000);
	assert_true(l.sum_ns == (uint64_t)2 * 1000 * 500500);
	assert_in_range(ps_latency_percentile(&l, 50), 500000, 500000 * 17 / 16);
	assert_in_range(ps_latency_percentile(&l, 99), 990000, 1000000);
	assert_int_equal(ps_latency_percentile(&l, 100), 1000000);
	assert_int_equal(ps_latency_percentile(&l, 0), ps_latency_end(ps_latency_bucket(1000)));
	ps_latency_add(&l, (uint64_t)1 << 40, 1);
	assert_int_equal(ps_latency_percentile(&l, 100), (uint64_t)1 << 40);
}

TEST(counts_come_back_as_they_were)
{
	struct ps_latency l = { .sum_ns = 0 }, back;
	Perseas__Latencies message;

	ps_latency_message(&l, &message);
	assert_int_equal(message.n_counts, 0);
	assert_null(ps_latency_fault(&message));
	ps_latency_add(&l, 700, 64);
	ps_latency_message(&l, &message);
	assert_int_equal(message.n_counts, 1);
	ps_latency_add(&l, 15000, 1);
	ps_latency_message(&l, &message);
	assert_int_equal(message.first, ps_latency_bucket(700));
	assert_null(ps_latency_fault(&message));
	ps_latency_load(&back, &message);
	assert_memory_equal(&back, &l, sizeof(l));
	ps_latency_load(&back, NULL);
	assert_int_equal(ps_latency_total(&back), 0);
	ps_latency_add(&l, UINT64_MAX / 2, 1);
	ps_latency_message(&l, &message);
	assert_null(ps_latency_fault(&message));
}

TEST(more_counts_in_every_bucket_is_more)
{
	struct ps_latency l = { .sum_ns = 0 }, more;
	Perseas__Latencies earlier, later;

	ps_latency_add(&l, 700, 2);
	more = l;
	ps_latency_add(&more, 20, 1);
	ps_latency_add(&more, 15000, 1);
	ps_latency_message(&l, &earlier);
	ps_latency_message(&more, &later);
	assert_true(ps_latency_grew(NULL, &earlier));
	assert_true(ps_latency_grew(NULL, NULL));
	assert_false(ps_latency_grew(&earlier, NULL));
	assert_true(ps_latency_grew(&earlier, &earlier));
	assert_true(ps_latency_grew(&earlier, &later));
	assert_false(ps_latency_grew(&later, &earlier));
	more.counts[ps_latency_bucket(700)]--;
	assert_false(ps_latency_grew(&earlier, &later));
}
