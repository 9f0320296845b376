/*
 * reverted_owner.h - an owner that went back in time: its machine was reverted to a checkpoint, or
 * runs twice. A mirror then holds transactions or a roster that only this owner can have written,
 * and that this owner does not know. Such an owner must never commit, and never copy its memory to
 * a mirror: what it has forgotten was acknowledged (PROTOCOL.md, "An owner that went back in
 * time").
 *
 * session.c and renew.c ask about each image that a mirror granted. With admin.
 */
#ifndef PERSEAS_CLIENT_REVERTED_OWNER_H
#define PERSEAS_CLIENT_REVERTED_OWNER_H

#include "../core/handle.h"

/* Returns true if this owner cannot have left an image at `at`, where only this owner can have
 * written the slot: the transaction is beyond the last one that this owner sent, or its record is
 * another one. `record` is the record's crc, 0: not known. Caller holds p->lock. */
bool ps_past_slot(struct perseas *p, const struct ps_standing *at, uint32_t record);

/* Returns true if this owner recorded a roster in this epoch that it does not know. Caller holds
 * p->lock. */
bool ps_past_roster(struct perseas *p, const Perseas__Header *header);

/* Notes what the image on mirror m shows, for ps_fail_fenced and the event. Caller holds p->lock.
 */
void ps_past_note(struct perseas *p, const struct ps_mirror *m, const struct ps_standing *at);

/* Returns true if the image that mirror m has just granted shows that this owner went back in time.
 * `at` is filled in with its slot, if it has one. */
bool ps_past_claimed(struct perseas *p, const struct ps_mirror *m, struct ps_standing *at);

/* Returns true, and notes it, if the status of mirror m's consistent image shows the same. */
bool ps_past_shown(struct perseas *p, const struct ps_mirror *m);

/* Returns true if the granted image was live in this epoch and has a slot of another epoch now:
 * somebody put an older image back, which may have forgotten promises. */
bool ps_past_image(const struct perseas *p, const struct ps_mirror *m,
                   const Perseas__ClaimReply *claim);

/* Ends all sessions: the mirrors would still take what this owner sends. */
void ps_past_end_sessions(struct perseas *p);

#endif
