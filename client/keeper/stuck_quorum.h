/*
 * stuck_quorum.h - recognizes an owner with fewer than W mirrors that can reach W only by claiming
 * all mirrors again (renew.h).
 */
#ifndef PERSEAS_CLIENT_STUCK_QUORUM_H
#define PERSEAS_CLIENT_STUCK_QUORUM_H

#include "../core/handle.h"

/* Returns true if fewer than W mirrors are whole, all other voters were tried, and at least one of
 * them could be copied to but would not count then (I9). */
bool ps_quorum_is_stuck(struct perseas *p);

/* Returns true if a mirror that this owner did not adopt in this epoch would count after a copy,
 * because enough other mirrors hold this owner's claim (I9). Caller holds p->lock. */
bool ps_image_would_count_after_copy(struct perseas *p, const struct ps_mirror *m);

#endif
