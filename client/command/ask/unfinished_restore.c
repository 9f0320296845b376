/*
 * unfinished_restore.c - whether a store is an unfinished restore, by what mirrors told of it. It
 * decides words only: open/unfilled.c decides whether the store may be removed.
 */
#include "ask.h"

#include <string.h>

bool ps_census_is_remainder(const struct ps_census *census)
{
	const struct ps_judgement *judged = &census->judged;

	return judged->outlook == PS_OUTLOOK_UNKNOWN && judged->settled &&
	       judged->settled->filling && census->newest && census->newest->slot &&
	       census->newest->slot->seq == 0;
}

static bool has_answered(const struct ps_census *census, const Perseas__Member *member)
{
	if (ps_census_image(census, member))
		return true; /* wherever it was seen */
	for (unsigned i = 0; i < census->peers->count; i++)
		if (!strcmp(census->peers->addresses[i].text, member->address))
			return census->told[i] || census->errors[i].code == PERSEAS_ENOSTORE;
	return false;
}

bool ps_census_is_unfinished(const struct ps_census *census)
{
	const Perseas__Roster *roster = census->judged.settled;

	if (census->judged.outlook == PS_OUTLOOK_UNFILLED)
		return true;
	if (!ps_census_is_remainder(census))
		return false;
	for (size_t k = 0; k < roster->n_members; k++)
		if (!has_answered(census, roster->members[k]))
			return false;
	return true;
}
