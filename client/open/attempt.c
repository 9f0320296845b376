/*
 * attempt.c - the steps of an attempt to open a store, in their order, and what is so after each of
 * them (attempt.h). What is done in a step is in the file of its name; nothing of that is here.
 */
#include "attempt.h"

#include "adopt.h"
#include "choose.h"
#include "claim.h"
#include "create.h"
#include "examine.h"
#include "../core/mirror.h"
#include "probe.h"
#include "../core/quorum.h"

#include <assert.h>

#define OR_NONE(state) (PS_TO(state) | PS_TO(PS_ATTEMPT_NONE))

static const struct ps_state steps[] = {
	[PS_ATTEMPT_NONE] = { "none", PS_TO(PS_ATTEMPT_PROBED) },
	[PS_ATTEMPT_PROBED] = { "probed", OR_NONE(PS_ATTEMPT_MADE) | PS_TO(PS_ATTEMPT_JUDGED) },
	[PS_ATTEMPT_MADE] = { "made", OR_NONE(PS_ATTEMPT_PROBED) },
	[PS_ATTEMPT_JUDGED] = { "judged", OR_NONE(PS_ATTEMPT_CLAIMED) },
	[PS_ATTEMPT_CLAIMED] = { "claimed", OR_NONE(PS_ATTEMPT_CHOSEN) },
	[PS_ATTEMPT_CHOSEN] = { "chosen", OR_NONE(PS_ATTEMPT_CONFIRMED) },
	[PS_ATTEMPT_CONFIRMED] = { "confirmed", OR_NONE(PS_ATTEMPT_ADOPTED) },
	[PS_ATTEMPT_ADOPTED] = { "adopted", OR_NONE(PS_ATTEMPT_OPEN) },
	[PS_ATTEMPT_OPEN] = { "open", PS_TO(PS_ATTEMPT_NONE) },
};

const struct ps_states ps_attempt_steps = { steps, sizeof(steps) / sizeof(steps[0]) };

/* What is noted of the mirrors, as sets of them. */
struct noted {
	uint32_t linked, claimed, listed, counts, candidates, good, broke;
};

static struct noted note(const struct perseas *p)
{
	struct noted n = { 0 };

	assert(p->mirror_count <= PS_MIRRORS_MAX);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		n.linked |= (uint32_t)(m->control && m->link) << i;
		n.claimed |= (uint32_t)m->found.claimed << i;
		n.listed |= (uint32_t)m->found.listed << i;
		n.counts |= (uint32_t)m->found.counts << i;
		n.candidates |= (uint32_t)m->found.candidate << i;
		n.good |= (uint32_t)m->found.good << i;
		n.broke |= (uint32_t)m->found.broke << i;
	}
	return n;
}

/* No mirror is this attempt's, nor what it made of one. */
static bool is_untouched(const struct noted *n)
{
	return !n->linked && !n->claimed && !n->good && !n->broke;
}

/* Which rosters count is known, and they are those that are counted by. */
static bool has_rosters(const struct perseas *p)
{
	return p->roster && p->quorum_count == 1 + (p->next_roster != NULL) &&
	       (!p->next_roster || ps_roster_newer(p->next_roster, p->roster)) &&
	       (!p->marked || p->next_roster);
}

/* No mirror that is to be claimed has promised more. */
static bool is_above_promises(const struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (ps_has_store(p, m) && m->found.header->promised_epoch > p->epoch)
			return false;
	}
	return true;
}

/* Its epoch is the one that it claims with: nobody's before, and one for all mirrors. */
static bool has_epoch(const struct perseas *p)
{
	return has_rosters(p) && p->epoch == p->opening.above + 1;
}

/* I6: no candidate is later than the chosen state. */
static bool is_newest(const struct perseas *p, const struct ps_standing *chosen)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_standing *at = &p->mirrors[i].found.at;

		if (p->mirrors[i].found.candidate &&
		    (at->epoch != chosen->epoch ? at->epoch > chosen->epoch
		                                : at->seq > chosen->seq))
			return false;
	}
	return true;
}

/* R of each roster told, or the operator accepted fewer; and what is chosen is one of these. */
static bool has_choice(const struct perseas *p, const struct noted *n)
{
	const struct ps_standing *chosen = &p->opening.chosen;
	bool stands = false;

	for (unsigned i = 0; i < p->mirror_count; i++)
		stands |= n->claimed >> i & 1 && ps_stands_at(&p->mirrors[i], chosen);
	return stands && is_newest(p, chosen) &&
	       !((n->candidates | n->counts) & ~(n->claimed & n->listed)) &&
	       (ps_quorum_claims(p, n->counts) || ps_accepted(p, chosen));
}

/* The chosen state is this owner's on W, by the one roster that is left; whoever saves has it here
 * alone. */
