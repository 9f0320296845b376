/*
 * session.c - moves a mirror's session from the first connection to UP: asks for the status,
 * claims, attaches the data path, and chooses how the mirror gets what it missed. The keeper calls
 * it and holds admin.
 *
 * After a broken connection the outcome of its requests is unknown, never "not applied". A new
 * session therefore asks the mirror for its commit slot, and continues from that seq.
 */
#include "session.h"

#include "confirm.h"
#include "../core/broken_copy.h"
#include "../core/detour.h"
#include "pending_answers.h"
#include "member_address.h"
#include "epoch.h"
#include "granted_image.h"
#include "lifeline.h"
#include "change_plan.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "reverted_owner.h"
#include "rejoin.h"
#include "renew.h"
#include "resync.h"
#include "rpc.h"
#include "roster_telling.h"

#include <assert.h>
#include <string.h>

#define RETRY_MAX ps_ms(1000)
#define CONNECT_POLL ps_ms(10) /* how often to check a connection without a descriptor */
#define LINE_POLL ps_ms(100)   /* wait for each place in a daemon's line before asking again */

enum {
	COPY_TURN_VERSION = 9, /* first version that gives turns to copies */
	LINE_PLACES = 10,      /* places behind this one wait no longer, or would be forgotten */
};

/* Frees what the session has in progress, ends a whole copy to this mirror, and moves the session
 * to NONE. */
static void abandon_session(struct perseas *p, struct ps_mirror *m)
{
	perseas__reply__free_unpacked(m->session.claim_reply, NULL);
	m->session.claim_reply = NULL;
	m->session.has_copy_turn = false;
	ps_resync_end_if_target(p, m);
	if (m->session.state != PS_SESSION_NONE)
		ps_session_move(p, m, PS_SESSION_NONE);
}

void ps_mirror_disconnect(struct perseas *p, struct ps_mirror *m)
{
	const struct ps_error over = { PERSEAS_EUNREACHABLE, "the session is over" };

	assert(!m->is_active);
	ps_link_end(p, m);
	memset(m->daemon_id, 0, sizeof(m->daemon_id));
	memset(m->shown_image_id, 0, sizeof(m->shown_image_id));
	p->env->ops->disconnect(m->control);
	m->control = NULL;
	ps_lifeline_disconnect(p, m);
	ps_pending_drop_answers(p, m, &over);
	ps_confirm_forget_mirror(p, m);
	ps_roster_forget_what_mirror_recorded(p, m);
	ps_detour_cancel_test(m);
	abandon_session(p, m);
}

/* Moves the session to UP: from now on commits and the keeper count on the mirror. */
static void set_session_up(struct perseas *p, struct ps_mirror *m)
{
	ps_session_move(p, m, PS_SESSION_UP);
	if (p->options.mirror_timeout_ms && p->env->ops->expect_heartbeats)
		p->env->ops->expect_heartbeats(m->control, ps_ms(p->options.mirror_timeout_ms));
	ps_lifeline_schedule(p, m);
}

void ps_sessions_move_to_up(struct perseas *p)
{
	ps_assert_admin(p);
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].control && p->mirrors[i].session.state == PS_SESSION_NONE)
			set_session_up(p, &p->mirrors[i]);
}

void ps_sessions_close(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (ps_session_under_way(&p->mirrors[i]))
			ps_mirror_disconnect(p, &p->mirrors[i]);
}

/* Notes whether the mirror's access rules refused this owner's last claim. */
static void note_access_denial(struct perseas *p, struct ps_mirror *m, bool denied)
{
	pthread_mutex_lock(&p->lock);
	m->is_claim_denied = denied;
	pthread_mutex_unlock(&p->lock);
}

/* Disconnects the mirror, and moves it to `state` because of `why`. */
static void disconnect_and_move(struct perseas *p, struct ps_mirror *m,
                                enum perseas_mirror_state state, const char *why)
{
	pthread_mutex_lock(&p->lock);
	ps_link_end(p, m);
	ps_mirror_move_to_state(p, m, state, why);
	pthread_mutex_unlock(&p->lock);
	ps_mirror_disconnect(p, m);
	p->env->ops->wake(p->env, PS_COMMITTER);
}

