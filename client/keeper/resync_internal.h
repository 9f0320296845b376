/*
 * resync_internal.h - shared by the files of a copy: resync_prepare.c prepares the mirror, resync.c
 * and newest_record.c copy to it, and resync_finish.c has it count.
 */
#ifndef PERSEAS_CLIENT_RESYNC_INTERNAL_H
#define PERSEAS_CLIENT_RESYNC_INTERNAL_H

#include "../core/handle.h"

/* Ends the copy. Takes p->lock, because commits check whether a link is that of the copy. */
void ps_resync_end_copy(struct perseas *p);

/* Breaks the mirror's link, which ends the copy. */
void ps_resync_break_link(struct perseas *p, const char *why);

/* Has the image count, after others have confirmed this owner's claim if they must (I9). The mirror
 * has every chunk, and every transaction that one may contain. Returns false if it must wait. */
bool ps_resync_have_image_counted(struct perseas *p);

/* Take the answers in CONFIRMING and FINISHING. Return true if the copy may be able to move on at
 * once. */
bool ps_resync_step_confirming(struct perseas *p);
bool ps_resync_step_finishing(struct perseas *p);

/* Moves the copy to state `to`, which the table must allow from the present state. */
void ps_resync_move(struct perseas *p, enum ps_resync_state to);

/* Returns true if the image that the mirror granted would count after a copy, given the mirrors
 * that are live now. Takes p->lock. */
bool ps_resync_granted_image_would_count(struct perseas *p, const struct ps_mirror *m);

/* Begins the copying: the prepared mirror takes transactions and chunks from now on. */
void ps_resync_begin_copying(struct perseas *p);

/* Takes the mirror's answer to the pending request. Returns 1, 0 if it has not come yet, or an
 * error code. */
int ps_resync_take_answer(struct perseas *p, Perseas__Reply **reply, int *fds,
                          struct ps_error *error);

/* resync_compare.c: returns NULL if the mirror's image can be compared by digests, otherwise why
 * not. */
const struct ps_whole_reason *ps_resync_reason_not_to_compare(const struct perseas *p,
                                                              const struct ps_mirror *m);

/* Begins to compare the image. The mirror's set of unsent granules was begun with
 * PS_UNSENT_DIFFERENT. */
void ps_resync_begin_comparing(struct perseas *p);

/* Compares some of the image. Returns 1 if all is compared, or if the mirror refused to; then
 * every granule is unsent. Returns 0 if there is more to compare, or an error code. */
int ps_resync_step_comparing(struct perseas *p, struct ps_error *error);

/* Moves *id and *offset on to the next place of a published segment that is mapped here. Returns
 * the segment, or NULL if no such place is left. */
const struct ps_segment *ps_next_mapped_segment(struct perseas *p, uint32_t *id, uint64_t *offset);

/* Computes digests of a part of a segment as it is committed here. A commit waits at most while one
 * granule is copied. Returns false if out of memory. The caller observes transactions, and no copy
 * is under way, which would use the same buffer. */
bool ps_digest_committed(struct perseas *p, const struct ps_segment *segment, uint64_t offset,
                         uint64_t length, const uint8_t *key, uint8_t *digests);

/* Reads `length` bytes of a region from the next whole mirror that holds transaction `seq` and was
 * not asked yet, and moves the copy to READING. Returns false if no such mirror is left. */
bool ps_resync_read_from_other_mirror(struct perseas *p, uint32_t region, uint64_t offset,
                                      uint64_t length, uint64_t seq);

/* Frees r->reply, and sets it to NULL. */
void ps_resync_forget_reply(struct ps_resync *r);

/* Returns a write of this owner's commit slot to the mirror that is copied to. `to` gets the
 * encoded slot. Caller holds p->lock. */
struct ps_write ps_resync_make_slot_write(struct perseas *p, uint8_t *to);

/* Returns the mirrors that are connected and whole, without the one that is copied to. Takes
 * p->lock. */
uint32_t ps_resync_other_mirrors(struct perseas *p);

/* Returns true if enough mirrors that are still connected and whole have confirmed this owner's
 * claim for the mirror to be made anew (I9). */
bool ps_resync_is_confirmed(struct perseas *p);

/* Returns true if the settled roster lists the mirror. No commit can rest on a mirror of the next
 * roster alone, and enough mirrors of the old roster are told again before the next one is settled
 * (change.c). */
bool ps_resync_is_settled_member(const struct perseas *p);

#endif
