/*
 * handover.c - see handover.h. The mirrors' clocks are not compared: each has timed the handover by
 * its own.
 */
#include "handover.h"

#include "../../../proto/control/envelope.h"
#include "../ask/owner_report.h"
#include "../ask/standbys.h"

#include <string.h>

/* Transactions at which images stood when the owner ended, the highest first. */
struct lasts {
	uint64_t list[PS_MIRRORS_MAX];
	unsigned count;
};

static void add_last(struct lasts *lasts, uint64_t seq)
{
	unsigned at = lasts->count++;

	for (; at > 0 && lasts->list[at - 1] < seq; at--)
		lasts->list[at] = lasts->list[at - 1];
	lasts->list[at] = seq;
}

static void note_handover(struct ps_outcome *outcome, struct lasts *lasts,
                          const Perseas__Handover *handover)
{
	outcome->known++;
	if (!handover->closing_ns)
		return;
	outcome->ended++;
	outcome->released &= (bool)handover->released;
	if (handover->closing_ns > outcome->closing_ns)
		outcome->closing_ns = handover->closing_ns;
	if (handover->last)
		add_last(lasts, handover->last->seq);
	if (!handover->pause_ns)
		return;
	outcome->opened++;
	if (handover->pause_ns > outcome->pause_ns)
		outcome->pause_ns = handover->pause_ns;
	if (handover->first && handover->first->seq > outcome->seq)
		outcome->seq = handover->first->seq;
}

/* Sorts the last transactions by who held them: with W mirrors they were, or may have been,
 * acknowledged; with fewer they were not. */
static void count_losses(struct ps_outcome *outcome, const struct lasts *lasts, unsigned acks)
{
	uint64_t held;

	if (!lasts->count || !acks)
		return;
	held = lasts->list[(acks < lasts->count ? acks : lasts->count) - 1];
	outcome->in_doubt = lasts->list[0] - held;
	outcome->lost = outcome->opened && held > outcome->seq ? held - outcome->seq : 0;
}

void ps_outcome_take(struct ps_outcome *outcome, const struct ps_handover *handover,
                     const struct ps_images *images)
{
	const Perseas__Roster *roster = images->judged.settled;
	const int owner = ps_images_find_owner(images);
	struct lasts lasts = { .count = 0 };

	*outcome = (struct ps_outcome){ .released = true, .epoch = handover->epoch };
	for (unsigned i = 0; i < images->peers->count; i++) {
		const Perseas__StoreStatus *status = images->told[i];

		if (!ps_images_is_of_store(images, i))
			continue;
		if (status->header->promised_epoch > outcome->epoch)
			outcome->epoch = status->header->promised_epoch;
		if (status->handover && ps_id_equal(status->handover->id, handover->id))
			note_handover(outcome, &lasts, status->handover);
	}
	count_losses(outcome, &lasts, roster ? roster->acks : 0);
	if (owner < 0 || images->told[owner]->header->promised_epoch == handover->epoch)
		return;
	outcome->planned = ps_standby_owns(handover->to, images->told[owner]);
	outcome->address = images->told[owner]->owner_address;
}

bool ps_outcome_is_over(const struct ps_outcome *outcome, const struct ps_images *images)
{
	const Perseas__Roster *roster = images->judged.settled;

	if (!roster || !outcome->address || !outcome->opened)
		return false;
	return outcome->opened >= roster->acks || outcome->opened == outcome->known;
}
