/*
 * session.c - the table of a session's states, and what is done in each of them: the claim, the
 * data path, and what becomes of a mirror that has both. The keeper calls it, with admin.
 *
 * RETRY and flushes mean unknown, never "not applied": a session is always taken up by asking the
 * mirror where it stands, and replaying from there by seq.
 */
#include "session.h"

#include "confirm.h"
#include "../core/broken_copy.h"
#include "../core/detour.h"
#include "due.h"
#include "member_address.h"
#include "epoch.h"
#include "lifeline.h"
#include "change_plan.h"
#include "../core/mirror.h"
#include "../core/segment.h"
#include "reverted_owner.h"
#include "rejoin.h"
#include "renew.h"
#include "resync.h"
#include "rpc.h"
#include "roster_telling.h"

#include <assert.h>
#include <string.h>

#define RETRY_FIRST ps_ms(10)
#define RETRY_MOST ps_ms(1000)
#define DIAL_AGAIN ps_ms(10) /* a connection for which there is no descriptor to wait on */

static const struct ps_state states[] = {
	[PS_SESSION_NONE] = { "none", PS_TO(PS_SESSION_ASKING) | PS_TO(PS_SESSION_UP) },
	[PS_SESSION_ASKING] = { "asking", PS_TO(PS_SESSION_CLAIMING) | PS_TO(PS_SESSION_PREPARING) |
	                                          PS_TO(PS_SESSION_NONE) },
	[PS_SESSION_CLAIMING] = { "claiming", PS_TO(PS_SESSION_ATTACHING) |
	                                              PS_TO(PS_SESSION_PREPARING) |
	                                              PS_TO(PS_SESSION_NONE) },
	[PS_SESSION_ATTACHING] = { "attaching",
	                           PS_TO(PS_SESSION_PREPARING) | PS_TO(PS_SESSION_NONE) },
	[PS_SESSION_PREPARING] = { "preparing", PS_TO(PS_SESSION_UP) | PS_TO(PS_SESSION_NONE) },
	[PS_SESSION_UP] = { "up", PS_TO(PS_SESSION_NONE) },
};

const struct ps_states ps_session_states = { states, sizeof(states) / sizeof(states[0]) };

/* What is so in every state. A session under way has no part in transactions. */
static bool is_sound(const struct ps_mirror *m)
{
	switch (m->session.state) {
	case PS_SESSION_NONE:
		return !m->control && !m->link && !m->session.granted && !m->active;
	case PS_SESSION_ASKING:
	case PS_SESSION_CLAIMING:
		return m->control && !m->link && !m->session.granted && !m->active;
	case PS_SESSION_ATTACHING:
		return m->control && m->link && m->session.granted && !m->active;
	case PS_SESSION_PREPARING:
		return m->control && !m->active;
	case PS_SESSION_UP:
		return m->control && !m->session.granted;
	}
	return false;
}

static void move(struct perseas *p, struct ps_mirror *m, enum ps_session_state to)
{
	m->session.state = ps_states_move(p->env, &ps_session_states, m->session.state, to,
	                                  "session with %.255s", m->address.text);
	assert(is_sound(m));
}

/* What was under way is given up. */
static void end(struct perseas *p, struct ps_mirror *m)
{
	if (m->session.granted)
		perseas__reply__free_unpacked(m->session.granted, NULL);
	m->session.granted = NULL;
	ps_resync_over(p, m);
	if (m->session.state != PS_SESSION_NONE)
		move(p, m, PS_SESSION_NONE);
}

void ps_mirror_disconnect(struct perseas *p, struct ps_mirror *m)
{
	const struct ps_error over = { PERSEAS_EUNREACHABLE, "the session is over" };

	assert(!m->active);
	ps_link_end(p, m);
	memset(m->daemon, 0, sizeof(m->daemon));
	memset(m->shown, 0, sizeof(m->shown));
	p->env->ops->disconnect(m->control);
	m->control = NULL;
	ps_lifeline_end(p, m);
	ps_dues_drop(p, m, &over);
	ps_confirm_forget(p, m);
	ps_telling_ended(p, m);
	ps_detour_drop(m);
	end(p, m);
}

/* From now on commits, and what goes on beside them, count on the mirror. */
static void rise(struct perseas *p, struct ps_mirror *m)
{
	move(p, m, PS_SESSION_UP);
	if (p->options.mirror_timeout_ms && p->env->ops->hear)
		p->env->ops->hear(m->control, ps_ms(p->options.mirror_timeout_ms));
	ps_lifeline_begin(p, m);
}