/* Starts catch-up: posts the transactions after the mirror's commit slot from the ring. */
static void begin_catch_up(struct perseas *p, struct ps_mirror *m, const Perseas__ClaimReply *claim)
{
	const Perseas__Slot *slot = claim->slot;

	ps_assert_locked(p);
	ps_mirror_note_loaded(m, claim->header);
	ps_mirror_note_position(m, slot->index, slot->seq);
	p->commit.stat.reconnects++;
	ps_mirror_move_to_state(p, m, PERSEAS_MIRROR_REPLAYING, "");
	ps_end_doubt_if_durable(p);
	ps_mirror_post_from_ring(p, m);
}

/* Frees the granted claim, and moves the session to UP. */
static void finish_preparing(struct perseas *p, struct ps_mirror *m)
{
	perseas__reply__free_unpacked(m->session.claim_reply, NULL);
	m->session.claim_reply = NULL;
	set_session_up(p, m);
}

/* Returns true if the mirror's daemon gives turns to copies, and gave none on this connection. */
static bool lacks_copy_turn(const struct perseas *p, const struct ps_mirror *m)
{
	return !m->session.has_copy_turn && ps_mirror_has_version(p, m, COPY_TURN_VERSION);
}

/* Begins a copy to the mirror. Disconnects the mirror if another one is being copied to, or if its
 * daemon must be asked for a turn first. The mirror has no image if no claim was granted. */
static void begin_whole_copy(struct perseas *p, struct ps_mirror *m,
                             enum perseas_mirror_state state, const char *why)
{
	const bool lost = state == PERSEAS_MIRROR_LOST;
	struct ps_error error = { 0 };

	assert(lost || m->session.claim_reply);
	if (p->upkeep.resync.target || lacks_copy_turn(p, m)) {
		disconnect_and_move(p, m, state, why);
		if (!p->upkeep.resync.target)
			m->retry.next_try_at = ps_now(p);
		return;
	}
	m->has_lost_memory = lost;
	if (lost)
		m->is_from_spill = false;
	else
		ps_mirror_note_loaded(m, m->session.claim_reply->claim->header);
	if (ps_resync_begin(p, m, lost, m->is_joining ? "it joins the roster" : why, &error))
		disconnect_and_move(p, m, state, error.text);
}

/* Starts catch-up, or disconnects the mirror. Judges the image again under the lock: commits may
 * have overwritten in the ring what the mirror still needs. */
static void catch_up_or_disconnect(struct perseas *p, struct ps_mirror *m)
{
	const Perseas__ClaimReply *claim = m->session.claim_reply->claim;
	enum perseas_mirror_state state;
	const char *why;

	assert(m->session.state == PS_SESSION_PREPARING && m->link);
	pthread_mutex_lock(&p->lock);
	state = ps_granted_image_judge(p, m, claim, &why);
	if (state == PERSEAS_MIRROR_REPLAYING)
		begin_catch_up(p, m, claim);
	pthread_mutex_unlock(&p->lock);
	if (state == PERSEAS_MIRROR_REPLAYING)
		finish_preparing(p, m);
	else
		disconnect_and_move(p, m, state, why);
	/* A thread that waits for a commit must now sleep on this link, too. */
	p->env->ops->wake(p->env, PS_COMMITTER);
}

/* Asks the mirror to add the segments that are mapped and not published: its claim dropped them. */
static void ask_to_add_unpublished_segments(struct perseas *p, struct ps_mirror *m)
{
	struct ps_error error = { 0 };

	m->session.answer_by = ps_answer_deadline(p);
	m->session.unpublished_generation = p->upkeep.unpublished_generation;
	if (ps_rejoin_ask_to_add_unpublished(p, m, &error))
		disconnect_and_move(p, m, PERSEAS_MIRROR_DOWN, error.text);
}

/* Chooses how a claimed mirror with a data path goes on: catch-up, a whole copy, or neither. The
 * link is not active yet, so nothing is posted to it meanwhile. */
