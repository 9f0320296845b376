/*
 * rosters.h - compares rosters: which is newer, which mirrors they list, and whether an image
 * belongs to the store that they name. It must never allocate.
 */
#ifndef PERSEAS_PROTO_ROSTERS_H
#define PERSEAS_PROTO_ROSTERS_H

#include "control.pb-c.h"

#include <stdbool.h>

/* Below, at or above 0: `a` is older than `b`, as new, or newer. By (epoch, version); NULL, no
 * roster, is older than any. */
int ps_roster_order(const Perseas__Roster *a, const Perseas__Roster *b);

static inline bool ps_roster_newer(const Perseas__Roster *roster, const Perseas__Roster *other)
{
	return ps_roster_order(roster, other) > 0;
}

/* Returns true if the first of two settled rosters of one store id must replace the other. A roster
 * of a lower level, however new, is from before the raise of the store, or from an image that was
 * made without the store's key. */
bool ps_roster_outranks(const Perseas__Roster *roster, const Perseas__Roster *other);

/* The newer one of the two that a header has. */
const Perseas__Roster *ps_roster_newest(const Perseas__Header *header);

/* The member that has this image; NULL: none, or no roster. */
Perseas__Member *ps_roster_member(const Perseas__Roster *roster, const uint8_t *image_id);

/* The first member that is at this address, as the roster writes it; NULL: none, or no roster. */
Perseas__Member *ps_roster_at(const Perseas__Roster *roster, const char *address);

/* Returns true if these rosters of level 1, which come with one store id, name the same store. */
bool ps_roster_same_name(const Perseas__Roster *a, const Perseas__Roster *b);

/*
 * Returns true if the image belongs to the store that this id and this roster name. A roster of
 * level 1 names the store by its key: an image that was made without the key does not belong to the
 * store, whatever id it has. A roster of level 0, or NULL, names the store by its id alone.
 */
bool ps_store_is(const Perseas__Header *header, const uint8_t *store_id,
                 const Perseas__Roster *roster);
/* Returns true if the image has this id and level 0. If the store has level 1, the image was made
 * without its key: it counts for nothing, like an image that no roster lists, and may be replaced
 * like one. */
bool ps_store_precedes(const Perseas__Header *header, const uint8_t *store_id);

/*
 * Is the image one of a fork, seen from these rosters (`next` may be NULL)? Its own list it, or the
 * image that it was loaded from, and no image that they list is in these. Each change of a roster,
 * and each image that is made anew, leaves another image of the roster as it was; so these rosters
 * came of others than the image's did, or every image of those was replaced since. Where its change
 * is decided, only the roster that comes is its own: its owner may count by that alone, before the
 * image is told so. An image without the key of a store whose id is made of it is none. By (epoch,
 * version) nobody can tell which is newer: each owner of a fork counts on from what it saw.
 */
bool ps_image_forked(const Perseas__Header *header, const Perseas__Roster *settled,
                     const Perseas__Roster *next);

#endif
