/*
 * advice.c - see advice.h.
 */
#include "advice.h"
#include "owner_report.h"
#include "../../../proto/control/envelope.h"

#include <inttypes.h>
#include <string.h>

/* Members of the settled roster, as sets of their positions in it. */
struct members {
	uint32_t with_image; /* members that have their image */
	uint32_t unanswered; /* members that did not answer; the remaining members have no image */
};

static bool has_member_answered(const struct ps_images *images, const Perseas__Member *member)
{
	const char *address = ps_images_address_of(images, member);

	for (unsigned i = 0; i < images->peers->count; i++)
		if (!strcmp(images->peers->addresses[i].text, address))
			return ps_peers_answered(images->peers, i) &&
			       !(images->duplicates >> i & 1);
	return false;
}

/* Returns true if a mirror shows the member's image and the owner does not call it lost. */
static bool has_image(const struct ps_images *images, const Perseas__Member *member)
{
	const uint32_t lost = ps_owner_lost_mirror_set(images);

	for (unsigned i = 0; i < images->peers->count; i++)
		if (!(lost >> i & 1) && ps_images_is_member(images, i, member))
			return true;
	return false;
}

static struct members classify_members(const struct ps_images *images,
                                       const Perseas__Roster *roster)
{
	struct members found = { 0, 0 };

	for (unsigned k = 0; k < roster->n_members; k++) {
		if (has_image(images, roster->members[k]))
			found.with_image |= UINT32_C(1) << k;
		else if (!has_member_answered(images, roster->members[k]))
			found.unanswered |= UINT32_C(1) << k;
	}
	return found;
}

/* Returns true if some lost image cannot be made anew because the members in `set` are too few for
 * I9. */
static bool are_too_few_for_new_image(const Perseas__Roster *roster, const struct members *found,
                                      uint32_t set)
{
	const struct ps_quorum quorum = {
		.set = (UINT32_C(1) << roster->n_members) - 1,
		.members = (unsigned)roster->n_members,
		.acks = roster->acks,
	};

	for (unsigned k = 0; k < roster->n_members; k++)
		if (!((found->with_image | found->unanswered) >> k & 1) &&
		    !ps_quorum_allows_remake(&quorum, set, k))
			return true;
	return false;
}

static void print_list(const Perseas__Roster *roster)
{
	for (size_t k = 0; k < roster->n_members; k++)
		printf("%s%s", k ? "," : "", roster->members[k]->address);
}

/* Prints the members that answered, at the addresses where they did. A store can be made on these
 * only. */
static void print_list_of_answering(const struct ps_images *images, const Perseas__Roster *roster)
{
	const char *separator = "";

	for (size_t k = 0; k < roster->n_members; k++) {
		if (!has_member_answered(images, roster->members[k]))
			continue;
		printf("%s%s", separator, ps_images_address_of(images, roster->members[k]));
		separator = ",";
	}
}

/* Prints the recover command that saves the newest state that was seen. */
static void print_recover_command(const struct ps_images *images, const char *store)
{
	const Perseas__Roster *roster = images->judged.settled;
	const Perseas__StoreStatus *newest = images->newest;

	printf("    perseas recover %s ", store);
	print_list(roster);
	if (newest && newest->slot && images->judged.outlook < PS_OUTLOOK_BELOW_T)
		printf(" --accept-state %" PRIu64 ":%" PRIu64, newest->slot->epoch,
		       newest->slot->seq);
	printf(" --onto ");
	print_list_of_answering(images, roster);
	printf(" --as %s.saved\n", store);
}

void ps_advice_print(const struct ps_images *images, const char *store)
{
	const Perseas__Roster *roster = images->judged.settled;
	const bool has_owner = ps_images_find_owner(images) >= 0;
	struct members found;
	unsigned lost;

	if (!roster || (!has_owner && images->judged.outlook == PS_OUTLOOK_UNFILLED))
		return;
	found = classify_members(images, roster);
	if (!are_too_few_for_new_image(roster, &found, found.with_image))
		return;
	lost = (unsigned)(roster->n_members -
	                  (size_t)__builtin_popcount(found.with_image | found.unanswered));
	printf("%u of %zu mirrors lost their memory, and the images that are seen are too few to "
	       "make others anew (I9)\n",
	       lost, roster->n_members);
	if (!are_too_few_for_new_image(roster, &found, found.with_image | found.unanswered)) {
		printf("start the mirrors that do not answer: they are enough if they have their "
		       "images\n");
		return;
	}
	printf("%s what they have:\n",
	       has_owner ? "end the owner once each mirror that is left is live, and save"
	                 : "save");
	print_recover_command(images, store);
}
