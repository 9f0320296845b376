/*
 * renew.c - decides whether a fenced owner claims all its mirrors again, and runs the steps of an
 * open (attempt.h) that keep its memory (renew.h). renew_adopt.c brings a mirror up to date with
 * that memory. A renewal must never fence a living owner.
 */
#include "renew.h"

#include "attempt.h"
#include "claims.h"
#include "member_address.h"
#include "../core/serialization.h"
#include "../core/demand.h"
#include "../core/event.h"
#include "../core/gather.h"
#include "../core/mirror.h"
#include "../core/nowait.h"
#include "../core/quorum.h"
#include "reverted_owner.h"
#include "heartbeat.h"
#include "renew_adopt.h"
#include "resync.h"
#include "roster.h"
#include "rpc.h"
#include "session.h"
#include "stuck_quorum.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const char ps_salvage_mark[8] = "SALVAGE";

#define RETRY_MIN ps_ms(10)
#define RETRY_MAX ps_ms(1000)
#define ANSWER_TIMEOUT ps_ms(1000)

static uint32_t voting_mirrors(const struct perseas *p)
{
	return p->quorums[0].set | (p->next_roster ? p->quorums[1].set : 0);
}

static uint32_t fenced_voting_mirrors(const struct perseas *p)
{
	return p->commit.fenced_mirrors & voting_mirrors(p);
}

/* --- the images that mirrors show --- */

/* Returns true if the mirror shows the image that the rosters list, or one loaded from its
 * spill. */
static bool shows_listed_image(const struct perseas *p, const struct ps_mirror *m)
{
	const Perseas__Header *header = m->probe.header;

	return !m->probe.code && header && ps_image_is_of_store(header, p->store_id, p->roster) &&
	       header->promised_owner.len == PS_ID_SIZE &&
	       (ps_id_equal(header->image_id, m->image_id) ||
	        (header->parent_id.len && ps_id_equal(header->parent_id, m->image_id)));
}

static bool shows_consistent_image(const struct perseas *p, const struct ps_mirror *m)
{
	return shows_listed_image(p, m) &&
	       m->probe.header->state == PERSEAS__STATE__STATE_CONSISTENT;
}

/* Returns true if `roster` is newer than both rosters of this owner. */
static bool is_newer_than_own(const Perseas__Roster *roster, const struct perseas *p)
{
	return ps_roster_newer(roster, p->roster) && ps_roster_newer(roster, p->next_roster);
}

/* Returns true if another owner adopted the image, recorded a roster there, or claimed it for
 * salvage. That owner may have opened the store, and its commits are not in this memory. */
static bool shows_another_owner(struct perseas *p, const struct ps_mirror *m)
{
	if (!shows_listed_image(p, m))
		return false;
	if (shows_consistent_image(p, m) && ps_status_shows_reverted_owner(p, m))
		return true;
	if (!memcmp(m->probe.header->promised_owner.data, ps_salvage_mark, sizeof(ps_salvage_mark)))
		return true;
	return (shows_consistent_image(p, m) && m->probe.position.epoch > p->opened_epoch &&
	        !ps_mirror_may_have_own_slot(m, m->probe.position.epoch)) ||
	       is_newer_than_own(m->probe.header->roster, p) ||
	       is_newer_than_own(m->probe.header->next_roster, p);
}

/* If another store of this name was made on the mirror, the mirror counts as one without an image:
 * its owner and its promises are not of this store. */
static void check_store_id(const struct perseas *p, struct ps_mirror *m)
{
	if (!ps_id_equal(m->probe.header->store_id, p->store_id))
		m->probe.code = ps_error_set(&m->probe.error, PERSEAS_ENOSTORE,
		                             "%s has another store named '%s'", m->address.text,
		                             p->store);
}

/* Returns true if the mirror's image has another owner, which is alive. */
static bool has_another_live_owner(const struct perseas *p, const struct ps_mirror *m)
{
	return !m->probe.code && m->probe.header && m->probe.has_owner &&
	       !ps_is_same_owner(m->probe.header->promised_owner, p->owner);
}

/* Notes the mirror's promise for the epoch of the renewal. If no claim can follow the promise, the
 * mirror counts as unreachable (epoch.h). */
