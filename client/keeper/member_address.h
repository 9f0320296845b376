/*
 * member_address.h - detects that a mirror's address leads to another member of the roster.
 * session.c and renew.c check this before a claim: it would cut the other member's session, and a
 * copy would replace that member's image. Callers hold admin.
 */
#ifndef PERSEAS_CLIENT_MEMBER_ADDRESS_H
#define PERSEAS_CLIENT_MEMBER_ADDRESS_H

#include "../core/handle.h"

/* Returns PERSEAS_EUNREACHABLE with a sentence if the daemon on the mirror's connection is another
 * member: it has a session for another mirror, or shows another member's image. Otherwise returns
 * 0. `header`: the header that the daemon showed, or NULL if it has none. *other: the handle's
 * mirror for that member, or NULL. */
int ps_member_check_address(struct perseas *p, const struct ps_mirror *m,
                            const Perseas__Header *header, struct ps_mirror **other,
                            struct ps_error *error);

/* Exchanges the addresses of two mirrors, because the image of `other` was seen at the address of
 * `m`. Sessions that are up stay. If `other` has none, the keeper connects to its new address at
 * once. The roster stays the same, because it knows members by their images. */
void ps_member_swap_addresses(struct perseas *p, struct ps_mirror *m, struct ps_mirror *other);

#endif
