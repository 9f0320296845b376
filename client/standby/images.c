/*
 * images.c - takes and judges the images of a store (images.h).
 */
#include "images.h"
#include "../../proto/control/envelope.h"

#include <assert.h>
#include <string.h>

void ps_images_fill_told(const struct ps_images *images, struct ps_told told[PS_MIRRORS_MAX])
{
	memset(told, 0, PS_MIRRORS_MAX * sizeof(told[0]));
	for (unsigned i = 0; i < images->peers->count; i++) {
		const Perseas__StoreStatus *status = images->told[i];
		const struct ps_address *address = &images->peers->addresses[i];

		told[i].from_roster = i >= images->peers->listed_count;
		told[i].daemon = ps_peers_daemon_id(images->peers, i);
		/* The address of a Unix socket in a roster may reach another mirror on this
		 * host. */
		if (i < images->peers->listed_count || address->scheme != PS_SCHEME_UNIX)
			told[i].address = address->text;
		told[i].has_no_image = images->errors[i].code == PERSEAS_ENOSTORE;
		if (!status)
			continue;
		told[i].header = status->header;
		told[i].has_slot = status->slot;
		told[i].epoch = status->slot ? status->slot->epoch : 0;
		told[i].seq = status->slot ? status->slot->seq : 0;
	}
}

/* Ignores the answers of peers that reach the same daemon as another peer. */
static void ignore_duplicates(struct ps_images *images)
{
	const struct ps_judgement *j = &images->judged;
	const struct ps_address *addresses = images->peers->addresses;

	images->duplicates = j->duplicate_set;
	for (unsigned i = 0; i < images->peers->count; i++) {
		if (!(j->duplicate_set >> i & 1))
			continue;
		ps_error_set(&images->errors[i], PERSEAS_EUNREACHABLE, PS_SAME_MIRROR_NOTE,
		             addresses[i].text, addresses[j->duplicate_of[i]].text);
		images->have -= images->told[i] != NULL;
		images->told[i] = NULL;
	}
}

void ps_images_judge(struct ps_images *images)
{
	const struct ps_judgement *j = &images->judged;
	const unsigned count = images->peers->count;
	struct ps_told told[PS_MIRRORS_MAX];

	ps_images_fill_told(images, told);
	ps_judge(&images->judged, told, count);
	ignore_duplicates(images);
	if (images->duplicates) {
		ps_images_fill_told(images, told);
		ps_judge(&images->judged, told, count);
	}
	images->roster = j->next ? j->next : j->settled;
	for (unsigned i = count; i-- > 0;)
		if (images->told[i] && ps_images_is_of_store(images, i))
			images->header = images->told[i]->header;
	if (j->newest >= 0)
		images->newest = images->told[j->newest];
}

void ps_images_fetch(struct ps_images *images, struct ps_peers *peers, const char *store)
{
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(status, STATUS, &ask);

	memset(images, 0, sizeof(*images));
	images->peers = peers;
	/* Messages have no const, but packing does not change them. */
	ask.store = (char *)store;
	ps_peers_ask_all(peers, &request);
	for (unsigned i = 0; i < peers->count; i++) {
		images->answered += ps_peers_answered(peers, i);
		images->errors[i] = peers->errors[i];
		images->replies[i] = peers->replies[i];
		peers->replies[i] = NULL;
		if (!images->replies[i])
			continue;
		images->have++;
		images->told[i] = images->replies[i]->store->status;
	}
	ps_images_judge(images);
}

void ps_images_free(struct ps_images *images)
{
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		if (images->replies[i])
			perseas__reply__free_unpacked(images->replies[i], NULL);
	memset(images, 0, sizeof(*images));
}

bool ps_images_is_uncreated(const struct ps_images *images)
{
	for (unsigned i = 0; i < images->peers->count; i++) {
		const Perseas__StoreStatus *status = images->told[i];

		if (status ? status->header->state != PERSEAS__STATE__STATE_CREATING
		           : images->errors[i].code != PERSEAS_ENOSTORE)
			return false;
	}
	return true;
}

bool ps_images_is_of_store(const struct ps_images *images, unsigned i)
{
	assert(i < images->peers->count);
	return images->judged.image_set >> i & 1;
}

bool ps_images_is_member(const struct ps_images *images, unsigned i, const Perseas__Member *member)
{
	return ps_images_is_listed(images, i) &&
	       ps_id_equal(member->image_id, images->judged.member_ids[i]);
}

const Perseas__StoreStatus *ps_images_find_member(const struct ps_images *images,
                                                  const Perseas__Member *member)
{
	for (unsigned i = 0; i < images->peers->count; i++)
		if (ps_images_is_member(images, i, member))
			return images->told[i];
	return NULL;
}

/* Returns the member of a roster in force whose image was seen at this address, or NULL. */
static const Perseas__Member *member_seen_at(const struct ps_images *images, const char *address)
{
	for (unsigned i = 0; i < images->peers->count; i++) {
		const uint8_t *id = images->judged.member_ids[i];
		const Perseas__Member *member;

		if (!ps_images_is_listed(images, i) ||
		    strcmp(images->peers->addresses[i].text, address) != 0)
			continue;
		member = ps_roster_member(images->judged.settled, id);
		return member ? member : ps_roster_member(images->judged.next, id);
	}
	return NULL;
}