void ps_sessions_opened(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].control && p->mirrors[i].session.state == PS_SESSION_NONE)
			rise(p, &p->mirrors[i]);
}

void ps_sessions_close(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (ps_session_under_way(m))
			ps_mirror_disconnect(p, m);
	}
}

/* What a mirror that granted the claim again says of itself decides how it goes on. */
static enum perseas_mirror_state judge(const struct perseas *p, const struct ps_mirror *m,
                                       const Perseas__ClaimReply *claim, const char **why)
{
	const Perseas__Header *header = claim->header;
	const Perseas__Slot *slot = claim->slot;

	*why = "";
	if (!ps_store_is(header, p->store_id, p->roster)) {
		*why = "it has an image that was made without the store's key, and counts for "
		       "nothing";
		return PERSEAS_MIRROR_LOST;
	}
	if (!ps_id_equal(header->image_id, m->image_id) &&
	    (!header->parent_id.len || !ps_id_equal(header->parent_id, m->image_id))) {
		*why = "it has another image now: the one that it had is lost";
		return PERSEAS_MIRROR_LOST;
	}
	if (ps_past_image(p, m, claim)) {
		*why = "its memory went back in time: it was adopted by this owner, and is no more";
		return PERSEAS_MIRROR_LOST;
	}
	if (!slot || header->state != PERSEAS__STATE__STATE_CONSISTENT || slot->epoch != p->epoch) {
		*why = "it was not adopted by this owner; it waits to be copied whole";
		return PERSEAS_MIRROR_STALE;
	}
	assert(slot->seq <= p->commit.seq); /* else goes_back() has fenced this owner */
	if (slot->seq < m->acked) {
		*why = "it does not hold what it had acknowledged";
		return PERSEAS_MIRROR_LOST;
	}
	/* No publish or destroy is replayed, so an image that can be replayed to has them all. */
	if (!ps_ring_replays(&p->commit.ring, slot->seq, p->commit.seq)) {
		*why = "it missed more than the ring holds; it waits to be copied whole";
		return PERSEAS_MIRROR_STALE;
	}
	if (!ps_segments_match(p, header)) {
		*why = "its segments are not those of the store; it waits to be copied whole";
		return PERSEAS_MIRROR_STALE;
	}
	return PERSEAS_MIRROR_REPLAYING;
}

/* What the mirror's access rules say of this owner is known from each claim. */
static void note_rights(struct perseas *p, struct ps_mirror *m, bool denied)
{
	pthread_mutex_lock(&p->lock);
	m->denied = denied;
	pthread_mutex_unlock(&p->lock);
}

/* Nothing more can be done with this mirror now; what it is in says what it lacks. */
static void set_aside(struct perseas *p, struct ps_mirror *m, enum perseas_mirror_state state,
                      const char *why)
{
	pthread_mutex_lock(&p->lock);
	ps_link_end(p, m);
	ps_mirror_move(p, m, state, why);
	pthread_mutex_unlock(&p->lock);
	ps_mirror_disconnect(p, m);
	p->env->ops->wake(p->env, PS_COMMITTER);
}

/* The ring holds what the mirror missed: it goes on from its slot. */
static void replay(struct perseas *p, struct ps_mirror *m, const Perseas__ClaimReply *claim)
{
	const Perseas__Slot *slot = claim->slot;

	ps_mirror_loaded(m, claim->header);
	ps_mirror_stands(m, slot->index, slot->seq);
	p->commit.stat.reconnects++;
	ps_mirror_move(p, m, PERSEAS_MIRROR_REPLAYING, "");
	ps_mirrors_settle_doubt(p);
	ps_mirror_pump(p, m);
}

/* Its session is up, and what the claim told of is of no more use. */
static void come_up(struct perseas *p, struct ps_mirror *m)
{
	if (m->session.granted)
		perseas__reply__free_unpacked(m->session.granted, NULL);
	m->session.granted = NULL;
	rise(p, m);
}

/* It must be copied whole: now, or after the one that is being copied. It has no image where
 * nothing was granted. */
static void copy_whole(struct perseas *p, struct ps_mirror *m, enum perseas_mirror_state state,
                       const char *why)
{
	const bool lost = state == PERSEAS_MIRROR_LOST;
	struct ps_error error = { 0 };

	if (p->upkeep.resync.mirror) {
		set_aside(p, m, state, why);
		return;
	}
	m->lost_memory = lost;
	if (lost)
		m->loaded = false;
	else
		ps_mirror_loaded(m, m->session.granted->claim->header);
	if (ps_resync_begin(p, m, lost, m->joins ? "it joins the roster" : why, &error))
		set_aside(p, m, state, error.text);
}

