/*
 * quorum_change.c - recomputes which mirrors count, after a change of the rosters. Opens and the
 * keeper call it.
 */
#include "quorum.h"

#include "nowait.h"

void ps_quorums_recompute(struct perseas *p)
{
	ps_assert_locked(p);
	if (p->is_open)
		ps_update_durable_seq(p);
	p->quorums[0] = ps_quorum_of_roster(p, p->roster);
	p->quorum_count = 1;
	if (p->next_roster)
		p->quorums[p->quorum_count++] = ps_quorum_of_roster(p, p->next_roster);
	p->member_count = (unsigned)p->roster->n_members;
	p->acks = p->roster->acks;
	assert(!p->is_change_decided || p->next_roster);
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		m->has_vote = false;
		for (unsigned q = 0; q < p->quorum_count; q++)
			m->has_vote |= p->quorums[q].set >> i & 1;
	}
}
