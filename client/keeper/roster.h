/*
 * roster.h - edits the owner's rosters and records them on mirrors. Every edit makes a newer
 * roster, by (epoch, version), and enough mirrors record it before anything relies on it. Callers
 * hold admin, or the store is not open yet.
 */
#ifndef PERSEAS_CLIENT_ROSTER_H
#define PERSEAS_CLIENT_ROSTER_H

#include "../core/handle.h"

/* Makes the request that has a mirror record the handle's rosters. It points into *ask and the
 * handle. */
void ps_roster_make_request(struct perseas *p, Perseas__RosterRequest *ask,
                            Perseas__Request *request);

/* Returns the store's key for a message that makes an image or records a roster. It is empty at
 * level 0, and points into the handle. */
ProtobufCBinaryData ps_roster_key_for_message(struct perseas *p);

/* Returns the highest store level that the mirror can read, by the protocol version of its
 * connection. */
uint32_t ps_roster_readable_level(const struct perseas *p, const struct ps_mirror *m);

/* Records the handle's rosters on the connected mirrors of `record_on`. Returns those that did. */
uint32_t ps_roster_record_on_mirrors(struct perseas *p, uint32_t record_on);

/* Gives the rosters this owner's epoch and a higher version, so that they are newer than any that
 * another owner can have recorded. */
void ps_rosters_raise_version(struct perseas *p);

/* Records the settled roster under this owner's epoch on the mirrors of `adopted_mirrors`, which
 * makes it newer than any roster that a member may have from an earlier owner. Returns false if
 * fewer than W recorded it.
 *
 * Records nothing, and returns true, if every member was claimed. A member that was not claimed may
 * have a newer roster: an earlier owner recorded it on fewer than W mirrors when it took another
 * mirror for lost. If that other mirror's image came back and counts here, a later open that meets
 * the newer roster would not count it, and too few mirrors would hold what W hold now. Also records
 * nothing if `claimed_mirrors` are fewer than R, because an operator accepted the state: then the
 * newer roster may be settled. */
bool ps_roster_record_newer_than_unclaimed(struct perseas *p, uint32_t claimed_mirrors,
                                           uint32_t adopted_mirrors);

/* Makes the next roster the settled and only one. Caller holds p->lock. */
void ps_roster_settle(struct perseas *p);

/* Marks the next roster as decided, before any mirror is told so. From now on this owner or the
 * next one must complete the change. Caller holds p->lock. */
void ps_roster_mark_decided(struct perseas *p);

/* Drops the next roster, which is not decided. The settled roster counts alone and becomes newer
 * than both were. Caller holds p->lock. */
void ps_roster_drop_next(struct perseas *p);

/* Add a member to a roster that is being made, or remove one. ps_roster_add_member returns false if
 * out of memory. */
bool ps_roster_add_member(Perseas__Roster *roster, const char *address, const uint8_t *image_id);
void ps_roster_remove_member(Perseas__Roster *roster, const uint8_t *image_id);

/* Changes the address of the member with this image in the settled roster, and raises the roster's
 * version. A member that is listed at that address gets the former address of this one. No change
 * may be in progress. Returns false if out of memory. */
bool ps_roster_set_address(struct perseas *p, const uint8_t *image_id, const char *address);

/* Changes the image id of mirror `m` in the handle's rosters, and raises their version if they list
 * it. Tells no mirror. */
void ps_roster_set_image_id(struct perseas *p, struct ps_mirror *m, const uint8_t *image_id);

/* Changes the image id of mirror `m` before the store is open, and records that on the mirrors of
 * `record_on`. The mirrors of `also_know` learn it by other means. Returns false if both together
 * are not W. */
bool ps_roster_record_image_id(struct perseas *p, struct ps_mirror *m, const uint8_t *image_id,
                               uint32_t record_on, uint32_t also_know);

/* Gives mirror `m`, whose image was loaded from a spill, the image's own id. The mirror itself
 * records this last, once W know it: otherwise its roster, which may not be the newest, could take
 * the place of the parent image from it. Returns false if too few recorded it. */
bool ps_roster_record_loaded_id(struct perseas *p, struct ps_mirror *m, uint32_t record_on);

/* Returns the mirrors that the open handle's rosters list by the ids of their loaded images, while
 * W may not have recorded these ids yet. Such a mirror must be told of its own id last, once the
 * other mirrors that are needed with it have recorded the id. */
uint32_t ps_roster_mirrors_to_tell_last(const struct perseas *p);

#endif
