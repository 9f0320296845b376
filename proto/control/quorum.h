/*
 * quorum.h - how many mirrors of a roster are enough, by PROTOCOL.md: for a commit, for an open,
 * and to make a lost image anew. The owner, the command and judge.c call it. It must never look at
 * an image.
 */
#ifndef PERSEAS_PROTO_QUORUM_H
#define PERSEAS_PROTO_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

/* A roster as a set of the mirrors that its user numbers. */
struct ps_quorum {
	uint32_t set;           /* bit i: mirror i is a member */
	unsigned members, acks; /* n, W */
};

/* Returns R, the number of members that a claim must reach. */
static inline unsigned ps_quorum_r(const struct ps_quorum *quorum)
{
	return quorum->members - quorum->acks + 1;
}

/* Returns T, the least number of members that an open touches as they are: min(n - 1, max(R, W)),
 * or 1 if n = 1. */
unsigned ps_quorum_t(const struct ps_quorum *quorum);

/* Returns W after a change of the roster to `members` mirrors that names no W: a majority stays a
 * majority, and any other W stays as it is while it fits. */
unsigned ps_quorum_acks_after(const struct ps_quorum *before, unsigned members);

/* Returns the number of members in the set. */
static inline unsigned ps_quorum_members(const struct ps_quorum *quorum, uint32_t set)
{
	return (unsigned)__builtin_popcount(quorum->set & set);
}

/* May mirror `but` be made anew while the others of the set hold the claim (I9)? By max(R, W) of
 * this roster, or all others where these are fewer; never where there is no other. */
bool ps_quorum_remakes(const struct ps_quorum *quorum, uint32_t set, unsigned but);

#endif
