/*
 * pace.c - waiting for mirrors that cannot keep up, and dropping them (pace.h).
 */
#include "pace.h"

#include "commit.h"
#include "event.h"
#include "gather.h"
#include "mirror.h"
#include "nowait.h"
#include "quorum.h"

/* A mirror keeps up again if commits did not wait for it for this long. */
#define PACED_FOR ps_ms(10000)

#define PACED "cannot keep up: commits wait for it"

/* Returns true if commits wait for the mirror, or did shortly before. */
static bool delayed_commits_recently(struct perseas *p, const struct ps_mirror *m)
{
	return m->last_delayed_commit_at && ps_now(p) - m->last_delayed_commit_at < PACED_FOR;
}

const char *ps_mirror_trouble_text(struct perseas *p, const struct ps_mirror *m)
{
	ps_assert_locked(p);
	if (m->is_after_lost_link &&
	    (m->state == PERSEAS_MIRROR_LIVE || m->state == PERSEAS_MIRROR_REPLAYING))
		return PS_NOTHING_ARRIVED;
	return m->state == PERSEAS_MIRROR_LIVE && delayed_commits_recently(p, m) ? "it " PACED
	                                                                         : m->trouble_text;
}

/* Notes for which mirrors commits wait, with an event once in a while. */
static void note_commits_wait_for_mirrors(struct perseas *p, uint32_t slow, uint64_t now)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!(slow >> i & 1))
			continue;
		if (!delayed_commits_recently(p, m))
			ps_event(p, PERSEAS_EVENT_MIRROR_LAGS, ps_last_committed_seq(p), m,
			         "mirror %s " PACED, m->address.text);
		m->last_delayed_commit_at = now;
	}
}

static void drop_slow_mirrors(struct perseas *p, uint32_t slow)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		if (!(slow >> i & 1))
			continue;
		ps_mirror_break_stalled_link(p, &p->mirrors[i],
		                             "dropped: it lags by half of the ring");
		p->commit.stat.dropped++;
	}
}

int ps_fail_would_block(const struct perseas *p, const char *when)
{
	return ps_fail(p, PERSEAS_EAGAIN, "the commit would block %s: try again later", when);
}

/* Returns true if commits need one of these mirrors: without them W cannot be reached. */
static bool are_needed_for_w(const struct perseas *p, uint32_t slow)
{
	const uint32_t whole = ps_mirrors_with_whole_image(p);

	return slow & whole && !ps_quorum_is_w(p, whole & ~slow);
}

static int fail_ring_full(const struct perseas *p)
{
	return ps_fail(p, PERSEAS_EBLOCKED,
	               "mirrors have completed too few commits in time, so the ring is full or "
	               "flush_within_ms is over: perseas_mirror_stat says what is wrong with each "
	               "mirror");
}

/* Returns the sum of what these mirrors have acknowledged, or of all active ones if the set is
 * empty: it changes when any makes progress. */
static uint64_t sum_acked_seqs(const struct perseas *p, uint32_t slow)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].is_active && (!slow || slow >> i & 1))
			sum += p->mirrors[i].acked_seq;
	return sum;
}

/* Returns how long mirrors may go without progress before a commit gives up on them. */
static uint64_t stall_timeout_ns(const struct perseas *p, bool is_needed_for_w, unsigned flags)
{
	return ps_ms(is_needed_for_w || flags & PERSEAS_NOWAIT ? p->options.commit_timeout_ms
	                                                       : p->options.pace_ms);
}

/* --- commits with PERSEAS_NOBLOCK --- */

/* Returns the mirrors that made no progress for as long as a commit would wait for them. */
static uint32_t find_stuck_mirrors(struct perseas *p)
{
	const uint64_t now = ps_now(p), most = stall_timeout_ns(p, false, PERSEAS_NOWAIT);
	uint32_t stuck = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (m->blocks_commits_since && now - m->blocks_commits_since >= most)
			stuck |= ps_mirror_bit(p, m);
	}
	return stuck;
}

static bool drop_stuck_mirrors_unless_needed(struct perseas *p)
{
	const uint32_t stuck = find_stuck_mirrors(p);

	if (!stuck || are_needed_for_w(p, stuck))
		return false;
	drop_slow_mirrors(p, stuck);
	return true;
}

static bool is_any_mirror_blocking_commits(const struct perseas *p)
{
	bool any = false;

	for (unsigned i = 0; i < p->mirror_count; i++)
		any |= p->mirrors[i].blocks_commits_since != 0;
	return any;
}

static void unblock_progressed_mirrors(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].acked_seq != p->mirrors[i].acked_seq_when_blocking_began)
			ps_pace_clear_blocking(p, &p->mirrors[i]);
}

bool ps_pace_recheck_blocking_mirrors(struct perseas *p)
{
	ps_assert_locked(p);
	if (!is_any_mirror_blocking_commits(p))
		return false;
	/* Polls before judging: this process may have been stopped for long, while answers waited
	 * for it. */
	ps_mirrors_poll(p);
	unblock_progressed_mirrors(p);
	drop_stuck_mirrors_unless_needed(p);
	return is_any_mirror_blocking_commits(p);
}

/* For a commit that must not wait: notes since when each mirror of `slow` blocks commits. Returns 1
 * if it dropped any of them, otherwise EAGAIN. */
