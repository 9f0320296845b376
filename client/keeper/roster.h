/*
 * roster.h - the roster as this owner changes it. Every change is a newer roster, by (epoch,
 * version), on the mirrors before anything rests on it. Admin, or before open.
 */
#ifndef PERSEAS_CLIENT_ROSTER_H
#define PERSEAS_CLIENT_ROSTER_H

#include "../core/handle.h"

/* The request that has them recorded; it points into the handle. */
void ps_roster_request(struct perseas *p, Perseas__RosterRequest *ask, Perseas__Request *request);

/* Returns the store's key for a message that makes an image, or records a roster; empty at level 0.
 * It points into the handle. */
ProtobufCBinaryData ps_roster_key(struct perseas *p);

/* Returns the highest level that the mirror reads, by the version that its connection speaks. */
uint32_t ps_roster_level_read(const struct perseas *p, const struct ps_mirror *m);

/* Records the handle's rosters on the mirrors of a set that are connected; those that took them. */
uint32_t ps_roster_record(struct perseas *p, uint32_t on);

/* The rosters become this owner's: newer than any that another can have recorded. */
void ps_roster_stamp(struct perseas *p);

/*
 * A member that was not claimed may have a newer roster, which an owner before recorded on fewer
 * than W when it took another mirror for lost. If that mirror's image came back and counts here, a
 * later open that met the newer roster would not count it, and what W hold would be on fewer. So
 * the settled roster becomes this owner's on the mirrors that are `good`. Returns false if these
 * are fewer than W. If fewer than R are claimed, since an operator accepted the state, the newer
 * roster may be settled, and nothing is recorded.
 */
bool ps_roster_adopt(struct perseas *p, uint32_t claimed, uint32_t good);

/* The roster that is not settled is the only one from now on. */
void ps_roster_settle(struct perseas *p);

/* The roster that is not settled is decided: from before any mirror is told, it is completed, by
 * this owner or by the next. */
void ps_roster_mark(struct perseas *p);

/* The roster that is not settled, nor decided, is taken back: the one before it is the only one
 * from now on, and newer than both. */
void ps_roster_cancel(struct perseas *p);

/* Members of a roster that is being made. False: out of memory. */
bool ps_roster_add(Perseas__Roster *roster, const char *address, const uint8_t *image_id);
void ps_roster_remove(Perseas__Roster *roster, const uint8_t *image_id);

/* The member of the settled roster that has this image is at that address from now on; no change is
 * under way. Returns false if there is no memory. */
bool ps_roster_readdress(struct perseas *p, const uint8_t *image_id, const char *address);

/* The handle's rosters list the mirror under this id, and are newer, where they list it at all; no
 * mirror is told. */
void ps_roster_replace(struct perseas *p, struct ps_mirror *m, const uint8_t *image_id);

/* Before the store is open: the mirror's image bears this id from now on, as is recorded on the
 * mirrors of `on`, which must be W together with those of `with` (they learn of it otherwise).
 * False: they are fewer. */
bool ps_roster_rename(struct perseas *p, struct ps_mirror *m, const uint8_t *image_id, uint32_t on,
                      uint32_t with);

/* The same for an image of `on` that was loaded from a spill: it is told itself only when W are. So
 * nothing that may not be the newest roster takes its parent's place from it. */
bool ps_roster_rename_loaded(struct perseas *p, struct ps_mirror *m, uint32_t on);

/* Once the store is open: the mirrors that the handle's rosters list by the ids with which they
 * were loaded, while W may not know these. A mirror is told of its own last: when all others that
 * are needed, with it, have recorded it. */
uint32_t ps_roster_unrecorded(const struct perseas *p);

#endif
