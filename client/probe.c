/*
 * probe.c - what the mirrors have, before anything is claimed: a refused open fences nobody.
 */
#include "claim.h"
#include "mirror.h"
#include "quorum.h"

#include <stdio.h>
#include <string.h>

static void forget(struct perseas *p, struct ps_mirror *m)
{
	ps_mirror_disconnect(p, m);
	if (m->found.header)
		perseas__header__free_unpacked(m->found.header, NULL);
	memset(&m->found, 0, sizeof(m->found));
	m->known = m->votes = false;
}

static void note_status(struct ps_mirror *m, const Perseas__StoreStatus *status)
{
	const Perseas__Slot *slot = status->slot;

	m->found.header = ps_header_copy(status->header);
	if (!m->found.header)
		m->found.code = ps_error_set(&m->found.error, PERSEAS_ENOMEM, "out of memory");
	if (slot)
		m->found.at = (struct ps_standing){ slot->epoch, slot->seq, slot->next, slot->last,
			                            (int)slot->index };
	m->found.live = status->live;
	snprintf(m->found.owner, sizeof(m->found.owner), "%s", status->owner_address);
}

/* Asks the mirrors from `first` on. */
static void ask_from(struct perseas *p, unsigned first)
{
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_round round;

	ask.store = p->store;
	request.body_case = PERSEAS__REQUEST__BODY_STATUS;
	request.status = &ask;
	memset(round.ask, 0, sizeof(round.ask));
	memset(round.errors, 0, sizeof(round.errors));
	for (unsigned i = first; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		forget(p, m);
		m->control = p->env->ops->connect(p->env, &m->address, &round.errors[i]);
		round.ask[i] = true;
		round.requests[i] = &request;
	}
	ps_round_run(p, &round, ps_answer_by(p));
	for (unsigned i = first; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		m->found.error = round.errors[i];
		m->found.code = round.errors[i].code;
		if (round.replies[i])
			note_status(m, round.replies[i]->store->status);
	}
	ps_round_free(&round);
}

int ps_probe(struct perseas *p)
{
	ask_from(p, 0);
	return 0;
}

static bool has_store(const struct ps_mirror *m, const uint8_t *store_id)
{
	return !m->found.code && m->found.header &&
	       (!store_id || ps_id_equal(m->found.header->store_id, store_id));
}

static bool created(const struct ps_mirror *m)
{
	return has_store(m, NULL) && m->found.header->state != PERSEAS__STATE__STATE_CREATING;
}

/* The newest rosters that mirrors with this store tell of: settled, and newer but not settled. */
struct rosters {
	const Perseas__Roster *settled, *next;
};

static void take_newer(const Perseas__Roster **best, const Perseas__Roster *roster)
{
	if (roster && (!*best || ps_roster_newer(roster, *best)))
		*best = roster;
}

static struct rosters find_rosters(const struct perseas *p, const uint8_t *store_id)
{
	struct rosters found = { NULL, NULL };

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (!has_store(m, store_id) || !created(m))
			continue;
		take_newer(&found.settled, m->found.header->roster);
		take_newer(&found.next, m->found.header->next_roster);
	}
	if (found.next && !ps_roster_newer(found.next, found.settled))
		found.next = NULL;
	return found;
}

static bool lists(const Perseas__Roster *roster, ProtobufCBinaryData image)
{
	return image.len == PS_ID_SIZE && ps_roster_member(roster, image.data);
}

/* How many images of this store are there; first of all those that its newest roster lists. */
static unsigned weight(const struct perseas *p, const uint8_t *store_id)
{
	const struct rosters rosters = find_rosters(p, store_id);
	unsigned count = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];
		const Perseas__Header *header = m->found.header;

		if (!has_store(m, store_id) || !created(m))
			continue;
		count++;
		if (lists(rosters.settled, header->image_id) ||
		    lists(rosters.next, header->image_id) ||
		    lists(rosters.settled, header->parent_id) ||
		    lists(rosters.next, header->parent_id))
			count += PS_MIRRORS_MAX;
	}
	return count;
}

/* Of stores that bear the same name (one was made again elsewhere), the one with most images. */
static int choose_store(struct perseas *p)
{
	unsigned best = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];
		const uint8_t *id = created(m) ? m->found.header->store_id.data : NULL;
		unsigned w = id ? weight(p, id) : 0;

		if (w && w == best && memcmp(id, p->store_id, PS_ID_SIZE) != 0)
			return ps_fail(p, PERSEAS_EROSTER,
			               "the mirrors hold two different stores named '%s': give "
			               "the mirrors of one of them",
			               p->store);
		if (w > best) {
			best = w;
			memcpy(p->store_id, id, PS_ID_SIZE);
		}
	}
	return best ? 0 : PERSEAS_ENOSTORE;
}

