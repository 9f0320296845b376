/*
 * past.h - an owner that went back in time: its machine was reverted to a checkpoint, or runs
 * twice. A mirror then holds transactions or a roster that only this owner can have written, and
 * that this owner does not know. Such an owner must never commit, and never copy its memory to a
 * mirror: what it has forgotten was acknowledged (PROTOCOL.md, "An owner that went back in time").
 *
 * session.c and renew.c ask about each image that a mirror granted. With admin.
 */
#ifndef PERSEAS_CLIENT_PAST_H
#define PERSEAS_CLIENT_PAST_H

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

#endif