static void note_promised_epoch(struct perseas *p, struct ps_mirror *m)
{
	const uint64_t promised = m->probe.header->promised_epoch;

	if (!ps_has_store(p, m))
		return;
	if (promised >= PS_EPOCH_MAX - 1 ||
	    (promised > p->epoch && promised - p->epoch > PS_EPOCH_REACH))
		m->probe.code = ps_error_set(&m->probe.error, PERSEAS_ELIMIT,
		                             "%s: it promised epoch %llu, which no claim can "
		                             "follow: drop this image",
		                             m->address.text, (unsigned long long)promised);
	else if (promised > p->upkeep.renewal.highest_epoch)
		p->upkeep.renewal.highest_epoch = promised;
}

/* Asks the mirrors of `set` for their status, over new connections if their sessions are not UP. An
 * address may lead to another member now. */
static void ask_status(struct perseas *p, uint32_t set)
{
	struct ps_round round;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (set >> i & 1 &&
		    (ps_session_under_way(m) || (m->control && p->env->ops->ended(m->control))))
			ps_mirror_disconnect(p, m);
	}
	ps_round_ask_status(p, set, false, &round, ps_now(p) + ANSWER_TIMEOUT);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i], *other;

		if (!round.is_asked[i])
			continue;
		ps_probe_result_set(m, round.replies[i], &round.errors[i]);
		if (!m->probe.code)
			m->probe.code = ps_member_check_address(p, m, m->probe.header, &other,
			                                        &m->probe.error);
		if (!m->probe.code)
			check_store_id(p, m);
		if (!m->probe.code)
			note_promised_epoch(p, m);
		m->probe.is_listed = shows_listed_image(p, m);
	}
	ps_round_free(&round);
}

/* Returns true if any fenced voter can be claimed. A fenced voter without an image has no promise
 * left: it moves to DOWN, and the keeper makes it anew (I9). */
static bool can_claim_any_fenced(struct perseas *p)
{
	bool any = false;

	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!(fenced_voting_mirrors(p) >> i & 1))
			continue;
		any |= !m->probe.code;
		if (m->probe.code == PERSEAS_ENOSTORE)
			ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_DOWN, m->probe.error.text);
	}
	pthread_mutex_unlock(&p->lock);
	return any;
}

/* Returns PERSEAS_EFENCED if another owner succeeded this one, or PS_AGAIN if another owner lives
 * on one of the mirrors and this owner has not given up its claims yet. Otherwise returns 0. */
static int judge_other_owners(struct perseas *p, uint32_t asked)
{
	bool held = false;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (!(asked >> i & 1))
			continue;
		if (shows_another_owner(p, m))
			return PERSEAS_EFENCED;
		held |= has_another_live_owner(p, m);
	}
	if (held && ps_fences_prevent_w(p))
		return PERSEAS_EFENCED;
	return held && !p->is_renewing ? PS_AGAIN : 0;
}

/* Returns true if an open with the images of this set can succeed. If it cannot, giving up the
 * present claims would gain nothing. */
static bool would_open_succeed(const struct perseas *p, uint32_t set)
{
	return ps_quorum_is_r(p, set) && ps_quorum_is_w(p, set) &&
	       (p->next_roster ? ps_quorum_every_open_sees(p, set) : ps_quorum_is_t(p, set));
}

/* Returns true if this owner should give up the claims that it has, to claim its mirrors again. */
static bool has_reason_to_renew_claims(struct perseas *p)
{
	const bool any = can_claim_any_fenced(p);

	return any || p->is_renewing || p->upkeep.renewal.is_wanted ||
	       p->upkeep.renewal.is_quorum_stuck;
}

/* Asks the fenced voters first, because they are known to answer. Asks the other unclaimed voters
 * only if a renewal is needed, because their silence may have to time out. Returns 0 if the renewal
 * can succeed, PS_AGAIN, or PERSEAS_EFENCED. */
