/*
 * roster.c - edits the rosters, records them on mirrors, and changes the ids of members. adopt.c,
 * change.c and the files of a whole copy call this. Nothing may rely on a roster before enough
 * mirrors have recorded it.
 */
#include "roster.h"

#include "../core/mirror.h"
#include "../core/quorum.h"
#include "rpc.h"
#include "../../proto/control/version.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

ProtobufCBinaryData ps_roster_key_for_message(struct perseas *p)
{
	const bool has = ps_store_level(p->roster, p->next_roster) > 0;

	return (ProtobufCBinaryData){ has ? PS_KEY_SIZE : 0, has ? p->key : NULL };
}

uint32_t ps_roster_readable_level(const struct perseas *p, const struct ps_mirror *m)
{
	if (!m->control)
		return 0;
	return p->env->ops->version ? ps_version_highest_level(p->env->ops->version(m->control))
	                            : PS_LEVEL_MAX;
}

void ps_roster_make_request(struct perseas *p, Perseas__RosterRequest *ask,
                            Perseas__Request *request)
{
	perseas__roster_request__init(ask);
	perseas__request__init(request);
	ask->roster = p->roster;
	ask->settled = true;
	ask->next = p->next_roster;
	ask->mark = p->is_change_decided;
	ask->key = ps_roster_key_for_message(p);
	request->body_case = PERSEAS__REQUEST__BODY_ROSTER;
	request->roster = ask;
}

uint32_t ps_roster_record_on_mirrors(struct perseas *p, uint32_t record_on)
{
	Perseas__RosterRequest ask;
	Perseas__Request request;

	ps_assert_admin(p);
	ps_roster_make_request(p, &ask, &request);
	return ps_ask_mirrors_and_wait(p, record_on, &request);
}

void ps_rosters_raise_version(struct perseas *p)
{
	ps_assert_admin(p);
	p->roster->epoch = p->epoch;
	p->roster->version++;
	if (!p->next_roster)
		return;
	p->next_roster->epoch = p->epoch;
	/* A next roster with other image ids must not pass for the one recorded before. */
	p->next_roster->version++;
	if (p->next_roster->version <= p->roster->version)
		p->next_roster->version = p->roster->version + 1;
	/* This owner may already have written records under this epoch. */
	if (p->next_roster->level > p->roster->level)
		p->next_roster->raised_epoch = p->epoch;
}

bool ps_roster_record_newer_than_unclaimed(struct perseas *p, uint32_t claimed_mirrors,
                                           uint32_t adopted_mirrors)
{
	if (p->next_roster || p->roster->epoch == p->epoch ||
	    ps_quorum_count_settled_members(p, claimed_mirrors) == p->member_count ||
	    !ps_quorum_is_r(p, claimed_mirrors))
		return true;
	ps_rosters_raise_version(p);
	return ps_quorum_is_w(p, ps_roster_record_on_mirrors(p, adopted_mirrors));
}

void ps_roster_settle(struct perseas *p)
{
	ps_assert_locked(p);
	assert(p->next_roster && p->is_change_decided);
	ps_roster_free(&p->roster);
	p->roster = p->next_roster;
	p->next_roster = NULL;
	p->is_change_decided = false;
	ps_quorums_recompute(p);
}

void ps_roster_mark_decided(struct perseas *p)
{
	ps_assert_locked(p);
	assert(p->next_roster);
	if (!p->is_change_decided)
		p->next_roster->version++;
	p->is_change_decided = true;
}

void ps_roster_drop_next(struct perseas *p)
{
	ps_assert_locked(p);
	assert(p->next_roster && !p->is_change_decided);
	p->roster->epoch = p->epoch;
	if (p->roster->version <= p->next_roster->version)
		p->roster->version = p->next_roster->version + 1;
	ps_roster_free(&p->next_roster);
	ps_quorums_recompute(p);
}

bool ps_roster_add_member(Perseas__Roster *roster, const char *address, const uint8_t *image_id)
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

void ps_roster_remove_member(Perseas__Roster *roster, const uint8_t *image_id)
{
	for (size_t k = 0; k < roster->n_members; k++) {
		if (!ps_id_equal(roster->members[k]->image_id, image_id))
			continue;
		perseas__member__free_unpacked(roster->members[k], NULL);
		roster->members[k] = roster->members[--roster->n_members];
		return;
	}
}

bool ps_roster_set_address(struct perseas *p, const uint8_t *image_id, const char *address)
{
	Perseas__Member *member = ps_roster_member(p->roster, image_id);
	Perseas__Member *there = ps_roster_member_at(p->roster, address);
	char *text = strdup(address);

	assert(member && !p->next_roster);
	if (!text)
		return false;
	if (there) {
		free(there->address);
		there->address = member->address;
	} else {
		free(member->address);
	}
	member->address = text;
	ps_rosters_raise_version(p);
	return true;
}

void ps_roster_set_image_id(struct perseas *p, struct ps_mirror *m, const uint8_t *image_id)
{
	Perseas__Member *member = ps_roster_member(p->roster, m->image_id);
	Perseas__Member *next = ps_roster_member(p->next_roster, m->image_id);

	if (member)
		memcpy(member->image_id.data, image_id, PS_ID_SIZE);
	if (next)
		memcpy(next->image_id.data, image_id, PS_ID_SIZE);
	/* own_image is about one image. A loaded image that gets its own id is still the same
	 * image; any other id is that of a new image, to which this owner wrote nothing yet. */
	if (!m->is_from_spill || memcmp(image_id, m->image_id_after_spill_load, PS_ID_SIZE) != 0)
		memset(m->own_image.written_epochs, 0, sizeof(m->own_image.written_epochs));
	else if (!memcmp(m->own_image.live_id, m->image_id, PS_ID_SIZE))
		memcpy(m->own_image.live_id, image_id, PS_ID_SIZE);
	memcpy(m->image_id, image_id, PS_ID_SIZE);
	/* A mirror that joins is in neither roster. If they got a higher version all the same, its
	 * image could be the only one with a newer roster, and a newer roster counts as decided if
	 * this owner ends before it is. */
	if (member || next)
		ps_rosters_raise_version(p);
}

bool ps_roster_record_image_id(struct perseas *p, struct ps_mirror *m, const uint8_t *image_id,
                               uint32_t record_on, uint32_t also_know)
{
	assert(!p->is_open);
	ps_roster_set_image_id(p, m, image_id);
	return ps_quorum_is_w_for_open(p, ps_roster_record_on_mirrors(p, record_on) | also_know);
}

uint32_t ps_roster_mirrors_to_tell_last(const struct perseas *p)
{
	uint32_t set = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (m->is_from_spill &&
		    !memcmp(m->image_id, m->image_id_after_spill_load, PS_ID_SIZE))
			set |= ps_mirror_bit(p, m);
	}
	return set;
}

bool ps_roster_record_loaded_id(struct perseas *p, struct ps_mirror *m, uint32_t record_on)
{
	const uint32_t self = ps_mirror_bit(p, m);

	m->is_from_spill = !ps_roster_record_image_id(p, m, m->image_id_after_spill_load,
	                                              record_on & ~self, self) ||
	                   ps_roster_record_on_mirrors(p, self) != self;
	return !m->is_from_spill;
}
