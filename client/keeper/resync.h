/*
 * resync.h - copies a mirror whole while transactions go on.
 *
 *      .-------------------------------------------------------.
 *      |    .. and only the roster that is not settled lists it  v
 *      |    enough others confirm       W recorded its new id    |
 *    ASKING ---------------> RECORDING ---------------------> MAKING
 *      ^                                                     ^   | room in place, or beside
 *      | anew, and listed           as it is, or not listed  |   v
 *    NONE ---------------------------------------------------' ATTACHING, if it has no link
 *      ^ '---> COMPARING, in place, if nothing is known ---^     |
 *      | LIVE                                                    v
 *    FINISHING <--- CONFIRMING <------- COPYING <----------- ADDING the unpublished segments
 *                                        |   ^
 *                                        v   | the claim still stands, or no mirror has the record
 *                                   READING -> VOUCHING
 *
 * COMPARING finds by digests what differs in an image of which nothing is known (resync_compare.c).
 * Up to ADDING the mirror is prepared for the copy and its session is PREPARING (session.h): it
 * takes no transactions, and its control connection serves nothing else. From COPYING on, its link
 * takes every transaction in order, like the links of other mirrors. Chunks of the image go between
 * the transactions, each as committed at that point of the order. Only younger transactions
 * overwrite a chunk, so the image is whole after one pass over the segments, however fast
 * transactions come. A commit waits at most while the bytes of one chunk are copied in memory.
 * Contents that are not mapped here are READ from another mirror. So is the newest undo record,
 * with which the copy begins (newest_record.h).
 *
 * Until the image is whole, its state on the mirror is `joining`. The copy goes in place if that
 * harms no acknowledged transaction (I8), and otherwise beside the old image. It counts for no
 * transaction and has no vote.
 *
 * No step waits for a silent mirror. Anything may happen between two steps, so a decision made
 * before an answer is made again after it if it may have changed. When the mirror's session or link
 * ends, every state returns to NONE, and a new copy begins from the start.
 *
 * The keeper calls all of this and holds admin.
 */
#ifndef PERSEAS_CLIENT_RESYNC_H
#define PERSEAS_CLIENT_RESYNC_H

#include "../core/handle.h"
#include "../core/states.h"

extern const struct ps_states ps_resync_states;

/* Begins a whole copy to mirror `m`. Its session is PREPARING, and no copy is in progress.
 * m->session.claim_reply is the granted claim, with the link attached, or NULL if the mirror has no
 * image. `with_new_id`: the old image does not count, so the mirror gets a new image id (I9).
 * `why`, up to a semicolon, becomes the mirror's trouble. Returns 0, or an error code; then the
 * caller disconnects the mirror. */
int ps_resync_begin(struct perseas *p, struct ps_mirror *m, bool with_new_id, const char *why,
                    struct ps_error *error);

/* Prepares the mirror as far as possible without waiting. Returns 1 if it is RESYNCING now, 0 if
 * not yet, or an error code; then the caller disconnects the mirror. */
int ps_resync_continue_preparing(struct perseas *p, struct ps_error *error);

/* Continues the copy as far as possible without waiting. */
void ps_resync_step(struct perseas *p);

/* Breaks the copy in progress, for the reason `why`, so that it begins again from the start. */
void ps_resync_restart(struct perseas *p, const char *why);

/* Ends the copy if it goes to mirror `m`, whose session has ended. */
void ps_resync_end_if_target(struct perseas *p, struct ps_mirror *m);

/* Returns when the copy next needs attention if nothing arrives, or PS_NEVER. */
uint64_t ps_resync_due_at(const struct perseas *p);

/* Returns true if the mirror that is being prepared owes an answer itself. */
bool ps_resync_awaits_mirror(const struct perseas *p);

/* Returns true if the data path to mirror `m` is being attached for the copy. */
bool ps_resync_is_attaching(const struct perseas *p, const struct ps_mirror *m);

#endif
