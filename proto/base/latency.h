/*
 * latency.h - histograms of latencies. Owners send theirs to mirrors, which report them to clients.
 * The bounds of the buckets are defined only here.
 *
 * Buckets are log-linear (log_linear.h), 16 for each power of two. The last bucket counts all times
 * above 68 s.
 */
#ifndef PERSEAS_PROTO_LATENCY_H
#define PERSEAS_PROTO_LATENCY_H

#include "control.pb-c.h"
#include "log_linear.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	PS_LATENCY_BITS = 4, /* significant bits: 2^4 buckets for each power of two */
	PS_LATENCY_TOP = 36, /* the last bucket counts 2^36 ns and more */
	PS_LATENCY_BUCKETS = (PS_LATENCY_TOP - PS_LATENCY_BITS + 1) << PS_LATENCY_BITS,
};

/* A histogram. Initialize to zero. */
struct ps_latency {
	uint64_t counts[PS_LATENCY_BUCKETS]; /* number of times in each bucket */
	uint64_t sum_ns;                     /* sum of all times */
	uint64_t max_ns;                     /* exact, not rounded to a bucket */
};

/* Returns the index of the bucket that counts `ns`. */
static inline unsigned ps_latency_bucket(uint64_t ns)
{
	return ns >> PS_LATENCY_TOP ? PS_LATENCY_BUCKETS - 1
	                            : ps_log_linear_bucket(ns, PS_LATENCY_BITS);
}

/* Returns the longest time in the bucket, in ns, or UINT64_MAX for the last bucket. */
uint64_t ps_latency_end(unsigned bucket);

/* Counts a time `weight` times. */
static inline void ps_latency_add(struct ps_latency *l, uint64_t ns, uint64_t weight)
{
	l->counts[ps_latency_bucket(ns)] += weight;
	l->sum_ns += ns * weight;
	if (ns > l->max_ns)
		l->max_ns = ns;
}

/* Returns how many times are counted. */
uint64_t ps_latency_total(const struct ps_latency *l);

/* Returns the shortest time that at least `percent` of the counted times do not exceed, rounded up
 * to the end of its bucket but never above max_ns. Returns 0 if nothing is counted. */
uint64_t ps_latency_percentile(const struct ps_latency *l, double percent);

/* Fills in a message with the histogram's buckets, from the first to the last that is not zero. The
 * message points into *l. */
void ps_latency_message(const struct ps_latency *l, Perseas__Latencies *message);

/* Loads a checked message into *l. NULL loads an empty histogram. */
void ps_latency_load(struct ps_latency *l, const Perseas__Latencies *message);

/* Returns NULL if the message is valid, or a sentence that says what is wrong with it. */
const char *ps_latency_fault(const Perseas__Latencies *message);

/* Returns true if every count of `later` is at least that of `earlier`. Both are checked messages
 * of the same owner; NULL stands for an empty histogram. */
bool ps_latency_grew(const Perseas__Latencies *earlier, const Perseas__Latencies *later);

#endif
