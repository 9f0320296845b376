/*
 * timing.h - which commits are timed, and what their times count for.
 *
 * Where every commit has to wait for mirrors all are timed, and count once. Where commits return
 * at once, reading the clock would be a good part of what they take: one of PS_TIMING_EVERY in the
 * mean is timed, and counts as often. Which one is drawn when it begins, after a random number of
 * others, so that neither how long it takes nor a pattern of the application's has a part in it.
 * One that has to wait after all is always timed, so it counts once.
 */
#ifndef PERSEAS_CLIENT_TIMING_H
#define PERSEAS_CLIENT_TIMING_H

#include "handle.h"

enum { PS_TIMING_EVERY = 64 };

enum ps_timed {
	PS_TIMED_NOT,    /* unless it has to wait */
	PS_TIMED_ALWAYS, /* as all are */
	PS_TIMED_DRAWN,  /* for PS_TIMING_EVERY */
};

/*
 * When a commit was called, or began to wait: ns, whose last bit is set where it stands for
 * PS_TIMING_EVERY; 0: nobody looked. One number, so that the many that are not timed pay for no
 * more.
 */
typedef uint64_t ps_start_t;

/* Whether transactions go through the ring has been decided anew. */
void ps_timing_renew(struct perseas *p);

/* The turn of the transaction that begins has come, or there are no turns. Locked. */
enum ps_timed ps_timing_draw(struct perseas *p);

/* Is the transaction that begins to be timed? Locked. */
static inline enum ps_timed ps_timing_choose(struct perseas *p)
{
	if (!p->commit.untimed)
		return ps_timing_draw(p);
	p->commit.untimed--;
	return PS_TIMED_NOT;
}

/* Its commit is called. */
static inline ps_start_t ps_timing_start(const struct perseas_tx *tx)
{
	if (tx->timed == PS_TIMED_NOT)
		return 0;
	return (ps_now(tx->p) & ~(ps_start_t)1) | (tx->timed == PS_TIMED_DRAWN);
}

/* It had to wait from `since` on, 0: it had not. */
static inline ps_start_t ps_timing_waited(ps_start_t start, uint64_t since)
{
	if (!since)
		return start;
	return (start ? start : since) & ~(ps_start_t)1;
}

/* Counts a commit that is about to return rc. Locked. */
void ps_timing_take(struct perseas *p, ps_start_t start, int rc);

#endif
