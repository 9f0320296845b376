/*
 * latency.c - histograms of latencies, and their form in control messages (see latency.h).
 */
#include "latency.h"

#include <assert.h>
#include <string.h>

uint64_t ps_latency_end(unsigned bucket)
{
	return bucket < PS_LATENCY_BUCKETS - 1 ? ps_log_linear_end(bucket, PS_LATENCY_BITS)
	                                       : UINT64_MAX;
}

uint64_t ps_latency_total(const struct ps_latency *l)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < PS_LATENCY_BUCKETS; i++)
		total += l->counts[i];
	return total;
}

uint64_t ps_latency_percentile(const struct ps_latency *l, double percent)
{
	const uint64_t total = ps_latency_total(l);
	uint64_t end;

	/* If nothing was counted, max_ns may still come from an earlier period. */
	if (!total)
		return 0;
	end = ps_latency_end(ps_log_linear_find(l->counts, PS_LATENCY_BUCKETS, total, percent));
	return end < l->max_ns ? end : l->max_ns;
}

void ps_latency_message(const struct ps_latency *l, Perseas__Latencies *message)
{
	unsigned first = 0, end = PS_LATENCY_BUCKETS;

	perseas__latencies__init(message);
	while (end > 0 && !l->counts[end - 1])
		end--;
	if (!end)
		return;
	while (!l->counts[first])
		first++;
	message->first = first;
	message->n_counts = end - first;
	message->counts = (uint64_t *)&l->counts[first];
	message->sum_ns = l->sum_ns;
	message->max_ns = l->max_ns;
}

void ps_latency_load(struct ps_latency *l, const Perseas__Latencies *message)
{
	memset(l, 0, sizeof(*l));
	if (!message)
		return;
	assert(message->n_counts <= PS_LATENCY_BUCKETS &&
	       message->first <= PS_LATENCY_BUCKETS - message->n_counts);
	for (size_t i = 0; i < message->n_counts; i++)
		l->counts[message->first + i] = message->counts[i];
	l->sum_ns = message->sum_ns;
	l->max_ns = message->max_ns;
}

const char *ps_latency_fault(const Perseas__Latencies *message)
{
	const size_t count = message->n_counts;
	uint64_t total = 0;

	if (count == 0)
		return message->first || message->sum_ns || message->max_ns
		               ? "latencies without counts must be all zero"
		               : NULL;
	if (message->first >= PS_LATENCY_BUCKETS || count > PS_LATENCY_BUCKETS - message->first)
		return "latencies must be of existing buckets";
	if (!message->counts[0] || !message->counts[count - 1])
		return "latencies must begin and end with a bucket that counts something";
	for (size_t i = 0; i < count; i++)
		if (__builtin_add_overflow(total, message->counts[i], &total))
			return "latencies must be fewer than 2^64";
	if (ps_latency_bucket(message->max_ns) != message->first + count - 1)
		return "the longest latency must be of the last bucket that counts something";
	return message->sum_ns / total > message->max_ns
	               ? "latencies must not be longer in the mean than the longest one"
	               : NULL;
}

static uint64_t bucket_count(const Perseas__Latencies *message, size_t bucket)
{
	if (!message || bucket < message->first || bucket - message->first >= message->n_counts)
		return 0;
	return message->counts[bucket - message->first];
}

bool ps_latency_grew(const Perseas__Latencies *earlier, const Perseas__Latencies *later)
{
	for (size_t i = 0; i < PS_LATENCY_BUCKETS; i++)
		if (bucket_count(later, i) < bucket_count(earlier, i))
			return false;
	return !earlier ||
	       (later && later->sum_ns >= earlier->sum_ns && later->max_ns >= earlier->max_ns);
}
