/*
 * histogram.h - counts of durations in log-linear buckets, after the scheme of
 * HdrHistogram: 128 linear buckets to each power of two, so that a value is known to better
 * than one part in 128 whatever its size.
 */
#ifndef PERSEAS_COMMAND_HISTOGRAM_H
#define PERSEAS_COMMAND_HISTOGRAM_H

#include <stdint.h>

enum {
	PS_HISTOGRAM_BITS = 7, /* of a value that a bucket tells apart */
	PS_HISTOGRAM_LINEAR = 1 << PS_HISTOGRAM_BITS,
	PS_HISTOGRAM_BUCKETS = (64 - PS_HISTOGRAM_BITS + 1) * PS_HISTOGRAM_LINEAR,
};

struct ps_histogram {
	uint64_t counts[PS_HISTOGRAM_BUCKETS];
	uint64_t total;
	uint64_t max; /* exact */
};

static inline unsigned ps_histogram_bucket(uint64_t value)
{
	unsigned shift;

	if (value < PS_HISTOGRAM_LINEAR)
		return (unsigned)value;
	shift = 63 - PS_HISTOGRAM_BITS - (unsigned)__builtin_clzll(value);
	/* value >> shift lies between PS_HISTOGRAM_LINEAR and twice that. */
	return (shift << PS_HISTOGRAM_BITS) + (unsigned)(value >> shift);
}

static inline void ps_histogram_add(struct ps_histogram *h, uint64_t value)
{
	h->counts[ps_histogram_bucket(value)]++;
	h->total++;
	if (value > h->max)
		h->max = value;
}

void ps_histogram_clear(struct ps_histogram *h);

/* Adds all that `from` counted. */
void ps_histogram_merge(struct ps_histogram *h, const struct ps_histogram *from);

/*
 * The smallest value that `percent` of all values do not exceed, rounded up to the end of its
 * bucket, but never above the maximum. 0 when nothing was counted.
 */
uint64_t ps_histogram_percentile(const struct ps_histogram *h, double percent);

#endif
