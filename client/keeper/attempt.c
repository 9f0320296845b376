/*
 * attempt.c - the table of the steps of an attempt, and the invariant after each step (attempt.h).
 * The caller supplies what a step does (struct ps_attempt_actions).
 */
#include "attempt.h"

#include "claims.h"
#include "../core/quorum.h"

#include <assert.h>

#define OR_NONE(state) (PS_TO(state) | PS_TO(PS_ATTEMPT_NONE))

static const struct ps_state_row steps[] = {
	[PS_ATTEMPT_NONE] = { "none", PS_TO(PS_ATTEMPT_PROBED) | PS_TO(PS_ATTEMPT_SUPERSEDED) },
	[PS_ATTEMPT_PROBED] = { "probed", OR_NONE(PS_ATTEMPT_CREATED) | PS_TO(PS_ATTEMPT_JUDGED) },
	[PS_ATTEMPT_CREATED] = { "made", OR_NONE(PS_ATTEMPT_PROBED) },
	[PS_ATTEMPT_JUDGED] = { "judged", OR_NONE(PS_ATTEMPT_CLAIMED) },
	[PS_ATTEMPT_CLAIMED] = { "claimed", OR_NONE(PS_ATTEMPT_CHOSEN) },
	[PS_ATTEMPT_CHOSEN] = { "chosen", OR_NONE(PS_ATTEMPT_CONFIRMED) },
	[PS_ATTEMPT_CONFIRMED] = { "confirmed", OR_NONE(PS_ATTEMPT_ADOPTED) },
	[PS_ATTEMPT_ADOPTED] = { "adopted", OR_NONE(PS_ATTEMPT_OPEN) },
	[PS_ATTEMPT_OPEN] = { "open", OR_NONE(PS_ATTEMPT_SUPERSEDED) },
	[PS_ATTEMPT_SUPERSEDED] = { "superseded", 0 },
};

const struct ps_states ps_attempt_steps = { steps, sizeof(steps) / sizeof(steps[0]) };

/* Returns true if the attempt has not changed any mirror yet: it has no data path, claim or adopted
 * image. */
static bool attempt_changed_no_mirror(const struct ps_probe_sets *n)
{
	return !n->linked_set && !n->claimed_set && !n->adopted_set && !n->broken_session_set;
}

/* Returns true if the rosters in force are known, and quorums are counted by them. */
static bool has_rosters(const struct perseas *p)
{
	return p->roster && p->quorum_count == 1 + (p->next_roster != NULL) &&
	       (!p->next_roster || ps_roster_newer(p->next_roster, p->roster)) &&
	       (!p->is_change_decided || p->next_roster);
}

/* Returns true if no mirror that may be claimed has promised a higher epoch. */
static bool is_above_promises(const struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (ps_has_store(p, m) && m->probe.header->promised_epoch > p->epoch)
			return false;
	}
	return true;
}

/* Returns true if the handle has the epoch of its claims, which is the same for all mirrors. */
static bool has_epoch_above_all_seen(const struct perseas *p)
{
	return has_rosters(p) && p->epoch == p->opening.highest_epoch + 1;
}

/* Returns true if state `at` is later than the chosen one. A renewal may have written slots of
 * epochs that it only tried; among these and the chosen epoch, seq alone decides. */
static bool is_later_than_choice(const struct perseas *p, const struct ps_image_position *at)
{
	const struct ps_image_position *chosen = &p->opening.chosen_position;

	if (at->epoch == chosen->epoch || (p->is_renewing && at->epoch > chosen->epoch))
		return at->seq > chosen->seq;
	return at->epoch > chosen->epoch;
}

/* Returns true if no candidate's state is later than the chosen one (I6). */
static bool is_choice_newest(const struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].probe.is_candidate &&
		    is_later_than_choice(p, &p->mirrors[i].probe.position))
			return false;
	return true;
}

/* Returns true if R mirrors of each roster count, or the operator accepted fewer, and the chosen
 * state is that of a candidate, or the memory of an owner that renews its claims. */
