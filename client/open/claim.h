/*
 * claim.h - claims the mirrors for an attempt to open a store (I5, I6; attempt.h).
 */
#ifndef PERSEAS_CLIENT_CLAIM_H
#define PERSEAS_CLIENT_CLAIM_H

#include "../core/handle.h"

/* Claims every mirror that has the store, with an epoch above every promise that was seen. Returns
 * 0, PS_AGAIN, or an error code. */
int ps_claim_store(struct perseas *p);

/* Returns 0 if every claimed mirror still holds this owner's claim over the session on which it was
 * granted. Returns PS_AGAIN if a session broke, because another owner may have claimed that mirror,
 * or the mirror may have lost its memory. */
int ps_check_claims_still_held(struct perseas *p);

/* Connects again to a mirror whose session broke, and repeats the claim with the same epoch.
 * Returns true if the mirror granted it and still has the image that this attempt examined. The
 * mirror then has no data path. */
bool ps_claim_repeat(struct perseas *p, struct ps_mirror *m);

#endif
