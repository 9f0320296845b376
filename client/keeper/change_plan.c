/*
 * change_plan.c - plans who leaves the roster, who joins it, and W afterwards (change_plan.h). A
 * member that leaves is found by its address, and need not be a mirror of this handle.
 */
#include "change_plan.h"

#include "change_admission.h"
#include "member_address.h"
#include "../core/mirror.h"
#include "../core/quorum.h"
#include "roster.h"
#include "../../proto/base/sha256_tls.h"
#include "../../proto/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the handle's mirror for this member, or NULL. */
static struct ps_mirror *mirror_of_member(struct perseas *p, const Perseas__Member *member)
{
	for (unsigned i = 0; member && i < p->mirror_count; i++)
		if (p->mirrors[i].has_vote && ps_id_equal(member->image_id, p->mirrors[i].image_id))
			return &p->mirrors[i];
	return NULL;
}

/* Returns true if the member is reached at another address than its own in the roster, and a mirror
 * of the handle left the roster there, or the roster lists another member here. */
static bool has_member_left_its_address(struct perseas *p, const Perseas__Member *member)
{
	const struct ps_mirror *m = mirror_of_member(p, member);

	if (!m || !m->control || !m->is_active || !strcmp(m->address.text, member->address))
		return false;
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].state == PERSEAS_MIRROR_REMOVED &&
		    !strcmp(p->mirrors[i].address.text, member->address))
			return true;
	return ps_roster_member_at(p->roster, m->address.text) != NULL;
}

/* Returns the member that this address means, or NULL: the one that is reached there, or else the
 * one that the roster lists there. Members may have exchanged their addresses. */
static const Perseas__Member *member_at_address(struct perseas *p, const char *address)
{
	const Perseas__Member *member = NULL;

	for (unsigned i = 0; i < p->mirror_count && !member; i++)
		if (p->mirrors[i].has_vote && !strcmp(p->mirrors[i].address.text, address))
			member = ps_roster_member(p->roster, p->mirrors[i].image_id);
	if (member)
		return member;
	member = ps_roster_member_at(p->roster, address);
	return member && !has_member_left_its_address(p, member) ? member : NULL;
}

/* Returns the image id of the member that leaves, or NULL if the roster does not list it. */
static const uint8_t *leaving_image_id(struct perseas *p)
{
	const struct ps_change *c = &p->upkeep.change;
	const Perseas__Member *member = ps_roster_member_at(p->roster, c->leaving_address);

	if (c->leaving)
		return c->leaving->image_id;
	return member ? member->image_id.data : NULL;
}

bool ps_change_plan_only_changes_address(struct perseas *p, const Perseas__Header *header)
{
	const struct ps_change *c = &p->upkeep.change;
	const uint8_t *id = c->removes_member ? leaving_image_id(p) : NULL, *here, *there;

	if (!id || !ps_image_is_of_store(header, p->store_id, p->roster) ||
	    (!ps_id_equal(header->image_id, id) &&
	     !(header->parent_id.len && ps_id_equal(header->parent_id, id))))
		return false;
	here = ps_known_daemon_id(c->joining->daemon_id);
	there = c->leaving ? ps_known_daemon_id(c->leaving->daemon_id) : NULL;
	return !here || !there || !memcmp(here, there, PS_ID_SIZE);
}

bool ps_change_plan_set_new_address(struct perseas *p)
{
	struct ps_change *c = &p->upkeep.change;
	struct ps_mirror *member = c->leaving, *new = c->joining;
	const uint8_t *id = leaving_image_id(p);

	if (!ps_roster_set_address(p, id, new ? new->address.text : member->address.text))
		return false;
	if (!new)
		return true;
	new->is_joining = false;
	if (member) {
		ps_member_swap_addresses(p, new, member);
		return true;
	}
	/* The handle had no mirror for this member of the roster: now the joining mirror is it. */
	pthread_mutex_lock(&p->lock);
	memcpy(new->image_id, id, PS_ID_SIZE);
	ps_quorums_recompute(p);
	pthread_mutex_unlock(&p->lock);
	new->retry.next_try_at = new->retry.delay_ns = 0;
	return true;
}

/* Plans that the member at this address leaves. Returns 0, or PERSEAS_EINVAL with a sentence. */
static int plan_leaving_member(struct perseas *p, const char *address, bool gone, char *text,
                               size_t size)
{
	struct ps_change *c = &p->upkeep.change;
	const Perseas__Member *member = member_at_address(p, address);

	c->removes_member = true;
	c->is_leaving_gone = gone;
	snprintf(c->leaving_address, sizeof(c->leaving_address), "%.255s", address);
	c->leaving = mirror_of_member(p, member);
	if (member)
		return 0;
	ps_text_format(text, size,
	               ps_roster_member_at(p->roster, address)
	                       ? "the mirror that the roster lists at %s is elsewhere now: perseas "
	                         "roster shows where, and how to record it"
	                       : "the roster has no mirror %s: perseas roster shows it",
	               address);
	return PERSEAS_EINVAL;
}

