#include "roster.h"

#include "mirror.h"
#include "quorum.h"

#include <stdlib.h>
#include <string.h>

uint32_t ps_roster_record(struct perseas *p, uint32_t on)
{
	Perseas__RosterRequest ask = PERSEAS__ROSTER_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;

	ask.roster = p->roster;
	ask.settled = true;
	ask.next = p->next_roster;
	request.body_case = PERSEAS__REQUEST__BODY_ROSTER;
	request.roster = &ask;
	return ps_ask_set(p, on, &request);
}

void ps_roster_stamp(struct perseas *p)
{
	p->roster->epoch = p->epoch;
	p->roster->version++;
	if (!p->next_roster)
		return;
	p->next_roster->epoch = p->epoch;
	if (p->next_roster->version <= p->roster->version)
		p->next_roster->version = p->roster->version + 1;
}

void ps_roster_settle(struct perseas *p)
{
	ps_roster_free(&p->roster);
	p->roster = p->next_roster;
	p->next_roster = NULL;
	ps_quorum_renew(p);
}

bool ps_roster_add(Perseas__Roster *roster, const char *address, const uint8_t *image_id)
{
	Perseas__Member **members = realloc(roster->members,
	                                    (roster->n_members + 1) * sizeof(*members));
	Perseas__Member *member;

	if (!members)
		return false;
	roster->members = members;
	member = malloc(sizeof(*member));
	if (!member)
		return false;
	perseas__member__init(member);
	members[roster->n_members++] = member;
	member->address = strdup(address);
	member->image_id.data = malloc(PS_ID_SIZE);
	if (!member->address || !member->image_id.data)
		return false;
	member->image_id.len = PS_ID_SIZE;
	memcpy(member->image_id.data, image_id, PS_ID_SIZE);
	return true;
}

void ps_roster_remove(Perseas__Roster *roster, const uint8_t *image_id)
{
	for (size_t k = 0; k < roster->n_members; k++) {
		if (!ps_id_equal(roster->members[k]->image_id, image_id))
			continue;
		perseas__member__free_unpacked(roster->members[k], NULL);
		roster->members[k] = roster->members[--roster->n_members];
		return;
	}
}

void ps_roster_replace(struct perseas *p, struct ps_mirror *m, const uint8_t *image_id)
{
	Perseas__Member *member = ps_roster_member(p->roster, m->image_id);
	Perseas__Member *next = ps_roster_member(p->next_roster, m->image_id);

	if (member)
		memcpy(member->image_id.data, image_id, PS_ID_SIZE);
	if (next)
		memcpy(next->image_id.data, image_id, PS_ID_SIZE);
	memcpy(m->image_id, image_id, PS_ID_SIZE);
	ps_roster_stamp(p);
}

bool ps_roster_rename(struct perseas *p, struct ps_mirror *m, const uint8_t *image_id, uint32_t on,
                      uint32_t with)
{
	ps_roster_replace(p, m, image_id);
	return ps_quorum_acks(p, ps_roster_record(p, on) | with);
}

bool ps_roster_rename_loaded(struct perseas *p, struct ps_mirror *m, uint32_t on)
{
	const uint32_t self = ps_bit(p, m);

	m->loaded = !ps_roster_rename(p, m, m->loaded_id, on & ~self, self) ||
	            ps_roster_record(p, self) != self;
	return !m->loaded;
}
