/*
 * place.h - chooses the daemons that hold the images of a store, by where they run and what they
 * have left. perseas place and perseas drain call it with what daemons reported; tests call it with
 * invented fleets. It asks no mirror, and changes nothing.
 */
#ifndef PERSEAS_COMMAND_PLACE_H
#define PERSEAS_COMMAND_PLACE_H

#include "../../../proto/control/spot.h"

struct ps_wish {
	unsigned copies;       /* images to place */
	uint64_t bytes;        /* of each; 0: not known */
	enum ps_domain apart;  /* no two of the store in the same of these, or of narrower ones */
	const unsigned *there; /* spots that have an image of the store and keep it */
	unsigned there_count;
};

enum { PS_PLACE_WHY = 400 };

/* Returns the widest domain in which all of these spots are apart, or PS_DOMAINS if two share a
 * host or machine, or if the place of one is not known. */
enum ps_domain ps_spots_apart(const struct ps_spot *spots, const unsigned *set, unsigned count);

/* Returns the widest domain that all open spots name, or PS_DOMAINS if they do not even name
 * hosts. */
enum ps_domain ps_domain_usual(const struct ps_spot *spots, unsigned count);

/*
 * Chooses wish->copies spots into `chosen`, the best first: in each domain the spot that would be
 * the least full, then the one with the fewest stores, then the one with the least load. Returns
 * false if fewer are apart; `why` then says what is missing and what to do.
 *
 * Where domains are nested (a host in one rack, a rack in one zone) it finds a choice if one
 * exists.
 */
bool ps_spots_choose(const struct ps_spot *spots, unsigned count, const struct ps_wish *wish,
                     unsigned *chosen, char why[PS_PLACE_WHY]);

#endif
