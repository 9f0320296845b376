/*
 * adopt.c - makes the chosen state this owner's on at least W mirrors (I7), and mends the mirrors
 * whose images are behind, ahead, or lost.
 *
 * A mirror that is behind by a few transactions is sent these. Otherwise its image is overwritten
 * in place only if W other mirrors hold the state (I8). Where the logs do not reach far enough, a
 * mirror is left to the keeper. If W need it, a whole copy is made next to the image, and replaces
 * it when complete; a mirror that lost its memory gets a new image with a new id (I9).
 */
#include "adopt.h"

#include "../keeper/attempt.h"
#include "claim.h"
#include "../keeper/copy.h"
#include "examine.h"
#include "mend_forward.h"
#include "mend_delta.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "../core/segment.h"
#include "../keeper/rejoin.h"
#include "../keeper/roster.h"
#include "../keeper/rpc.h"
#include "../../proto/control/segment_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int note_adopted(struct perseas *p, struct ps_mirror *m, const char *how)
{
	m->probe.is_adopted = true;
	ps_report_add_line(p, "%s: %s", m->address.text, how);
	return 0;
}

/* Notes that the session with a mirror broke during adoption. Returns PS_AGAIN; the open goes on
 * without the mirror if W others hold the state (check_broken_sessions). */
static int note_session_broken(struct perseas *p, struct ps_mirror *m, const char *why)
{
	ps_report_add_line(p, "%s: its session broke while it was mended: %s", m->address.text,
	                   why);
	m->probe.has_broken_session = true;
	return PS_AGAIN;
}

static bool is_writable_by_open(const struct perseas *p, const struct ps_mirror *m)
{
	return ps_quorum_writable_by_open(p) & ps_mirror_bit(p, m);
}

/* --- which segments the chosen state has --- */

static bool is_at_chosen_state(const struct ps_mirror *m, const struct ps_image_position *chosen)
{
	return m->probe.is_claimed && ps_candidate_is_at(m, chosen);
}

/* Returns the mirrors that are at the chosen state and have the same segments as mirror `m`. */
static uint32_t find_mirrors_with_same_segments(const struct perseas *p,
                                                const struct ps_image_position *chosen,
                                                const struct ps_mirror *m)
{
	uint32_t alike = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *other = &p->mirrors[i];

		if (is_at_chosen_state(other, chosen) &&
		    ps_segment_tables_equal(other->probe.header, m->probe.header))
			alike |= (uint32_t)1 << i;
	}
	return alike;
}

/*
 * Returns the mirror from which the others are mended: one at the chosen state whose segment table
 * W mirrors have, or all mirrors at that state. If tables differ too much, returns the first mirror
 * at that state and sets *alike to false.
 *
 * All images at one state should have the same table. An older version did not ensure it: it could
 * copy in place to an image that had another, unpublished segment under the same id, and left the
 * old name. Fewer than W images are like that, because the publish of that other segment never
 * reached W.
 */
static struct ps_mirror *choose_mend_source(struct perseas *p,
                                            const struct ps_image_position *chosen, bool *alike)
{
	struct ps_mirror *first = NULL;
	uint32_t all = 0;

	for (unsigned i = 0; i < p->mirror_count; i++)
		all |= (uint32_t)is_at_chosen_state(&p->mirrors[i], chosen) << i;
	*alike = true;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];
		uint32_t like;

		if (!(all >> i & 1))
			continue;
		like = find_mirrors_with_same_segments(p, chosen, m);
		if (like == all || ps_quorum_is_w_for_open(p, like))
			return m;
		first = first ? first : m;
	}
	*alike = false;
	return first;
}

static int fail_segment_tables_differ(struct perseas *p)
{
	return ps_fail(p, PERSEAS_EDAMAGED,
	               "the mirrors of store '%s' that hold its newest transaction have different "
	               "segments, and fewer than %u have the same ones. Start the mirrors that are "
	               "missing, or compare the images with perseas verify, drop the one that is "
	               "wrong, and open the store again",
	               p->store, p->acks);
}

/* --- adoption --- */

/* Writes this owner's slot to the mirrors that already have the chosen state. Returns the first of
 * them. Returns `source` if it leaves the roster, so that it gets no slot yet, and no other mirror
 * took one. Returns NULL if every session broke. */
