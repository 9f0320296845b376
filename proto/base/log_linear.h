/*
 * log_linear.h - the buckets of histograms, after the scheme of HdrHistogram: 2^bits linear buckets
 * to each power of two, so that a value is known to one part in 2^bits whatever its size.
 */
#ifndef PERSEAS_PROTO_LOG_LINEAR_H
#define PERSEAS_PROTO_LOG_LINEAR_H

#include <stdint.h>

/* The bucket of a value. */
static inline unsigned ps_log_linear_bucket(uint64_t value, unsigned bits)
{
	unsigned shift;

	if (value >> bits == 0)
		return (unsigned)value;
	shift = 63 - bits - (unsigned)__builtin_clzll(value);
	/* value >> shift lies between 2^bits and twice that. */
	return (shift << bits) + (unsigned)(value >> shift);
}

/* The last value of a bucket. */
uint64_t ps_log_linear_end(unsigned bucket, unsigned bits);

/* The first of `count` buckets up to which `percent` of all that are counted lie. `total` is what
 * they hold together, at least 1. */
unsigned ps_log_linear_find(const uint64_t *counts, unsigned count, uint64_t total, double percent);

#endif
