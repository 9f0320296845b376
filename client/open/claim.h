/*
 * claim.h - claims of an attempt to open a store (I5, I6; attempt.h).
 */
#ifndef PERSEAS_CLIENT_CLAIM_H
#define PERSEAS_CLIENT_CLAIM_H

#include "../core/handle.h"

/* Claims every mirror that has the store, with an epoch above all promises. */
int ps_claim(struct perseas *p);

/* R of those examined, and all that were adopted, must still be claimed over sessions that never
 * broke. One that broke means that another claimed it, or that it lost what it had. */
int ps_confirm(struct perseas *p);

/* Is a mirror whose session broke still claimed by this owner, with the image that was examined? It
 * is claimed again with the same epoch, and has no data path. */
bool ps_claim_stands(struct perseas *p, struct ps_mirror *m);

#endif
