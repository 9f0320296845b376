/*
 * resync_prepare.c - prepares a mirror for a copy: has other mirrors confirm and record that
 * it is made anew, asks it for room in place or beside the old image, attaches its data path, and
 * has it add the unpublished segments. session.c steps this. Requests do not wait for their
 * answers, and transactions, segments and rosters change meanwhile. So no decision that was made
 * before an answer may be relied on after it.
 */
#include "../core/unsent_granules.h"
#include "pending_answers.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "../core/segment.h"
#include "rejoin.h"
#include "resync.h"
#include "resync_internal.h"
#include "roster.h"
#include "rpc.h"
#include "../core/tx.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const Perseas__ClaimReply *claim_reply_of_mirror(const struct ps_mirror *m)
{
	return m->session.claim_reply ? m->session.claim_reply->claim : NULL;
}

/* --- the mirror's image --- */

/* Returns NULL if the image may be copied in place, otherwise why not. It may if no
 * acknowledged transaction depends on it (I8), because W other mirrors hold all that it holds of
 * this epoch. They also hold all of earlier epochs. This stays true after the answer: the other
 * mirrors keep what they hold, and the image gets nothing new. Losing one of them later is no worse
 * than losing it during the copy. */
static const struct ps_whole_reason *reason_to_copy_beside(struct perseas *p,
                                                           const struct ps_mirror *m,
                                                           const Perseas__ClaimReply *claim)
{
	static const struct ps_whole_reason segments = {
		"segments",
		"its segments are not those of the store",
	};
	static const struct ps_whole_reason needed = {
		"needed",
		"fewer than W others hold all that it has",
	};
	const Perseas__Slot *slot = claim->slot;
	const uint64_t seq = slot && slot->epoch == p->epoch ? slot->seq : 0;
	bool enough;

	if (!ps_rejoin_has_regions_of_store(p, claim->header))
		return &segments;
	if (claim->header->state == PERSEAS__STATE__STATE_JOINING)
		return NULL;
	pthread_mutex_lock(&p->lock);
	enough = ps_quorum_is_w(p, ps_mirrors_with_whole_image(p) & ps_mirrors_holding(p, seq) &
	                                   ~ps_mirror_bit(p, m));
	pthread_mutex_unlock(&p->lock);
	return enough ? NULL : &needed;
}

/* Returns true if a roster lists the mirror. While it joins and the change is not joint yet, no
 * roster does, and no other owner can know of the mirror. */
static bool is_in_any_roster(const struct perseas *p)
{
	return ps_resync_is_settled_member(p) ||
	       ps_roster_member(p->next_roster, p->upkeep.resync.target->image_id);
}

/* Returns true if the mirror joins with an image of the store, which counts for nothing because no
 * roster lists it, and which may be compared and overwritten in place under a new id. The mirror
 * was a member before. */
static bool may_compare_former_image(struct perseas *p, const struct ps_mirror *m,
                                     const Perseas__ClaimReply *claim)
{
	return claim && m->is_joining && !is_in_any_roster(p) &&
	       ps_image_is_of_store(claim->header, p->store_id, p->roster) &&
	       !reason_to_copy_beside(p, m, claim) && !ps_resync_reason_not_to_compare(p, m);
}

/* Returns why an image that does not count is made anew. */
static const struct ps_whole_reason *reason_to_make_anew(const struct ps_mirror *m)
{
	static const struct ps_whole_reason joins = { "joins", NULL }, lost = { "lost", NULL };

	return m->is_joining ? &joins : &lost;
}

/* Chooses where the copy goes, and what must be sent. Returns 0, or an error code. */
static int plan_copy(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	const Perseas__ClaimReply *claim = claim_reply_of_mirror(r->target);

	if (!r->gets_new_image_id)
		r->whole_reason = reason_to_copy_beside(p, r->target, claim);
	else if (!may_compare_former_image(p, r->target, claim))
		r->whole_reason = reason_to_make_anew(r->target);
	r->is_in_place = !r->whole_reason;
	r->unsent_base = r->is_in_place && !r->gets_new_image_id
	                         ? ps_unsent_choose_base(p, r->target, claim)
	                         : PS_UNSENT_ALL;
	if (r->is_in_place && r->unsent_base == PS_UNSENT_ALL) {
		r->whole_reason = ps_resync_reason_not_to_compare(p, r->target);
		r->unsent_base = r->whole_reason ? PS_UNSENT_ALL : PS_UNSENT_DIFFERENT;
	}
	if (ps_unsent_make_set(p, r->target, r->unsent_base, claim,
	                       r->is_in_place && !r->gets_new_image_id
	                               ? claim->header->image_id.data
	                               : r->new_image_id))
		return ps_error_set(error, PERSEAS_ENOMEM,
		                    "no memory to note what it must be sent");
	return 0;
}