/* Lists what is wrong with each mirror for a message. */
static const char *troubles(const struct perseas *p, char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (unsigned i = 0; i < p->mirror_count && used < size; i++)
		if (p->mirrors[i].found.code)
			used += (size_t)snprintf(text + used, size - used, "%s%.150s",
			                         used ? "; " : "", p->mirrors[i].found.error.text);
	return text;
}

static int no_store(struct perseas *p)
{
	unsigned without = 0, unfinished = 0, silent = 0;
	int other = 0;
	char text[500];

	for (unsigned i = 0; i < p->mirror_count; i++) {
		int code = p->mirrors[i].found.code;

		without += code == PERSEAS_ENOSTORE;
		silent += code == PERSEAS_EUNREACHABLE;
		unfinished += !code;
		if (code && code != PERSEAS_ENOSTORE && code != PERSEAS_EUNREACHABLE)
			other = code;
	}
	troubles(p, text, sizeof(text));
	if (other)
		return ps_fail(p, other, "%s", text);
	if (unfinished)
		return ps_fail(p, PERSEAS_ENOSTORE,
		               "the making of store '%s' was not finished: create it again",
		               p->store);
	if (silent)
		return ps_fail(p, PERSEAS_EUNREACHABLE,
		               "no mirror that answered has store '%s': %s", p->store, text);
	return ps_fail(p, PERSEAS_ENOSTORE,
	               "%u mirrors answered, and none has a store '%s': create it, or give the "
	               "mirrors that have it",
	               without, p->store);
}

/* All mirrors had the store once one of them calls it consistent: so do the others then. */
static void settle(struct perseas *p)
{
	Perseas__SettleRequest ask = PERSEAS__SETTLE_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;

	ask.store = p->store;
	ask.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, p->store_id };
	request.body_case = PERSEAS__REQUEST__BODY_SETTLE;
	request.settle = &ask;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];
		Perseas__Reply *reply;

		if (!has_store(m, p->store_id) || created(m))
			continue;
		if (!ps_ask(p, m, &request, ps_now(p) + ps_ms(p->options.connect_timeout_ms),
		            &reply, NULL, &m->found.error)) {
			m->found.header->state = PERSEAS__STATE__STATE_CONSISTENT;
			perseas__reply__free_unpacked(reply, NULL);
		} else {
			m->found.code = m->found.error.code;
		}
	}
}

static bool taken(const struct perseas *p, const uint8_t *image_id)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].known && !memcmp(p->mirrors[i].image_id, image_id, PS_ID_SIZE))
			return true;
	return false;
}

static void know(struct ps_mirror *m, const uint8_t *image_id)
{
	m->known = true;
	memcpy(m->image_id, image_id, PS_ID_SIZE);
}

static bool is_listed(const struct perseas *p, const struct ps_mirror *m, ProtobufCBinaryData id)
{
	/* Also where it cannot be used after all: it is that member, and says what is wrong. */
	return !m->known && ps_id_equal(m->found.header->store_id, p->store_id) &&
	       (lists(p->roster, id) || lists(p->next_roster, id));
}

/* Mirrors whose images are in a roster. */
static int find_listed(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (!m->found.header || !is_listed(p, m, m->found.header->image_id))
			continue;
		for (unsigned k = 0; k < i; k++)
			if (p->mirrors[k].known &&
			    ps_id_equal(m->found.header->image_id, p->mirrors[k].image_id))
				return ps_fail(p, PERSEAS_EINVAL,
				               "%s and %s are the same mirror: name it once",
				               p->mirrors[k].address.text, m->address.text);
		know(m, m->found.header->image_id.data);
		m->found.listed = true;
	}
	return 0;
}

/* .. whose images were loaded from a spill of one that is, and are not yet recorded themselves. Of
 * two that were loaded from the same, only the first can be it. */
static void find_loaded(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];
		ProtobufCBinaryData parent;

		if (!m->found.header)
			continue;
		parent = m->found.header->parent_id;
		if (!is_listed(p, m, parent) || taken(p, parent.data))
			continue;
		know(m, parent.data);
		m->found.listed = true;
		ps_mirror_loaded(m, m->found.header);
	}
}

/* A mirror without a listed image must be the member of its address: it lost what it had. Not where
 * the address is that of a socket, and the roster's: it can be on another host. */
static void find_by_address(struct perseas *p, const Perseas__Roster *roster)
{
	for (unsigned i = 0; roster && i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (m->added && m->address.scheme == PS_SCHEME_UNIX)
			continue;
		for (size_t k = 0; !m->known && k < roster->n_members; k++) {
			const Perseas__Member *member = roster->members[k];

			if (!taken(p, member->image_id.data) &&
			    !strcmp(member->address, m->address.text))
				know(m, member->image_id.data);
		}
	}
}

