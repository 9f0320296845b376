/*
 * probe.c - what the mirrors have, before anything is claimed: a refused open fences nobody.
 */
#include "claim.h"
#include "mirror.h"

#include <stdio.h>
#include <string.h>

static void forget(struct perseas *p, struct ps_mirror *m)
{
	ps_mirror_disconnect(p, m);
	if (m->found.header)
		perseas__header__free_unpacked(m->found.header, NULL);
	memset(&m->found, 0, sizeof(m->found));
	m->found.member = -1;
	m->votes = false;
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

int ps_probe(struct perseas *p)
{
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_round round;

	ask.store = p->store;
	request.body_case = PERSEAS__REQUEST__BODY_STATUS;
	request.status = &ask;
	memset(round.errors, 0, sizeof(round.errors));
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		forget(p, m);
		m->control = p->env->ops->connect(p->env, &m->address, &round.errors[i]);
		round.ask[i] = true;
		round.requests[i] = &request;
	}
	ps_round_run(p, &round, ps_now(p) + ps_ms(p->options.connect_timeout_ms));
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		m->found.error = round.errors[i];
		m->found.code = round.errors[i].code;
		if (round.replies[i])
			note_status(m, round.replies[i]->store->status);
	}
	for (unsigned i = p->mirror_count; i < PS_MIRRORS_MAX; i++)
		round.replies[i] = NULL;
	ps_round_free(&round);
	return 0;
}

static const Perseas__Roster *newest(const Perseas__Header *header)
{
	const Perseas__Roster *next = header->next_roster;

	return next && next->version > header->roster->version ? next : header->roster;
}

static int index_of(const Perseas__Roster *roster, ProtobufCBinaryData image)
{
	for (size_t i = 0; i < roster->n_members; i++)
		if (ps_id_equal(roster->members[i]->image_id, image.data))
			return (int)i;
	return -1;
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

/* The newest roster that mirrors with this store tell of. */
static const Perseas__Roster *find_roster(const struct perseas *p, const uint8_t *store_id)
{
	const Perseas__Roster *best = NULL;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		if (has_store(m, store_id) && created(m) &&
		    (!best || newest(m->found.header)->version > best->version))
			best = newest(m->found.header);
	}
	return best;
}

/* How many images of this store are there that its newest roster lists. */
static unsigned weight(const struct perseas *p, const uint8_t *store_id)
{
	const Perseas__Roster *roster = find_roster(p, store_id);
	unsigned count = 0;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];

		count += has_store(m, store_id) && created(m) &&
		         index_of(roster, m->found.header->image_id) >= 0;
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

		if (w && w == best && memcmp(id, p->store_id, PS_ID_SIZE))
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

/* Which member of the roster a mirror without a listed image must be: by its address. */
static int member_by_address(const struct perseas *p, const struct ps_mirror *m)
{
	for (size_t k = 0; k < p->roster->n_members; k++) {
		bool taken = false;

		for (unsigned i = 0; i < p->mirror_count; i++)
			taken |= p->mirrors[i].found.member == (int)k;
		if (!taken && !strcmp(p->roster->members[k]->address, m->address.text))
			return (int)k;
	}
	return -1;
}

static void forget_roster(struct perseas *p)
{
	if (p->roster)
		perseas__roster__free_unpacked(p->roster, NULL);
	p->roster = NULL;
}

static int find_members(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		m->found.member = has_store(m, p->store_id)
		                          ? index_of(p->roster, m->found.header->image_id) : -1;
		for (unsigned k = 0; k < i && m->found.member >= 0; k++)
			if (p->mirrors[k].found.member == m->found.member)
				return ps_fail(p, PERSEAS_EINVAL,
				               "%s and %s are the same mirror: name it once",
				               p->mirrors[k].address.text, m->address.text);
	}
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];
		int member = m->found.member >= 0 ? m->found.member : member_by_address(p, m);

		m->votes = member >= 0;
		if (m->votes)
			memcpy(m->image_id, p->roster->members[member]->image_id.data, PS_ID_SIZE);
	}
	return 0;
}

int ps_probe_roster(struct perseas *p)
{
	const Perseas__Roster *found = find_roster(p, p->store_id);
	Perseas__Roster *copy;

	/* One that was seen stays the newest, also when its mirror does not answer again. */
	if (found && (!p->roster || found->version > p->roster->version)) {
		copy = ps_roster_copy(found);
		if (!copy)
			return ps_fail(p, PERSEAS_ENOMEM, "out of memory");
		forget_roster(p);
		p->roster = copy;
	}
	p->members = (unsigned)p->roster->n_members;
	p->acks = p->roster->acks;
	return find_members(p);
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

int ps_probe_judge(struct perseas *p)
{
	int rc = choose_store(p);

	if (rc == PERSEAS_ENOSTORE)
		return no_store(p);
	if (rc)
		return rc;
	settle(p);
	/* What an attempt before made of it may be recorded nowhere. */
	forget_roster(p);
	rc = ps_probe_roster(p);
	return rc ? rc : check_live(p);
}
