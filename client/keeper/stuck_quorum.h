/*
 * stuck_quorum.h - an owner that has too few mirrors for W, and can have W only by claiming all of
 * them again (renew.h).
 */
#ifndef PERSEAS_CLIENT_STUCK_QUORUM_H
#define PERSEAS_CLIENT_STUCK_QUORUM_H

#include "../core/handle.h"

/* Returns true if fewer than W mirrors are whole, each of the others was tried, and one of these
 * could be copied to, but would not count then (I9). */
bool ps_stuck(struct perseas *p);

/* Returns true if a mirror that this owner did not adopt in this epoch would count after a copy:
 * enough others hold the claim to vouch for this owner (I9). Locked. */
bool ps_stuck_counts(const struct perseas *p, const struct ps_mirror *m);

#endif
