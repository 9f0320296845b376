#include "quorum.h"

#include <string.h>

Perseas__Member *ps_roster_member(const Perseas__Roster *roster, const uint8_t *image_id)
{
	for (size_t k = 0; roster && k < roster->n_members; k++)
		if (ps_id_equal(roster->members[k]->image_id, image_id))
			return roster->members[k];
	return NULL;
}

void ps_roster_free(Perseas__Roster **roster)
{
	if (*roster)
		perseas__roster__free_unpacked(*roster, NULL);
	*roster = NULL;
}

bool ps_roster_newer(const Perseas__Roster *roster, const Perseas__Roster *other)
{
	if (roster->epoch != other->epoch)
		return roster->epoch > other->epoch;
	return roster->version > other->version;
}

static struct ps_quorum quorum_of(const struct perseas *p, const Perseas__Roster *roster)
{
	struct ps_quorum quorum = { 0, (unsigned)roster->n_members, roster->acks };

	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].known && ps_roster_member(roster, p->mirrors[i].image_id))
			quorum.set |= (uint32_t)1 << i;
	return quorum;
}

void ps_quorum_renew(struct perseas *p)
{
	p->quorums[0] = quorum_of(p, p->roster);
	p->quorum_count = 1;
	if (p->next_roster)
		p->quorums[p->quorum_count++] = quorum_of(p, p->next_roster);
	p->members = (unsigned)p->roster->n_members;
	p->acks = p->roster->acks;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		m->votes = false;
		for (unsigned q = 0; q < p->quorum_count; q++)
			m->votes |= p->quorums[q].set >> i & 1;
	}
}

static unsigned count(const struct ps_quorum *quorum, uint32_t set)
{
	unsigned count = 0;

	/* A few steps, where a call for processors of any age takes some twenty. */
	for (set &= quorum->set; set; set &= set - 1)
		count++;
	return count;
}

bool ps_quorum_acks(const struct perseas *p, uint32_t set)
{
	for (unsigned q = 0; q < p->quorum_count; q++)
		if (count(&p->quorums[q], set) < p->quorums[q].acks)
			return false;
	return true;
}

bool ps_quorum_newest(const struct perseas *p, uint32_t set)
{
	const struct ps_quorum *quorum = &p->quorums[p->quorum_count - 1];

	return count(quorum, set) >= quorum->acks;
}

unsigned ps_quorum_touches(const struct perseas *p)
{
	const struct ps_quorum *quorum = &p->quorums[0];
	unsigned claimers = quorum->members - quorum->acks + 1;
	unsigned touched = quorum->acks > claimers ? quorum->acks : claimers;

	return touched > quorum->members - 1 && quorum->members > 1 ? quorum->members - 1 : touched;
}

bool ps_quorum_touched(const struct perseas *p, uint32_t set)
{
	return count(&p->quorums[0], set) >= ps_quorum_touches(p);
}

bool ps_quorum_seen(const struct perseas *p, uint32_t set)
{
	return count(&p->quorums[0], set) > p->quorums[0].members - ps_quorum_touches(p);
}

bool ps_quorum_possible(const struct perseas *p, uint32_t lost)
{
	for (unsigned q = 0; q < p->quorum_count; q++) {
		const struct ps_quorum *quorum = &p->quorums[q];

		if (quorum->members - count(quorum, lost) < quorum->acks)
			return false;
	}
	return true;
}

bool ps_quorum_claims(const struct perseas *p, uint32_t set)
{
	for (unsigned q = 0; q < p->quorum_count; q++)
		if (count(&p->quorums[q], set) < p->quorums[q].members - p->quorums[q].acks + 1)
			return false;
	return true;
}

bool ps_quorum_anew(const struct perseas *p, uint32_t set, const struct ps_mirror *but)
{
	set &= ~ps_bit(p, but);
	for (unsigned q = 0; q < p->quorum_count; q++) {
		const struct ps_quorum *quorum = &p->quorums[q];
		unsigned claimers = quorum->members - quorum->acks + 1;
		unsigned need = quorum->acks > claimers ? quorum->acks : claimers;
		unsigned others = quorum->members - (quorum->set >> (but - p->mirrors) & 1);

		if (!others || count(quorum, set) < (need < others ? need : others))
			return false;
	}
	return true;
}

unsigned ps_quorum_count(const struct perseas *p, uint32_t set)
{
	return count(&p->quorums[0], set);
}

unsigned ps_quorum_claimers(const struct perseas *p)
{
	return p->quorums[0].members - p->quorums[0].acks + 1;
}