/* Returns true if the member that leaves is reached at the address `with`, and the roster lists it
 * at another one. */
static bool is_leaving_member_now_at_address(const struct perseas *p, const char *with)
{
	const struct ps_mirror *m = p->upkeep.change.leaving;

	return m && m->control && m->is_active && !strcmp(m->address.text, with) &&
	       strcmp(ps_roster_member(p->roster, m->image_id)->address, with) != 0;
}

/* Plans to record the address of the member that should be replaced by itself. Returns false if the
 * change asks for more. */
static bool plan_record_address(struct perseas *p, const struct perseas_roster_change *wanted)
{
	struct ps_change *c = &p->upkeep.change;

	c->moves_address = c->is_member_address = !c->is_leaving_gone && c->after.acks == p->acks &&
	                                          is_leaving_member_now_at_address(p, wanted->with);
	return c->moves_address;
}

/* Adds the new mirror to the handle. The keeper will copy to it. */
static int plan_joining_mirror(struct perseas *p, const char *with, char *text, size_t size)
{
	struct ps_change *c = &p->upkeep.change;
	struct ps_address address;
	struct ps_error error = { 0 };

	if (ps_address_parse(with, &address, &error)) {
		ps_text_format(text, size, "%s", error.text);
		return error.code;
	}
	if (member_at_address(p, address.text) || ps_roster_member_at(p->roster, address.text)) {
		ps_text_format(text, size,
		               "%s is in the roster already: if the roster lists its mirror "
		               "elsewhere, name this address as OLD and as NEW",
		               address.text);
		return PERSEAS_EINVAL;
	}
	pthread_mutex_lock(&p->lock);
	c->joining = ps_mirror_add(p, &address);
	if (c->joining) {
		c->joining->is_joining = c->joining->is_image_in_roster = true;
		p->env->ops->random(p->env, c->joining->image_id, PS_ID_SIZE);
		ps_quorums_recompute(p);
	}
	pthread_mutex_unlock(&p->lock);
	if (c->joining)
		return 0;
	snprintf(text, size, "a store can have 16 mirrors at most: remove or replace one instead");
	return PERSEAS_ELIMIT;
}

/* Sets the number of members and W before and after the change. */
static int plan_roster_size(struct perseas *p, const struct perseas_roster_change *wanted,
                            char *text, size_t size)
{
	struct ps_change *c = &p->upkeep.change;
	const bool joins = wanted->kind != PERSEAS_ROSTER_REMOVE;
	const unsigned members = p->member_count + joins - c->removes_member;
	const struct ps_quorum before = { .members = p->member_count, .acks = p->acks };

	if (!members || wanted->acks > members) {
		snprintf(text, size,
		         members ? "%u mirrors cannot give %u acknowledgements: choose a smaller W"
		                 : "a store needs a mirror: replace the only one instead",
		         members, wanted->acks);
		return PERSEAS_EINVAL;
	}
	c->before = (struct ps_roster_size){ p->member_count, p->acks };
	c->after = (struct ps_roster_size){ members, wanted->acks };
	if (!wanted->acks)
		c->after.acks = ps_quorum_acks_after_change(&before, members);
	return 0;
}

/* Plans to raise the store to level 1: draws the store's key, which becomes valid once a roster has
 * its hash. */
static int plan_level_raise(struct perseas *p, const struct perseas_roster_change *wanted,
                            char *text, size_t size)
{
	struct ps_change *c = &p->upkeep.change;

	if (p->roster->level > 0 || wanted->acks) {
		snprintf(text, size,
		         wanted->acks
		                 ? "raising the level of a store changes nothing else: leave W "
		                   "as it is"
		                 : "the store has level %u already",
		         p->roster->level);
		return PERSEAS_EINVAL;
	}
	c->raises_level = true;
	c->before = c->after = (struct ps_roster_size){ p->member_count, p->acks };
	p->env->ops->random(p->env, p->key, sizeof(p->key));
	return 0;
}

static bool is_wanted_change_well_formed(const struct perseas_roster_change *wanted)
{
	return wanted->kind >= PERSEAS_ROSTER_ADD && wanted->kind <= PERSEAS_ROSTER_REPLACE &&
	       (wanted->kind == PERSEAS_ROSTER_ADD || wanted->address) &&
	       (wanted->kind == PERSEAS_ROSTER_REMOVE || wanted->with);
}