static int find_members(struct perseas *p)
{
	int rc;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		m->known = m->found.listed = m->loaded = false;
	}
	rc = find_listed(p);
	if (rc)
		return rc;
	find_loaded(p);
	find_by_address(p, p->roster);
	find_by_address(p, p->next_roster);
	ps_quorum_renew(p);
	return 0;
}

/* *have becomes a copy of `found` where that is newer. */
static int keep_newer(struct perseas *p, Perseas__Roster **have, const Perseas__Roster *found)
{
	Perseas__Roster *copy;

	if (!found || (*have && !ps_roster_newer(found, *have)))
		return 0;
	copy = ps_roster_copy(found);
	if (!copy)
		return ps_fail(p, PERSEAS_ENOMEM, "out of memory");
	ps_roster_free(have);
	*have = copy;
	return 0;
}

int ps_probe_roster(struct perseas *p)
{
	const struct rosters found = find_rosters(p, p->store_id);
	/* Those that were seen stay the newest, also when their mirror does not answer again. */
	int rc = keep_newer(p, &p->roster, found.settled);

	if (!rc)
		rc = keep_newer(p, &p->next_roster, found.next);
	if (rc)
		return rc;
	if (p->next_roster && !ps_roster_newer(p->next_roster, p->roster))
		ps_roster_free(&p->next_roster);
	return find_members(p);
}

static bool has_address(const struct perseas *p, const char *address)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (!strcmp(p->mirrors[i].address.text, address))
			return true;
	return false;
}

/* Whoever is in a roster and was not named gets a place here, once: both rosters may list it, and
 * the attempt before may have added it. True: there was one. */
static bool add_members(struct perseas *p, const Perseas__Roster *roster)
{
	bool added = false;

	for (size_t k = 0; roster && k < roster->n_members; k++) {
		const Perseas__Member *member = roster->members[k];
		struct ps_error ignored;
		struct ps_address address;
		struct ps_mirror *m;

		if (taken(p, member->image_id.data) ||
		    ps_address_parse(member->address, &address, &ignored) ||
		    has_address(p, address.text))
			continue;
		m = ps_mirror_add(p, &address);
		if (m)
			m->added = added = true;
	}
	return added;
}

/* The list that was given may be older than the roster: its members are asked too. */
static int ask_members(struct perseas *p)
{
	const unsigned given = p->mirror_count;
	bool added = add_members(p, p->roster);
	int rc;

	added |= add_members(p, p->next_roster);
	if (!added)
		return 0;
	ask_from(p, given);
	rc = ps_probe_roster(p);
	if (rc)
		return rc;
	for (unsigned i = given; i < p->mirror_count; i++)
		ps_report(p, "%s: was not named, but the roster lists it",
		          p->mirrors[i].address.text);
	return 0;
}

static int check_live(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (has_store(m, p->store_id) && m->found.live &&
		    !(p->options.flags & PERSEAS_TAKEOVER))
			return ps_fail(p, PERSEAS_EBUSY,
			               "store '%s' has a live owner (from %s, epoch %llu, seen "
			               "by %s): stop it, or ask for a takeover to fence it",
			               p->store, m->found.owner,
			               (unsigned long long)m->found.header->promised_epoch,
			               m->address.text);
	}
	return 0;
}

/* An open that cannot end well would fence an owner for nothing, and raise what it claims above
 * the state that the operator was told of. Whoever accepts fewer than R has said so. */
static int check_reach(struct perseas *p)
{
	const struct ps_standing *newest;
	uint32_t answered = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_found *f = &p->mirrors[i].found;

		f->counts = f->listed;
		f->candidate = f->listed && f->header->state == PERSEAS__STATE__STATE_CONSISTENT;
		answered |= (uint32_t)f->listed << i;
	}
	newest = ps_newest(p);
	if (!ps_quorum_claims(p, answered) && !(newest && ps_accepted(p, newest)))
		return ps_too_few(p, answered, newest);
	return p->salvage || !newest ? 0 : ps_adoptable(p, answered, newest);
}

int ps_probe_judge(struct perseas *p)
{
	int rc = choose_store(p);

	if (rc == PERSEAS_ENOSTORE)
		return no_store(p);
	if (rc)
		return rc;
	settle(p);
	/* What an attempt before made of it may be recorded nowhere. */
	ps_roster_free(&p->roster);
	ps_roster_free(&p->next_roster);
	rc = ps_probe_roster(p);
	if (!rc)
		rc = ask_members(p);
	if (!rc)
		rc = check_live(p);
	return rc ? rc : check_reach(p);
}