static bool has_state(const struct perseas *p, const struct noted *n)
{
	const struct ps_standing *chosen = &p->opening.chosen;

	if (p->commit.seq != chosen->seq || p->commit.next != chosen->next ||
	    p->commit.last != chosen->last)
		return false;
	if (p->salvage)
		return !n->good;
	return ps_quorum_acks(p, n->good) && !(n->good & ~n->claimed) && !(n->good & n->broke) &&
	       !p->next_roster;
}

bool ps_attempt_is_sound(const struct perseas *p)
{
	const struct noted n = note(p);

	switch (p->opening.step) {
	case PS_ATTEMPT_NONE:
		return !p->keeper;
	case PS_ATTEMPT_PROBED:
	case PS_ATTEMPT_MADE:
		return is_untouched(&n);
	case PS_ATTEMPT_JUDGED:
		return is_untouched(&n) && has_rosters(p) && is_above_promises(p);
	case PS_ATTEMPT_CLAIMED:
		return has_epoch(p) && n.claimed == n.linked && !n.good;
	case PS_ATTEMPT_CHOSEN:
	case PS_ATTEMPT_CONFIRMED:
		return has_epoch(p) && has_choice(p, &n) && !n.good;
	case PS_ATTEMPT_ADOPTED:
		return has_epoch(p) && has_state(p, &n);
	case PS_ATTEMPT_OPEN:
		return has_epoch(p) && has_state(p, &n) && !(n.good & ~n.linked);
	}
	return false;
}

static void move(struct perseas *p, enum ps_attempt_step to)
{
	p->opening.step = ps_states_move(p->env, &ps_attempt_steps, p->opening.step, to,
	                                 "open of store '%s'", p->store);
	assert(ps_attempt_is_sound(p));
}

/* A step was done with this result, which is returned: the next one begins, or the attempt ends. */
static int reach(struct perseas *p, enum ps_attempt_step step, int rc)
{
	move(p, rc ? PS_ATTEMPT_NONE : step);
	return rc;
}

static void probe(struct perseas *p)
{
	ps_probe(p);
	move(p, PS_ATTEMPT_PROBED);
}

static bool nobody_has_it(const struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_found *f = &p->mirrors[i].found;

		if (f->code != PERSEAS_ENOSTORE &&
		    (f->code || f->header->state != PERSEAS__STATE__STATE_CREATING))
			return false;
	}
	return true;
}

/* Has another owner been promised as much as the attempt before claimed? */
static void look_for_rivals(struct perseas *p)
{
	for (unsigned i = 0; p->epoch && i < p->mirror_count; i++) {
		const Perseas__Header *header = p->mirrors[i].found.header;

		if (!p->mirrors[i].found.code && header && header->promised_epoch >= p->epoch &&
		    ps_store_is(header, p->store_id, p->roster) &&
		    !ps_owner_is(header->promised_owner, p->owner))
			p->opening.rivals = true;
	}
}

int ps_attempt_open(struct perseas *p)
{
	struct ps_standing *chosen = &p->opening.chosen;
	int rc = 0;

	probe(p);
	look_for_rivals(p);
	if (p->options.flags & PERSEAS_CREATE && nobody_has_it(p)) {
		rc = reach(p, PS_ATTEMPT_MADE, ps_create_probed(p));
		if (!rc)
			probe(p);
	}
	if (!rc)
		rc = reach(p, PS_ATTEMPT_JUDGED, ps_probe_judge(p));
	if (!rc)
		rc = reach(p, PS_ATTEMPT_CLAIMED, ps_claim(p));
	if (!rc)
		rc = reach(p, PS_ATTEMPT_CHOSEN, ps_choose(p, chosen));
	/* A candidate whose session broke unseen must not be adopted anywhere (I6). */
	if (!rc)
		rc = reach(p, PS_ATTEMPT_CONFIRMED, ps_confirm(p));
	if (!rc)
		rc = reach(p, PS_ATTEMPT_ADOPTED, ps_adopt(p, chosen));
	if (!rc)
		rc = reach(p, PS_ATTEMPT_OPEN, ps_confirm(p));
	return rc;
}

int ps_attempt_create(struct perseas *p)
{
	int rc;

	probe(p);
	rc = reach(p, PS_ATTEMPT_MADE, ps_create_probed(p));
	ps_attempt_end(p);
	return rc;
}

void ps_attempt_end(struct perseas *p)
{
	if (p->opening.step != PS_ATTEMPT_NONE)
		move(p, PS_ATTEMPT_NONE);
}

int ps_attempt_dismiss(struct perseas *p, int rc, struct ps_error *error)
{
	if (rc)
		ps_error_set(error, rc, "%s", perseas_message(p));
	for (unsigned i = 0; i < p->mirror_count; i++)
		ps_mirror_disconnect(p, &p->mirrors[i]);
	ps_handle_free(p);
	return rc;
}
