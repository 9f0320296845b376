/*
 * quorum.h - how many mirrors of a roster are enough, by PROTOCOL.md, for a commit, for an open,
 * and to remake a lost image. The owner, the command and judge.c call it. It must never look at
 * an image.
 */
#ifndef PERSEAS_PROTO_QUORUM_H
#define PERSEAS_PROTO_QUORUM_H

#include <stdbool.h>
#include <stdint.h>

/* A roster, as a set of mirrors. The caller numbers them. */
struct ps_quorum {
	uint32_t set;           /* bit i: mirror i is a member */
	unsigned members, acks; /* n and W */
};

/* Returns R, the number of members that a claim must reach. */
static inline unsigned ps_quorum_r(const struct ps_quorum *quorum)
{
	return quorum->members - quorum->acks + 1;
}

/* Returns max(R, W): any set of that many members, if they are reachable and have whole images,
 * suffices to open the store and to commit. */
unsigned ps_quorum_r_and_w(const struct ps_quorum *quorum);

/* Returns T, the number of members that an open must reach with their images unchanged: min(n - 1,
 * max(R, W)), or 1 if n = 1. */
unsigned ps_quorum_t(const struct ps_quorum *quorum);

/* Returns the W of a roster with `members` mirrors if a change of the roster does not set it: a
 * majority stays a majority, and any other W stays the same if possible. */
unsigned ps_quorum_acks_after_change(const struct ps_quorum *before, unsigned members);

/* Returns the number of members in the set. */
static inline unsigned ps_quorum_count_members(const struct ps_quorum *quorum, uint32_t set)
{
	return (unsigned)__builtin_popcount(quorum->set & set);
}

/* Returns true if mirror `but` may be remade while the other mirrors in `set` hold the claim
 * (I9): it takes max(R, W) of them, or all others if these are fewer, and at least one. */
bool ps_quorum_allows_remake(const struct ps_quorum *quorum, uint32_t set, unsigned but);

#endif
