/*
 * rosters.c - see rosters.h.
 */
#include "rosters.h"

#include "envelope.h"
#include "key.h"

#include <assert.h>
#include <string.h>

int ps_roster_order(const Perseas__Roster *a, const Perseas__Roster *b)
{
	if (!a || !b)
		return (a != NULL) - (b != NULL);
	if (a->epoch != b->epoch)
		return a->epoch > b->epoch ? 1 : -1;
	return (a->version > b->version) - (a->version < b->version);
}

bool ps_roster_outranks(const Perseas__Roster *roster, const Perseas__Roster *other)
{
	if (roster && other && roster->level != other->level)
		return roster->level > other->level;
	return ps_roster_newer(roster, other);
}

const Perseas__Roster *ps_roster_newest(const Perseas__Header *header)
{
	return ps_roster_newer(header->next_roster, header->roster) ? header->next_roster
	                                                            : header->roster;
}

Perseas__Member *ps_roster_member(const Perseas__Roster *roster, const uint8_t *image_id)
{
	for (size_t k = 0; roster && k < roster->n_members; k++)
		if (ps_id_equal(roster->members[k]->image_id, image_id))
			return roster->members[k];
	return NULL;
}

Perseas__Member *ps_roster_member_at(const Perseas__Roster *roster, const char *address)
{
	for (size_t k = 0; roster && k < roster->n_members; k++)
		if (!strcmp(roster->members[k]->address, address))
			return roster->members[k];
	return NULL;
}

static bool roster_lists_image(const Perseas__Roster *roster, ProtobufCBinaryData image)
{
	return image.len == PS_ID_SIZE && ps_roster_member(roster, image.data);
}

static bool have_common_image(const Perseas__Roster *theirs, const Perseas__Roster *roster)
{
	for (size_t k = 0; theirs && k < theirs->n_members; k++)
		if (roster_lists_image(roster, theirs->members[k]->image_id))
			return true;
	return false;
}

bool ps_rosters_name_same_store(const Perseas__Roster *a, const Perseas__Roster *b)
{
	assert(a->level > 0 && b->level > 0);
	return a->key_hash.len == b->key_hash.len &&
	       (a->key_hash.len == 0 ||
	        memcmp(a->key_hash.data, b->key_hash.data, a->key_hash.len) == 0);
}

static bool roster_names_store(const Perseas__Roster *theirs, const Perseas__Roster *roster)
{
	return theirs && theirs->level > 0 && ps_rosters_name_same_store(theirs, roster);
}

bool ps_image_is_of_store(const Perseas__Header *header, const uint8_t *store_id,
                          const Perseas__Roster *roster)
{
	if (!ps_id_equal(header->store_id, store_id))
		return false;
	return !roster || roster->level == 0 || roster_names_store(header->roster, roster) ||
	       roster_names_store(header->next_roster, roster);
}

bool ps_image_is_of_level_0(const Perseas__Header *header, const uint8_t *store_id)
{
	return ps_id_equal(header->store_id, store_id) &&
	       ps_store_level(header->roster, header->next_roster) == 0;
}

/* Returns true if the image lacks the key from which the store's id is derived. The image was then
 * made by a client without the key: neither the store nor a fork of it ever had level 0. */
static bool is_made_without_key(const Perseas__Header *header, const Perseas__Roster *settled)
{
	return settled && settled->level > 0 && !settled->key_hash.len &&
	       ps_store_level(header->roster, header->next_roster) == 0;
}

bool ps_image_is_forked(const Perseas__Header *header, const Perseas__Roster *settled,
                        const Perseas__Roster *next)
{
	const Perseas__Roster *const theirs[2] = { header->roster, header->next_roster };
	bool listed = false, common = false;

	if (is_made_without_key(header, settled))
		return false;
	/* If the change to the image's next roster is decided, skip its settled roster: the owner
	 * may count by the next one alone. */
	for (int q = header->marked && theirs[1]; q < 2; q++) {
		listed = listed || roster_lists_image(theirs[q], header->image_id) ||
		         roster_lists_image(theirs[q], header->parent_id);
		common = common || have_common_image(theirs[q], settled) ||
		         have_common_image(theirs[q], next);
	}
	/* An image that was just loaded has a new id, which the roster in its header does not list
	 * yet. */
	common = common || roster_lists_image(settled, header->image_id) ||
	         roster_lists_image(next, header->image_id);
	return listed && !common;
}
