/*
 * counters.c - adds to histograms and counters. The loop and the lanes call it. It formats nothing
 * and must not slow a request down.
 */
#include "counters.h"

const uint64_t histogram_bounds_ns[HISTOGRAM_BUCKETS] = {
	10000,    50000,     250000,    1000000,    5000000,
	25000000, 100000000, 500000000, 2500000000, 10000000000,
};

void histogram_add(struct histogram *histogram, uint64_t ns)
{
	unsigned bucket = 0;

	while (bucket < HISTOGRAM_BUCKETS && ns > histogram_bounds_ns[bucket])
		bucket++;
	histogram->buckets[bucket]++;
	histogram->count++;
	histogram->sum_ns += ns;
}

void counters_add_request(struct counters *counters, unsigned request, unsigned status, uint64_t ns)
{
	histogram_add(&counters->requests[request < CONTROL_REQUESTS ? request : 0], ns);
	if (status != PERSEAS__STATUS__STATUS_OK && status < COUNTED_STATUSES)
		counters->refusals[status]++;
}