/* Goes on from the mirror's slot. Transactions go on meanwhile: the verdict counts only while
 * nobody can overwrite what it found in the ring. */
static void go_on(struct perseas *p, struct ps_mirror *m)
{
	const Perseas__ClaimReply *claim = m->session.granted->claim;
	enum perseas_mirror_state state;
	const char *why;

	pthread_mutex_lock(&p->lock);
	state = judge(p, m, claim, &why);
	if (state == PERSEAS_MIRROR_REPLAYING)
		replay(p, m, claim);
	pthread_mutex_unlock(&p->lock);
	if (state == PERSEAS_MIRROR_REPLAYING)
		come_up(p, m);
	else
		set_aside(p, m, state, why);
	/* Whoever waits for a commit sleeps on other links. */
	p->env->ops->wake(p->env, PS_COMMITTER);
}

/* The claim dropped what is mapped here and not published. */
static void add_unpublished(struct perseas *p, struct ps_mirror *m)
{
	struct ps_error error = { 0 };

	m->session.until = ps_answer_by(p);
	m->session.comings = p->upkeep.comings;
	if (ps_rejoin_ask_unpublished(p, m, &error))
		set_aside(p, m, PERSEAS_MIRROR_DOWN, error.text);
}

/*
 * What a mirror has must not be copied over where this owner may have come by an image that was
 * left behind, since what counts is there: a mirror that is to join has the store by a roster that
 * was settled after this owner's, or one that lost its image has one by now that this owner's
 * rosters did not come of. NULL: it may be.
 */
static const char *reason_to_keep(const struct perseas *p, const struct ps_mirror *m)
{
	const Perseas__Header *header = m->session.granted->claim->header;

	if (!ps_store_is(header, p->store_id, p->roster) && !ps_store_precedes(header, p->store_id))
		return "it has another store of this name and id, with another key: perseas drop, "
		       "of this mirror alone, deletes that store";
	if (ps_image_forked(header, p->roster, p->next_roster))
		return PS_FORK_NOTE;
	if (m->joins && ps_roster_newer(header->roster, p->roster))
		return "it has the store by a newer roster, and is not copied over: open the store "
		       "by its list, or drop that image first";
	return NULL;
}

/* Claimed and connected: what it has decides how it goes on. The link is not active yet, so nothing
 * is posted to it while this goes on. */
static void prepare(struct perseas *p, struct ps_mirror *m)
{
	enum perseas_mirror_state state;
	struct ps_standing at = { 0 };
	const char *kept, *why;

	/* What this owner has forgotten was acknowledged, and must not be copied over. */
	if (ps_past_claimed(p, m, &at)) {
		ps_renew_went_back(p, m, &at);
		return;
	}
	kept = reason_to_keep(p, m);
	if (kept) {
		set_aside(p, m, PERSEAS_MIRROR_DOWN, kept);
		return;
	}
	pthread_mutex_lock(&p->lock);
	state = judge(p, m, m->session.granted->claim, &why);
	pthread_mutex_unlock(&p->lock);
	if (state != PERSEAS_MIRROR_REPLAYING)
		copy_whole(p, m, state, why);
	else if (ps_rejoin_has_unpublished(p))
		add_unpublished(p, m);
	else
		go_on(p, m);
}

/* It may have been away while many owners came and went: the next try finds it nearer. */
static void come_nearer(struct perseas *p, struct ps_mirror *m, const struct ps_error *error)
{
	ps_epoch_approach(p, m, true);
	set_aside(p, m, PERSEAS_MIRROR_DOWN, error->text);
}

static void refused(struct perseas *p, struct ps_mirror *m, const struct ps_error *error)
{
	m->lost_memory = false;
	if (error->code == PERSEAS_ENOSTORE) {
		move(p, m, PS_SESSION_PREPARING);
		copy_whole(p, m, PERSEAS_MIRROR_LOST, error->text);
	} else if (error->code == PERSEAS_EFENCED || error->code == PERSEAS_EBUSY) {
		set_aside(p, m, PERSEAS_MIRROR_FENCED, error->text);
	} else if (error->code == PERSEAS_EDAMAGED) {
		set_aside(p, m, PERSEAS_MIRROR_LOST, error->text);
	} else if (error->code == PERSEAS_ELIMIT) {
		come_nearer(p, m, error);
	} else {
		set_aside(p, m, PERSEAS_MIRROR_DOWN, error->text);
	}
}