static bool is_chosen_state_valid(const struct perseas *p, const struct ps_probe_sets *n)
{
	const struct ps_image_position *chosen = &p->opening.chosen_position;
	bool stands = p->is_renewing && chosen->seq == p->commit.seq;

	for (unsigned i = 0; i < p->mirror_count; i++)
		stands |= n->claimed_set >> i & 1 && ps_candidate_is_at(&p->mirrors[i], chosen);
	return stands && is_choice_newest(p) &&
	       !((n->candidate_set | n->counted_set) & ~(n->claimed_set & n->listed_set)) &&
	       (ps_quorum_is_r(p, n->counted_set) || ps_state_is_accepted(p, chosen));
}

/* Returns true if W mirrors hold the chosen state as this owner's. An owner that opened for salvage
 * has it in memory only. A change of the roster can be in progress only during a renewal. */
static bool do_w_mirrors_hold_chosen_state(const struct perseas *p, const struct ps_probe_sets *n)
{
	const struct ps_image_position *chosen = &p->opening.chosen_position;

	if (p->commit.seq != chosen->seq || p->commit.next_position != chosen->next_position ||
	    p->commit.last_position != chosen->last_position)
		return false;
	if (p->is_salvage)
		return !n->adopted_set;
	return ps_quorum_is_w(p, n->adopted_set) && !(n->adopted_set & ~n->claimed_set) &&
	       !(n->adopted_set & n->broken_session_set) && (!p->next_roster || p->is_renewing);
}

bool ps_attempt_fits_step(const struct perseas *p)
{
	const struct ps_probe_sets n = ps_probe_sets(p);

	switch (p->opening.step) {
	case PS_ATTEMPT_NONE:
		return !p->has_keeper || p->is_renewing;
	case PS_ATTEMPT_PROBED:
	case PS_ATTEMPT_CREATED:
		return attempt_changed_no_mirror(&n);
	case PS_ATTEMPT_JUDGED:
		return attempt_changed_no_mirror(&n) && has_rosters(p) && is_above_promises(p);
	case PS_ATTEMPT_CLAIMED:
		return has_epoch_above_all_seen(p) && n.claimed_set == n.linked_set &&
		       !n.adopted_set;
	case PS_ATTEMPT_CHOSEN:
	case PS_ATTEMPT_CONFIRMED:
		return has_epoch_above_all_seen(p) && is_chosen_state_valid(p, &n) &&
		       !n.adopted_set;
	case PS_ATTEMPT_ADOPTED:
		return has_epoch_above_all_seen(p) && do_w_mirrors_hold_chosen_state(p, &n);
	case PS_ATTEMPT_OPEN:
		return has_epoch_above_all_seen(p) && do_w_mirrors_hold_chosen_state(p, &n) &&
		       !(n.adopted_set & ~n.linked_set);
	case PS_ATTEMPT_SUPERSEDED:
		return p->is_superseded;
	}
	return false;
}

static void move_attempt(struct perseas *p, enum ps_attempt_step to)
{
	p->opening.step = ps_states_move(p->env, &ps_attempt_steps, p->opening.step, to,
	                                 "open of store '%s'", p->store);
	assert(ps_attempt_fits_step(p));
}

int ps_attempt_record_step(struct perseas *p, enum ps_attempt_step step, int rc)
{
	move_attempt(p, rc ? PS_ATTEMPT_NONE : step);
	return rc;
}

int ps_attempt_to_own_store(struct perseas *p, const struct ps_attempt_actions *actions)
{
	struct ps_image_position *chosen = &p->opening.chosen_position;
	int rc = ps_attempt_record_step(p, PS_ATTEMPT_JUDGED, actions->judge(p));

	if (!rc)
		rc = ps_attempt_record_step(p, PS_ATTEMPT_CLAIMED, actions->claim(p));
	if (!rc)
		rc = ps_attempt_record_step(p, PS_ATTEMPT_CHOSEN, actions->choose(p, chosen));
	/* A candidate whose session broke unnoticed must not be adopted anywhere (I6). */
	if (!rc)
		rc = ps_attempt_record_step(p, PS_ATTEMPT_CONFIRMED, actions->confirm(p));
	if (!rc)
		rc = ps_attempt_record_step(p, PS_ATTEMPT_ADOPTED, actions->adopt(p, chosen));
	if (!rc)
		rc = ps_attempt_record_step(p, PS_ATTEMPT_OPEN, actions->confirm(p));
	return rc;
}

void ps_attempt_end(struct perseas *p)
{
	if (ps_states_allow(&ps_attempt_steps, p->opening.step, PS_ATTEMPT_NONE))
		move_attempt(p, PS_ATTEMPT_NONE);
}
