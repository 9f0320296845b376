/*
 * log_linear.h - log-linear buckets of histograms, as in HdrHistogram: 2^bits linear buckets for
 * each power of two, so that the relative error is at most 1 / 2^bits at any size.
 */
#ifndef PERSEAS_PROTO_LOG_LINEAR_H
#define PERSEAS_PROTO_LOG_LINEAR_H

#include <stdint.h>

/* Returns the index of the bucket that counts `value`. */
static inline unsigned ps_log_linear_bucket(uint64_t value, unsigned bits)
{
	unsigned shift;

	if (value >> bits == 0)
		return (unsigned)value;
	shift = 63 - bits - (unsigned)__builtin_clzll(value);
	/* Here 2^bits <= value >> shift < 2^(bits + 1). */
	return (shift << bits) + (unsigned)(value >> shift);
}

/* Returns the largest value in the bucket. */
uint64_t ps_log_linear_end(unsigned bucket, unsigned bits);

/* Returns the first bucket such that it and the buckets before it hold at least `percent` of all
 * counts. `total` is the sum of the counts, at least 1. */
unsigned ps_log_linear_find(const uint64_t *counts, unsigned count, uint64_t total, double percent);

#endif
