/*
 * unfinished_restore.c - decides by the mirrors' answers whether a store is an unfinished restore.
 * Only messages depend on it: open/unfilled.c decides whether the store may be removed.
 */
#include "ask.h"

#include <string.h>

bool ps_images_is_removal_remainder(const struct ps_images *images)
{
	const struct ps_judgement *judged = &images->judged;

	return judged->outlook == PS_OUTLOOK_BELOW_R && judged->settled &&
	       judged->settled->filling && images->newest && images->newest->slot &&
	       images->newest->slot->seq == 0;
}

static bool has_member_answered(const struct ps_images *images, const Perseas__Member *member)
{
	const char *address = ps_images_address_of(images, member);

	for (unsigned i = 0; i < images->peers->count; i++)
		if (!strcmp(images->peers->addresses[i].text, address))
			return images->told[i] || images->errors[i].code == PERSEAS_ENOSTORE;
	return false;
}

bool ps_images_is_unfinished(const struct ps_images *images)
{
	const Perseas__Roster *roster = images->judged.settled;

	if (images->judged.outlook == PS_OUTLOOK_UNFILLED)
		return true;
	if (!ps_images_is_removal_remainder(images))
		return false;
	for (size_t k = 0; k < roster->n_members; k++)
		if (!has_member_answered(images, roster->members[k]))
			return false;
	return true;
}
