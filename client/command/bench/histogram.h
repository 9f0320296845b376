/*
 * histogram.h - counts of durations in log-linear buckets (log_linear.h), 128 to each power of two.
 */
#ifndef PERSEAS_COMMAND_HISTOGRAM_H
#define PERSEAS_COMMAND_HISTOGRAM_H

#include "../../../proto/base/log_linear.h"

#include <stdint.h>

enum {
	PS_HISTOGRAM_BITS = 7, /* leading bits of a value that choose its bucket */
	PS_HISTOGRAM_BUCKETS = (64 - PS_HISTOGRAM_BITS + 1) << PS_HISTOGRAM_BITS,
};

struct ps_histogram {
	uint64_t counts[PS_HISTOGRAM_BUCKETS];
	uint64_t total;
	uint64_t max; /* the largest value, not rounded */
};

static inline void ps_histogram_add(struct ps_histogram *h, uint64_t value)
{
	h->counts[ps_log_linear_bucket(value, PS_HISTOGRAM_BITS)]++;
	h->total++;
	if (value > h->max)
		h->max = value;
}

void ps_histogram_clear(struct ps_histogram *h);

/* Adds all values that `from` counted. */
void ps_histogram_merge(struct ps_histogram *h, const struct ps_histogram *from);

/*
 * Returns the smallest value that `percent` of all values do not exceed, rounded up to the end of
 * its bucket, but never above the maximum. Returns 0 if nothing was counted.
 */
uint64_t ps_histogram_percentile(const struct ps_histogram *h, double percent);

#endif
