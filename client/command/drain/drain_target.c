/*
 * drain_target.c - chooses the daemon that gets an image; see drain.h. drain_image.c calls it. It
 * must never change anything on a mirror.
 */
#include "drain.h"
#include "../../../proto/control/envelope.h"

#include <stdlib.h>
#include <string.h>

/* The members that stay, and the widest domain in which all of them are apart now. */
struct others {
	/* Indices of the spots of these members, and last of the member that leaves. */
	unsigned spots[PS_MIRRORS_MAX + 1];
	unsigned count; /* number of members that stay */
	enum ps_domain apart;
};

static bool is_located(const struct ps_spot *spot)
{
	return *spot->labels[PS_DOMAIN_HOST];
}

static bool find_staying_members(struct ps_drain *drain, const struct ps_drain_image *image,
                                 const struct ps_images *images, const Perseas__Member *old,
                                 struct others *others)
{
	const Perseas__Roster *roster = images->judged.settled;
	const struct perseas_options *options = &drain->args->options;
	unsigned spot;

	*others = (struct others){ .count = 0 };
	for (size_t k = 0; k < roster->n_members; k++) {
		const char *address = ps_images_address_of(images, roster->members[k]);

		if (roster->members[k] == old)
			continue;
		if (ps_survey_find_or_ask(&drain->survey, address, options, &spot) ||
		    !is_located(&drain->survey.spots[spot])) {
			ps_complain(PS_EXIT_OK,
			            "store '%s' stays: %s, which keeps its image, does not tell "
			            "where it runs, so that nobody knows what fails together with "
			            "it; bring it back, or replace it first",
			            image->status->header->store, address);
			return false;
		}
		others->spots[others->count++] = spot;
	}
	/* The member that leaves may be the one that shares a host. If it does not say where it
	 * runs, how far apart the members were is not known. */
	others->apart = PS_DOMAIN_HOST;
	if (!ps_survey_find_or_ask(&drain->survey, ps_images_address_of(images, old), options,
	                           &spot) &&
	    is_located(&drain->survey.spots[spot])) {
		others->spots[others->count] = spot;
		others->apart = ps_spots_widest_apart(drain->survey.spots, others->spots,
		                                      others->count + 1);
	}
	return true;
}

/* Chooses a spot that is apart in the widest possible kind of domain, but in none narrower than
 * `least`. */
static bool choose_spot(const struct ps_spot *spots, unsigned count, struct ps_wish *wish,
                        enum ps_domain least, unsigned *chosen, char why[PS_PLACE_WHY])
{
	for (;; wish->apart--) {
		if (ps_spots_choose(spots, count, wish, chosen, why))
			return true;
		if (wish->apart <= least)
			return false;
	}
}

static enum ps_domain narrowest_domain(const struct ps_drain *drain, const struct others *others)
{
	if (drain->args->apart)
		return ps_domain_by_name(drain->args->apart);
	return others->apart == PS_DOMAINS ? PS_DOMAIN_HOST : others->apart;
}

static enum ps_domain widest_domain(const struct ps_drain *drain, const struct ps_spot *spots,
                                    enum ps_domain least)
{
	const enum ps_domain usual = ps_spots_widest_named_domain(spots, drain->survey.spot_count);

	return drain->args->apart || usual == PS_DOMAINS || usual < least ? least : usual;
}

static void complain_of_refusal(enum ps_drain_refusal refusal, const char *address,
                                const char *store)
{
	switch (refusal) {
	case PS_DRAIN_ACCEPTS:
		break;
	case PS_DRAIN_HAS_OTHER_STORE:
		ps_complain(PS_EXIT_OK, "%s has another store '%s', and gets no image of this one",
		            address, store);
		break;
	case PS_DRAIN_HAS_THIS_IMAGE:
		ps_complain(PS_EXIT_OK,
		            "%s is the mirror that is drained, or a member of the roster, by "
		            "another address",
		            address);
		break;
	case PS_DRAIN_HAS_NEWER_ROSTER:
		ps_complain(PS_EXIT_OK,
		            "%s knows a newer roster of store '%s' than the mirrors that the image "
		            "here names, and is not made a copy of theirs; perseas status %s %s "
		            "shows it",
		            address, store, store, address);
		break;
	case PS_DRAIN_HAS_FORK:
		ps_complain(PS_EXIT_OK,
		            "%s has an image of a fork of store '%s', which is not copied over; "
		            "perseas drop deletes it if it is of no more use",
		            address, store);
		break;
	}
}

/* Returns true if the daemon may take the image. Asks the daemon again, since much may have changed
 * after the survey. Sets *gone if it cannot take any other image either. */
static bool spot_accepts(const struct ps_drain *drain, const struct ps_drain_image *image,
                         const struct ps_images *seen, const struct ps_spot *spot, bool *gone)
{
	const Perseas__Header *mine = image->status->header, *theirs;
	enum ps_drain_refusal refusal = PS_DRAIN_ACCEPTS;
	struct ps_peers peers;
	struct ps_images images;
	bool answers;

	*gone = true;
	if (ps_images_open(&images, &peers, mine->store, spot->address, &drain->args->options))
		return false;
	theirs = images.told[0] ? images.told[0]->header : NULL;
	answers = theirs || images.errors[0].code == PERSEAS_ENOSTORE;
	if (answers)
		refusal = ps_drain_check_daemon(theirs, mine, seen);
	else
		ps_complain(PS_EXIT_OK, "%s", images.errors[0].text);
	complain_of_refusal(refusal, spot->address, mine->store);
	*gone = !answers ||
	        (theirs && !drain->gone && ps_id_equal(theirs->image_id, mine->image_id.data));
	ps_images_close(&images, &peers);
	return answers && refusal == PS_DRAIN_ACCEPTS;
}

/* Chooses the best spot that accepts the image. A spot that refuses is closed in `spots`, or for
 * all later images if it can take none. */
static struct ps_spot *choose_target(struct ps_drain *drain, const struct ps_drain_image *image,
                                     const struct ps_images *seen, const struct others *others,
                                     struct ps_spot *spots)
{
	const enum ps_domain least = narrowest_domain(drain, others);
	char why[PS_PLACE_WHY];
	unsigned chosen;
	bool gone;

	for (;;) {
		struct ps_wish wish = { .copies = 1,
			                .bytes = image->status->bytes,
			                .apart = widest_domain(drain, spots, least),
			                .holders = others->spots,
			                .holder_count = others->count };

		if (!choose_spot(spots, drain->survey.spot_count, &wish, least, &chosen, why)) {
			ps_complain(PS_EXIT_NO, "store '%s' stays: nobody can take its image: %s",
			            image->status->header->store, why);
			return NULL;
		}
		if (spot_accepts(drain, image, seen, &spots[chosen], &gone))
			return &drain->survey.spots[chosen];
		spots[chosen].closed = true;
		drain->survey.spots[chosen].closed |= gone;
	}
}

struct ps_spot *ps_drain_choose_target(struct ps_drain *drain, const struct ps_drain_image *image,
                                       const struct ps_images *images, const Perseas__Member *old)
{
	struct ps_spot *spots, *target;
	struct others others;
	size_t size;

	if (!find_staying_members(drain, image, images, old, &others))
		return NULL;
	size = drain->survey.spot_count * sizeof(*spots);
	spots = ps_exit_if_null(malloc(size));
	memcpy(spots, drain->survey.spots, size);
	target = choose_target(drain, image, images, &others, spots);
	free(spots);
	return target;
}
