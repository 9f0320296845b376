/*
 * pace.h - a mirror that cannot keep up with commits. It lags until the owner's ring is about to
 * overwrite what it has not been sent, or has not completed. Commits then wait for it a bounded
 * while (perseas_options.pace_ms), so that an owner that never pauses is as fast as its slowest
 * mirror rather than dropping it again and again; one that does not get on in that time is dropped,
 * as a dead one must not stop commits. Commits call it where they would wait or drop; it must never
 * be on the way of one that need not.
 */
#ifndef PERSEAS_CLIENT_PACE_H
#define PERSEAS_CLIENT_PACE_H

#include "handle.h"

/* How a commit has waited so far. */
struct ps_pacing {
	uint64_t since;      /* when it began to wait; 0: it has not, and the others hold nothing */
	uint64_t moved_at;   /* when those that it waits for got on last */
	uint64_t acked;      /* what these had acknowledged then, added up */
	uint64_t copy_until; /* with `since`: until when it waits for a copy; 0: it did not */
};

/* EAGAIN: the call would block. */
int ps_fail_again(const struct perseas *p, const char *when);

/* These mirrors stand in the way of the next entry of the ring; none: W do not hold enough. 1: it
 * slept, or they are dropped, and everything must be looked at again. EBLOCKED: W need them, and
 * they did not get on in time. EAGAIN: it is not to wait (PERSEAS_NOBLOCK). Such a commit drops
 * those that have not got on for commit_timeout_ms since they were first in the way of one.
 *
 * It waits for pace_ms; for those that W need, and for any where nobody waits for this commit, for
 * commit_timeout_ms. Where some commits are not waited for, half a ring of lag says nothing about a
 * mirror: then that time counts from when they got on last. */
int ps_pace(struct perseas *p, uint32_t slow, unsigned flags, struct ps_pacing *pacing);

/* Returns true if commits may wait for the copy of this mirror: the two before it broke, and the
 * mirror lags by more than a quarter of the ring. The caller holds p->lock. */
bool ps_pace_copy_lags(const struct perseas *p, const struct ps_mirror *m);

/*
 * Has a commit wait for the copy that goes on, so that the copy ends under a load above its link.
 * All commits wait for the same pace_ms, and then run for as long: at most half of the time is
 * lost. They wait only while the link carries the copy, and made progress since they waited last. A
 * commit waits only once, and not at all with PERSEAS_NOBLOCK. Returns 1 if it slept, and
 * everything must be looked at again, or 0. The caller holds p->lock.
 */
int ps_pace_copy(struct perseas *p, unsigned flags, struct ps_pacing *pacing);

/* Looks for those that are in the way of commits that are not to wait: one that has got on is told
 * to who waits on the descriptor of perseas_fd, and one that has not for so long is dropped. Is any
 * left? Then it is to be called again soon. The collector calls it. Locked. */
bool ps_pace_look(struct perseas *p);

/* The mirror comes or goes: it is in nobody's way until it is found there again. Locked. */
void ps_pace_forget(struct perseas *p, struct ps_mirror *m);

/* What there is to say of a mirror, "" where nothing is. */
const char *ps_trouble(struct perseas *p, const struct ps_mirror *m);

#endif