static void begin_catch_up_or_copy(struct perseas *p, struct ps_mirror *m)
{
	enum perseas_mirror_state state;
	struct ps_image_position at = { 0 };
	const char *reason, *why;

	/* What a reverted owner has forgotten was acknowledged, and must not be copied over. */
	if (ps_claim_shows_reverted_owner(p, m, &at)) {
		ps_renew_fence_reverted_handle(p, m, &at);
		return;
	}
	reason = ps_granted_image_reason_to_keep(p, m);
	if (reason) {
		disconnect_and_move(p, m, PERSEAS_MIRROR_DOWN, reason);
		return;
	}
	pthread_mutex_lock(&p->lock);
	state = ps_granted_image_judge(p, m, m->session.claim_reply->claim, &why);
	pthread_mutex_unlock(&p->lock);
	if (state != PERSEAS_MIRROR_REPLAYING)
		begin_whole_copy(p, m, state, why);
	else if (ps_rejoin_has_unpublished(p))
		ask_to_add_unpublished_segments(p, m);
	else
		catch_up_or_disconnect(p, m);
}

/* Brings the mirror's promise closer to this owner's epoch: many owners may have come and gone. */
static void approach_own_epoch(struct perseas *p, struct ps_mirror *m, const struct ps_error *error)
{
	ps_epoch_claim_in_steps(p, m, true);
	disconnect_and_move(p, m, PERSEAS_MIRROR_DOWN, error->text);
}

/* Handles a refused Status or claim. Makes the image anew if the mirror has none. */
static void handle_refusal(struct perseas *p, struct ps_mirror *m, const struct ps_error *error)
{
	m->has_lost_memory = false;
	ps_mirror_note_lost_copy(p, m, error->code);
	if (error->code == PERSEAS_ENOSTORE) {
		ps_session_move(p, m, PS_SESSION_PREPARING);
		begin_whole_copy(p, m, PERSEAS_MIRROR_LOST, error->text);
	} else if (error->code == PERSEAS_EFENCED || error->code == PERSEAS_EBUSY) {
		disconnect_and_move(p, m, PERSEAS_MIRROR_FENCED, error->text);
	} else if (error->code == PERSEAS_EDAMAGED) {
		disconnect_and_move(p, m, PERSEAS_MIRROR_LOST, error->text);
	} else if (error->code == PERSEAS_ELIMIT) {
		approach_own_epoch(p, m, error);
	} else {
		disconnect_and_move(p, m, PERSEAS_MIRROR_DOWN, error->text);
	}
}

/* Returns true if the mirror's last session ended because the mirror must be copied to. */
static bool must_be_copied_to(const struct ps_mirror *m)
{
	return m->state == PERSEAS_MIRROR_STALE || m->state == PERSEAS_MIRROR_LOST;
}

/* Returns true if a session with this mirror should be begun when its next try is due. */
static bool wants_session(const struct perseas *p, const struct ps_mirror *m)
{
	if (p->is_salvage || !(m->has_vote || m->is_joining))
		return false;
	/* Only one mirror at a time is copied to. */
	return m->state == PERSEAS_MIRROR_DOWN ||
	       (!p->upkeep.resync.target && must_be_copied_to(m));
}

/* Doubles the delay until the next try, up to RETRY_MAX. */
static void delay_retry(struct ps_mirror *m, uint64_t now)
{
	m->retry.delay_ns = m->retry.delay_ns ? 2 * m->retry.delay_ns : PS_RETRY_MIN;
	if (m->retry.delay_ns > RETRY_MAX)
		m->retry.delay_ns = RETRY_MAX;
	m->retry.next_try_at = now + m->retry.delay_ns;
}

/* Sends the request, and moves the session to the state that takes its answer. */
static void send_request_and_move(struct perseas *p, struct ps_mirror *m,
                                  enum ps_session_state state, const Perseas__Request *request)
{
	struct ps_error error = { 0 };

	m->session.answer_by = ps_answer_deadline(p);
	ps_session_move(p, m, state);
	if (!p->env->ops->send(m->control, request, &error))
		return;
	note_access_denial(p, m, false);
	disconnect_and_move(p, m, PERSEAS_MIRROR_DOWN, error.text);
}

