/*
 * epoch.h - chooses the epoch of a claimer and brings mirrors close to it (I5). A mirror grants an
 * epoch that is at most PS_EPOCH_STEP above its promise.
 */
#ifndef PERSEAS_CLIENT_EPOCH_H
#define PERSEAS_CLIENT_EPOCH_H

#include "../core/handle.h"

/* Raises p->epoch to the highest promise of the probed mirrors that R of them can follow. Leaves
 * out mirrors that promised more, as if they were unreachable: their probe.code becomes
 * PERSEAS_ELIMIT. Returns the number of mirrors left out. */
unsigned ps_epoch_raise_to_promises(struct perseas *p);

/* Claims the mirror in steps until it is one step below p->epoch. Reports no failure: the claim
 * that follows does. `takeover`: the steps fence living owners. Does nothing if too many steps are
 * left. */
void ps_epoch_claim_in_steps(struct perseas *p, struct ps_mirror *m, bool takeover);

#endif