int ps_change_plan_make(struct perseas *p, const struct perseas_roster_change *wanted, char *text,
                        size_t size)
{
	int rc = 0;

	ps_assert_admin(p);
	if (wanted->kind == PERSEAS_ROSTER_RAISE)
		return plan_level_raise(p, wanted, text, size);
	if (!is_wanted_change_well_formed(wanted)) {
		snprintf(
			text, size,
			"the change lacks an address, or does not add, remove or replace a mirror");
		return PERSEAS_EINVAL;
	}
	if (wanted->kind != PERSEAS_ROSTER_ADD)
		rc = plan_leaving_member(p, wanted->address, wanted->gone, text, size);
	if (!rc)
		rc = plan_roster_size(p, wanted, text, size);
	if (!rc && wanted->kind != PERSEAS_ROSTER_REMOVE && !plan_record_address(p, wanted))
		rc = plan_joining_mirror(p, wanted->with, text, size);
	return rc;
}

/* Sets level 1 and the hash of the key in the roster. Returns false if out of memory. */
static bool set_roster_level(const struct perseas *p, Perseas__Roster *roster)
{
	roster->level = 1;
	roster->raised_epoch = p->epoch;
	roster->key_hash.data = malloc(PS_SHA256);
	if (!roster->key_hash.data)
		return false;
	roster->key_hash.len = PS_SHA256;
	ps_sha256(p->key, sizeof(p->key), roster->key_hash.data);
	return true;
}

Perseas__Roster *ps_change_plan_roster(struct perseas *p)
{
	const struct ps_change *c = &p->upkeep.change;
	Perseas__Roster *roster = ps_roster_copy(p->roster);

	if (!roster)
		return NULL;
	if (c->joining &&
	    !ps_roster_add_member(roster, c->joining->address.text, c->joining->image_id)) {
		ps_roster_free(&roster);
		return NULL;
	}
	if (c->removes_member && !c->moves_address && leaving_image_id(p))
		ps_roster_remove_member(roster, leaving_image_id(p));
	roster->acks = c->after.acks;
	roster->epoch = p->epoch;
	roster->version = p->roster->version + 1;
	if (c->raises_level && !set_roster_level(p, roster))
		ps_roster_free(&roster);
	return roster;
}

uint32_t ps_change_plan_reachable(const struct perseas *p, uint32_t told)
{
	const struct ps_change *c = &p->upkeep.change;

	return c->is_leaving_gone && c->leaving && p->member_count == 2
	               ? told | ps_mirror_bit(p, c->leaving)
	               : told;
}

/* Admits a raise of the level if every member has answered over a connection whose version reads
 * level 1. A member that learns the key too late would count for nothing. */
static int check_may_raise_level(struct perseas *p, uint32_t answered, char *text, size_t size)
{
	for (size_t k = 0; k < p->roster->n_members; k++) {
		const Perseas__Member *member = p->roster->members[k];
		const struct ps_mirror *m = mirror_of_member(p, member);

		if (!m || !(answered & ps_mirror_bit(p, m))) {
			ps_text_format(
				text, size,
				"%s does not answer, and all mirrors of the roster must before "
				"the level of the store can be raised: start it, or replace it",
				member->address);
			return PERSEAS_EQUORUM;
		}
		if (ps_roster_readable_level(p, m) == 0) {
			ps_text_format(
				text, size,
				"%s speaks a version of the protocol that does not know level "
				"1: upgrade its perseasd first",
				member->address);
			return PERSEAS_EVERSION;
		}
	}
	return 0;
}

int ps_change_check_plan(struct perseas *p, uint32_t answered, uint32_t live, char *text,
                         size_t size)
{
	struct ps_change *c = &p->upkeep.change;
	Perseas__Roster *next = ps_change_plan_roster(p);
	const struct ps_admission asked = {
		.next_roster = next,
		.tellable_mirrors = ps_change_plan_reachable(p, answered),
		.live_mirrors = live,
		.unblocks_commits = c->removes_member &&
		                    !(c->leaving && live & ps_mirror_bit(p, c->leaving)),
	};
	int rc = c->raises_level ? check_may_raise_level(p, answered, text, size) : 0;

	if (!next) {
		snprintf(text, size, "out of memory");
		return PERSEAS_ENOMEM;
	}
	if (!rc)
		rc = ps_change_check_may_begin(p, &asked, text, size);
	ps_roster_free(&next);
	return rc;
}
