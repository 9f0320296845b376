/*
 * resync.h - a mirror is copied whole while transactions go on.
 *
 *      .-------------------------------------------------------.
 *      |    .. and only the roster that is not settled lists it  v
 *      |    enough others confirm       W recorded its new id    |
 *    ASKING ---------------> RECORDING ---------------------> MAKING
 *      ^                                                     ^   | room in place, or beside
 *      | anew, and listed           as it is, or not listed  |   v
 *    NONE ---------------------------------------------------' ATTACHING, where it has no link
 *      ^                                                         |
 *      | LIVE                                                    v
 *    FINISHING <--- CONFIRMING <------- COPYING <----------- ADDING, what is not published
 *                                        |   ^
 *                                        v   | its owner is still this one, or none has the record
 *                                   READING -> VOUCHING
 *
 * Up to ADDING the mirror is made ready for the copy, and its session is PREPARING (session.h): it
 * takes no transactions, and its connection is for nothing else. Its link takes every transaction
 * from COPYING on, in order, like the links of the others; between them go chunks of the image,
 * each as it is committed at that place in the order. So whatever a chunk holds is overwritten by
 * just those transactions that are younger than it, and after one pass over the segments the image
 * is whole: nothing has to be copied twice, however fast transactions come. Commits do not wait for
 * it, but for the copying of one chunk's bytes in memory. What is not mapped here is READ from
 * another mirror, and so is the newest undo record, with which the copy begins (newest_record.h).
 *
 * Until it is whole the image is `joining`, in place where that harms nobody (I8), else beside
 * what the mirror has; it holds nothing and has no vote.
 *
 * Nothing here waits for a mirror that is silent. Between any two steps anything may happen: what
 * was judged before an answer came is judged again where it may no longer be so. From every state
 * it is NONE again when the mirror's session, or its link, is over: then all begins anew.
 *
 * All of it is the keeper's, with admin.
 */
#ifndef PERSEAS_CLIENT_RESYNC_H
#define PERSEAS_CLIENT_RESYNC_H

#include "../core/handle.h"
#include "../core/states.h"

extern const struct ps_states ps_resync_states;

/*
 * Begins, on a connected mirror whose session is PREPARING: it has granted its claim, which
 * m->session.granted holds (its link is attached), or it has no image at all. anew: what it has
 * does not count, so it gets a new id (I9). why it must be copied is told, up to a semicolon.
 * None goes on. 0; or a code, and the mirror must be disconnected.
 */
int ps_resync_begin(struct perseas *p, struct ps_mirror *m, bool anew, const char *why,
                    struct ps_error *error);

/* Makes the mirror ready, as far as it goes without waiting. 1: it is RESYNCING; 0: not yet; else a
 * code, and the mirror must be disconnected. */
int ps_resync_prepare(struct perseas *p, struct ps_error *error);

/* The copy goes on, as far as it goes without waiting. */
void ps_resync_step(struct perseas *p);

/* What is being copied must not be finished: its link is broken, and the copy begins anew. */
void ps_resync_restart(struct perseas *p, const char *why);

/* Its session is over. */
void ps_resync_over(struct perseas *p, struct ps_mirror *m);

/* Until when there is nothing to do for it, if nothing comes: PS_NEVER when none goes on. */
uint64_t ps_resync_due(const struct perseas *p);

/* While it is made ready: is an answer due from the mirror itself? */
bool ps_resync_awaits(const struct perseas *p);

/* Is its data path being connected, for the copy? */
bool ps_resync_attaches(const struct perseas *p, const struct ps_mirror *m);

/* How far it is with this mirror. Locked. */
void ps_resync_progress(const struct perseas *p, const struct ps_mirror *m, uint64_t *done,
                        uint64_t *total);

#endif