static int probe_before_renewal(struct perseas *p)
{
	uint32_t unclaimed = voting_mirrors(p), ready;
	int rc;

	pthread_mutex_lock(&p->lock);
	ready = ps_mirrors_with_whole_image(p);
	for (unsigned i = 0; i < p->mirror_count; i++)
		/* A mirror that is being prepared for a copy need not be asked for its status: its
		 * session notices a lost claim by itself. */
		if (p->mirrors[i].is_active || p->mirrors[i].session.state == PS_SESSION_PREPARING)
			unclaimed &= ~((uint32_t)1 << i);
	pthread_mutex_unlock(&p->lock);
	p->upkeep.renewal.highest_epoch = p->epoch;
	ask_status(p, fenced_voting_mirrors(p));
	rc = judge_other_owners(p, fenced_voting_mirrors(p));
	if (!rc && !has_reason_to_renew_claims(p))
		rc = PS_AGAIN;
	if (rc)
		return rc;
	ask_status(p, unclaimed & ~fenced_voting_mirrors(p));
	rc = judge_other_owners(p, unclaimed);
	return rc || would_open_succeed(p, ready | ps_judge_images(p, unclaimed)) ? rc : PS_AGAIN;
}

/* --- the attempt --- */

static const char *renewal_cause(const struct perseas *p)
{
	if (p->upkeep.renewal.is_wanted)
		return "its level was raised";
	return fenced_voting_mirrors(p)
	               ? "another owner claimed it and went away"
	               : "too few mirrors had it, and no copy to another one would count";
}

/* Stops sending, ends all sessions, and unmaps all memory of mirrors. Transactions that were sent
 * may still be acknowledged. */
static void give_claims_up(struct perseas *p)
{
	pthread_mutex_lock(&p->lock);
	ps_gather_send_if_any(p);
	p->is_gate_raised = true;
	if (!p->is_renewing) {
		p->upkeep.renewal.ring_epoch = p->epoch;
		p->upkeep.renewal.cause_text = renewal_cause(p);
		p->is_renewing = true;
		ps_attempt_end(p);
	}
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (m->is_active)
			ps_mirror_break_link(p, m, PS_LINK_BROKEN, "its claim is being renewed");
		else if (m->has_vote && m->state != PERSEAS_MIRROR_DOWN)
			ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_DOWN,
			                        "its claim is being renewed");
	}
	pthread_mutex_unlock(&p->lock);
	ps_demand_suspend(p);
	p->env->ops->wake(p->env, PS_COMMITTER);
	for (unsigned i = 0; i < p->mirror_count; i++)
		ps_mirror_disconnect(p, &p->mirrors[i]);
	assert(p->upkeep.resync.state == PS_RESYNC_NONE);
}

/* Disconnects a mirror that refused the claim, and moves it to FENCED or DOWN. */
static void handle_refused_claim(struct perseas *p, struct ps_mirror *m)
{
	const struct ps_probe_result *f = &m->probe;

	ps_mirror_disconnect(p, m);
	pthread_mutex_lock(&p->lock);
	ps_mirror_move_to_state(p, m,
	                        f->code == PERSEAS_EBUSY ? PERSEAS_MIRROR_FENCED
	                                                 : PERSEAS_MIRROR_DOWN,
	                        f->error.text);
	pthread_mutex_unlock(&p->lock);
}

/* Asks all voters for their status over new connections. */
static void ask_voters_for_status(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		ps_probe_result_clear(&p->mirrors[i]);
	ask_status(p, voting_mirrors(p));
	ps_attempt_record_step(p, PS_ATTEMPT_PROBED, 0);
}

static int judge_voters(struct perseas *p)
{
	const int rc = judge_other_owners(p, voting_mirrors(p));

	if (!rc)
		p->epoch = p->upkeep.renewal.highest_epoch;
	return rc;
}

/* Claims all voters that answered, with this owner's id. */
static int claim_voters(struct perseas *p)
{
	struct ps_round round;

	ps_claims_send_and_await(p, voting_mirrors(p) & ps_probe_sets(p).showed_image_set,
	                         ANSWER_TIMEOUT, &round);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		m->probe.is_listed = shows_listed_image(p, m);
		if (m->probe.is_claimed && m->probe.is_listed) {
			ps_mirror_note_loaded(m, m->probe.header);
			ps_mirror_forget_unarrived_slots(p, m, m->probe.position.epoch);
		} else if (m->has_vote && !round.replies[i]) {
			handle_refused_claim(p, m);
		}
	}
	ps_round_free(&round);
	return 0;
}