static bool is_unconnected(const struct perseas *p, const struct ps_mirror *m)
{
	if (p->salvage || !(m->votes || m->joins))
		return false;
	/* Those that must be copied whole wait for their turn. */
	return m->state == PERSEAS_MIRROR_DOWN ||
	       (!p->upkeep.resync.mirror &&
	        (m->state == PERSEAS_MIRROR_STALE || m->state == PERSEAS_MIRROR_LOST));
}

static void back_off(struct ps_mirror *m, uint64_t now)
{
	m->retry.delay = m->retry.delay ? 2 * m->retry.delay : RETRY_FIRST;
	if (m->retry.delay > RETRY_MOST)
		m->retry.delay = RETRY_MOST;
	m->retry.at = now + m->retry.delay;
}

/* Connects, and asks what is there: the address may lead to another daemon than before. */
static void begin(struct perseas *p, struct ps_mirror *m, uint64_t now)
{
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(status, STATUS, &ask);
	struct ps_error error = { 0 };

	/* The session before is over at this end too, with all the memory it had. */
	ps_mirror_disconnect(p, m);
	back_off(m, now);
	m->control = p->env->ops->connect(p->env, &m->address, &error);
	if (m->control) {
		m->session.until = ps_answer_by(p);
		move(p, m, PS_SESSION_ASKING);
		ask.store = p->store;
		if (!p->env->ops->send(m->control, &request, &error))
			return;
	}
	note_rights(p, m, false);
	set_aside(p, m, PERSEAS_MIRROR_DOWN, error.text);
}

/* Asks for the claim again, for this same owner. */
static void claim(struct perseas *p, struct ps_mirror *m)
{
	Perseas__ClaimRequest claim;
	Perseas__Request request;
	struct ps_error error = { 0 };

	m->session.until = ps_answer_by(p);
	move(p, m, PS_SESSION_CLAIMING);
	ps_claim_request(p, m, &claim, &request);
	/* This owner has R claims: one of before that still lives there is to be fenced. */
	claim.takeover = true;
	if (p->env->ops->send(m->control, &request, &error))
		set_aside(p, m, PERSEAS_MIRROR_DOWN, error.text);
}

/* There is none, or its data path broke. */
static bool step_idle(struct perseas *p, struct ps_mirror *m)
{
	const uint64_t now = ps_now(p);

	if (!is_unconnected(p, m) || ps_broken_copy_retry_at(p, m) > now)
		return false;
	begin(p, m, now);
	return m->session.state == PS_SESSION_ASKING;
}

/* The address leads to another member. One that has no session is reached there from now on, and
 * this one perhaps where the other was: their addresses may have been swapped. */
static void leave_elsewhere(struct perseas *p, struct ps_mirror *m, struct ps_mirror *other,
                            const Perseas__Header *header, const struct ps_error *error)
{
	struct ps_change *c = &p->upkeep.change;

	if (m->joins) {
		c->same = true;
		c->moves = header && ps_plan_moves(p, header);
	}
	set_aside(p, m, PERSEAS_MIRROR_DOWN, error->text);
	if (other && !other->control && !m->joins && !other->joins)
		ps_elsewhere_swap(p, m, other);
}

/* True: there may be more to do for it. */
static bool step_asking(struct perseas *p, struct ps_mirror *m)
{
	struct ps_error error = { 0 }, elsewhere = { 0 };
	const Perseas__Header *header;
	struct ps_mirror *other;
	Perseas__Reply *reply;
	int code;

	if (!p->env->ops->answered(m->control) &&
	    ps_now(p) < ps_answer_limit(p, m, m->session.until))
		return false;
	code = ps_answer(p, m, m->session.until, &reply, NULL, &error);
	header = code ? NULL : reply->store->status->header;
	if (code == PERSEAS_EDENIED)
		note_rights(p, m, true);
	if ((!code || code == PERSEAS_ENOSTORE) &&
	    ps_elsewhere_check(p, m, header, &other, &elsewhere))
		leave_elsewhere(p, m, other, header, &elsewhere);
	else if (code)
		refused(p, m, &error);
	else
		claim(p, m);
	if (!code)
		perseas__reply__free_unpacked(reply, NULL);
	return m->session.state != PS_SESSION_NONE;
}

