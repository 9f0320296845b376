/*
 * histogram.h - counts of durations in log-linear buckets, after the scheme of
 * HdrHistogram: 128 linear buckets to each power of two, so that a value is known to better
 * than one part in 128 whatever its size.
 */
#ifndef PERSEAS_BENCH_HISTOGRAM_H
#define PERSEAS_BENCH_HISTOGRAM_H

#include <stdint.h>

enum {
	HISTOGRAM_BITS = 7,        /* of a value that a bucket tells apart */
	HISTOGRAM_LINEAR = 1 << HISTOGRAM_BITS,
	HISTOGRAM_BUCKETS = (64 - HISTOGRAM_BITS + 1) * HISTOGRAM_LINEAR,
};

struct histogram {
	uint64_t counts[HISTOGRAM_BUCKETS];
	uint64_t total;
	uint64_t max;              /* exact */
};

static inline unsigned histogram_bucket(uint64_t value)
{
	unsigned shift;

	if (value < HISTOGRAM_LINEAR)
		return (unsigned)value;
	shift = 63 - HISTOGRAM_BITS - (unsigned)__builtin_clzll(value);
	/* value >> shift lies between HISTOGRAM_LINEAR and twice that. */
	return (shift << HISTOGRAM_BITS) + (unsigned)(value >> shift);
}

static inline void histogram_add(struct histogram *h, uint64_t value)
{
	h->counts[histogram_bucket(value)]++;
	h->total++;
	if (value > h->max)
		h->max = value;
}

void histogram_clear(struct histogram *h);

/* Adds all that `from` counted. */
void histogram_merge(struct histogram *h, const struct histogram *from);

/*
 * The smallest value that `percent` of all values do not exceed, rounded up to the end of its
 * bucket, but never above the maximum. 0 when nothing was counted.
 */
uint64_t histogram_percentile(const struct histogram *h, double percent);

#endif