/* Asks the mirror for room in place or beside the old image. Returns 1, or an error code. */
static int ask_for_copy_room(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	const uint8_t *new_id = r->gets_new_image_id ? r->new_image_id : NULL;
	struct ps_mirror *m = r->target;
	int rc;

	r->answer_by = ps_answer_deadline(p);
	rc = r->is_in_place ? ps_rejoin_ask_to_begin_in_place(p, m, true, new_id, error)
	                    : ps_rejoin_ask_to_make_image_beside(p, m, error);
	if (!rc)
		ps_resync_move(p, PS_RESYNC_MAKING_ROOM);
	return rc ? rc : 1;
}

/* Plans the copy, and begins to compare the image, or asks for room. Returns 1, or an error
 * code. */
static int compare_or_ask_for_copy_room(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	int rc = plan_copy(p, error);

	if (rc)
		return rc;
	r->publish_generation = p->upkeep.publish_generation;
	if (r->unsent_base != PS_UNSENT_DIFFERENT)
		return ask_for_copy_room(p, error);
	ps_resync_begin_comparing(p);
	return 1;
}

/* Returns PERSEAS_EBUSY if a segment was published or destroyed since the mirror was told of the
 * segments: the table of its image would be wrong. Otherwise returns 0. */
static int check_segments_unchanged(const struct perseas *p, struct ps_error *error)
{
	return p->upkeep.publish_generation == p->upkeep.resync.publish_generation
	               ? 0
	               : ps_error_set(error, PERSEAS_EBUSY,
	                              "segments were published or destroyed meanwhile; it waits "
	                              "to be copied whole");
}

/* Begins copying, and returns 1, if the mirror has exactly the segments that are unpublished now.
 * It will hear when one of them is published, but not when one is added or removed. Otherwise
 * returns an error code. */
static int begin_copy(struct perseas *p, struct ps_error *error)
{
	int rc = check_segments_unchanged(p, error);

	if (!rc && p->upkeep.resync.unpublished_generation != p->upkeep.unpublished_generation)
		rc = ps_error_set(
			error, PERSEAS_EBUSY,
			"unpublished segments changed; it waits to be brought up to date");
	if (!rc)
		ps_resync_begin_copying(p);
	return rc ? rc : 1;
}

/* Asks the mirror to add the unpublished segments, or begins copying if there are none. Returns 1,
 * or an error code. */
static int ask_to_add_unpublished_segments(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	int rc = check_segments_unchanged(p, error);

	if (rc)
		return rc;
	r->unpublished_generation = p->upkeep.unpublished_generation;
	if (!ps_rejoin_has_unpublished(p))
		return begin_copy(p, error);
	r->answer_by = ps_answer_deadline(p);
	rc = ps_rejoin_ask_to_add_unpublished(p, r->target, error);
	if (!rc)
		ps_resync_move(p, PS_RESYNC_ADDING);
	return rc ? rc : 1;
}

/* --- other mirrors --- */

/* Asks the other mirrors whether this mirror may be made anew, if a roster lists it. Returns 1, or
 * an error code. */
static int ask_others_whether_remake_is_safe(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;

	if (!is_in_any_roster(p)) {
		ps_roster_set_image_id(p, r->target, r->new_image_id);
		return compare_or_ask_for_copy_room(p, error);
	}
	ps_question_ask_claim_confirmations(p, &r->question, ps_resync_other_mirrors(p));
	ps_resync_move(p, PS_RESYNC_ASKING);
	return 1;
}

static void ask_to_record_rosters(struct perseas *p, uint32_t mirrors)
{
	Perseas__RosterRequest ask;
	Perseas__Request request;

	ps_roster_make_request(p, &ask, &request);
	ps_question_ask(p, &p->upkeep.resync.question, mirrors, &request);
}

