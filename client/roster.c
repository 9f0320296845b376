#include "roster.h"

#include "mirror.h"
#include "quorum.h"

#include <string.h>

/* Records the handle's rosters on the mirrors of a set; those that took them. */
static uint32_t record(struct perseas *p, uint32_t on)
{
	Perseas__RosterRequest ask = PERSEAS__ROSTER_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_round round;
	uint32_t took = 0;

	ask.roster = p->roster;
	ask.settled = true;
	ask.next = p->next_roster;
	request.body_case = PERSEAS__REQUEST__BODY_ROSTER;
	request.roster = &ask;
	memset(round.errors, 0, sizeof(round.errors));
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		round.ask[i] = on >> i & 1;
		round.requests[i] = &request;
		round.replies[i] = NULL;
	}
	ps_round_run(p, &round, ps_answer_by(p));
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (round.replies[i])
			took |= (uint32_t)1 << i;
	ps_round_free(&round);
	return took;
}

static void stamp(struct perseas *p)
{
	p->roster->epoch = p->epoch;
	p->roster->version++;
	if (!p->next_roster)
		return;
	p->next_roster->epoch = p->epoch;
	if (p->next_roster->version <= p->roster->version)
		p->next_roster->version = p->roster->version + 1;
}

bool ps_roster_rename(struct perseas *p, struct ps_mirror *m, const uint8_t *image_id,
                      uint32_t on, uint32_t with)
{
	Perseas__Member *member = ps_roster_member(p->roster, m->image_id);
	Perseas__Member *next = ps_roster_member(p->next_roster, m->image_id);

	if (member)
		memcpy(member->image_id.data, image_id, PS_ID_SIZE);
	if (next)
		memcpy(next->image_id.data, image_id, PS_ID_SIZE);
	memcpy(m->image_id, image_id, PS_ID_SIZE);
	stamp(p);
	return ps_quorum_acks(p, record(p, on) | with);
}
