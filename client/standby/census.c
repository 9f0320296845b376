/*
 * census.c - see census.h.
 */
#include "census.h"
#include "../../proto/control/envelope.h"

#include <string.h>

void ps_census_tell(const struct ps_census *census, struct ps_told told[PS_MIRRORS_MAX])
{
	memset(told, 0, PS_MIRRORS_MAX * sizeof(told[0]));
	for (unsigned i = 0; i < census->peers->count; i++) {
		const Perseas__StoreStatus *status = census->told[i];
		const struct ps_address *address = &census->peers->addresses[i];

		told[i].from_roster = i >= census->peers->given;
		told[i].daemon = ps_peers_daemon(census->peers, i);
		/* A socket's address in the roster can be another mirror's on another host. */
		if (i < census->peers->given || address->scheme != PS_SCHEME_UNIX)
			told[i].address = address->text;
		told[i].empty = census->errors[i].code == PERSEAS_ENOSTORE;
		if (!status)
			continue;
		told[i].header = status->header;
		told[i].has_slot = status->slot;
		told[i].epoch = status->slot ? status->slot->epoch : 0;
		told[i].seq = status->slot ? status->slot->seq : 0;
	}
}

/* What they told is another mirror's. */
static void leave_elsewhere(struct ps_census *census)
{
	const struct ps_judgement *j = &census->judged;
	const struct ps_address *addresses = census->peers->addresses;

	census->elsewhere = j->duplicate_set;
	for (unsigned i = 0; i < census->peers->count; i++) {
		if (!(j->duplicate_set >> i & 1))
			continue;
		ps_error_set(&census->errors[i], PERSEAS_EUNREACHABLE, PS_SAME_MIRROR_NOTE,
		             addresses[i].text, addresses[j->duplicate_of[i]].text);
		census->have -= census->told[i] != NULL;
		census->told[i] = NULL;
	}
}

void ps_census_judge(struct ps_census *census)
{
	const struct ps_judgement *j = &census->judged;
	const unsigned count = census->peers->count;
	struct ps_told told[PS_MIRRORS_MAX];

	ps_census_tell(census, told);
	ps_judge(&census->judged, told, count);
	leave_elsewhere(census);
	if (census->elsewhere) {
		ps_census_tell(census, told);
		ps_judge(&census->judged, told, count);
	}
	census->roster = j->next ? j->next : j->settled;
	for (unsigned i = count; i-- > 0;)
		if (census->told[i] && ps_census_belongs(census, i))
			census->header = census->told[i]->header;
	if (j->newest >= 0)
		census->newest = census->told[j->newest];
}

void ps_census_take(struct ps_census *census, struct ps_peers *peers, const char *store)
{
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(status, STATUS, &ask);

	memset(census, 0, sizeof(*census));
	census->peers = peers;
	/* The message has no const; it is only packed. */
	ask.store = (char *)store;
	ps_peers_ask_all(peers, &request);
	for (unsigned i = 0; i < peers->count; i++) {
		census->answered += ps_peers_answered(peers, i);
		census->errors[i] = peers->errors[i];
		census->replies[i] = peers->replies[i];
		peers->replies[i] = NULL;
		if (!census->replies[i])
			continue;
		census->have++;
		census->told[i] = census->replies[i]->store->status;
	}
	ps_census_judge(census);
}

void ps_census_free(struct ps_census *census)
{
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		if (census->replies[i])
			perseas__reply__free_unpacked(census->replies[i], NULL);
	memset(census, 0, sizeof(*census));
}

bool ps_census_belongs(const struct ps_census *census, unsigned i)
{
	return census->judged.image_set >> i & 1;
}

bool ps_census_is(const struct ps_census *census, unsigned i, const Perseas__Member *member)
{
	return ps_census_listed(census, i) &&
	       ps_id_equal(member->image_id, census->judged.member_ids[i]);
}

const Perseas__StoreStatus *ps_census_image(const struct ps_census *census,
                                            const Perseas__Member *member)
{
	for (unsigned i = 0; i < census->peers->count; i++)
		if (ps_census_is(census, i, member))
			return census->told[i];
	return NULL;
}

bool ps_census_listed(const struct ps_census *census, unsigned i)
{
	return census->judged.member_set >> i & 1;
}

bool ps_census_loaded(const struct ps_census *census, unsigned i)
{
	return census->judged.loaded_set >> i & 1;
}

bool ps_census_counts(const struct ps_census *census, unsigned i)
{
	return census->judged.candidate_set >> i & 1;
}

