/*
 * reverted_owner.h - recognizes an owner that went back in time: its machine was reverted to a
 * checkpoint, or runs twice. A mirror then holds transactions or a roster that only this owner can
 * have written, and that this owner does not know. Such an owner must never commit, and never copy
 * its memory to a mirror, because what it has forgotten was acknowledged (PROTOCOL.md, "An owner
 * that went back in time").
 *
 * session.c and renew.c check every image that a mirror shows or grants. Callers hold admin.
 */
#ifndef PERSEAS_CLIENT_REVERTED_OWNER_H
#define PERSEAS_CLIENT_REVERTED_OWNER_H

#include "../core/handle.h"

/* Returns true if the commit slot `at`, which only this owner can have written, cannot be from this
 * memory: its transaction is beyond the last one sent, or has another record. `record_crc` is the
 * record's crc, or 0 if unknown. Caller holds p->lock. */
bool ps_slot_shows_reverted_owner(struct perseas *p, const struct ps_image_position *at,
                                  uint32_t record_crc);

/* Returns true if the header has a roster of this owner's epoch that this owner does not know.
 * Caller holds p->lock. */
bool ps_roster_shows_reverted_owner(struct perseas *p, const Perseas__Header *header);

/* Notes, for ps_fail_fenced and the event, that the image of mirror `m`, whose position is `at`,
 * shows that this owner was reverted. Caller holds p->lock. */
void ps_reverted_note_evidence(struct perseas *p, const struct ps_mirror *m,
                               const struct ps_image_position *at);

/* Returns true if the image that mirror `m` has granted shows that this owner was reverted. Fills
 * *at in with the image's commit slot, if it has one. */
bool ps_claim_shows_reverted_owner(struct perseas *p, const struct ps_mirror *m,
                                   struct ps_image_position *at);

/* Returns true if the status of mirror `m`, whose image is consistent, shows that this owner was
 * reverted, and notes that. */
bool ps_status_shows_reverted_owner(struct perseas *p, const struct ps_mirror *m);

/* Returns true if an older image was put back on the mirror: the granted image was live in this
 * epoch, and its commit slot has another epoch now. That image may have forgotten promises. */
bool ps_image_was_reverted(const struct perseas *p, const struct ps_mirror *m,
                           const Perseas__ClaimReply *claim);

/* Ends all sessions. Otherwise mirrors would still take what the reverted owner sends. */
void ps_reverted_end_sessions(struct perseas *p);

#endif