/* Returns true if the image lacks transactions that the mirror acknowledged: it was replaced or
 * reverted. */
static bool lacks_acknowledged_transactions(const struct perseas *p, const struct ps_mirror *m)
{
	return shows_consistent_image(p, m) &&
	       m->probe.position.epoch >= p->upkeep.renewal.ring_epoch &&
	       m->probe.position.seq < m->acked_seq;
}

/* Chooses this owner's memory as the state of the store, if R mirrors show that no other owner has
 * adopted the store. Returns 0, PS_AGAIN, or PERSEAS_EFENCED. */
static int choose_memory_of_renewing_owner(struct perseas *p, struct ps_image_position *chosen)
{
	uint32_t claimed = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (!m->probe.is_claimed)
			continue;
		if (shows_another_owner(p, m))
			return PERSEAS_EFENCED;
		if (!lacks_acknowledged_transactions(p, m))
			claimed |= ps_mirror_bit(p, m);
	}
	*chosen = (struct ps_image_position){ p->upkeep.renewal.ring_epoch, p->commit.seq,
		                              p->commit.next_position, p->commit.last_position, 0 };
	return would_open_succeed(p, ps_judge_images(p, claimed)) ? 0 : PS_AGAIN;
}

static int recheck_counted_claims(struct perseas *p)
{
	return ps_claims_ask_and_find_lost(p, ps_probe_sets(p).counted_set) ? PS_AGAIN : 0;
}

static int adopt_memory_on_counted_mirrors(struct perseas *p,
                                           const struct ps_image_position *chosen)
{
	const uint32_t counted = ps_probe_sets(p).counted_set;
	uint32_t good;

	assert(p->commit.seq == chosen->seq);
	ps_renew_adopt_memory_on_mirrors(p, counted);
	good = ps_probe_sets(p).adopted_set;
	return ps_quorum_is_w(p, good) && ps_roster_record_newer_than_unclaimed(p, counted, good)
	               ? 0
	               : PS_AGAIN;
}

static const struct ps_attempt_actions renewal_actions = { judge_voters, claim_voters,
	                                                   choose_memory_of_renewing_owner,
	                                                   recheck_counted_claims,
	                                                   adopt_memory_on_counted_mirrors };

/* --- the result --- */

/* Moves a mirror to LIVE if the renewal adopted on it. Otherwise ends its data path, and moves a
 * claimed mirror to STALE. Caller holds p->lock. */
static void move_to_live_or_stale(struct perseas *p, struct ps_mirror *m)
{
	ps_assert_locked(p);
	assert(!m->probe.is_adopted || m->probe.is_claimed);
	if (m->probe.is_adopted) {
		ps_mirror_note_position(m, m->probe.position.valid_slot, p->commit.seq);
		ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_LIVE, "");
		return;
	}
	ps_link_end(p, m);
	if (m->probe.is_claimed)
		ps_mirror_move_to_state(
			p, m, PERSEAS_MIRROR_STALE,
			"it waits to be brought up to date since the owner's claim was renewed");
	m->retry.next_try_at = m->retry.delay_ns = 0;
}

/* Lets commits go on under the new epoch. */
static void finish_renewal(struct perseas *p)
{
	pthread_mutex_lock(&p->lock);
	/* The records in the ring have the old epoch. */
	ps_ring_drop_all(&p->commit.ring, p->commit.seq + 1);
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].has_vote)
			move_to_live_or_stale(p, &p->mirrors[i]);
	p->is_renewing = false;
	assert(!p->is_superseded && ps_quorum_is_w(p, ps_mirrors_live(p)));
	ps_tokens_set_epoch(p);
	p->upkeep.renewal.attempt_delay_ns = 0;
	p->commit.stat.renewals++;
	ps_event(p, PERSEAS_EVENT_RENEWED, ps_last_committed_seq(p), NULL,
	         "this owner claimed store '%s' again, as epoch %llu, since %s", p->store,
	         (unsigned long long)p->epoch, p->upkeep.renewal.cause_text);
	p->upkeep.renewal.is_wanted = false;
	ps_end_doubt_if_durable(p);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (!p->mirrors[i].is_active)
			ps_mirror_disconnect(p, &p->mirrors[i]);
	ps_sessions_move_to_up(p);
	/* Gives the unsettled change the new epoch, under which the mirrors are told of it from now
	 * on. */
	if (p->next_roster)
		ps_rosters_raise_version(p);
}