/* Returns true if the address is of the list or of a roster in force, and no member was seen there.
 * An owner on another host may have another address of a mirror. */
static bool may_lead_to_unseen_member(const struct ps_images *images, const char *address)
{
	bool is_known = ps_roster_member_at(images->judged.settled, address) ||
	                ps_roster_member_at(images->judged.next, address);

	for (unsigned i = 0; i < images->peers->count; i++)
		is_known |= !strcmp(images->peers->addresses[i].text, address);
	return is_known && !member_seen_at(images, address);
}

/* Returns the address at which the live owner last reached a member that was not seen, or NULL. */
static const char *address_for_owner(const struct ps_images *images, const Perseas__Member *member)
{
	const int at = ps_images_find_owner(images);
	const Perseas__StoreStatus *owner = at < 0 ? NULL : images->told[at];

	for (size_t k = 0; owner && k < owner->n_mirrors; k++) {
		const Perseas__MirrorReport *report = owner->mirrors[k];

		if (report->image_id.len && ps_id_equal(member->image_id, report->image_id.data) &&
		    may_lead_to_unseen_member(images, report->address))
			return report->address;
	}
	return NULL;
}

const char *ps_images_address_of(const struct ps_images *images, const Perseas__Member *member)
{
	const Perseas__Member *there;
	const char *address;

	for (unsigned i = 0; i < images->peers->count; i++)
		if (ps_images_is_member(images, i, member))
			return images->peers->addresses[i].text;
	address = address_for_owner(images, member);
	if (address)
		return address;
	address = member->address;
	/* A roster may list an address twice, so the search ends after as many steps as members. */
	for (unsigned step = 0; step < PS_MIRRORS_MAX; step++) {
		there = member_seen_at(images, address);
		if (!there)
			break;
		address = there->address;
	}
	return address;
}

const Perseas__Member *ps_images_member_at(const struct ps_images *images, const char *address)
{
	const Perseas__Roster *roster = images->judged.settled;

	for (size_t k = 0; roster && k < roster->n_members; k++)
		if (!strcmp(ps_images_address_of(images, roster->members[k]), address))
			return roster->members[k];
	return NULL;
}

bool ps_images_is_address_old(const struct ps_images *images, const Perseas__Member *member)
{
	const Perseas__Member *here = ps_roster_member_at(images->judged.settled,
	                                                  ps_images_address_of(images, member));

	if (!ps_images_find_member(images, member))
		return false;
	if (here)
		return !ps_id_equal(here->image_id, member->image_id.data);
	for (unsigned i = 0; i < images->peers->count; i++)
		if (!strcmp(images->peers->addresses[i].text, member->address))
			return images->told[i] || images->errors[i].code == PERSEAS_ENOSTORE;
	return false;
}

bool ps_images_are_addresses_unclear(const struct ps_images *images)
{
	const Perseas__Roster *roster = images->judged.settled;
	unsigned unseen = 0;
	bool is_any_old = false;

	for (size_t k = 0; roster && k < roster->n_members; k++) {
		const Perseas__Member *member = roster->members[k];

		if (ps_images_find_member(images, member) || address_for_owner(images, member))
			continue;
		unseen++;
		is_any_old |= member_seen_at(images, member->address) != NULL;
	}
	return unseen > 1 && is_any_old;
}

bool ps_images_is_listed(const struct ps_images *images, unsigned i)
{
	assert(i < images->peers->count);
	return images->judged.member_set >> i & 1;
}

bool ps_images_is_loaded_from_spill(const struct ps_images *images, unsigned i)
{
	assert(i < images->peers->count);
	return images->judged.loaded_set >> i & 1;
}

bool ps_images_is_second_of_member(const struct ps_images *images, unsigned i)
{
	ProtobufCBinaryData parent;

	if (!ps_images_is_of_store(images, i) || ps_images_is_listed(images, i) ||
	    images->duplicates >> i & 1)
		return false;
	parent = images->told[i]->header->parent_id;
	return parent.len == PS_ID_SIZE && (ps_roster_member(images->judged.settled, parent.data) ||
	                                    ps_roster_member(images->judged.next, parent.data));
}

bool ps_images_is_candidate(const struct ps_images *images, unsigned i)
{
	assert(i < images->peers->count);
	return images->judged.candidate_set >> i & 1;
}

bool ps_owner_is_better_known(const Perseas__StoreStatus *a, const Perseas__StoreStatus *b)
{
	if (!b || a->header->promised_epoch != b->header->promised_epoch)
		return !b || a->header->promised_epoch > b->header->promised_epoch;
	if (!a->n_mirrors != !b->n_mirrors)
		return a->n_mirrors;
	return a->silent_ms < b->silent_ms;
}

