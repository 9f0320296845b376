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

/* Compares two settled rosters with the same store id. Returns true if `roster` must replace
 * `other`: it has a higher level, or the same level and a higher (epoch, version). A roster of a
 * lower level, however new, is from before the store was raised to level 1 (key.h), or from an
 * image that was made without the store's key. */
bool ps_roster_outranks(const Perseas__Roster *roster, const Perseas__Roster *other);

/* Returns the newer of the two rosters in a header. */
const Perseas__Roster *ps_roster_newest(const Perseas__Header *header);

/* Returns the member with this image, or NULL. `roster` may be NULL. */
Perseas__Member *ps_roster_member(const Perseas__Roster *roster, const uint8_t *image_id);

/* Returns the first member with exactly this address, or NULL. `roster` may be NULL. */
Perseas__Member *ps_roster_member_at(const Perseas__Roster *roster, const char *address);

/* Returns true if two rosters of level 1 with the same store id name the same store. */
bool ps_rosters_name_same_store(const Perseas__Roster *a, const Perseas__Roster *b);

/* Returns true if the image belongs to the store that this id and this roster name. A roster of
 * level 1 names the store by its key: an image that was made without the key does not belong to it,
 * whatever its id. A roster of level 0, or NULL, names the store by its id alone. */
bool ps_image_is_of_store(const Perseas__Header *header, const uint8_t *store_id,
                          const Perseas__Roster *roster);
/* Returns true if the image has this store id and level 0. If the store has level 1, the image was
 * made without the store's key: it is ignored and may be replaced, like an image that no roster
 * lists. */
bool ps_image_is_of_level_0(const Perseas__Header *header, const uint8_t *store_id);

/*
 * Returns true if the image is of a fork: a copy of the store that another owner has continued,
 * with other mirrors. `settled` and `next` (may be NULL) are the store's rosters.
 *
 * The image is of a fork if the rosters in its header list it, or its parent, but have no image in
 * common with the store's rosters. In one history that cannot happen, because each change of a
 * roster keeps at least one image, unless every image has been replaced since.
 *
 * If the image's own change of the roster is decided, only its next roster is compared, because its
 * owner may count by that one alone. An image without the key from which the store's id is derived
 * is no fork. (epoch, version) does not tell which fork is newer: each owner counts on from the
 * numbers that it found.
 */
bool ps_image_is_forked(const Perseas__Header *header, const Perseas__Roster *settled,
                        const Perseas__Roster *next);

#endif
