/*
 * latency.h - how long something took, counted by buckets, as an owner tells it to its mirrors and
 * they tell it to others. This is the one place that says which times a bucket is of.
 *
 * Buckets are log-linear (log_linear.h), 16 to each power of two. Times above 68 s share the last
 * one.
 */
#ifndef PERSEAS_PROTO_LATENCY_H
#define PERSEAS_PROTO_LATENCY_H

#include "control.pb-c.h"
#include "log_linear.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	PS_LATENCY_BITS = 4, /* of a time that a bucket tells apart */
	PS_LATENCY_TOP = 36, /* 2^36 ns and more are in the last bucket */
	PS_LATENCY_BUCKETS = (PS_LATENCY_TOP - PS_LATENCY_BITS + 1) << PS_LATENCY_BITS,
};

/* Zero to begin. */
struct ps_latency {
	uint64_t counts[PS_LATENCY_BUCKETS];
	uint64_t sum_ns;
	uint64_t max_ns; /* exact */
};

/* The bucket of a time in ns. */
static inline unsigned ps_latency_bucket(uint64_t ns)
{
	return ns >> PS_LATENCY_TOP ? PS_LATENCY_BUCKETS - 1
	                            : ps_log_linear_bucket(ns, PS_LATENCY_BITS);
}

/* The longest time of a bucket, in ns; UINT64_MAX for the last one. */
uint64_t ps_latency_end(unsigned bucket);

/* Counts a time as often as `weight` says. */
static inline void ps_latency_add(struct ps_latency *l, uint64_t ns, uint64_t weight)
{
	l->counts[ps_latency_bucket(ns)] += weight;
	l->sum_ns += ns * weight;
	if (ns > l->max_ns)
		l->max_ns = ns;
}

/* How many are counted. */
uint64_t ps_latency_total(const struct ps_latency *l);

/* The shortest time that `percent` of those counted do not exceed, rounded up to the end of its
 * bucket, but never above the longest. 0 when nothing was counted. */
uint64_t ps_latency_percentile(const struct ps_latency *l, double percent);

/* `message` tells of *l, into which it points: from the first bucket that holds something to the
 * last. */
void ps_latency_message(const struct ps_latency *l, Perseas__Latencies *message);

/* What a message tells, which has passed the checks; all zero for NULL. */
void ps_latency_load(struct ps_latency *l, const Perseas__Latencies *message);

/* NULL, or a sentence that says what is wrong with the message. */
const char *ps_latency_fault(const Perseas__Latencies *message);

/* Does `later`, of the same owner as `earlier`, count in every bucket at least as much? Both have
 * passed the checks; NULL: nothing is counted. */
bool ps_latency_grew(const Perseas__Latencies *earlier, const Perseas__Latencies *later);

#endif
