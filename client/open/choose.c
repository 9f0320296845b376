/*
 * choose.c - chooses the state to adopt among the claimed images (I6). With PERSEAS_CANCEL it also
 * takes back a change of the roster that a previous owner left unsettled. It must never choose
 * among fewer than R images, unless the operator accepted that very state.
 */
#include "choose.h"

#include "../keeper/attempt.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "examine.h"
#include "../keeper/roster.h"
#include "probe.h"

#include <string.h>

static uint32_t judge_claimed_images(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_probe_result *f = &p->mirrors[i].probe;

		f->is_adopted = false;
		if (f->is_claimed && !f->is_listed)
			ps_report_add_line(
				p, "%s: %s", p->mirrors[i].address.text,
				ps_mirror_is_forked(p, &p->mirrors[i])
					? PS_FORK_NOTE
					: "its image is not in the roster, and counts for "
					  "nothing");
	}
	return ps_judge_images(p, ps_probe_sets(p).claimed_set);
}

/*
 * Takes back the unsettled change of the roster, and updates *counted, the mirrors that count
 * towards R. No mark of the change is on any of R mirrors of the new roster, so W of the new roster
 * never had it and never will have. R and T of the old roster are claimed, as in any open. From
 * here on the old roster alone determines the state.
 */
static int cancel_roster_change(struct perseas *p, uint32_t *counted)
{
	int rc;

	if (p->is_change_decided)
		return ps_fail(p, PERSEAS_EBUSY,
		               "the change of the roster is decided and cannot be taken back: open "
		               "the store without PERSEAS_CANCEL, which completes it");
	if (!ps_quorum_is_r(p, *counted))
		return ps_fail_too_few_mirrors(p, *counted, ps_newest_state(p));
	if (!ps_quorum_is_t(p, ps_claimed_and_listed(p)))
		return PS_AGAIN;
	ps_roster_drop_next(p);
	ps_report_add_line(p, "a change of the roster that was not settled is taken back");
	p->opening.cancelled_change = true;
	rc = ps_probe_find_rosters(p);
	*counted = judge_claimed_images(p);
	return rc;
}

int ps_choose_state(struct perseas *p, struct ps_image_position *chosen)
{
	uint32_t counted = judge_claimed_images(p);
	const struct ps_image_position *best;
	bool enough;
	int rc = p->next_roster && p->options.flags & PERSEAS_CANCEL
	                 ? cancel_roster_change(p, &counted)
	                 : 0;

	if (rc)
		return rc;
	enough = ps_quorum_is_r(p, counted);
	best = ps_newest_state(p);

	memset(chosen, 0, sizeof(*chosen));
	if (best)
		*chosen = *best;
	if (!best || (!enough && !ps_state_is_accepted(p, chosen)))
		return ps_fail_too_few_mirrors(p, counted, best ? chosen : NULL);
	if (p->roster->filling && chosen->seq == 0 && !p->fills_new_store)
		return ps_fail_restore_unfinished(p);
	ps_report_add_line(
		p, "chosen: epoch %llu, transaction %llu, the newest of %u examined (R = %u%s)",
		(unsigned long long)chosen->epoch, (unsigned long long)chosen->seq,
		ps_quorum_count_settled_members(p, counted), ps_quorum_r_of_settled_roster(p),
		enough ? "" : "; fewer, and accepted as asked");
	return 0;
}
