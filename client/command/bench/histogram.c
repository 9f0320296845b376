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

uint64_t ps_histogram_percentile(const struct ps_histogram *h, double percent)
{
	uint64_t end;

	if (!h->total)
		return 0;
	end = ps_log_linear_end(ps_log_linear_find(h->counts, PS_HISTOGRAM_BUCKETS, h->total,
	                                           percent),
	                        PS_HISTOGRAM_BITS);
	return end < h->max ? end : h->max;
}