/* Returns PERSEAS_EQUORUM, because too few mirrors confirmed this owner's claim. */
static int fail_unconfirmed(struct perseas *p, struct ps_error *error)
{
	char text[256];
	bool lost;

	pthread_mutex_lock(&p->lock);
	lost = ps_count_lost_if_none_can_be_remade(p);
	if (lost)
		ps_lost_mirrors_advice(p, text, sizeof(text));
	pthread_mutex_unlock(&p->lock);
	return ps_error_set(error, PERSEAS_EQUORUM, "%s",
	                    lost ? text
	                         : "it lost its image, and too few other mirrors are live to make "
	                           "it anew: start them");
}

/* Takes the other mirrors' answers, whether this owner's claim stands. The mirror lost its promises
 * with its memory, so the others must confirm the claim (I9). */
static int step_asking_claim_confirmations(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	uint32_t granted;

	if (!ps_resync_is_confirmed(p))
		return ps_question_is_over(p, &r->question) ? fail_unconfirmed(p, error) : 0;
	if (!ps_resync_is_settled_member(p)) {
		/* The change is told to the mirrors again, with the new id, before this mirror
		 * counts. */
		ps_question_forget(&r->question);
		ps_roster_set_image_id(p, r->target, r->new_image_id);
		return compare_or_ask_for_copy_room(p, error);
	}
	granted = r->question.granting_mirrors;
	r->ask_last_mirrors = granted & ps_roster_mirrors_to_tell_last(p);
	ps_roster_set_image_id(p, r->target, r->new_image_id);
	ask_to_record_rosters(p, granted & ~r->ask_last_mirrors);
	ps_resync_move(p, PS_RESYNC_RECORDING);
	return 1;
}

/* Returns the mirrors that recorded the new image id, and the mirror itself. Mirrors that are no
 * longer connected and whole do not count. */
static uint32_t find_recorders(struct perseas *p)
{
	const struct ps_resync *r = &p->upkeep.resync;

	return ((r->recorded_mirrors | r->question.granting_mirrors) & ps_resync_other_mirrors(p)) |
	       ps_mirror_bit(p, r->target);
}

/* Asks the mirrors that were loaded from spills and may not know their own ids, if they and the
 * recorders are W. These mirrors must be told last. Returns false if they are not asked. */
static bool ask_loaded_mirrors_to_record(struct perseas *p)
{
	struct ps_resync *r = &p->upkeep.resync;
	const uint32_t last = r->ask_last_mirrors;

	if (!last || !ps_quorum_is_w(p, find_recorders(p) | (last & ps_resync_other_mirrors(p))))
		return false;
	r->recorded_mirrors = find_recorders(p);
	r->ask_last_mirrors = 0;
	ask_to_record_rosters(p, last);
	return true;
}

static int step_recording_image_id(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;

	if (!ps_quorum_is_w(p, find_recorders(p))) {
		if (ask_loaded_mirrors_to_record(p))
			return 1;
		return ps_question_is_over(p, &r->question)
		               ? ps_error_set(error, PERSEAS_EQUORUM,
		                              "too few mirrors recorded its new image id: start "
		                              "the others")
		               : 0;
	}
	ps_question_forget(&r->question);
	return compare_or_ask_for_copy_room(p, error);
}

/* --- the mirror's answers --- */

int ps_resync_take_answer(struct perseas *p, Perseas__Reply **reply, int *fds,
                          struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	struct ps_mirror *m = r->target;
	int rc;

	if (!p->env->ops->answered(m->control) &&
	    ps_now(p) < ps_answer_extended_deadline(p, m, r->answer_by))
		return 0;
	rc = ps_await_answer(p, m, r->answer_by, reply, fds, error);
	return rc ? rc : 1;
}

static int step_making_image(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	struct ps_mirror *m = r->target;
	int fds[PS_REGIONS_MAX], rc;
	Perseas__Reply *reply;

	rc = ps_resync_take_answer(p, &reply, fds, error);
	if (rc <= 0)
		return rc;
	if (!r->is_in_place && !m->link) {
		rc = ps_attach_begin(p, m, ps_reply_grant(reply), fds, error);
		if (!rc) {
			r->saved_answer = reply;
			ps_resync_move(p, PS_RESYNC_ATTACHING);
			return 1;
		}
	} else {
		rc = r->is_in_place ? 0
		                    : ps_mirror_regrant(p, m, ps_reply_grant(reply), fds, error);
	}
	perseas__reply__free_unpacked(reply, NULL);
	return rc ? rc : ask_to_add_unpublished_segments(p, error);
}