bool ps_owner_better(const Perseas__StoreStatus *a, const Perseas__StoreStatus *b)
{
	if (!b || a->header->promised_epoch != b->header->promised_epoch)
		return !b || a->header->promised_epoch > b->header->promised_epoch;
	return a->silent_ms < b->silent_ms;
}

int ps_owner_at(const struct ps_census *census)
{
	int best = -1;

	for (unsigned i = 0; i < census->peers->count; i++)
		if (ps_census_belongs(census, i) && census->told[i]->live &&
		    ps_owner_better(census->told[i], best < 0 ? NULL : census->told[best]))
			best = (int)i;
	return best;
}

const char *ps_owner_newcomer(const struct ps_census *census)
{
	const int live = ps_owner_at(census);
	const Perseas__StoreStatus *owner = live < 0 ? NULL : census->told[live];

	if (!owner || !owner->order || !*owner->order->with ||
	    (owner->result && owner->result->done))
		return NULL;
	if (ps_roster_at(census->judged.settled, owner->order->with) ||
	    ps_roster_at(census->judged.next, owner->order->with))
		return NULL;
	return owner->order->with;
}

/* The epoch of the owner that lives there, or of the last one that adopted the image. The promise
 * may be higher by a claim that is under way, or that failed. */
static uint64_t find_last_owner(const Perseas__StoreStatus *status)
{
	if (status->live)
		return status->header->promised_epoch;
	return status->slot ? status->slot->epoch : 0;
}

/* Is it of the store's present or last owner? An image of a fork has owners of its own. */
static bool is_of_last_owner(const struct ps_census *census, const Perseas__Handover *handover)
{
	for (unsigned i = 0; i < census->peers->count; i++)
		if (ps_census_listed(census, i) &&
		    find_last_owner(census->told[i]) > handover->epoch)
			return false;
	return true;
}

const Perseas__Handover *ps_census_handover(const struct ps_census *census)
{
	const Perseas__Handover *found = NULL;

	for (unsigned i = 0; i < census->peers->count; i++) {
		const Perseas__Handover *told;

		if (!ps_census_listed(census, i))
			continue;
		told = census->told[i]->handover;
		if (told && is_of_last_owner(census, told) &&
		    (!found || memcmp(told->id.data, found->id.data, PS_ID_SIZE) < 0))
			found = told;
	}
	return found;
}

bool ps_census_ask_at(struct ps_peers *peers, const char *address)
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

static bool ask_members(struct ps_peers *peers, const Perseas__Roster *roster)
{
	bool any = false;

	for (size_t k = 0; roster && k < roster->n_members; k++)
		any |= ps_census_ask_at(peers, roster->members[k]->address);
	return any;
}

/* Which of several stores is meant shows only when the members of all their rosters were asked. */
static bool ask_rivals(struct ps_peers *peers, const struct ps_census *census)
{
	bool any = false;

	for (unsigned i = 0; i < census->peers->given; i++) {
		const Perseas__StoreStatus *told = census->told[i];

		if (!told || ps_census_belongs(census, i))
			continue;
		any |= ask_members(peers, told->header->roster);
		any |= ask_members(peers, told->header->next_roster);
	}
	return any;
}

/* False: there is none. */
static bool ask_unnamed(struct ps_peers *peers, const struct ps_census *census)
{
	const Perseas__Roster *rosters[] = { census->judged.settled, census->judged.next };
	const char *with = ps_owner_newcomer(census);
	bool any = ask_rivals(peers, census);

	for (unsigned r = 0; r < 2; r++)
		for (size_t k = 0; rosters[r] && k < rosters[r]->n_members; k++)
			if (!ps_census_image(census, rosters[r]->members[k]))
				any |= ps_census_ask_at(peers, rosters[r]->members[k]->address);
	if (with)
		any |= ps_census_ask_at(peers, with);
	return any;
}

bool ps_census_needs(const struct ps_census *census, unsigned i)
{
	const char *address = census->peers->addresses[i].text;
	const char *with = ps_owner_newcomer(census);

	return i < census->peers->given || ps_roster_at(census->judged.settled, address) ||
	       ps_roster_at(census->judged.next, address) || (with && !strcmp(with, address));
}

bool ps_census_widen(struct ps_census *census, struct ps_peers *peers, const char *store)
{
	if (!ask_unnamed(peers, census))
		return false;
	ps_census_free(census);
	ps_census_take(census, peers, store);
	return true;
}
