/*
 * quorum.h - sets of mirrors, and whether they are enough. A set has bit i for mirrors[i]. While
 * a change of the roster is not settled, what is enough must be so by both rosters.
 */
#ifndef PERSEAS_CLIENT_QUORUM_H
#define PERSEAS_CLIENT_QUORUM_H

#include "handle.h"

/* Takes up the rosters of the handle: who votes in which, by image id. */
void ps_quorum_renew(struct perseas *p);

/* A roster in terms of the handle's mirrors; it need not be one of the handle's. */
struct ps_quorum ps_quorum_of(const struct perseas *p, const Perseas__Roster *roster);

/* W of each roster: enough to hold a transaction. */
bool ps_quorum_acks(const struct perseas *p, uint32_t set);

/* Of the handle's rosters, the first one of which the set is not W; 0 where there is none. */
unsigned ps_quorum_short(const struct perseas *p, uint32_t set);

/* W of the roster that is settled: enough for it to count alone again. */
bool ps_quorum_settled(const struct perseas *p, uint32_t set);

/* W of the roster that is to be: the one that is not settled, else the one that is. */
bool ps_quorum_newest(const struct perseas *p, uint32_t set);

/* An open claims R of its roster's images and adopts on W; one of these it may have made anew. So
 * it touches at least T = min(n - 1, max(R, W)) that are as they were (n = 1: one). Is this set as
 * many? Before that it must adopt on none: its slot would count for more than what is acknowledged
 * by a roster that it does not see. Its roster is the next one where a change is decided. */
bool ps_quorum_touched(const struct perseas *p, uint32_t set);
unsigned ps_quorum_touches(const struct perseas *p); /* T */

/* Returns the mirrors that an open may write to before W of them hold the state: all, or, where a
 * change is decided, the members of the next roster ("Left unfinished" in PROTOCOL.md). */
uint32_t ps_quorum_decided(const struct perseas *p);

/* Returns true if the set is W of the rosters by which an open goes: of each one, or of the next
 * one alone where the change to it is decided. */
bool ps_quorum_adopted(const struct perseas *p, uint32_t set);

/* Returns true if an open may go on without mirror `m`, whose session broke: the keeper can make it
 * anew later with the mirrors of the set (I9). */
bool ps_quorum_spares(const struct perseas *p, uint32_t set, const struct ps_mirror *m);

/* Is a change that is recorded on this set seen by every open of the roster before it? It is on
 * n - T + 1. */
bool ps_quorum_seen(const struct perseas *p, uint32_t set);
/* Are all members of the settled roster in the set? */
bool ps_quorum_all(const struct perseas *p, uint32_t set);

/* Can there still be W of each roster, without those that are lost for good? Members that are not
 * among the handle's mirrors may come back. */
bool ps_quorum_possible(const struct perseas *p, uint32_t lost);

/* R of each roster: enough to know the newest state. */
bool ps_quorum_claims(const struct perseas *p, uint32_t set);

/* Enough, without mirror `but`, for it to be made anew (I9): max(W, R) of each roster, or all of
 * the others where those are fewer. Never where there is no other: nobody could tell then that the
 * owner was not fenced there before. */
bool ps_quorum_anew(const struct perseas *p, uint32_t set, const struct ps_mirror *but);

/* Returns true if the new mirror of a change that is not settled may be made anew: the set is
 * min(W, T) of the settled roster, so it meets the claims of every open that could complete the
 * change without having seen its mark. */
bool ps_quorum_anew_joint(const struct perseas *p, uint32_t set);

/* The same, for messages: how many of the newest roster are in the set, and R. */
unsigned ps_quorum_count(const struct perseas *p, uint32_t set);
unsigned ps_quorum_claimers(const struct perseas *p);

static inline uint32_t ps_bit(const struct perseas *p, const struct ps_mirror *m)
{
	return (uint32_t)1 << (m - p->mirrors);
}

void ps_roster_free(Perseas__Roster **roster); /* NULL inside is allowed */

#endif
