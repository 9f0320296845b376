/*
 * resync.h - a mirror is copied whole while transactions go on.
 *
 * Its link takes every transaction from the beginning of the resync on, in order, like the links
 * of the others; between them go chunks of the image, each as it is committed at that place in
 * the order. So whatever a chunk holds is overwritten by just those transactions that are
 * younger than it, and after one pass over the segments the image is whole: nothing has to be
 * copied twice, however fast transactions come. Commits do not wait for it, but for the copying
 * of one chunk's bytes in memory.
 *
 * Until it is whole the image is `joining`, in place where that harms nobody (I8), else beside
 * what the mirror has; it holds nothing and has no vote.
 *
 * All of it is the keeper's, with admin.
 */
#ifndef PERSEAS_CLIENT_RESYNC_H
#define PERSEAS_CLIENT_RESYNC_H

#include "../core/handle.h"

/*
 * Begins, on a connected mirror that has granted its claim (its link is attached), or that has no
 * image at all (claim is NULL). anew: what it has does not count, so it gets a new id (I9).
 * why it must be copied is told, up to a semicolon. 0: it is RESYNCING. Else a code, and the mirror
 * must be disconnected.
 */
int ps_resync_begin(struct perseas *p, struct ps_mirror *m, const Perseas__ClaimReply *claim,
                    bool anew, const char *why, struct ps_error *error);

/* Goes on, as far as it goes without waiting. */
void ps_resync_step(struct perseas *p);

/* Until when there is nothing to do for it, if no chunk completes: PS_NEVER when none goes on. */
uint64_t ps_resync_due(const struct perseas *p);

/* How far it is with this mirror. Locked. */
void ps_resync_progress(const struct perseas *p, const struct ps_mirror *m, uint64_t *done,
                        uint64_t *total);

#endif
