/*
 * detour.h - a mirror whose best fabric does not work, or breaks again and again, is reached over
 * another one, and comes back to the best when that works again. rpc.c tells of the detour, and
 * mirror.c of links that break; the keeper looks for the end of a detour.
 */
#ifndef PERSEAS_CLIENT_DETOUR_H
#define PERSEAS_CLIENT_DETOUR_H

#include "handle.h"

/* The fabric that was tried does not work, as *error says, which is cleared: `next` is tried. The
 * grant is that of the claim. */
void ps_detour_take(struct perseas *p, struct ps_mirror *m, const Perseas__Grant *grant,
                    const struct ps_fabric *next, struct ps_error *error);

/* A link of the mirror broke, with this code of fabric.h. */
void ps_detour_broke(struct perseas *p, struct ps_mirror *m, int rc);

/* Does the best fabric come up and then break, again and again? *error says so. */
bool ps_detour_avoids(const struct ps_mirror *m, const struct ps_fabric *best,
                      struct ps_error *error);

/* Asks whether the best fabric of a mirror works, where that is due, and if it does ends the
 * session, so that it is taken up over that one. It waits for no answer: what there is is taken in,
 * and ps_detour_waits says what for to wait. The keeper, exclusive. */
void ps_detour_step(struct perseas *p, uint64_t now);

/* When there is something to do at the latest. */
uint64_t ps_detour_due(const struct perseas *p);

/* What for to wait, where this mirror is being asked: fills *fd in. False: it is not. */
bool ps_detour_waits(const struct ps_mirror *m, struct pollfd *fd);

/* Gives up what is being asked: the session has ended, of which the question is. */
void ps_detour_drop(struct ps_mirror *m);

#endif