static int step_attaching(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	int rc = ps_attach_continue(p, r->target, ps_reply_grant(r->saved_answer), error);

	if (rc <= 0)
		return rc;
	perseas__reply__free_unpacked(r->saved_answer, NULL);
	r->saved_answer = NULL;
	return ask_to_add_unpublished_segments(p, error);
}

static int step_adding_segments(struct perseas *p, struct ps_error *error)
{
	struct ps_mirror *m = p->upkeep.resync.target;
	int fds[PS_REGIONS_MAX], rc;
	Perseas__Reply *reply;

	rc = ps_resync_take_answer(p, &reply, fds, error);
	if (rc <= 0)
		return rc;
	rc = ps_mirror_regrant(p, m, ps_reply_grant(reply), fds, error);
	perseas__reply__free_unpacked(reply, NULL);
	return rc ? rc : begin_copy(p, error);
}

/* Compares the image, which must still be one that may be overwritten when all is compared: the
 * other mirrors may have gone meanwhile (I8). */
static int step_comparing_digests(struct perseas *p, struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	int rc = check_segments_unchanged(p, error);

	if (!rc)
		rc = ps_resync_step_comparing(p, error);
	if (rc <= 0)
		return rc;
	if (reason_to_copy_beside(p, r->target, claim_reply_of_mirror(r->target)))
		return ps_error_set(error, PERSEAS_EBUSY,
		                    "other mirrors went while it was compared; it waits to be "
		                    "brought up to date");
	rc = ask_for_copy_room(p, error);
	if (rc > 0)
		ps_tx_observe_end(p);
	return rc;
}

/* --- steps --- */

/* Returns 1 if the preparation may be able to move on at once, 0 if it must wait, or an error
 * code. */
static int step_preparation(struct perseas *p, struct ps_error *error)
{
	switch (p->upkeep.resync.state) {
	case PS_RESYNC_ASKING:
		return step_asking_claim_confirmations(p, error);
	case PS_RESYNC_RECORDING:
		return step_recording_image_id(p, error);
	case PS_RESYNC_COMPARING:
		return step_comparing_digests(p, error);
	case PS_RESYNC_MAKING_ROOM:
		return step_making_image(p, error);
	case PS_RESYNC_ATTACHING:
		return step_attaching(p, error);
	case PS_RESYNC_ADDING:
		return step_adding_segments(p, error);
	default:
		return 0;
	}
}

int ps_resync_continue_preparing(struct perseas *p, struct ps_error *error)
{
	const struct ps_resync *r = &p->upkeep.resync;
	int rc;

	ps_assert_admin(p);
	do {
		ps_pending_take_all_answers(p, ps_now(p));
		rc = step_preparation(p, error);
	} while (rc > 0 && r->state != PS_RESYNC_COPYING);
	return rc;
}

int ps_resync_begin(struct perseas *p, struct ps_mirror *m, bool with_new_id, const char *why,
                    struct ps_error *error)
{
	struct ps_resync *r = &p->upkeep.resync;
	int rc;

	ps_assert_admin(p);
	assert(r->state == PS_RESYNC_NONE && (with_new_id || claim_reply_of_mirror(m)));
	if (!with_new_id && !ps_resync_granted_image_would_count(p, m))
		return ps_error_set(error, PERSEAS_EQUORUM,
		                    "this owner did not adopt it, and too few other mirrors are "
		                    "live to let it count after a copy: start them");
	pthread_mutex_lock(&p->lock);
	r->target = m;
	r->gets_new_image_id = with_new_id;
	/* Leaves out the part behind the semicolon: that the mirror waits for its copy. */
	snprintf(r->copy_reason, sizeof(r->copy_reason), "%.*s", (int)strcspn(why, ";"), why);
	pthread_mutex_unlock(&p->lock);
	if (with_new_id)
		p->env->ops->random(p->env, r->new_image_id, sizeof(r->new_image_id));
	rc = with_new_id ? ask_others_whether_remake_is_safe(p, error)
	                 : compare_or_ask_for_copy_room(p, error);
	return rc < 0 ? rc : 0;
}