static struct ps_mirror *adopt_mirrors_at_state(struct perseas *p,
                                                const struct ps_image_position *chosen,
                                                struct ps_mirror *source)
{
	struct ps_mirror *first = NULL;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!is_writable_by_open(p, m))
			continue;
		if (!is_at_chosen_state(m, chosen) || !ps_segments_match_header(p, m->probe.header))
			continue;
		if (ps_copy_write_commit_slot(p, m)) {
			note_session_broken(p, m, "its slot was not written");
			continue;
		}
		note_adopted(p, m, "adopted as it is");
		first = first ? first : m;
	}
	return first || is_writable_by_open(p, source) ? first : source;
}

/* Copies the log and the segments of mirror `from` to mirror `m`. Returns 0, or -1 if a session
 * broke. */
static int copy_image(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m)
{
	const Perseas__Header *header = from->probe.header;

	if (ps_copy_between_mirrors(p, from, m, PS_REGION_LOG, PS_RING_OFFSET, header->log_size))
		return -1;
	for (size_t i = 0; i < header->n_segments; i++) {
		const Perseas__Segment *s = header->segments[i];

		ps_copy_report_progress(m->address.text, i, header->n_segments);
		if (ps_copy_between_mirrors(p, from, m, PS_REGION_SEGMENT + s->id, 0, s->size))
			return -1;
	}
	ps_copy_report_progress(m->address.text, header->n_segments, header->n_segments);
	m->probe.position.valid_slot = 1;
	return ps_copy_write_commit_slot(p, m);
}

/* Notes that a mirror refused to be mended, and leaves it as it is. Returns PS_AGAIN if the session
 * broke or another owner claimed the mirror, else 0. */
static int leave_mirror_unmended(struct perseas *p, struct ps_mirror *m,
                                 const struct ps_error *error)
{
	if (error->code == PERSEAS_EUNREACHABLE)
		return note_session_broken(p, m, error->text);
	ps_report_add_line(p, "%s: not mended: %s", m->address.text, error->text);
	m->probe.code = error->code;
	m->probe.error = *error;
	return error->code == PERSEAS_EFENCED ? PS_AGAIN : 0;
}

static int mend_by_whole_copy(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m)
{
	struct ps_error error = { 0 };

	if (ps_copy_prepare_whole(p, m, &error))
		return leave_mirror_unmended(p, m, &error);
	m->probe.is_claimed = true;
	if (copy_image(p, from, m))
		return note_session_broken(p, m, "the copy was not completed");
	if (ps_rejoin_have_image_counted(p, m, &error))
		return leave_mirror_unmended(p, m, &error);
	p->commit.stat.mended_whole++;
	return note_adopted(p, m, "copied whole");
}

/* Asks a mirror without an image once more, after the claims. Between the probe and the claims
 * another owner may have made the mirror a new image, which must then stay in the roster. */
static bool is_still_without_image(struct perseas *p, struct ps_mirror *m)
{
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(status, STATUS, &ask);
	struct ps_error error = { 0 };
	Perseas__Reply *reply;
	int rc;

	ask.store = p->store;
	rc = ps_ask_mirror_and_wait(p, m, &request, ps_answer_deadline(p), &reply, NULL, &error);
	perseas__reply__free_unpacked(reply, NULL);
	return rc == PERSEAS_ENOSTORE;
}

/*
 * I9: makes a new image on a mirror that lost its memory and, with it, its promises. Does so only
 * while enough other mirrors hold this owner's claim that no other owner can commit through this
 * mirror. W mirrors must know the id of the new image before it counts. Returns 0, also if this is
 * not possible yet, or PS_AGAIN.
 */
static int make_new_image(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m)
{
	const uint32_t claimed = ps_claimed_and_listed(p);
	uint8_t image_id[PS_ID_SIZE];

	if (!ps_quorum_can_remake_mirror(p, claimed, m)) {
		ps_report_add_line(
			p,
			"%s: lost its image; %u of %u mirrors are claimed, too few to make it "
			"anew",
			m->address.text, ps_quorum_count_settled_members(p, claimed),
			p->member_count);
		return 0;
	}
	if (!m->probe.is_claimed && !is_still_without_image(p, m))
		return PS_AGAIN;
	p->env->ops->random(p->env, image_id, PS_ID_SIZE);
	ps_report_add_line(p, "%s: lost its image; it is made anew", m->address.text);
	/* The header of the new image is itself one of the W that must know its id. */
	if (!ps_roster_record_image_id(p, m, image_id,
	                               claimed & ps_quorum_writable_by_open(p) &
	                                       ~ps_mirror_bit(p, m),
	                               ps_mirror_bit(p, m)))
		return PS_AGAIN;
	return mend_by_whole_copy(p, from, m);
}

