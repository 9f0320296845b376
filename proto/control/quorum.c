/*
 * quorum.c - see quorum.h.
 */
#include "quorum.h"

#include <assert.h>

unsigned ps_quorum_r_and_w(const struct ps_quorum *quorum)
{
	const unsigned r = ps_quorum_r(quorum);

	assert(quorum->acks >= 1 && quorum->acks <= quorum->members);
	return quorum->acks > r ? quorum->acks : r;
}

unsigned ps_quorum_t(const struct ps_quorum *quorum)
{
	const unsigned most = ps_quorum_r_and_w(quorum), others = quorum->members - 1;

	return others && most > others ? others : most;
}

unsigned ps_quorum_acks_after_change(const struct ps_quorum *before, unsigned members)
{
	const bool is_majority = before->acks == before->members / 2 + 1;

	return is_majority || before->acks > members ? members / 2 + 1 : before->acks;
}

bool ps_quorum_allows_remake(const struct ps_quorum *quorum, uint32_t set, unsigned but)
{
	const unsigned need = ps_quorum_r_and_w(quorum);
	const unsigned others = quorum->members - (quorum->set >> but & 1);

	set &= ~((uint32_t)1 << but);
	return others && ps_quorum_count_members(quorum, set) >= (need < others ? need : others);
}
