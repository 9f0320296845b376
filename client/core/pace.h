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
	uint64_t since;    /* when it began to wait; 0: it has not, and the others hold nothing */
	uint64_t moved_at; /* when those that it waits for got on last */
	uint64_t acked;    /* what these had acknowledged then, added up */
};

/* EAGAIN: the commit would have to wait, and is not to. */
int ps_fail_again(const struct perseas *p, const char *when);

/* These mirrors stand in the way of the next entry of the ring. *since: when this commit began to
 * wait, 0 before it did. 1: it slept, and everything must be looked at again. 0: they are dropped.
 * EBLOCKED: W need them, and they did not get on in time. */
int ps_pace(struct perseas *p, uint32_t slow, uint64_t *since);

/* The same for a commit that nobody waits for. It fills the ring in no time, so that half a ring of
 * lag says nothing about a mirror: it waits for as long as these get on, and then for
 * commit_timeout_ms. slow is 0 where W do not hold enough. EAGAIN: it is not to
 * wait (PERSEAS_NOBLOCK). */
int ps_pace_unwaited(struct perseas *p, uint32_t slow, unsigned flags, struct ps_pacing *pacing);

/* What there is to say of a mirror, "" where nothing is. */
const char *ps_trouble(struct perseas *p, const struct ps_mirror *m);

#endif
