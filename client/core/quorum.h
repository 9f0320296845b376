/*
 * quorum.h - sets of mirrors, and whether they are a quorum. Bit i of a set stands for mirrors[i].
 * While a roster change is not settled, a set must be a quorum of both rosters.
 */
#ifndef PERSEAS_CLIENT_QUORUM_H
#define PERSEAS_CLIENT_QUORUM_H

#include "handle.h"

/* Recomputes the quorums, by image id, after the handle's rosters changed. Caller holds p->lock. */
void ps_quorums_recompute(struct perseas *p);

/* Returns a roster as a quorum over the handle's mirrors. It need not be one of the handle's
 * rosters. */
struct ps_quorum ps_quorum_of_roster(const struct perseas *p, const Perseas__Roster *roster);

/* Returns true if the set is W of each roster: enough to hold a transaction. */
bool ps_quorum_is_w(const struct perseas *p, uint32_t set);

/* Returns the index in p->quorums of the first roster of which the set is not W; 0 if the set is W
 * of each. */
unsigned ps_quorum_first_roster_without_w(const struct perseas *p, uint32_t set);

/* Returns true if the set is W of the settled roster, which is enough for it to count alone
 * again. */
bool ps_quorum_is_w_of_settled_roster(const struct perseas *p, uint32_t set);

/* Returns true if the set is W of the newest roster: next_roster, or the settled one if there is
 * none. */
bool ps_quorum_is_w_of_newest_roster(const struct perseas *p, uint32_t set);

/* ps_quorum_is_t returns true if the set has at least T mirrors of the roster that an open goes by:
 * the next one if the change to it is decided. ps_quorum_t_count returns that T. An open claims R
 * of its roster's images and adopts on W, and it may have made one of these anew; so it touches at
 * least T = min(n - 1, max(R, W)) unchanged images (n = 1: one). Below that it must adopt on none:
 * its slot would count for more than what a roster that it does not see acknowledged. */
bool ps_quorum_is_t(const struct perseas *p, uint32_t set);
unsigned ps_quorum_t_count(const struct perseas *p);

/* Returns the mirrors that an open may write to before W of them hold the state: all mirrors;
 * or, if a roster change is decided, the members of the next roster ("Left unfinished" in
 * PROTOCOL.md). */
uint32_t ps_quorum_writable_by_open(const struct perseas *p);

/* Returns true if the set is W of the rosters that an open goes by: of each roster, or of the next
 * one alone if the change to it is decided. */
bool ps_quorum_is_w_for_open(const struct perseas *p, uint32_t set);

/* Returns true if an open may go on without mirror `m`, whose session broke, because the keeper can
 * make it anew later with the mirrors of the set (I9). */
bool ps_quorum_open_can_spare_mirror(const struct perseas *p, uint32_t set,
                                     const struct ps_mirror *m);

/* Returns true if every open of the settled roster sees a change that is recorded on this set: it
 * has n - T + 1 of its members. */
bool ps_quorum_every_open_sees(const struct perseas *p, uint32_t set);
/* Returns true if all members of the settled roster are in the set. */
bool ps_quorum_has_all_members(const struct perseas *p, uint32_t set);

/* Returns true if W of each roster can still be reached without the mirrors in `lost`. Members that
 * are not among the handle's mirrors may come back. */
bool ps_quorum_is_w_possible_without(const struct perseas *p, uint32_t lost);

/* Returns true if the set is R of each roster: enough to know the newest state. */
bool ps_quorum_is_r(const struct perseas *p, uint32_t set);

/* Returns true if the set is enough for mirror `remade_mirror`, which is not counted, to be made
 * anew (I9): max(W, R) of each roster, or all other members if those are fewer. Never true without
 * another member, since then nothing could show that the owner was not fenced there before. */
bool ps_quorum_can_remake_mirror(const struct perseas *p, uint32_t set,
                                 const struct ps_mirror *remade_mirror);

/* Returns true if the new mirror of an unsettled change may be made anew: the set is min(W, T) of
 * the settled roster, so it meets the claims of every open that could complete the change without
 * having seen its mark. */
bool ps_quorum_can_remake_joining_mirror(const struct perseas *p, uint32_t set);

/* For messages: ps_quorum_count_settled_members returns how many members of the settled roster are
 * in the set, and ps_quorum_r_of_settled_roster returns the R of that roster. */
unsigned ps_quorum_count_settled_members(const struct perseas *p, uint32_t set);
unsigned ps_quorum_r_of_settled_roster(const struct perseas *p);

static inline uint32_t ps_mirror_bit(const struct perseas *p, const struct ps_mirror *m)
{
	return (uint32_t)1 << (m - p->mirrors);
}

void ps_roster_free(Perseas__Roster **roster); /* accepts a NULL roster */

#endif
