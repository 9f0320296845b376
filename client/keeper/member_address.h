/*
 * member_address.h - whether the address of a mirror leads to another member of the roster, by what
 * the daemon there told. Whoever is about to claim asks: a claim would cut the other member's
 * session, and a copy would replace its image. The keeper calls it, with admin.
 */
#ifndef PERSEAS_CLIENT_MEMBER_ADDRESS_H
#define PERSEAS_CLIENT_MEMBER_ADDRESS_H

#include "../core/handle.h"

/*
 * Returns PERSEAS_EUNREACHABLE, with a sentence, if the daemon that answered on the mirror's
 * connection has a session for another mirror, or shows another member's image; else 0. header:
 * what the daemon told of the store, NULL: it has none. *other becomes that mirror; NULL if none of
 * the handle's is that member.
 */
int ps_elsewhere_check(struct perseas *p, const struct ps_mirror *m, const Perseas__Header *header,
                       struct ps_mirror **other, struct ps_error *error);

/*
 * Exchanges the addresses of two mirrors, since the image of `other` was seen at the address of
 * `m`. Sessions that are up stay as they are; without one `other` is tried there at once. The
 * roster is not changed, since members are known by their images.
 */
void ps_elsewhere_swap(struct perseas *p, struct ps_mirror *m, struct ps_mirror *other);

#endif
