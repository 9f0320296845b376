/*
 * resync_internal.h - what the two halves of a resync share: how a mirror is made ready for it
 * (resync_prepare.c), and the copy (resync.c).
 */
#ifndef PERSEAS_CLIENT_RESYNC_INTERNAL_H
#define PERSEAS_CLIENT_RESYNC_INTERNAL_H

#include "../core/handle.h"

/* The one way to another state; the move must be in the table. */
void ps_resync_move(struct perseas *p, enum ps_resync_state to);

/* Returns true if the image that the mirror granted would count after a copy, with the mirrors that
 * are live now. Takes the lock. */
bool ps_resync_would_count(struct perseas *p, const struct ps_mirror *m);

/* The mirror is ready. Transactions, and the copy, go to it from now on. */
void ps_resync_copy(struct perseas *p);

/* Asks the next whole mirror that holds transaction seq, and was not asked before, for bytes of a
 * region: the copy is READING then. Returns false if none is left. */
bool ps_resync_ask_bytes(struct perseas *p, uint32_t region, uint64_t offset, uint64_t length,
                         uint64_t seq);

/* Frees the reply that a copy keeps. */
void ps_resync_forget_reply(struct ps_resync *r);

/* Returns the write of this owner's slot to the mirror that is copied to; the slot is made at `to`.
 * Locked. */
struct ps_write ps_resync_slot(const struct perseas *p, uint8_t *to);

/* The others that are connected and whole. Takes the lock. */
uint32_t ps_resync_others(struct perseas *p);

/* Have enough of those that are still connected and whole confirmed that this owner is the one, for
 * the mirror to be made anew (I9)? */
bool ps_resync_is_confirmed(struct perseas *p);

/* Does the roster that counts list it? Where only the one that is to be does, nobody can commit
 * through it alone, and before that one is settled enough of the old are told again (change.c). */
bool ps_resync_is_settled(const struct perseas *p);

#endif
