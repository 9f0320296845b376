/*
 * losses.c - see losses.h.
 */
#include "losses.h"

#include "../../proto/control/quorum.h"
#include "../../proto/control/rosters.h"

#include <string.h>

/* Returns the number of live members that a roster needs for something. */
typedef unsigned needed_of(const struct ps_quorum *quorum);

struct question {
	const Perseas__StoreStatus *status;
	needed_of *needed;
};

static unsigned needed_to_commit(const struct ps_quorum *quorum)
{
	return quorum->acks;
}

static bool is_live(const Perseas__MirrorReport *report)
{
	return report->image_id.len && !strcmp(report->state, "live");
}

static bool has_enough(const struct question *question, const Perseas__Roster *roster,
                       uint32_t lost)
{
	const Perseas__StoreStatus *status = question->status;
	struct ps_quorum quorum = { 0 };
	unsigned live = 0;

	if (!roster)
		return true;
	quorum.members = (unsigned)roster->n_members;
	quorum.acks = roster->acks;
	for (size_t i = 0; i < status->n_mirrors; i++)
		live += !(lost >> i & 1) && is_live(status->mirrors[i]) &&
		        ps_roster_member(roster, status->mirrors[i]->image_id.data);
	return live >= question->needed(&quorum);
}

static bool works_without(const void *arg, uint32_t lost)
{
	const struct question *question = arg;
	const Perseas__Header *header = question->status->header;

	return has_enough(question, header->roster, lost) &&
	       has_enough(question, header->next_roster, lost);
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

static bool find_loss(struct ps_loss *loss, const struct watch_losses *losses,
                      const struct question *question)
{
	if (!works_without(question, 0))
		return false;
	*loss = ps_smallest_fatal_loss(losses->spots, losses->count, 0, works_without, question);
	return true;
}

void watch_losses_find(struct watch_losses *losses, const Perseas__StoreStatus *status)
{
	const struct question commit = { status, needed_to_commit };
	const struct question open = { status, ps_quorum_r_and_w };

	memset(losses, 0, sizeof(*losses));
	if (!status->n_mirrors || !status->header || !status->header->roster)
		return;
	losses->count = (unsigned)status->n_mirrors;
	for (unsigned i = 0; i < losses->count; i++)
		fill_spot(&losses->spots[i], status, status->mirrors[i]);
	losses->can_commit = find_loss(&losses->commit, losses, &commit);
	losses->can_open = find_loss(&losses->open, losses, &open);
}
