/*
 * making.h - the making of a store: its creation on all members of a roster, from the first Create
 * to the last Settle (PROTOCOL.md, "Create"). A making is decided when the first member of its
 * roster has settled. A decided making is completed, an undecided one is withdrawn. Every step that
 * ends a making visits the members in the roster's order.
 */
#ifndef PERSEAS_CLIENT_MAKING_H
#define PERSEAS_CLIENT_MAKING_H

#include "../core/handle.h"

/* Sends Settle for the store with this id to mirror `m`. Returns 0, or an error code with
 * *error. */
int ps_making_settle_at_mirror(struct perseas *p, struct ps_mirror *m, const uint8_t *store_id,
                               struct ps_error *error);

/* Completes the making of p->store_id, which at least one probed mirror has settled. Sends
 * Settle to every mirror that has an image of it, until the first that does not agree. Mirrors
 * that agreed then have a consistent header in `probe`; mirrors that are still `creating` have
 * an error there. */
void ps_making_complete(struct perseas *p);

/* Withdraws an unfinished making, whose creator may still be at work, by sending Abandon to the
 * members of its roster. Returns 0. Sets *decided to true if the making was already decided; then
 * this call has settled it instead. Otherwise returns an error code, because a member did not
 * answer; members after that one in the roster were not changed. */
int ps_making_withdraw(struct perseas *p, const uint8_t *store_id, const Perseas__Roster *roster,
                       bool *decided);

#endif
