/*
 * rosters.h - compares rosters: which is newer, which mirrors they list, and whether an image
 * belongs to the store that they name. It must never allocate.
 */
#ifndef PERSEAS_PROTO_ROSTERS_H
#define PERSEAS_PROTO_ROSTERS_H

#include "control.pb-c.h"

#include <stdbool.h>

/* Compares by (epoch, version). Returns a value below, equal to or above 0 if `a` is older than, as
 * new as, or newer than `b`. NULL is older than any roster. */
int ps_roster_order(const Perseas__Roster *a, const Perseas__Roster *b);

static inline bool ps_roster_newer(const Perseas__Roster *roster, const Perseas__Roster *other)
{
	return ps_roster_order(roster, other) > 0;
}

/* Returns true if the first of two settled rosters of one store id must replace the other. A roster
 * of a lower level, however new, is from before the store was raised, or from an image that was
 * made without the store's key. */
bool ps_roster_outranks(const Perseas__Roster *roster, const Perseas__Roster *other);

/* Returns the newer of the two rosters in a header. */
const Perseas__Roster *ps_roster_newest(const Perseas__Header *header);

/* Returns the member with this image, or NULL. `roster` may be NULL. */
Perseas__Member *ps_roster_member(const Perseas__Roster *roster, const uint8_t *image_id);

/* Returns the first member with exactly this address, or NULL. `roster` may be NULL. */
Perseas__Member *ps_roster_at(const Perseas__Roster *roster, const char *address);

/* Returns true if two rosters of level 1 with the same store id name the same store. */
bool ps_roster_same_name(const Perseas__Roster *a, const Perseas__Roster *b);

/* Returns true if the image belongs to the store that this id and this roster name. A roster of
 * level 1 names the store by its key: an image that was made without the key does not belong to it,
 * whatever its id. A roster of level 0, or NULL, names the store by its id alone. */
bool ps_store_is(const Perseas__Header *header, const uint8_t *store_id,
                 const Perseas__Roster *roster);
/* Returns true if the image has this id and level 0. If the store has level 1, the image was made
 * without its key: it is ignored and may be replaced, like an image that no roster lists. */
bool ps_store_precedes(const Perseas__Header *header, const uint8_t *store_id);

/* Returns true if the image is of a fork of the store with these rosters (`next` may be NULL): its
 * own rosters list it, or the image that it was loaded from, but no image that they list is in
 * these. Each change of a roster, and each image that is remade, keeps at least one image of the
 * roster. So either these rosters do not descend from the image's, or every image has been replaced
 * since. If the image's change is decided, only its next roster is considered, because its owner
 * may count by that alone. An image without the key from which the store's id is derived is no
 * fork. (epoch, version) cannot tell which fork is newer: each owner counts on from what it saw. */
bool ps_image_forked(const Perseas__Header *header, const Perseas__Roster *settled,
                     const Perseas__Roster *next);

#endif
