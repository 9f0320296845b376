/*
 * renew.h - an open owner claims its mirrors again under a higher epoch, after another owner
 * claimed some of them and went away (PROTOCOL.md, "Renewal").
 *
 * Mirrors promised to a claimer that died serve neither the claimer nor this owner: they are
 * FENCED. A renewal is an open that chooses the memory of this owner as the state of the store,
 * including what is in doubt. No transaction is sent during a renewal. Open transactions stay open.
 *
 * The keeper calls this and holds admin. A renewal never fences a living owner. It never succeeds
 * for an owner that another owner has succeeded: that handle is superseded for good.
 */
#ifndef PERSEAS_CLIENT_RENEW_H
#define PERSEAS_CLIENT_RENEW_H

#include "../core/handle.h"

/* The first bytes of the id of an owner that opened a store for salvage. Once such an owner has
 * claimed a mirror, what it saved is the store, and an earlier owner must not go on. */
extern const char ps_salvage_mark[8];

/* Renews the claims if that is needed and the next try is due. Returns true if the owner holds
 * no claims afterwards. Then the keeper must take up no session, and call this again later. */
bool ps_renew_step(struct perseas *p, uint64_t now);

/* Fences the handle for good, and ends all its sessions, because mirror `m` holds an image at `at`
 * that shows that this owner was reverted (reverted_owner.h). The mirrors would still take what
 * this owner sends. */
void ps_renew_fence_reverted_handle(struct perseas *p, const struct ps_mirror *m,
                                    const struct ps_image_position *at);

/* Returns when the next try to renew the claims is due, or PS_NEVER if no renewal is needed. */
uint64_t ps_renew_due_at(const struct perseas *p);

#endif
