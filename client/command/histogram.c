/*
 * histogram.c - log-linear counts.
 */
#include "histogram.h"

#include <string.h>

void ps_histogram_clear(struct ps_histogram *h)
{
	memset(h, 0, sizeof(*h));
}

void ps_histogram_merge(struct ps_histogram *h, const struct ps_histogram *from)
{
	for (unsigned i = 0; i < PS_HISTOGRAM_BUCKETS; i++)
		h->counts[i] += from->counts[i];
	h->total += from->total;
	if (from->max > h->max)
		h->max = from->max;
}

/* The last value that falls into a bucket. */
static uint64_t bucket_end(unsigned bucket)
{
	unsigned shift;
	uint64_t first;

	if (bucket < 2 * PS_HISTOGRAM_LINEAR)
		return bucket;
	shift = (bucket >> PS_HISTOGRAM_BITS) - 1;
	first = (uint64_t)(PS_HISTOGRAM_LINEAR + bucket % PS_HISTOGRAM_LINEAR) << shift;
	return first + (((uint64_t)1 << shift) - 1);
}

uint64_t ps_histogram_percentile(const struct ps_histogram *h, double percent)
{
	double exact = (double)h->total * percent / 100.0;
	uint64_t wanted = (uint64_t)exact;
	uint64_t seen = 0;

	if (!h->total)
		return 0;
	if (!wanted || (double)wanted < exact)
		wanted++;
	for (unsigned i = 0; i < PS_HISTOGRAM_BUCKETS; i++) {
		seen += h->counts[i];
		if (seen >= wanted) {
			uint64_t end = bucket_end(i);

			return end < h->max ? end : h->max;
		}
	}
	return h->max;
}
