/*
 * forks.c - decides whether a store and a fork of it were seen (forks.h).
 */
#include "forks.h"

#include "../core/quorum.h"
#include "../../proto/control/envelope.h"

#include <string.h>

/* Returns true if peer `i` answered with an image, or that it has none. */
static bool has_answered(const struct ps_images *images, unsigned i)
{
	return images->told[i] || images->errors[i].code == PERSEAS_ENOSTORE;
}

static bool have_all_answered(const struct ps_images *images)
{
	for (unsigned i = 0; i < images->peers->count; i++)
		if (!has_answered(images, i))
			return false;
	return true;
}

/* Returns true if two stores of the name, or a store and its fork, were seen, and either may have
 * what was acknowledged last. This does not end when the mirrors of one of them fall silent, but
 * only by answers of the mirrors that showed both. */
static bool is_divided(struct ps_follow *follow, const struct ps_images *images)
{
	const bool parted = images->judged.outlook == PS_OUTLOOK_FORKED ||
	                    images->judged.outlook == PS_OUTLOOK_AMBIGUOUS;
	bool gone = false;

	for (unsigned i = 0; i < images->peers->count; i++) {
		follow->mirrors[i].showed_fork |= parted && images->told[i];
		gone |= follow->mirrors[i].showed_fork && !has_answered(images, i);
	}
	for (unsigned i = 0; i < images->peers->count && !parted && !gone; i++)
		follow->mirrors[i].showed_fork = false;
	return parted || gone;
}

static bool is_same_store(const struct ps_follow *follow, const struct ps_images *images)
{
	return follow->settled.roster &&
	       !memcmp(follow->settled.id, images->judged.store_id, PS_ID_SIZE);
}

bool ps_forks_is_other_store(const struct ps_follow *follow, const struct ps_images *images)
{
	return follow->settled.roster && images->judged.store_id && !is_same_store(follow, images);
}

/* Notes the newest settled roster. An unsettled one may be cancelled, and so may a creation. */
static void note_roster(struct ps_follow *follow, const struct ps_images *images)
{
	const Perseas__Roster *told = images->judged.settled;
	Perseas__Roster *copy;

	if (!told || images->judged.creation_unfinished ||
	    (is_same_store(follow, images) && !ps_roster_outranks(told, follow->settled.roster)))
		return;
	copy = ps_roster_copy(told);
	if (!copy)
		return;
	ps_roster_free(&follow->settled.roster);
	follow->settled.roster = copy;
	memcpy(follow->settled.id, images->judged.store_id, PS_ID_SIZE);
}

/* Returns true if the newest roster in the answers is older than one that was seen before, and they
 * have no image in common. Then an operator has given up a mirror that came back, and an open of
 * its image would begin a fork. If all mirrors answer, the images of the newer roster are gone, and
 * there is no fork. */
static bool is_roster_outdated(const struct ps_follow *follow, const struct ps_images *images)
{
	const struct ps_judgement *j = &images->judged;
	const Perseas__Roster *seen = follow->settled.roster;

	if (!j->settled || !is_same_store(follow, images) || !ps_roster_outranks(seen, j->settled))
		return false;
	for (size_t k = 0; k < seen->n_members && seen->level == j->settled->level; k++)
		if (ps_roster_member(j->settled, seen->members[k]->image_id.data) ||
		    ps_roster_member(j->next, seen->members[k]->image_id.data))
			return false;
	return !have_all_answered(images);
}

static bool is_forked(struct ps_follow *follow, const struct ps_images *images)
{
	const bool parted = is_divided(follow, images);

	/* The store that was seen before may be on mirrors that are silent now. */
	if (ps_forks_is_other_store(follow, images) && !have_all_answered(images))
		return true;
	note_roster(follow, images);
	return parted || is_roster_outdated(follow, images);
}

/* Takes the images twice: a roster that changes while mirrors answer one after the other looks like
 * a fork, but only once. */
void ps_forks_note_images(struct ps_follow *follow, struct ps_images *images)
{
	const bool before = follow->is_forked;

	follow->is_forked = is_forked(follow, images);
	if (before || !follow->is_forked)
		return;
	ps_images_free(images);
	ps_images_fetch(images, &follow->status_peers, follow->store);
	follow->is_forked = is_forked(follow, images);
}
