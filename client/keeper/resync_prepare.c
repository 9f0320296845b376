/*
 * resync_prepare.c - makes a mirror ready to be copied to: asks others whether it may be made anew,
 * has its image begun in place or beside, connects its data path, and adds the segments that are
 * not published. session.c steps it. Each request is sent, and its answer taken when it is there;
 * transactions, segments and rosters change meanwhile, so nothing that was judged before an answer
 * may be taken for granted after it.
 */
#include "due.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "../core/segment.h"
#include "rejoin.h"
#include "resync.h"
#include "resync_internal.h"
#include "roster.h"
#include "rpc.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const Perseas__ClaimReply *claim_of(const struct ps_mirror *m)
{
	return m->session.granted ? m->session.granted->claim : NULL;
}

/* --- its image --- */

/* Returns true if the image has the regions that the store has now, of the same segments. A copy in
 * place leaves an image its table: what is copied would bear the names of other segments. */
static bool same_regions(const struct perseas *p, const Perseas__Header *header)
{
	return header->log_size == p->log_size && ps_segments_match(p, header);
}

/*
 * May it be copied in place? Not while an acknowledged transaction needs what is there (I8): W
 * others must hold as much as it does. What it has of another owner, they all have. Judged when
 * that is asked for, it stays so: what they hold they keep, and nothing is added to what it has. A
 * mirror that is lost later is lost as it would be during the copy.
 */
static bool in_place(struct perseas *p, const struct ps_mirror *m, const Perseas__ClaimReply *claim)
{
	const Perseas__Slot *slot = claim->slot;
	const uint64_t seq = slot && slot->epoch == p->epoch ? slot->seq : 0;
	bool enough;

	if (!same_regions(p, claim->header))
		return false;
	if (claim->header->state == PERSEAS__STATE__STATE_JOINING)
		return true;
	pthread_mutex_lock(&p->lock);
	enough = ps_quorum_acks(p,
	                        ps_mirrors_whole(p) & ps_mirrors_holding(p, seq) & ~ps_bit(p, m));
	pthread_mutex_unlock(&p->lock);
	return enough;
}

static int ask_room(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	struct ps_mirror *m = r->mirror;
	int rc;

	r->births = p->upkeep.births;
	r->answer_by = ps_answer_by(p);
	r->in_place = !r->anew && in_place(p, m, claim_of(m));
	rc = r->in_place ? ps_rejoin_ask_in_place(p, m, true, error)
	                 : ps_rejoin_ask_beside(p, m, error);
	if (!rc)
		ps_resync_move(p, PS_RESYNC_MAKING);
	return rc ? rc : 1;
}

/* A segment that was published since the image was begun is not in its table, and one that was
 * destroyed still is: the mirror was not told of it. */
static int check_born(const struct perseas *p, struct ps_error *error)
{
	return p->upkeep.births == p->upkeep.resync.births
	               ? 0
	               : ps_error_set(error, PERSEAS_EBUSY,
	                              "segments were published or destroyed meanwhile; it waits "
	                              "to be copied whole");
}

/* Of those that are not published the mirror must have just those that there are: one that is
 * published later is announced to it, and one that goes is not. */
static int begin_copy(struct perseas *p, struct ps_error *error)
{
	int rc = check_born(p, error);

	if (!rc && p->upkeep.resync.comings != p->upkeep.comings)
		rc = ps_error_set(error, PERSEAS_EBUSY,
		                  "segments came or went meanwhile; it waits to be copied whole");
	if (!rc)
		ps_resync_copy(p);
	return rc ? rc : 1;
}

static int ask_unpublished(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	int rc = check_born(p, error);

	if (rc)
		return rc;
	r->comings = p->upkeep.comings;
	if (!ps_rejoin_has_unpublished(p))
		return begin_copy(p, error);
	r->answer_by = ps_answer_by(p);
	rc = ps_rejoin_ask_unpublished(p, r->mirror, error);
	if (!rc)
		ps_resync_move(p, PS_RESYNC_ADDING);
	return rc ? rc : 1;
}

/* --- others are asked --- */

/* Returns true if a roster has the mirror. While it joins, and both rosters do not count yet, none
 * has it, and no other owner can know of it. */
static bool is_listed(const struct perseas *p)
{
	return ps_resync_is_settled(p) ||
	       ps_roster_member(p->next_roster, p->upkeep.resync.mirror->image_id);
}

static int ask_anew(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;

	if (!is_listed(p)) {
		ps_roster_replace(p, r->mirror, r->image_id);
		return ask_room(p, error);
	}
	ps_question_confirm(p, &r->question, ps_resync_others(p));
	ps_resync_move(p, PS_RESYNC_ASKING);
	return 1;
}

static void ask_to_record(struct perseas *p, uint32_t on)
{
	Perseas__RosterRequest ask;
	Perseas__Request request;

	ps_roster_request(p, &ask, &request);
	ps_question_ask(p, &p->upkeep.resync.question, on, &request);
}

/* Too few mirrors confirmed that another one may be made anew. */
static int fail_unconfirmed(struct perseas *p, struct ps_error *error)
{
	char text[256];
	bool lost;

	pthread_mutex_lock(&p->lock);
	lost = ps_mirrors_lost(p);
	if (lost)
		ps_lost_text(p, text, sizeof(text));
	pthread_mutex_unlock(&p->lock);
	return ps_error_set(error, PERSEAS_EQUORUM, "%s",
	                    lost ? text
	                         : "it lost its image, and too few other mirrors are live to make "
	                           "it anew: start them");
}

