/*
 * place.h - chooses the daemons that get the images of a store, by where they run and how much free
 * memory they have. perseas place and perseas drain call it with what daemons reported; tests call
 * it with invented fleets. It asks no mirror, and changes nothing.
 */
#ifndef PERSEAS_COMMAND_PLACE_H
#define PERSEAS_COMMAND_PLACE_H

#include "../../../proto/control/spot.h"

/* The images to place, and the spots that already have an image of the store. */
struct ps_wish {
	unsigned copies; /* images to place */
	uint64_t bytes;  /* size of each image; 0: not known */
	/* No two images may share a domain of this kind, or of a narrower one. */
	enum ps_domain apart;
	const unsigned *holders; /* indices of spots that have an image of the store and keep it */
	unsigned holder_count;
};

/* Size of the text that says why there are too few spots. */
enum { PS_PLACE_WHY = 400 };

/* Returns the widest kind of domain that no two of these spots share, or PS_DOMAINS if two share a
 * host or machine, or if it is not known where a spot is. */
enum ps_domain ps_spots_widest_apart(const struct ps_spot *spots, const unsigned *set,
                                     unsigned count);

/* Returns the widest kind of domain that all open spots name, or PS_DOMAINS if they do not even
 * name hosts. */
enum ps_domain ps_spots_widest_named_domain(const struct ps_spot *spots, unsigned count);

/*
 * Chooses wish->copies spots into `chosen`, the best first: in each domain the spot that would be
 * the least full, then the one with the fewest stores, then the one with the least load. Returns
 * false if too few spots are far enough apart; `why` then says what is missing and what to do.
 *
 * If domains are nested (a host in one rack, a rack in one zone), it finds a choice if one exists.
 */
bool ps_spots_choose(const struct ps_spot *spots, unsigned count, const struct ps_wish *wish,
                     unsigned *chosen, char why[PS_PLACE_WHY]);

#endif