/* Returns true if the mirror is claimed and a roster lists its image, so that the image can be
 * mended. */
static bool is_mendable(const struct ps_mirror *m)
{
	return m->probe.is_claimed && m->probe.is_listed;
}

/* Returns true if the keeper can bring the mirror up to date after the open: W others hold the
 * state, and enough of them to copy to this mirror then (I9). */
static bool may_leave_to_keeper(const struct perseas *p, const struct ps_mirror *m)
{
	const uint32_t adopted = ps_probe_sets(p).adopted_set;

	return ps_quorum_is_w_of_newest_roster(p, adopted) &&
	       ps_quorum_open_can_spare_mirror(p, adopted, m);
}

/* Mends a mirror by what the logs have. Returns 0, 1 if they do not reach far enough, or -1 if a
 * session broke. */
static int mend_from_logs(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m)
{
	int rc;

	if (!m->probe.is_candidate)
		return 1;
	rc = ps_mend_forward(p, from, m);
	if (!rc) {
		p->commit.stat.mended_forward++;
		return note_adopted(p, m, "sent the transactions that it missed");
	}
	if (rc > 0 && ps_quorum_is_w_for_open(p, ps_probe_sets(p).adopted_set))
		rc = ps_mend_delta(p, from, m);
	if (!rc) {
		p->commit.stat.mended_delta++;
		return note_adopted(p, m, "mended from the logs");
	}
	return rc;
}

static int mend_mirror(struct perseas *p, struct ps_mirror *from, struct ps_mirror *m)
{
	const int rc = is_mendable(m) ? mend_from_logs(p, from, m) : 1;

	if (rc <= 0)
		return rc < 0 ? note_session_broken(p, m, "the link broke") : 0;
	if (may_leave_to_keeper(p, m)) {
		ps_report_add_line(p, "%s: %s after the open", m->address.text,
		                   is_mendable(m) ? "lags, and is brought up to date"
		                                  : "lost its image, and gets a new one");
		return 0;
	}
	return is_mendable(m) ? mend_by_whole_copy(p, from, m) : make_new_image(p, from, m);
}

static int mend_all_mirrors(struct perseas *p, struct ps_mirror *from)
{
	/* Mirrors with an image come first: they may be needed for W, and to make new images on the
	 * others. */
	for (int pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < p->mirror_count; i++) {
			struct ps_mirror *m = &p->mirrors[i];
			int rc;

			if (m->probe.is_adopted || m->probe.has_broken_session ||
			    !is_writable_by_open(p, m) ||
			    (pass ? !ps_mirror_can_get_new_image(p, m) : !is_mendable(m)))
				continue;
			rc = mend_mirror(p, from, m);
			if (rc && (!m->probe.has_broken_session || !from->link))
				return rc;
		}
	}
	return 0;
}

/* Gives images that were loaded from a spill ids of their own in the roster (I9). */
static int record_ids_of_loaded_images(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!m->is_from_spill || !m->probe.is_adopted)
			continue;
		if (!ps_roster_record_loaded_id(p, m, ps_probe_sets(p).adopted_set))
			return PS_AGAIN;
		ps_report_add_line(p, "%s: was spilled, and is back; its image has a new id",
		                   m->address.text);
	}
	return 0;
}

/*
 * Records the unsettled rosters that a previous owner left, under this owner, on all claimed
 * mirrors. Afterwards nobody can open the store by the old roster alone, so only W of the new
 * roster must hold the state.
 *
 * Mirrors that a decided change removes are not written here but by settle_roster_change, once W of
 * the new roster hold the state. The previous owner may have settled the change before it ended. If
 * this open failed after it wrote to a removed mirror, that mirror would show unsettled rosters of
 * a newer owner, and they would count if a mirror that stays lost its memory.
 */
static int record_inherited_rosters(struct perseas *p)
{
	const uint32_t on = ps_claimed_and_listed(p) & ps_quorum_writable_by_open(p);

	if (p->next_roster)
		ps_rosters_raise_version(p);
	return ps_roster_record_on_mirrors(p, on) == on ? 0 : PS_AGAIN;
}

