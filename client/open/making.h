/*
 * making.h - a store's making, from the first Create to the last Settle: one that was decided is
 * completed, one that was not is withdrawn. A making is decided when the first mirror of its roster
 * has settled; all steps that end it go through the roster in its order.
 */
#ifndef PERSEAS_CLIENT_MAKING_H
#define PERSEAS_CLIENT_MAKING_H

#include "../core/handle.h"

/* Settle, with the store of this id, at one mirror. 0 or why not. */
int ps_making_settle_at(struct perseas *p, struct ps_mirror *m, const uint8_t *store_id,
                        struct ps_error *error);

/* Completes the making that p->store_id names, which some mirror that was probed has settled: asks
 * all that have an image of it, up to the first that does not say yes. The headers of those that
 * did say so then, and the others have an error. */
void ps_making_complete(struct perseas *p);

/* Withdraws a making that somebody left, or is still at: takes it from the mirrors of its roster.
 * *decided: it was too late, and what is left of it was settled. 0, or an error of the handle: one
 * of its mirrors does not answer, and nothing was taken from those after it. */
int ps_making_withdraw(struct perseas *p, const uint8_t *store_id, const Perseas__Roster *roster,
                       bool *decided);

#endif
