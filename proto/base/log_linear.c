/*
 * log_linear.c - the arithmetic of histogram buckets. latency.c and the histograms of the command
 * and of bench/ call it. It keeps no counts.
 */
#include "log_linear.h"

#include <assert.h>

uint64_t ps_log_linear_end(unsigned bucket, unsigned bits)
{
	const unsigned linear = 1u << bits;
	unsigned shift;
	uint64_t first;

	if (bucket < 2 * linear)
		return bucket;
	shift = (bucket >> bits) - 1;
	first = (uint64_t)(linear + bucket % linear) << shift;
	return first + (((uint64_t)1 << shift) - 1);
}

unsigned ps_log_linear_find(const uint64_t *counts, unsigned count, uint64_t total, double percent)
{
	const double exact = (double)total * percent / 100.0;
	uint64_t wanted = (uint64_t)exact, seen = 0;
	unsigned bucket = 0;

	assert(count > 0 && total > 0);
	if (!wanted || (double)wanted < exact)
		wanted++;
	while (bucket < count - 1 && (seen += counts[bucket]) < wanted)
		bucket++;
	return bucket;
}
