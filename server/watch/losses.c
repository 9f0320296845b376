/*
 * losses.c - see losses.h.
 */
#include "losses.h"

#include "../../proto/control/quorum.h"
#include "../../proto/control/rosters.h"

#include <string.h>

/* A function that returns how many live members a roster needs, to commit or to open. */
typedef unsigned members_needed(const struct ps_quorum *quorum);

/* What a store must still be able to do after a loss. */
struct loss_query {
	const Perseas__StoreStatus *status;
	members_needed *needed;
};

static unsigned needed_to_commit(const struct ps_quorum *quorum)
{
	return quorum->acks;
}

static bool is_live(const Perseas__MirrorReport *report)
{
	return report->image_id.len && !strcmp(report->state, "live");
}

static bool has_enough(const struct loss_query *loss_query, const Perseas__Roster *roster,
                       uint32_t lost)
{
	const Perseas__StoreStatus *status = loss_query->status;
	struct ps_quorum quorum = { 0 };
	unsigned live = 0;

	if (!roster)
		return true;
	quorum.members = (unsigned)roster->n_members;
	quorum.acks = roster->acks;
	for (size_t i = 0; i < status->n_mirrors; i++)
		live += !(lost >> i & 1) && is_live(status->mirrors[i]) &&
		        ps_roster_member(roster, status->mirrors[i]->image_id.data);
	return live >= loss_query->needed(&quorum);
}

/* Returns true if the store can still do it after the loss of these mirrors, a bit for each. */
static bool works_after_loss(const void *arg, uint32_t lost)
{
	const struct loss_query *loss_query = arg;
	const Perseas__Header *header = loss_query->status->header;

	return has_enough(loss_query, header->roster, lost) &&
	       has_enough(loss_query, header->next_roster, lost);
}

static bool is_listed(const Perseas__Header *header, const Perseas__MirrorReport *report)
{
	return ps_roster_member(header->roster, report->image_id.data) ||
	       (header->next_roster &&
	        ps_roster_member(header->next_roster, report->image_id.data));
}

static void fill_spot(struct ps_spot *spot, const Perseas__StoreStatus *status,
                      const Perseas__MirrorReport *report)
{
	const Perseas__Location *location = report->location;

	spot->address = report->address;
	spot->closed = !is_live(report) || !is_listed(status->header, report);
	if (location)
		ps_spot_set_labels(spot, location->host, location->rack, location->zone,
		                   &location->boot);
}

static bool find_smallest_loss(struct ps_loss *loss, const struct watch_losses *losses,
                               const struct loss_query *loss_query)
{
	if (!works_after_loss(loss_query, 0))
		return false;
	*loss = ps_smallest_fatal_loss(losses->spots, losses->count, 0, works_after_loss,
	                               loss_query);
	return true;
}

void watch_losses_find(struct watch_losses *losses, const Perseas__StoreStatus *status)
{
	const struct loss_query commit = { status, needed_to_commit };
	const struct loss_query open = { status, ps_quorum_r_and_w };

	memset(losses, 0, sizeof(*losses));
	if (!status->n_mirrors || !status->header || !status->header->roster)
		return;
	losses->count = (unsigned)status->n_mirrors;
	for (unsigned i = 0; i < losses->count; i++)
		fill_spot(&losses->spots[i], status, status->mirrors[i]);
	losses->can_commit = find_smallest_loss(&losses->commit, losses, &commit);
	losses->can_open = find_smallest_loss(&losses->open, losses, &open);
}

const char *watch_loss_word(bool can, const struct ps_loss *loss)
{
	const char *kind = ps_loss_kind_name(loss);

	if (kind)
		return kind;
	return !can ? "now" : loss->is_certain ? "none" : "unknown";
}
