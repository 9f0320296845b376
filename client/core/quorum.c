/*
 * quorum.c - counts sets of mirrors by the rosters in force. Callers that need to know whether
 * mirrors are a quorum ask here, under the lock. It knows nothing of links, and changes nothing.
 */
#include "quorum.h"

#include <string.h>

void ps_roster_free(Perseas__Roster **roster)
{
	if (*roster)
		perseas__roster__free_unpacked(*roster, NULL);
	*roster = NULL;
}

struct ps_quorum ps_quorum_of_roster(const struct perseas *p, const Perseas__Roster *roster)
{
	struct ps_quorum quorum = { 0, (unsigned)roster->n_members, roster->acks };

	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].is_image_in_roster &&
		    ps_roster_member(roster, p->mirrors[i].image_id))
			quorum.set |= (uint32_t)1 << i;
	return quorum;
}

static unsigned count_members(const struct ps_quorum *quorum, uint32_t set)
{
	unsigned count = 0;

	/* A loop over the few bits is faster than the library call that portable code gets for
	 * popcount. */
	for (set &= quorum->set; set; set &= set - 1)
		count++;
	return count;
}

bool ps_quorum_is_w(const struct perseas *p, uint32_t set)
{
	for (unsigned q = 0; q < p->quorum_count; q++)
		if (count_members(&p->quorums[q], set) < p->quorums[q].acks)
			return false;
	return true;
}

unsigned ps_quorum_first_roster_without_w(const struct perseas *p, uint32_t set)
{
	for (unsigned q = 0; q < p->quorum_count; q++)
		if (count_members(&p->quorums[q], set) < p->quorums[q].acks)
			return q;
	return 0;
}

bool ps_quorum_is_w_of_settled_roster(const struct perseas *p, uint32_t set)
{
	return count_members(&p->quorums[0], set) >= p->quorums[0].acks;
}

bool ps_quorum_is_w_of_newest_roster(const struct perseas *p, uint32_t set)
{
	const struct ps_quorum *quorum = &p->quorums[p->quorum_count - 1];

	return count_members(quorum, set) >= quorum->acks;
}

/* Returns the roster that an open goes by: the next one if the change to it is decided. */
static const struct ps_quorum *quorum_of_newest_decided_roster(const struct perseas *p)
{
	assert(p->quorum_count == (p->next_roster ? 2 : 1) &&
	       (!p->is_change_decided || p->next_roster));
	return &p->quorums[p->is_change_decided ? p->quorum_count - 1 : 0];
}

unsigned ps_quorum_t_count(const struct perseas *p)
{
	return ps_quorum_t(quorum_of_newest_decided_roster(p));
}

bool ps_quorum_is_t(const struct perseas *p, uint32_t set)
{
	return count_members(quorum_of_newest_decided_roster(p), set) >= ps_quorum_t_count(p);
}

uint32_t ps_quorum_writable_by_open(const struct perseas *p)
{
	return p->is_change_decided ? quorum_of_newest_decided_roster(p)->set : UINT32_MAX;
}

bool ps_quorum_is_w_for_open(const struct perseas *p, uint32_t set)
{
	return p->is_change_decided ? ps_quorum_is_w_of_newest_roster(p, set)
	                            : ps_quorum_is_w(p, set);
}

bool ps_quorum_every_open_sees(const struct perseas *p, uint32_t set)
{
	const struct ps_quorum *old = &p->quorums[0];

	return count_members(old, set) > old->members - ps_quorum_t(old);
}

bool ps_quorum_has_all_members(const struct perseas *p, uint32_t set)
{
	return count_members(&p->quorums[0], set) == p->quorums[0].members;
}

bool ps_quorum_is_w_possible_without(const struct perseas *p, uint32_t lost)
{
	for (unsigned q = 0; q < p->quorum_count; q++) {
		const struct ps_quorum *quorum = &p->quorums[q];

		if (quorum->members - count_members(quorum, lost) < quorum->acks)
			return false;
	}
	return true;
}

bool ps_quorum_is_r(const struct perseas *p, uint32_t set)
{
	for (unsigned q = 0; q < p->quorum_count; q++)
		if (count_members(&p->quorums[q], set) < ps_quorum_r(&p->quorums[q]))
			return false;
	return true;
}

bool ps_quorum_can_remake_mirror(const struct perseas *p, uint32_t set,
                                 const struct ps_mirror *remade_mirror)
{
	for (unsigned q = 0; q < p->quorum_count; q++)
		if (!ps_quorum_allows_remake(&p->quorums[q], set,
		                             (unsigned)(remade_mirror - p->mirrors)))
			return false;
	return true;
}

bool ps_quorum_can_remake_joining_mirror(const struct perseas *p, uint32_t set)
{
	const struct ps_quorum *old = &p->quorums[0];
	const unsigned t = ps_quorum_t(old);

	return count_members(old, set) >= (old->acks < t ? old->acks : t);
}

bool ps_quorum_open_can_spare_mirror(const struct perseas *p, uint32_t set,
                                     const struct ps_mirror *m)
{
	return p->is_change_decided ? ps_quorum_allows_remake(quorum_of_newest_decided_roster(p),
	                                                      set, (unsigned)(m - p->mirrors))
	                            : ps_quorum_can_remake_mirror(p, set, m);
}

unsigned ps_quorum_count_settled_members(const struct perseas *p, uint32_t set)
{
	return count_members(&p->quorums[0], set);
}

unsigned ps_quorum_r_of_settled_roster(const struct perseas *p)
{
	return ps_quorum_r(&p->quorums[0]);
}
