/*
 * perseas_latency.h - how long commits took. perseas.h includes this header. Its rules for return
 * values apply here, too.
 *
 * Times are measured from the call of perseas_commit until just before it returns, if it returned 0
 * or EINDOUBT and the transaction had ranges. Commits with PERSEAS_NOWAIT are not timed.
 *
 * Reading the clock twice takes as long as a good part of a commit over shared memory, so not every
 * commit is timed. Timed are: all commits while a mirror is reached over rdma or tcp, or is not
 * connected; all commits that had to wait for mirrors; and on average one of 64 others, which is
 * chosen at random when it begins, and counts 64 times. So the counts are unbiased estimates for
 * all commits. A commit that was not chosen and then had to wait is timed from the beginning of its
 * wait.
 */
#ifndef PERSEAS_LATENCY_H
#define PERSEAS_LATENCY_H

#include "perseas.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PERSEAS_LATENCY_BUCKETS = 528 };

struct perseas_latency {
	uint64_t timed;  /* timed commits */
	uint64_t count;  /* sum of counts[]: an estimate of the number of commits */
	uint64_t sum_ns; /* sum of the times of all counted commits */
	uint64_t max_ns; /* the longest time, exact */
	uint64_t counts[PERSEAS_LATENCY_BUCKETS]; /* commits in each bucket */
};

/* Fills in *latency with the counts since the store was opened. Subtract two results to get the
 * counts of the time in between. Errors: EINVAL. */
int perseas_latency(perseas_t *p, struct perseas_latency *latency);

/* Returns the upper bound of a bucket: the longest time, in ns, that counts[bucket] counts. Each
 * bucket begins where the previous one ends, and its width is at most a sixteenth of its times.
 * UINT64_MAX for the last bucket and beyond. Any thread. */
uint64_t perseas_latency_bound(unsigned bucket);

/* Returns a percentile: the time, in ns, that `percent` (0 to 100) of the counted commits do not
 * exceed, rounded up to the end of its bucket, but at most max_ns. 0 if nothing is counted, or
 * latency is NULL. Any thread. */
uint64_t perseas_latency_percentile(const struct perseas_latency *latency, double percent);

#ifdef __cplusplus
}
#endif

#endif