static int refuse_to_wait(struct perseas *p, uint32_t slow)
{
	const uint64_t now = ps_now(p);

	unblock_progressed_mirrors(p);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!(slow >> i & 1) || m->blocks_commits_since)
			continue;
		m->blocks_commits_since = now;
		m->acked_seq_when_blocking_began = m->acked_seq;
	}
	if (drop_stuck_mirrors_unless_needed(p))
		return 1;
	if (slow && p->commit.unwaited.is_collector_idle)
		p->env->ops->wake(p->env, PS_COLLECTOR);
	return ps_fail_would_block(p, "until mirrors complete more of the ring");
}

/* --- copies --- */

/* Copies in a row that broke before commits wait for the next one. */
enum { BROKEN_COPIES = 2 };

bool ps_pace_copy_lags(const struct perseas *p, const struct ps_mirror *m)
{
	return m->state == PERSEAS_MIRROR_RESYNCING &&
	       m->broken_copies.broken_copy_count >= BROKEN_COPIES &&
	       ps_ring_bytes_from_entry(&p->commit.ring, m->acked_seq + 1) >
	               p->commit.ring.size / 4;
}

/* Returns true if the copy waits for nothing but the link, and made progress since commits last
 * began to wait. */
static bool is_copy_progressing(const struct perseas *p, const struct ps_mirror *m)
{
	return (m->completions_until_chunk || p->upkeep.resync.is_all_posted) &&
	       m->acked_seq != m->broken_copies.commit_pauses.acked_at_pause;
}

/* Begins the next wait for the copy if it is due. Returns true if commits wait now. */
static bool do_commits_pause_for_copy(const struct perseas *p, struct ps_mirror *m, uint64_t now)
{
	struct ps_commit_pauses *wait = &m->broken_copies.commit_pauses;

	if (now >= wait->commits_run_until && is_copy_progressing(p, m)) {
		wait->commits_pause_until = now + ps_ms(p->options.pace_ms);
		wait->commits_run_until = wait->commits_pause_until + ps_ms(p->options.pace_ms);
		wait->acked_at_pause = m->acked_seq;
	}
	return now < wait->commits_pause_until;
}

static void sleep_for_copy(struct perseas *p, struct ps_mirror *m, uint64_t now,
                           struct ps_pacing *pacing)
{
	if (!pacing->wait_began_at) {
		p->commit.stat.paced++;
		pacing->wait_began_at = now;
		pacing->copy_wait_until = 0;
	}
	if (!pacing->copy_wait_until) {
		m->broken_copies.waited_commit_count++;
		pacing->copy_wait_until = m->broken_copies.commit_pauses.commits_pause_until;
	}
	note_commits_wait_for_mirrors(p, ps_mirror_bit(p, m), now);
	ps_commit_sleep_on_links(p, pacing->copy_wait_until);
	/* A mirror that blocks the ring has pace_ms from now on. */
	pacing->last_progress_at = ps_now(p);
	pacing->sum_of_acked_seqs = 0;
	p->commit.stat.paced_ns += pacing->last_progress_at - now;
	ps_mirrors_poll(p);
}

int ps_pace_await_copy(struct perseas *p, unsigned flags, struct ps_pacing *pacing)
{
	struct ps_mirror *m = p->upkeep.resync.target;
	uint64_t now;

	ps_assert_locked(p);
	if (!m || flags & PERSEAS_NOBLOCK || !ps_pace_copy_lags(p, m))
		return 0;
	/* The mirror may have completed more already: poll before judging it. */
	ps_mirrors_poll(p);
	now = ps_now(p);
	if (!ps_pace_copy_lags(p, m) || !do_commits_pause_for_copy(p, m, now))
		return 0;
	if (pacing->wait_began_at && pacing->copy_wait_until && now >= pacing->copy_wait_until)
		return 0;
	sleep_for_copy(p, m, now, pacing);
	return 1;
}

/* --- all --- */

int ps_pace_await_slow_mirrors(struct perseas *p, uint32_t slow, unsigned flags,
                               struct ps_pacing *pacing)
{
	const bool is_needed_for_w = !slow || are_needed_for_w(p, slow),
		   first = !pacing->wait_began_at;
	/* Unawaited commits fill the ring quickly, so half a ring of lag is normal. */
	const bool counts = p->commit.unwaited.has_collector_thread;
	const uint64_t now = ps_now(p), acked = sum_acked_seqs(p, slow);
	uint64_t until;

	ps_assert_locked(p);
	if (flags & PERSEAS_NOBLOCK)
		return refuse_to_wait(p, slow);
	if (first) {
		pacing->wait_began_at = now;
		pacing->copy_wait_until = 0;
	}
	if (first || (counts && acked != pacing->sum_of_acked_seqs)) {
		pacing->sum_of_acked_seqs = acked;
		pacing->last_progress_at = now;
	}
	until = pacing->last_progress_at + stall_timeout_ns(p, is_needed_for_w, flags);
	if (now < until) {
		p->commit.stat.paced += first;
		note_commits_wait_for_mirrors(p, slow, now);
		ps_commit_sleep_on_links(p, until);
		p->commit.stat.paced_ns += ps_now(p) - now;
		ps_mirrors_poll(p);
		return 1;
	}
	if (is_needed_for_w)
		return fail_ring_full(p);
	drop_slow_mirrors(p, slow);
	return 1;
}