/* Fences the handle for good, because another owner has succeeded it. */
static void mark_owner_superseded(struct perseas *p)
{
	pthread_mutex_lock(&p->lock);
	p->is_superseded = true;
	ps_attempt_record_step(p, PS_ATTEMPT_SUPERSEDED, 0);
	ps_wake_blocked(p);
	ps_unwaited_raise_flag(p);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (m->has_vote && p->is_renewing && m->state != PERSEAS_MIRROR_FENCED)
			ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_FENCED,
			                        "another owner has claimed the store");
	}
	ps_wake_waiters(p);
	pthread_mutex_unlock(&p->lock);
	if (p->upkeep.renewal.reverted_text[0])
		ps_reverted_end_sessions(p);
}

void ps_renew_fence_reverted_handle(struct perseas *p, const struct ps_mirror *m,
                                    const struct ps_image_position *at)
{
	ps_assert_admin(p);
	if (p->is_superseded) {
		ps_reverted_end_sessions(p);
		return;
	}
	pthread_mutex_lock(&p->lock);
	ps_reverted_note_evidence(p, m, at);
	pthread_mutex_unlock(&p->lock);
	mark_owner_superseded(p);
}

/* Sets the time of the next try. A random part keeps two claimers from colliding again. */
static void delay_next_renewal(struct perseas *p)
{
	struct ps_renewal *r = &p->upkeep.renewal;
	uint64_t bits;

	r->attempt_delay_ns = r->attempt_delay_ns ? 2 * r->attempt_delay_ns : RETRY_MIN;
	if (r->attempt_delay_ns > RETRY_MAX)
		r->attempt_delay_ns = RETRY_MAX;
	p->env->ops->random(p->env, &bits, sizeof(bits));
	r->next_attempt_at = ps_now(p) + r->attempt_delay_ns / 2 + bits % r->attempt_delay_ns;
}

/* After a try that failed, ends the data paths, and the connections that were made only to ask.
 * While the renewal goes on, sessions with a claim stay: other clients then see an owner, and the
 * mirrors hear at once what it lacks. */
static void end_renewal_try(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (m->is_active || ps_session_under_way(m))
			continue;
		ps_link_end(p, m);
		if (!p->is_renewing || p->is_superseded)
			ps_mirror_disconnect(p, m);
	}
	p->upkeep.next_heartbeat_at = 0;
	ps_heartbeat_step(p, ps_now(p));
}

static bool is_renewal_wanted(const struct perseas *p)
{
	return !p->is_superseded && !p->is_salvage &&
	       (p->is_renewing || p->upkeep.renewal.is_wanted ||
	        p->upkeep.renewal.is_quorum_stuck || fenced_voting_mirrors(p));
}

bool ps_renew_step(struct perseas *p, uint64_t now)
{
	int rc;

	ps_assert_admin(p);
	p->upkeep.renewal.is_quorum_stuck = !p->is_renewing && ps_quorum_is_stuck(p);
	if (!is_renewal_wanted(p) || now < p->upkeep.renewal.next_attempt_at)
		return p->is_renewing;
	rc = probe_before_renewal(p);
	if (!rc) {
		give_claims_up(p);
		ask_voters_for_status(p);
		rc = ps_attempt_to_own_store(p, &renewal_actions);
	}
	if (!rc)
		finish_renewal(p);
	if (rc == PERSEAS_EFENCED)
		mark_owner_superseded(p);
	if (rc)
		end_renewal_try(p);
	delay_next_renewal(p);
	pthread_mutex_lock(&p->lock);
	p->is_gate_raised = false;
	ps_wake_waiters(p);
	pthread_mutex_unlock(&p->lock);
	p->env->ops->wake(p->env, PS_COMMITTER);
	return p->is_renewing;
}

uint64_t ps_renew_due_at(const struct perseas *p)
{
	return is_renewal_wanted(p) ? p->upkeep.renewal.next_attempt_at : PS_NEVER;
}