/* Asks for the status: another daemon may answer at the address now. */
static void ask_for_status(struct perseas *p, struct ps_mirror *m)
{
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(status, STATUS, &ask);

	ask.store = p->store;
	send_request_and_move(p, m, PS_SESSION_ASKING, &request);
}

/* Connects, and asks for the status. */
static void begin_session(struct perseas *p, struct ps_mirror *m, uint64_t now)
{
	struct ps_error error = { 0 };

	/* Frees the memory of the previous session. */
	ps_mirror_disconnect(p, m);
	delay_retry(m, now);
	m->control = p->env->ops->connect(p->env, &m->address, &error);
	if (m->control) {
		ask_for_status(p, m);
		return;
	}
	note_access_denial(p, m, false);
	disconnect_and_move(p, m, PERSEAS_MIRROR_DOWN, error.text);
}

/* Asks the mirror's daemon whether a copy may begin. */
static void ask_for_copy_turn(struct perseas *p, struct ps_mirror *m)
{
	Perseas__CopyTurnRequest ask = PERSEAS__COPY_TURN_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(copy_turn, COPY_TURN, &ask);

	ask.store = p->store;
	pthread_mutex_lock(&p->lock);
	ask.urgent = !ps_quorum_is_w(p, ps_mirrors_with_whole_image(p));
	pthread_mutex_unlock(&p->lock);
	send_request_and_move(p, m, PS_SESSION_QUEUING, &request);
}

/* Claims the mirror again, with this owner's id and epoch. */
static void send_claim(struct perseas *p, struct ps_mirror *m)
{
	Perseas__ClaimRequest claim;
	Perseas__Request request;

	ps_claim_fill_request(p, m, &claim, &request);
	/* This owner has R claims, so it may fence an earlier owner that still lives there. */
	claim.takeover = true;
	send_request_and_move(p, m, PS_SESSION_CLAIMING, &request);
}

/* Begins a session for a mirror that has none or lost its data path, if one is due. Returns true if
 * the session may be able to move on at once. */
static bool begin_session_if_due(struct perseas *p, struct ps_mirror *m)
{
	const uint64_t now = ps_now(p);

	if (!wants_session(p, m) || ps_broken_copy_retry_at(p, m) > now)
		return false;
	begin_session(p, m, now);
	return m->session.state == PS_SESSION_ASKING;
}

/* Disconnects mirror `m`, whose address leads to the member `other`. Swaps their addresses if
 * `other` has no session: then each may be reached at the other's address. */
static void leave_other_member(struct perseas *p, struct ps_mirror *m, struct ps_mirror *other,
                               const Perseas__Header *header, const struct ps_error *error)
{
	struct ps_change *c = &p->upkeep.change;

	if (m->is_joining) {
		c->is_member_address = true;
		c->moves_address = header && ps_change_plan_only_changes_address(p, header);
	}
	disconnect_and_move(p, m, PERSEAS_MIRROR_DOWN, error->text);
	if (other && !other->control && !m->is_joining && !other->is_joining)
		ps_member_swap_addresses(p, m, other);
}

/* Returns true if the answer that the session waits for is there or has timed out. */
static bool is_answer_here_or_overdue(struct perseas *p, const struct ps_mirror *m)
{
	return p->env->ops->answered(m->control) ||
	       ps_now(p) >= ps_answer_extended_deadline(p, m, m->session.answer_by);
}

/* Takes the answer to the Status, and claims the mirror, or asks for a turn to copy to it. Returns
 * true if the session may be able to move on at once. */
