/*
 * place.c - see place.h.
 */
#include "place.h"

#include <stdio.h>

enum ps_domain ps_spots_widest_named_domain(const struct ps_spot *spots, unsigned count)
{
	for (int domain = PS_DOMAINS - 1; domain >= PS_DOMAIN_HOST; domain--) {
		bool all = true;

		for (unsigned i = 0; i < count; i++)
			all = all && (spots[i].closed || *spots[i].labels[domain]);
		if (all)
			return (enum ps_domain)domain;
	}
	return PS_DOMAINS;
}

/* Returns true if the two spots share a domain of the kind `widest` or narrower. */
static bool share_domain(const struct ps_spot *one, const struct ps_spot *other,
                         enum ps_domain widest)
{
	for (enum ps_domain domain = PS_DOMAIN_MACHINE; domain <= widest; domain++)
		if (ps_spots_share_domain(one, other, domain))
			return true;
	return false;
}

enum ps_domain ps_spots_widest_apart(const struct ps_spot *spots, const unsigned *set,
                                     unsigned count)
{
	for (int domain = PS_DOMAINS - 1; domain >= PS_DOMAIN_HOST; domain--) {
		bool apart = true;

		for (unsigned i = 0; i < count; i++) {
			apart = apart && *spots[set[i]].labels[domain];
			for (unsigned k = 0; k < i; k++)
				apart = apart && !share_domain(&spots[set[i]], &spots[set[k]],
				                               (enum ps_domain)domain);
		}
		if (apart)
			return (enum ps_domain)domain;
	}
	return PS_DOMAINS;
}

/* Returns true if the spot could have an image of the store, if no other spot had one. */
static bool has_room(const struct ps_spot *spot, const struct ps_wish *wish)
{
	return !spot->closed && *spot->labels[wish->apart] && spot->room >= wish->bytes;
}

/* Returns how full the spot would be, in thousandths. */
static uint64_t spot_fullness(const struct ps_spot *spot, uint64_t bytes)
{
	const uint64_t used = spot->used + bytes;
	const uint64_t all = spot->room < UINT64_MAX - spot->used ? spot->used + spot->room
	                                                          : UINT64_MAX;

	if (all == 0)
		return 1000;
	return used <= UINT64_MAX / 1000 ? used * 1000 / all : used / (all / 1000);
}

static bool is_better_spot(const struct ps_spot *one, const struct ps_spot *other, uint64_t bytes)
{
	const uint64_t mine = spot_fullness(one, bytes), theirs = spot_fullness(other, bytes);

	if (mine != theirs)
		return mine < theirs;
	if (one->stores != other->stores)
		return one->stores < other->stores;
	return one->load < other->load;
}

/* Returns true if the spot shares no domain, of the kind wish->apart or narrower, with spots that
 * have an image or were chosen before. */
static bool is_apart(const struct ps_spot *spots, unsigned i, const struct ps_wish *wish,
                     const unsigned *chosen, unsigned chosen_count)
{
	for (unsigned k = 0; k < wish->holder_count; k++)
		if (wish->holders[k] == i ||
		    share_domain(&spots[i], &spots[wish->holders[k]], wish->apart))
			return false;
	for (unsigned k = 0; k < chosen_count; k++)
		if (chosen[k] == i || share_domain(&spots[i], &spots[chosen[k]], wish->apart))
			return false;
	return true;
}

/* Returns how many open spots run on the machine of an open spot before them. */
static unsigned count_shared_machines(const struct ps_spot *spots, unsigned count)
{
	unsigned shared = 0;

	for (unsigned i = 0; i < count; i++) {
		bool is_shared = false;

		for (unsigned k = 0; k < i && !spots[i].closed; k++)
			is_shared = is_shared ||
			            (!spots[k].closed && ps_spots_share_domain(&spots[k], &spots[i],
			                                                       PS_DOMAIN_MACHINE));
		shared += is_shared;
	}
	return shared;
}

/* Writes into `why` what is missing. Returns false. */
static bool explain_shortage(const struct ps_spot *spots, unsigned count,
                             const struct ps_wish *wish, unsigned found, char why[PS_PLACE_WHY])
{
	const char *domain = ps_domain_name(wish->apart);
	unsigned unlabelled = 0, full = 0;

	for (unsigned i = 0; i < count; i++) {
		if (spots[i].closed)
			continue;
		unlabelled += !*spots[i].labels[wish->apart];
		full += spots[i].room < wish->bytes;
	}
	snprintf(why, PS_PLACE_WHY,
	         "%u of %u mirrors can be placed, no two in the same %s: %u of %u daemons name no "
	         "%s (perseasd --label %s=NAME), %u have no room for an image, %u run on the "
	         "machine of another one, whatever their labels say; name daemons in more %ss%s",
	         found, wish->copies, domain, unlabelled, count, domain, domain, full,
	         count_shared_machines(spots, count), domain,
	         wish->apart > PS_DOMAIN_HOST ? ", or accept less with --apart" : "");
	return false;
}

bool ps_spots_choose(const struct ps_spot *spots, unsigned count, const struct ps_wish *wish,
                     unsigned *chosen, char why[PS_PLACE_WHY])
{
	for (unsigned found = 0; found < wish->copies; found++) {
		unsigned best = count;

		for (unsigned i = 0; i < count; i++)
			if (has_room(&spots[i], wish) && is_apart(spots, i, wish, chosen, found) &&
			    (best == count || is_better_spot(&spots[i], &spots[best], wish->bytes)))
				best = i;
		if (best == count)
			return explain_shortage(spots, count, wish, found, why);
		chosen[found] = best;
	}
	return true;
}