/* True: there may be more to do for it. */
static bool step_claiming(struct perseas *p, struct ps_mirror *m)
{
	struct ps_error error = { 0 };
	Perseas__Reply *reply;
	int fds[PS_REGIONS_MAX], code;

	if (!p->env->ops->answered(m->control) &&
	    ps_now(p) < ps_answer_limit(p, m, m->session.until))
		return false;
	code = ps_answer(p, m, m->session.until, &reply, fds, &error);
	note_rights(p, m, code == PERSEAS_EDENIED);
	if (code) {
		refused(p, m, &error);
		return m->session.state == PS_SESSION_PREPARING;
	}
	if (ps_attach_begin(p, m, reply->claim->grant, fds, &error)) {
		perseas__reply__free_unpacked(reply, NULL);
		set_aside(p, m, PERSEAS_MIRROR_DOWN, error.text);
		return false;
	}
	m->session.granted = reply;
	move(p, m, PS_SESSION_ATTACHING);
	return true;
}

/* Where no answer is due from it, nobody reads that it ended the session; and the keeper, which
 * sleeps on it, would not sleep any more. */
static int check_ended(struct perseas *p, struct ps_mirror *m, struct ps_error *error)
{
	return p->env->ops->ended(m->control)
	               ? ps_error_set(error, PERSEAS_EUNREACHABLE, "the mirror ended the session")
	               : 0;
}

static bool step_attaching(struct perseas *p, struct ps_mirror *m)
{
	Perseas__Reply *reply = m->session.granted;
	struct ps_error error = { 0 };
	int rc = check_ended(p, m, &error);

	if (!rc)
		rc = ps_attach_step(p, m, reply->claim->grant, &error);
	if (!rc)
		return false;
	if (rc < 0) {
		set_aside(p, m, PERSEAS_MIRROR_DOWN, error.text);
		return false;
	}
	move(p, m, PS_SESSION_PREPARING);
	prepare(p, m);
	return true;
}

/* Has it added the segments that are not published? Those that came or went since it was asked, it
 * does not know of, or still has. */
static bool step_adding(struct perseas *p, struct ps_mirror *m)
{
	struct ps_error error = { 0 };
	int fds[PS_REGIONS_MAX], rc;
	Perseas__Reply *reply;

	if (!p->env->ops->answered(m->control) &&
	    ps_now(p) < ps_answer_limit(p, m, m->session.until))
		return false;
	rc = ps_answer(p, m, m->session.until, &reply, fds, &error);
	if (!rc) {
		rc = ps_mirror_regrant(p, m, ps_grant_of(reply), fds, &error);
		perseas__reply__free_unpacked(reply, NULL);
	}
	if (!rc && m->session.comings != p->upkeep.comings)
		rc = ps_error_set(&error, PERSEAS_EBUSY, "segments came or went meanwhile");
	if (rc)
		set_aside(p, m, PERSEAS_MIRROR_DOWN, error.text);
	else
		go_on(p, m);
	return false;
}

static bool step_preparing(struct perseas *p, struct ps_mirror *m)
{
	const struct ps_resync *r = &p->upkeep.resync;
	struct ps_error error = { 0 };
	int rc = 0;

	if (r->mirror != m)
		return step_adding(p, m);
	if (!ps_resync_awaits(p))
		rc = check_ended(p, m, &error);
	if (!rc)
		rc = ps_resync_prepare(p, &error);
	if (rc < 0)
		set_aside(p, m, r->anew ? PERSEAS_MIRROR_LOST : PERSEAS_MIRROR_STALE, error.text);
	else if (rc)
		come_up(p, m);
	return false;
}

/* Could the session be moved on, so that there may be more to do? */
static bool step(struct perseas *p, struct ps_mirror *m)
{
	switch (m->session.state) {
	case PS_SESSION_NONE:
	case PS_SESSION_UP:
		return step_idle(p, m);
	case PS_SESSION_ASKING:
		return step_asking(p, m);
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
		while (step(p, &p->mirrors[i]))
			;
}

uint64_t ps_session_due(const struct perseas *p, const struct ps_mirror *m)
{
	struct pollfd ignored;

	switch (m->session.state) {
	case PS_SESSION_NONE:
	case PS_SESSION_UP:
		return is_unconnected(p, m) ? ps_broken_copy_due(m) : PS_NEVER;
	case PS_SESSION_ASKING:
	case PS_SESSION_CLAIMING:
		if (!p->env->ops->control_waits(m->control, &ignored))
			return p->env->ops->now(p->env) + DIAL_AGAIN;
		return ps_answer_limit(p, m, m->session.until);
	case PS_SESSION_ATTACHING:
		return m->attaching.until;
	case PS_SESSION_PREPARING:
		return p->upkeep.resync.mirror == m ? ps_resync_due(p)
		                                    : ps_answer_limit(p, m, m->session.until);
	}
	return PS_NEVER;
}
