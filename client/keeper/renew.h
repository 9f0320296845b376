/*
 * renew.h - an owner that is open claims its mirrors again under a higher epoch, when another one
 * claimed some of them and went away (PROTOCOL.md, "Renewal").
 *
 * A claimer that dies leaves mirrors that are promised to it: they serve neither it nor this owner
 * (FENCED). A renewal is an open whose chosen state is the memory of this owner, with what is in
 * doubt: no transaction is sent from its beginning to its end, transactions that are open stay so.
 *
 * The keeper calls it, with admin. It fences nobody who lives, and goes on for no owner that
 * another one succeeded: such a handle is superseded, and stays so.
 */
#ifndef PERSEAS_CLIENT_RENEW_H
#define PERSEAS_CLIENT_RENEW_H

#include "../core/handle.h"

/* How the id of an owner begins that opens a store for salvage: where that one came, what was saved
 * is the store from then on, and the owner before must not go on. */
extern const char ps_salvage_mark[8];

/* One look, or one attempt, where a mirror is fenced and the time has come. True: the owner holds
 * no claims, so the keeper must take no mirror up, and try again later. */
bool ps_renew_step(struct perseas *p, uint64_t now);

/* Mirror m showed that this owner went back in time (reverted_owner.h), with an image at `at`: the
 * handle is fenced for good, and all its sessions end, since the mirrors would still take what it
 * sends. */
void ps_renew_went_back(struct perseas *p, const struct ps_mirror *m, const struct ps_standing *at);

/* Until when there is nothing to do for it: PS_NEVER when no mirror is fenced. */
uint64_t ps_renew_due(const struct perseas *p);

#endif
