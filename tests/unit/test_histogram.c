/*
 * test_histogram.c - the log-linear counts of durations.
 */
#include "../support/unit.h"

#include "../../client/command/bench/histogram.h"

static int setup(void **state)
{
	static struct ps_histogram h;

	ps_histogram_clear(&h);
	*state = &h;
	return 0;
}

struct unit_fixture unit_fixture = { setup, NULL };

/* Values of every magnitude, each counted alone. */
TEST(a_value_is_known_to_one_part_in_128, struct ps_histogram *h)
{
	for (unsigned shift = 0; shift < 63; shift++) {
		uint64_t value = ((uint64_t)3 << shift) / 2 + 1;
		uint64_t got;

		ps_histogram_clear(h);
		ps_histogram_add(h, value);
		ps_histogram_add(h, UINT64_MAX); /* so that the maximum does not cap it */
		got = ps_histogram_percentile(h, 50);
		assert_true(got >= value);
		assert_true(got - value <= value / 128);
	}
}

TEST(the_smallest_and_the_largest_value_have_buckets)
{
	assert_int_equal(ps_log_linear_bucket(0, PS_HISTOGRAM_BITS), 0);
	assert_int_equal(ps_log_linear_bucket(UINT64_MAX, PS_HISTOGRAM_BITS),
	                 PS_HISTOGRAM_BUCKETS - 1);
}

TEST(buckets_grow_with_the_value_and_leave_none_out)
{
	unsigned last = 0;

	for (uint64_t value = 0; value < 100000; value++) {
		unsigned bucket = ps_log_linear_bucket(value, PS_HISTOGRAM_BITS);

		assert_true(bucket == last || bucket == last + 1);
		last = bucket;
	}
}

/* 1 to 100, once each: small enough for buckets of their own. */
TEST(percentiles_are_exact_for_small_values, struct ps_histogram *h)
{
	for (uint64_t value = 1; value <= 100; value++)
		ps_histogram_add(h, value);
	assert_int_equal(ps_histogram_percentile(h, 0), 1);
	assert_int_equal(ps_histogram_percentile(h, 50), 50);
	assert_int_equal(ps_histogram_percentile(h, 50.5), 51);
	assert_int_equal(ps_histogram_percentile(h, 99), 99);
	assert_int_equal(ps_histogram_percentile(h, 100), 100);
}

/* Adds one value that is not the end of its bucket. */
TEST(no_percentile_is_above_the_maximum, struct ps_histogram *h)
{
	ps_histogram_add(h, 1000001);
	assert_int_equal(ps_histogram_percentile(h, 100), 1000001);
	assert_int_equal(h->max, 1000001);
}

TEST(merging_gives_what_counting_together_gives)
{
	static struct ps_histogram a, b, both;

	for (uint64_t value = 0; value < 5000; value++) {
		ps_histogram_add(value % 3 ? &a : &b, value * value);
		ps_histogram_add(&both, value * value);
	}
	ps_histogram_merge(&a, &b);
	assert_memory_equal(&a, &both, sizeof(a));
}

TEST(an_empty_histogram_says_zero, struct ps_histogram *h)
{
	assert_int_equal(ps_histogram_percentile(h, 99), 0);
}