/* I9: its promises are lost with its memory. */
static int step_asking(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	uint32_t granted;

	if (!ps_resync_is_confirmed(p))
		return ps_question_over(p, &r->question) ? fail_unconfirmed(p, error) : 0;
	if (!ps_resync_is_settled(p)) {
		/* The change is told again, with the new id, before the mirror counts. */
		ps_question_forget(&r->question);
		ps_roster_replace(p, r->mirror, r->image_id);
		return ask_room(p, error);
	}
	granted = r->question.granted;
	r->last = granted & ps_roster_unrecorded(p);
	ps_roster_replace(p, r->mirror, r->image_id);
	ask_to_record(p, granted & ~r->last);
	ps_resync_move(p, PS_RESYNC_RECORDING);
	return 1;
}

/* Those that recorded its new id, and itself. They still are as they were then. */
static uint32_t recorders(struct perseas *p)
{
	const struct ps_resync *r = &p->upkeep.resync;

	return ((r->took | r->question.granted) & ps_resync_others(p)) | ps_bit(p, r->mirror);
}

/* Some were loaded from spills, and may not know their own ids: they are asked last, where W need
 * them, and have all others. */
static bool ask_last(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;
	const uint32_t last = r->last;

	if (!last || !ps_quorum_acks(p, recorders(p) | (last & ps_resync_others(p))))
		return false;
	r->took = recorders(p);
	r->last = 0;
	ask_to_record(p, last);
	return true;
}

static int step_recording(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;

	if (!ps_quorum_acks(p, recorders(p))) {
		if (ask_last(p))
			return 1;
		return ps_question_over(p, &r->question)
		               ? ps_error_set(error, PERSEAS_EQUORUM,
		                              "too few mirrors recorded that it is made anew")
		               : 0;
	}
	ps_question_forget(&r->question);
	return ask_room(p, error);
}

/* --- its answers --- */

/* Takes the answer to its request: 1, 0 while it is not there, or a code. */
static int take(struct perseas *p, Perseas__Reply **reply, int *fds, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	struct ps_mirror *m = r->mirror;
	int rc;

	if (!p->env->ops->answered(m->control) && ps_now(p) < ps_answer_limit(p, m, r->answer_by))
		return 0;
	rc = ps_answer(p, m, r->answer_by, reply, fds, error);
	return rc ? rc : 1;
}

static int step_making(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	struct ps_mirror *m = r->mirror;
	int fds[PS_REGIONS_MAX], rc;
	Perseas__Reply *reply;

	rc = take(p, &reply, fds, error);
	if (rc <= 0)
		return rc;
	if (!r->in_place && !m->link) {
		rc = ps_attach_begin(p, m, ps_grant_of(reply), fds, error);
		if (!rc) {
			r->reply = reply;
			ps_resync_move(p, PS_RESYNC_ATTACHING);
			return 1;
		}
	} else {
		rc = r->in_place ? 0 : ps_mirror_regrant(p, m, ps_grant_of(reply), fds, error);
	}
	perseas__reply__free_unpacked(reply, NULL);
	return rc ? rc : ask_unpublished(p, error);
}

static int step_attaching(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	int rc = ps_attach_step(p, r->mirror, ps_grant_of(r->reply), error);

	if (rc <= 0)
		return rc;
	perseas__reply__free_unpacked(r->reply, NULL);
	r->reply = NULL;
	return ask_unpublished(p, error);
}

static int step_adding(struct perseas *p, struct ps_error *error)
{
	struct ps_mirror *m = p->upkeep.resync.mirror;
	int fds[PS_REGIONS_MAX], rc;
	Perseas__Reply *reply;

	rc = take(p, &reply, fds, error);
	if (rc <= 0)
		return rc;
	rc = ps_mirror_regrant(p, m, ps_grant_of(reply), fds, error);
	perseas__reply__free_unpacked(reply, NULL);
	return rc ? rc : begin_copy(p, error);
}

/* --- all of it --- */

/* 1: it was moved on, and there may be more to do. */
static int step(struct perseas *p, struct ps_error *error)
{
	switch (p->upkeep.resync.state) {
	case PS_RESYNC_ASKING:
		return step_asking(p, error);
	case PS_RESYNC_RECORDING:
		return step_recording(p, error);
	case PS_RESYNC_MAKING:
		return step_making(p, error);
	case PS_RESYNC_ATTACHING:
		return step_attaching(p, error);
	case PS_RESYNC_ADDING:
		return step_adding(p, error);
	default:
		return 0;
	}
}

int ps_resync_prepare(struct perseas *p, struct ps_error *error)
{
	const struct ps_resync *r = &p->upkeep.resync;
	int rc;

	ps_assert_admin(p);
	do {
		ps_dues_take(p, ps_now(p));
		rc = step(p, error);
	} while (rc > 0 && r->state != PS_RESYNC_COPYING);
	return rc;
}

int ps_resync_begin(struct perseas *p, struct ps_mirror *m, bool anew, const char *why,
                    struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	int rc;

	ps_assert_admin(p);
	assert(r->state == PS_RESYNC_NONE && (anew || claim_of(m)));
	if (!anew && !ps_resync_would_count(p, m))
		return ps_error_set(error, PERSEAS_EQUORUM,
		                    "this owner did not adopt it, and too few other mirrors are "
		                    "live to let it count after a copy: start them");
	pthread_mutex_lock(&p->lock);
	r->mirror = m;
	r->anew = anew;
	/* What stands behind the reason is that it waits. */
	snprintf(r->why, sizeof(r->why), "being copied whole: %.*s", (int)strcspn(why, ";"), why);
	pthread_mutex_unlock(&p->lock);
	if (anew)
		p->env->ops->random(p->env, r->image_id, sizeof(r->image_id));
	rc = anew ? ask_anew(p, error) : ask_room(p, error);
	return rc < 0 ? rc : 0;
}
