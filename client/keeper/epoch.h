/*
 * epoch.h - which epoch a claimer takes, and how it gets there (I5). A mirror grants an epoch that
 * is at most PS_EPOCH_STEP above its promise.
 */
#ifndef PERSEAS_CLIENT_EPOCH_H
#define PERSEAS_CLIENT_EPOCH_H

#include "../core/handle.h"

/*
 * Of mirrors that were probed: p->epoch becomes the highest promise that R of them can follow, if
 * it was lower. A mirror that promised more is left out, as if it could not be reached: its
 * found.code becomes PERSEAS_ELIMIT. Returns how many there are.
 */
unsigned ps_epoch_choose(struct perseas *p);

/*
 * Claims the mirror step by step until one step is left to p->epoch. What does not succeed is told
 * by the claim that follows. takeover: an owner that is open fences living ones by these steps.
 * Does nothing if too many steps are left, or only one.
 */
void ps_epoch_approach(struct perseas *p, struct ps_mirror *m, bool takeover);

#endif