static bool step_session_asking(struct perseas *p, struct ps_mirror *m)
{
	struct ps_error error = { 0 }, elsewhere = { 0 };
	const Perseas__Header *header;
	struct ps_mirror *other;
	Perseas__Reply *reply;
	bool is_known; /* the answer tells whether the mirror has an image */
	int code;

	if (!is_answer_here_or_overdue(p, m))
		return false;
	code = ps_await_answer(p, m, m->session.answer_by, &reply, NULL, &error);
	header = code ? NULL : reply->store->status->header;
	if (code == PERSEAS_EDENIED)
		note_access_denial(p, m, true);
	is_known = !code || code == PERSEAS_ENOSTORE;
	if (is_known && ps_member_check_address(p, m, header, &other, &elsewhere)) {
		leave_other_member(p, m, other, header, &elsewhere);
	} else if (is_known && (code || must_be_copied_to(m)) && lacks_copy_turn(p, m)) {
		ps_mirror_note_lost_copy(p, m, code);
		ask_for_copy_turn(p, m);
	} else if (code) {
		handle_refusal(p, m, &error);
	} else {
		send_claim(p, m);
	}
	if (!code)
		perseas__reply__free_unpacked(reply, NULL);
	return m->session.state != PS_SESSION_NONE;
}

/* Takes the answer whether a copy may begin, and asks for the status again if so. Returns true if
 * the session may be able to move on at once. */
static bool step_queuing(struct perseas *p, struct ps_mirror *m)
{
	struct ps_error error = { 0 };
	Perseas__Reply *reply;
	uint32_t place;
	int code;

	if (!is_answer_here_or_overdue(p, m))
		return false;
	code = ps_await_answer(p, m, m->session.answer_by, &reply, NULL, &error);
	note_access_denial(p, m, code == PERSEAS_EDENIED);
	if (code) {
		disconnect_and_move(p, m, PERSEAS_MIRROR_DOWN, error.text);
		return false;
	}
	place = reply->copy_turn->place;
	perseas__reply__free_unpacked(reply, NULL);
	m->session.has_copy_turn = !place;
	ps_session_note_copy_place(p, m, place);
	if (!place) {
		ask_for_status(p, m);
		return m->session.state != PS_SESSION_NONE;
	}
	ps_error_set(&error, PERSEAS_EBUSY,
	             "it waits for its turn to be copied to: number %u in its daemon's line",
	             place);
	disconnect_and_move(p, m, m->state == PERSEAS_MIRROR_STALE ? m->state : PERSEAS_MIRROR_LOST,
	                    error.text);
	m->retry.next_try_at = ps_now(p) + (place < LINE_PLACES ? place : LINE_PLACES) * LINE_POLL;
	return false;
}

/* Takes the answer to the claim, and begins to attach the data path. Returns true if the session
 * may be able to move on at once. */
static bool step_claiming(struct perseas *p, struct ps_mirror *m)
{
	struct ps_error error = { 0 };
	Perseas__Reply *reply;
	int fds[PS_REGIONS_MAX], code;

	if (!is_answer_here_or_overdue(p, m))
		return false;
	code = ps_await_answer(p, m, m->session.answer_by, &reply, fds, &error);
	note_access_denial(p, m, code == PERSEAS_EDENIED);
	if (code) {
		handle_refusal(p, m, &error);
		return m->session.state == PS_SESSION_PREPARING;
	}
	if (ps_attach_begin(p, m, reply->claim->grant, fds, &error)) {
		perseas__reply__free_unpacked(reply, NULL);
		disconnect_and_move(p, m, PERSEAS_MIRROR_DOWN, error.text);
		return false;
	}
	m->session.claim_reply = reply;
	ps_session_move(p, m, PS_SESSION_ATTACHING);
	return true;
}

/* Returns PERSEAS_EUNREACHABLE if the mirror hung up, otherwise 0. While no answer is due, only
 * this check reads that, and the keeper could not sleep on the connection any more. */
static int fail_if_hung_up(struct perseas *p, struct ps_mirror *m, struct ps_error *error)
{
	return p->env->ops->ended(m->control)
	               ? ps_error_set(error, PERSEAS_EUNREACHABLE, "the mirror ended the session")
	               : 0;
}

static bool step_attaching(struct perseas *p, struct ps_mirror *m)
{
	Perseas__Reply *reply = m->session.claim_reply;
	struct ps_error error = { 0 };
	int rc = fail_if_hung_up(p, m, &error);

	if (!rc)
		rc = ps_attach_continue(p, m, reply->claim->grant, &error);
	if (!rc)
		return false;
	if (rc < 0) {
		disconnect_and_move(p, m, PERSEAS_MIRROR_DOWN, error.text);
		return false;
	}
	ps_session_move(p, m, PS_SESSION_PREPARING);
	begin_catch_up_or_copy(p, m);
	return true;
}