int ps_images_find_owner(const struct ps_images *images)
{
	int best = -1;

	for (unsigned i = 0; i < images->peers->count; i++)
		if (ps_images_is_of_store(images, i) && images->told[i]->live &&
		    ps_owner_is_better_known(images->told[i], best < 0 ? NULL : images->told[best]))
			best = (int)i;
	return best;
}

bool ps_images_is_left_behind(const struct ps_images *images, const Perseas__StoreStatus *image)
{
	if (ps_images_find_owner(images) >= 0 || !images->newest)
		return false;
	return image->header->state == PERSEAS__STATE__STATE_JOINING ||
	       (image->slot && image->slot->epoch < images->newest->slot->epoch);
}

const char *ps_images_joining_address(const struct ps_images *images)
{
	const int live = ps_images_find_owner(images);
	const Perseas__StoreStatus *owner = live < 0 ? NULL : images->told[live];

	if (!owner || !owner->order || !*owner->order->with ||
	    (owner->result && owner->result->done))
		return NULL;
	if (ps_roster_member_at(images->judged.settled, owner->order->with) ||
	    ps_roster_member_at(images->judged.next, owner->order->with))
		return NULL;
	return owner->order->with;
}

/* Returns the epoch of the live owner of this image, or of the last owner that adopted it. The
 * promised epoch may be higher, because of a claim that is in flight or failed. */
static uint64_t last_owner_epoch(const Perseas__StoreStatus *status)
{
	if (status->live)
		return status->header->promised_epoch;
	return status->slot ? status->slot->epoch : 0;
}

/* Returns true if the handover was ordered under the store's present or last owner. Images of a
 * fork, which has owners of its own, do not count. */
static bool is_of_last_owner(const struct ps_images *images, const Perseas__Handover *handover)
{
	for (unsigned i = 0; i < images->peers->count; i++)
		if (ps_images_is_listed(images, i) &&
		    last_owner_epoch(images->told[i]) > handover->epoch)
			return false;
	return true;
}

const Perseas__Handover *ps_images_handover(const struct ps_images *images)
{
	const Perseas__Handover *found = NULL;

	for (unsigned i = 0; i < images->peers->count; i++) {
		const Perseas__Handover *told;

		if (!ps_images_is_listed(images, i))
			continue;
		told = images->told[i]->handover;
		if (told && is_of_last_owner(images, told) &&
		    (!found || memcmp(told->id.data, found->id.data, PS_ID_SIZE) < 0))
			found = told;
	}
	return found;
}

bool ps_peers_add_address(struct ps_peers *peers, const char *address)
{
	struct ps_address *next = &peers->addresses[peers->count];

	for (unsigned i = 0; i < peers->count; i++)
		if (!strcmp(peers->addresses[i].text, address))
			return false;
	if (peers->count == PS_MIRRORS_MAX || ps_address_parse(address, next, NULL))
		return false;
	ps_peers_connect(peers, peers->count++);
	return true;
}

static bool add_new_members(struct ps_peers *peers, const Perseas__Roster *roster)
{
	bool any = false;

	for (size_t k = 0; roster && k < roster->n_members; k++)
		any |= ps_peers_add_address(peers, roster->members[k]->address);
	return any;
}

/* Adds the members of the rosters of other stores with this name: only their answers show which
 * store an open would use. Returns true if there are new ones. */
static bool add_members_of_namesakes(struct ps_peers *peers, const struct ps_images *images)
{
	bool any = false;

	for (unsigned i = 0; i < images->peers->listed_count; i++) {
		const Perseas__StoreStatus *told = images->told[i];

		if (!told || ps_images_is_of_store(images, i))
			continue;
		any |= add_new_members(peers, told->header->roster);
		any |= add_new_members(peers, told->header->next_roster);
	}
	return any;
}

/* Adds mirrors that the list does not name. Returns false if there are none. */
static bool add_unlisted_peers(struct ps_peers *peers, const struct ps_images *images)
{
	const Perseas__Roster *rosters[] = { images->judged.settled, images->judged.next };
	const char *with = ps_images_joining_address(images);
	bool any = add_members_of_namesakes(peers, images);

	for (unsigned r = 0; r < 2; r++)
		for (size_t k = 0; rosters[r] && k < rosters[r]->n_members; k++)
			any |= ps_peers_add_address(peers,
			                            ps_images_address_of(images,
			                                                 rosters[r]->members[k]));
	if (with)
		any |= ps_peers_add_address(peers, with);
	return any;
}

bool ps_images_is_peer_named(const struct ps_images *images, unsigned i)
{
	const char *address = images->peers->addresses[i].text;
	const char *with = ps_images_joining_address(images);

	return i < images->peers->listed_count ||
	       ps_roster_member_at(images->judged.settled, address) ||
	       ps_roster_member_at(images->judged.next, address) ||
	       (with && !strcmp(with, address));
}

bool ps_images_fetch_more(struct ps_images *images, struct ps_peers *peers, const char *store)
{
	if (!add_unlisted_peers(peers, images))
		return false;
	ps_images_free(images);
	ps_images_fetch(images, peers, store);
	return true;
}