/* Decides and settles the change of the roster. The mirrors that hold the state get the mark before
 * the new roster counts alone, so that an owner that could cancel the change sees the mark. */
static int settle_roster_change(struct perseas *p)
{
	const uint32_t good = ps_probe_sets(p).adopted_set;
	uint32_t took;

	ps_roster_mark_decided(p);
	took = ps_roster_record_on_mirrors(p, ps_claimed_and_listed(p) | good);
	if (!ps_quorum_every_open_sees(p, took) || !ps_quorum_is_w_of_newest_roster(p, took & good))
		return PS_AGAIN;
	ps_roster_settle(p);
	ps_report_add_line(
		p, "a change of the roster that was not settled is completed: %u mirrors, W = %u",
		p->member_count, p->acks);
	return ps_quorum_is_w(p, ps_roster_record_on_mirrors(p, ps_claimed_and_listed(p)) & good)
	               ? 0
	               : PS_AGAIN;
}

static int fail_too_few_hold_state(struct perseas *p, uint32_t holding)
{
	return ps_fail(p, PERSEAS_EQUORUM,
	               "%u of %u mirrors hold the newest state of store '%s', and %u must before "
	               "it can be opened. What was found:\n%s",
	               ps_quorum_count_settled_members(p, holding), p->member_count, p->store,
	               p->acks, perseas_report(p));
}

/*
 * Returns 0 if the open may leave the mirrors whose sessions broke to the keeper, else PS_AGAIN. W
 * others must hold the state, and enough of them for the keeper to copy to these mirrors (I9). The
 * choice of the state relied on these mirrors (I6), so each must grant the same claim again with
 * the same image: this shows that it promised nothing to another owner in the meantime, and lost
 * nothing.
 */
static int check_broken_sessions(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!m->probe.has_broken_session)
			continue;
		if (!ps_quorum_open_can_spare_mirror(p, ps_probe_sets(p).adopted_set, m) ||
		    (m->probe.is_claimed && !ps_claim_repeat(p, m)))
			return PS_AGAIN;
	}
	return 0;
}

/* Returns 0 if W mirrors hold the chosen state, PS_AGAIN if more may do so in another attempt, or
 * PERSEAS_EQUORUM. */
static int check_enough_adopted(struct perseas *p)
{
	if (ps_quorum_is_w_of_newest_roster(p, ps_probe_sets(p).adopted_set))
		return check_broken_sessions(p);
	return ps_probe_sets(p).broken_session_set
	               ? PS_AGAIN
	               : fail_too_few_hold_state(p, ps_probe_sets(p).adopted_set);
}

int ps_adopt_state(struct perseas *p, const struct ps_image_position *chosen)
{
	bool alike;
	struct ps_mirror *from = choose_mend_source(p, chosen, &alike);
	int rc;

	assert(from); /* choosing this state needed at least one such mirror */
	p->commit.seq = chosen->seq;
	p->commit.next_position = chosen->next_position;
	p->commit.last_position = chosen->last_position;
	p->log_size = from->probe.header->log_size;
	p->commit.lap_position = p->commit.next_position - p->commit.next_position % p->log_size;
	ps_segments_load(p, from->probe.header);
	if (p->is_salvage)
		return 0;
	if (!alike)
		return fail_segment_tables_differ(p);
	rc = ps_check_state_adoptable(p, ps_claimed_and_listed(p), chosen);
	if (rc)
		return rc;
	/* If a session breaks from here on, the next attempt may find the accepted state or the one
	 * adopted here. */
	if (ps_state_is_accepted(p, chosen)) {
		p->options.accept_epoch = chosen->epoch;
		p->opening.accepted_state_epoch = p->epoch;
	}
	from = adopt_mirrors_at_state(p, chosen, from);
	if (!from)
		return PS_AGAIN;
	if (p->next_roster || p->opening.cancelled_change)
		rc = record_inherited_rosters(p);
	if (!rc)
		rc = mend_all_mirrors(p, from);
	if (!rc)
		rc = check_enough_adopted(p);
	if (!rc)
		rc = record_ids_of_loaded_images(p);
	if (!rc && p->next_roster)
		rc = settle_roster_change(p);
	if (!rc && !ps_roster_record_newer_than_unclaimed(p, ps_claimed_and_listed(p),
	                                                  ps_probe_sets(p).adopted_set))
		rc = PS_AGAIN;
	return rc;
}