/* Takes the answer to AddSegments, and starts catch-up. Disconnects the mirror if unpublished
 * segments changed since the request. Returns false. */
static bool step_adding_segments(struct perseas *p, struct ps_mirror *m)
{
	struct ps_error error = { 0 };
	int fds[PS_REGIONS_MAX], rc;
	Perseas__Reply *reply;

	if (!is_answer_here_or_overdue(p, m))
		return false;
	rc = ps_await_answer(p, m, m->session.answer_by, &reply, fds, &error);
	if (!rc) {
		rc = ps_mirror_regrant(p, m, ps_reply_grant(reply), fds, &error);
		perseas__reply__free_unpacked(reply, NULL);
	}
	if (!rc && m->session.unpublished_generation != p->upkeep.unpublished_generation)
		rc = ps_error_set(&error, PERSEAS_EBUSY, "unpublished segments changed meanwhile");
	if (rc)
		disconnect_and_move(p, m, PERSEAS_MIRROR_DOWN, error.text);
	else
		catch_up_or_disconnect(p, m);
	return false;
}

/* Takes the answers while the mirror is prepared; if that fails, disconnects it. Returns false. */
static bool step_preparing(struct perseas *p, struct ps_mirror *m)
{
	const struct ps_resync *r = &p->upkeep.resync;
	struct ps_error error = { 0 };
	int rc = 0;

	if (r->target != m)
		return step_adding_segments(p, m);
	if (!ps_resync_awaits_mirror(p))
		rc = fail_if_hung_up(p, m, &error);
	if (!rc)
		rc = ps_resync_continue_preparing(p, &error);
	if (rc < 0)
		disconnect_and_move(p, m,
		                    r->gets_new_image_id ? PERSEAS_MIRROR_LOST
		                                         : PERSEAS_MIRROR_STALE,
		                    error.text);
	else if (rc)
		finish_preparing(p, m);
	return false;
}

/* Returns true if the session may be able to move on at once. */
static bool step_session(struct perseas *p, struct ps_mirror *m)
{
	switch (m->session.state) {
	case PS_SESSION_NONE:
	case PS_SESSION_UP:
		return begin_session_if_due(p, m);
	case PS_SESSION_ASKING:
		return step_session_asking(p, m);
	case PS_SESSION_QUEUING:
		return step_queuing(p, m);
	case PS_SESSION_CLAIMING:
		return step_claiming(p, m);
	case PS_SESSION_ATTACHING:
		return step_attaching(p, m);
	case PS_SESSION_PREPARING:
		return step_preparing(p, m);
	}
	return false;
}

void ps_sessions_step(struct perseas *p)
{
	ps_assert_admin(p);
	for (unsigned i = 0; i < p->mirror_count; i++)
		while (step_session(p, &p->mirrors[i]))
			;
}

uint64_t ps_session_due_at(const struct perseas *p, const struct ps_mirror *m)
{
	struct pollfd ignored;

	switch (m->session.state) {
	case PS_SESSION_NONE:
	case PS_SESSION_UP:
		return wants_session(p, m) ? ps_broken_copy_reconnect_at(m) : PS_NEVER;
	case PS_SESSION_ASKING:
	case PS_SESSION_QUEUING:
	case PS_SESSION_CLAIMING:
		if (!p->env->ops->fill_control_pollfd(m->control, &ignored))
			return p->env->ops->now(p->env) + CONNECT_POLL;
		return ps_answer_extended_deadline(p, m, m->session.answer_by);
	case PS_SESSION_ATTACHING:
		return m->attaching.deadline;
	case PS_SESSION_PREPARING:
		return p->upkeep.resync.target == m
		               ? ps_resync_due_at(p)
		               : ps_answer_extended_deadline(p, m, m->session.answer_by);
	}
	return PS_NEVER;
}
