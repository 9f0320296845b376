/*
 * pace.h - back-pressure from mirrors that cannot keep up with commits. A mirror lags until the
 * owner's ring is about to overwrite entries that it has not completed. Commits then wait for it
 * for a bounded time (perseas_options.pace_ms), so that an owner that never pauses runs at the rate
 * of its slowest mirror instead of dropping it again and again. A mirror that makes no progress in
 * that time is dropped, because a dead mirror must not stop commits. Only commits that would
 * otherwise wait or drop a mirror call this.
 */
#ifndef PERSEAS_CLIENT_PACE_H
#define PERSEAS_CLIENT_PACE_H

#include "handle.h"

/* How a commit has waited so far. */
struct ps_pacing {
	/* When the commit began to wait; 0: it has not, and the other members are invalid. */
	uint64_t wait_began_at;
	/* When the mirrors that the commit waits for last made progress. */
	uint64_t last_progress_at;
	uint64_t sum_of_acked_seqs; /* the sum of their acked_seq at that time */
	/* until when the commit waits for a copy; 0: it has waited for none */
	uint64_t copy_wait_until;
};

/* Fails with EAGAIN: the commit would block. `when` says on what, as the end of a sentence. Returns
 * the code. */
int ps_fail_would_block(const struct perseas *p, const char *when);

/*
 * Waits, or decides what to do, because the mirrors in `slow` prevent the next entry of the ring;
 * an empty set means that W mirrors do not hold enough. Returns 1 if it slept or dropped mirrors:
 * check everything again. Returns EBLOCKED if W needs these mirrors and they made no progress in
 * time. With PERSEAS_NOBLOCK it returns EAGAIN instead of waiting, and drops mirrors that made no
 * progress for commit_timeout_ms since they first blocked such a commit.
 *
 * The time limit is commit_timeout_ms for mirrors that W needs and for unawaited commits, and
 * pace_ms otherwise. After the first unawaited commit on the handle, it restarts whenever the
 * mirrors make progress: half a ring of lag is then normal. Caller holds p->lock, which is released
 * meanwhile.
 */
int ps_pace_await_slow_mirrors(struct perseas *p, uint32_t slow, unsigned flags,
                               struct ps_pacing *pacing);

/* Returns true if commits may wait for the copy to this mirror: the last two copies broke, and the
 * mirror lags by more than a quarter of the ring. Caller holds p->lock. */
bool ps_pace_copy_lags(const struct perseas *p, const struct ps_mirror *m);

/* Makes a commit wait for the copy under way, so that the copy can end even if transactions come
 * faster than its link carries them. Commits wait and run in turns of pace_ms, so at most half of
 * the time is lost. They wait only if the copy made progress since the last wait and nothing but
 * the link delays it. A commit waits once at most, and never with PERSEAS_NOBLOCK. Returns 1 if it
 * slept: check everything again. Returns 0 otherwise. Caller holds p->lock, which is released
 * meanwhile. */
int ps_pace_await_copy(struct perseas *p, unsigned flags, struct ps_pacing *pacing);

/* Checks the mirrors that blocked commits with PERSEAS_NOBLOCK. Raises perseas_fd's flag for those
 * that made progress, and drops those that made none for too long. Returns true if any are left:
 * call it again soon. Called by the collector, which holds p->lock. */
bool ps_pace_recheck_blocking_mirrors(struct perseas *p);

/* Forgets that the mirror blocks commits, because it changes its state or made progress. Caller
 * holds p->lock. */
void ps_pace_clear_blocking(struct perseas *p, struct ps_mirror *m);

/* Returns a sentence for people about what is wrong with the mirror, or "". Caller holds
 * p->lock. */
const char *ps_mirror_trouble_text(struct perseas *p, const struct ps_mirror *m);

#endif
