/*
 * timing.h - chooses which commits are timed, and how often each timed one counts.
 *
 * If commits go through the ring, all of them have to wait for mirrors: all are timed and count
 * once. If commits return at once, reading the clock would be a good part of their cost: one in
 * PS_TIMING_EVERY is timed, on average, and counts that often. The choice is made when the
 * transaction begins, after a random number of others, so that neither its duration nor a pattern
 * of the application biases it. A commit that has to wait after all is always timed, and counts
 * once.
 */
#ifndef PERSEAS_CLIENT_TIMING_H
#define PERSEAS_CLIENT_TIMING_H

#include "handle.h"

enum { PS_TIMING_EVERY = 64 };

enum ps_timed {
	PS_TIMED_NOT,    /* timed only if the commit has to wait */
	PS_TIMED_ALWAYS, /* all commits are timed at present */
	PS_TIMED_DRAWN,  /* counts PS_TIMING_EVERY times */
};

/* When a commit was called, or began to wait, in ns. The lowest bit is set if it counts
 * PS_TIMING_EVERY times. 0: not timed. A single number keeps the cost low for the commits that are
 * not timed. */
typedef uint64_t ps_start_time_t;

/* Adapts the timing after p->commit.uses_ring was decided anew. Caller holds p->lock. */
void ps_timing_adapt(struct perseas *p);

/* The slow path of ps_timing_choose: times the transaction, and draws when the next one is timed.
 * Caller holds p->lock. */
enum ps_timed ps_timing_draw_next(struct perseas *p);

/* Chooses whether a transaction that begins will be timed. Caller holds p->lock. */
static inline enum ps_timed ps_timing_choose(struct perseas *p)
{
	if (!p->commit.untimed_left)
		return ps_timing_draw_next(p);
	p->commit.untimed_left--;
	return PS_TIMED_NOT;
}

/* Returns the start of a commit that is called now; 0 if it is not timed. */
static inline ps_start_time_t ps_timing_start_time(const struct perseas_tx *tx)
{
	if (tx->timing == PS_TIMED_NOT)
		return 0;
	return (ps_now(tx->p) & ~(ps_start_time_t)1) | (tx->timing == PS_TIMED_DRAWN);
}

/* Returns the start of a commit that waited from `since` on; since 0: it did not wait. */
static inline ps_start_time_t ps_timing_start_time_of_wait(ps_start_time_t start, uint64_t since)
{
	if (!since)
		return start;
	return (start ? start : since) & ~(ps_start_time_t)1;
}

/* Records the time of a commit that is about to return rc. Caller holds p->lock. */
void ps_timing_record(struct perseas *p, ps_start_time_t start, int rc);

#endif
