/*
 * handover.c - see handover.h. The mirrors' clocks are not compared: each has timed the handover by
 * its own.
 */
#include "handover.h"

#include "../../../proto/control/envelope.h"
#include "../ask/owner_report.h"
#include "../ask/standbys.h"

#include <string.h>

/* The seqs of the last transactions of the images when the old owner's session ended, the highest
 * first. */
struct last_seqs {
	uint64_t list[PS_MIRRORS_MAX];
	unsigned count;
};

static void add_last_seq(struct last_seqs *last_seqs, uint64_t seq)
{
	unsigned at = last_seqs->count++;

	for (; at > 0 && last_seqs->list[at - 1] < seq; at--)
		last_seqs->list[at] = last_seqs->list[at - 1];
	last_seqs->list[at] = seq;
}

/* Adds one mirror's record of the handover to the outcome. */
static void add_record(struct ps_handover_outcome *outcome, struct last_seqs *last_seqs,
                       const Perseas__Handover *handover)
{
	outcome->known_count++;
	if (!handover->closing_ns)
		return;
	outcome->ended_count++;
	outcome->released |= (bool)handover->released;
	if (handover->closing_ns > outcome->closing_ns)
		outcome->closing_ns = handover->closing_ns;
	if (handover->last)
		add_last_seq(last_seqs, handover->last->seq);
	if (!handover->pause_ns)
		return;
	outcome->opened_count++;
	if (handover->pause_ns > outcome->pause_ns)
		outcome->pause_ns = handover->pause_ns;
	if (handover->first && handover->first->seq > outcome->seq)
		outcome->seq = handover->first->seq;
}

/* Counts lost and doubtful transactions. What W mirrors held at the old owner's end was, or may
 * have been, acknowledged; what fewer held was in doubt. */
static void count_losses(struct ps_handover_outcome *outcome, const struct last_seqs *last_seqs,
                         unsigned acks)
{
	uint64_t held;

	if (!last_seqs->count || !acks)
		return;
	held = last_seqs->list[(acks < last_seqs->count ? acks : last_seqs->count) - 1];
	outcome->in_doubt = last_seqs->list[0] - held;
	outcome->lost = outcome->opened_count && held > outcome->seq ? held - outcome->seq : 0;
}

void ps_handover_outcome_collect(struct ps_handover_outcome *outcome,
                                 const struct ps_handover *handover, const struct ps_images *images)
{
	const Perseas__Roster *roster = images->judged.settled;
	const int owner = ps_images_find_owner(images);
	struct last_seqs last_seqs = { .count = 0 };

	*outcome = (struct ps_handover_outcome){ .epoch = handover->epoch };
	for (unsigned i = 0; i < images->peers->count; i++) {
		const Perseas__StoreStatus *status = images->told[i];

		if (!ps_images_is_of_store(images, i))
			continue;
		if (status->header->promised_epoch > outcome->epoch)
			outcome->epoch = status->header->promised_epoch;
		if (status->handover && ps_id_equal(status->handover->id, handover->id))
			add_record(outcome, &last_seqs, status->handover);
	}
	count_losses(outcome, &last_seqs, roster ? roster->acks : 0);
	if (owner < 0 || images->told[owner]->header->promised_epoch == handover->epoch)
		return;
	outcome->standby_owns = ps_standby_is_owner(handover->to, images->told[owner]);
	outcome->address = images->told[owner]->owner_address;
}

bool ps_handover_outcome_is_final(const struct ps_handover_outcome *outcome,
                                  const struct ps_images *images)
{
	const Perseas__Roster *roster = images->judged.settled;

	if (!roster || !outcome->address || !outcome->opened_count)
		return false;
	return outcome->opened_count >= roster->acks ||
	       outcome->opened_count == outcome->known_count;
}
