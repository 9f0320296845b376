/*
 * create.c - creates a store on all mirrors or on none. It sends Create to one mirror after the
 * other in the roster's order, then Settle in the same order; the store exists once the first
 * mirror has settled. So if several processes create the same store, at most one succeeds.
 * Unfinished creations of others are withdrawn first (making.c). ps_create and an open with
 * PERSEAS_CREATE call it after a probe. It must never abandon a making that may be decided, except
 * as making.c does.
 */
#include "create.h"

#include "../keeper/attempt.h"
#include "examine.h"
#include "making.h"
#include "named_list.h"
#include "../core/mirror.h"
#include "../keeper/roster.h"
#include "../keeper/rpc.h"
#include "../keeper/session.h"

#include <string.h>

static bool is_image_creating(const struct ps_probe_result *f)
{
	return !f->code && f->header->state == PERSEAS__STATE__STATE_CREATING;
}

/* Fails if two addresses lead to the same daemon: they would count as two mirrors. */
static int check_distinct_daemons(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		for (unsigned k = 0; k < i; k++)
			if (ps_known_daemon_id(p->mirrors[i].daemon_id) &&
			    !memcmp(p->mirrors[i].daemon_id, p->mirrors[k].daemon_id, PS_ID_SIZE))
				return ps_fail(p, PERSEAS_EINVAL,
				               "%s and %s are the same mirror: name it once",
				               p->mirrors[k].address.text,
				               p->mirrors[i].address.text);
	return 0;
}

/* Fails unless every mirror answered and none has the store. */
static int check_store_name_free(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];
		const struct ps_probe_result *f = &m->probe;

		if (!f->code && !is_image_creating(f))
			return ps_fail(p, PERSEAS_EEXIST,
			               "%s has a store '%s' already: open it, or take another name",
			               m->address.text, p->store);
		if (f->code && f->code != PERSEAS_ENOSTORE)
			return ps_fail(p, f->code, "creating needs every mirror of the list: %s",
			               f->error.text);
	}
	return 0;
}

static unsigned given_acks_or_majority(const struct perseas *p)
{
	return p->options.acks ? p->options.acks : p->mirror_count / 2 + 1;
}

/* Returns true if a mirror has settled the store that an earlier attempt of this process created,
 * without knowing so. */
static bool has_own_creation_settled(const struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_probe_result *f = &p->mirrors[i].probe;

		if (!f->code && !is_image_creating(f) &&
		    ps_id_equal(f->header->store_id, p->store_id))
			return true;
	}
	return false;
}

/* Settles the store that an earlier attempt created. Succeeds if the first W or more mirrors
 * confirm it, because then no other process withdraws it. */
static int complete_own_earlier_creation(struct perseas *p)
{
	unsigned confirmed_count = 0;

	ps_making_complete(p);
	while (confirmed_count < p->mirror_count && !p->mirrors[confirmed_count].probe.code &&
	       ps_id_equal(p->mirrors[confirmed_count].probe.header->store_id, p->store_id))
		confirmed_count++;
	if (confirmed_count >= given_acks_or_majority(p))
		return 0;
	return ps_fail(p, PERSEAS_EUNREACHABLE,
	               "store '%s' is made, but only %u of %u mirrors confirm it: open it when the "
	               "others are there",
	               p->store, confirmed_count, p->mirror_count);
}

struct create_requests {
	Perseas__Roster roster;
	Perseas__Member members[PS_MIRRORS_MAX], *list[PS_MIRRORS_MAX];
	Perseas__CreateRequest bodies[PS_MIRRORS_MAX];
	Perseas__Request requests[PS_MIRRORS_MAX];
	uint8_t ids[PS_MIRRORS_MAX][PS_ID_SIZE];
};

/* Returns the level at which the store is created: the highest that all mirrors support, or 0 with
 * PERSEAS_LEVEL_0. */
static uint32_t highest_common_level(const struct perseas *p)
{
	uint32_t level = p->options.flags & PERSEAS_LEVEL_0 ? 0 : PS_LEVEL_MAX;

	for (unsigned i = 0; i < p->mirror_count; i++) {
		const uint32_t read = ps_roster_readable_level(p, &p->mirrors[i]);

		level = read < level ? read : level;
	}
	return level;
}

/* Draws the id of the store. At level 1, draws the key and derives the id from it. */
static void draw_store_id(struct perseas *p, const Perseas__Roster *roster)
{
	if (roster->level == 0) {
		p->env->ops->random(p->env, p->store_id, PS_ID_SIZE);
		return;
	}
	p->env->ops->random(p->env, p->key, sizeof(p->key));
	ps_key_store_id(p->key, p->store_id);
}

static void prepare_create_requests(struct perseas *p, struct create_requests *making)
{
	p->env->ops->random(p->env, making->ids, sizeof(making->ids));
	perseas__roster__init(&making->roster);
	making->roster.version = 1;
	making->roster.level = highest_common_level(p);
	making->roster.filling = p->fills_new_store && making->roster.level > 0;
	draw_store_id(p, &making->roster);
	making->roster.acks = given_acks_or_majority(p);
	making->roster.n_members = p->mirror_count;
	making->roster.members = making->list;
	for (unsigned i = 0; i < p->mirror_count; i++) {
		Perseas__CreateRequest *body = &making->bodies[i];

		perseas__member__init(&making->members[i]);
		making->members[i].address = p->mirrors[i].address.text;
		making->members[i].image_id = (ProtobufCBinaryData){ PS_ID_SIZE, making->ids[i] };
		making->list[i] = &making->members[i];
		perseas__create_request__init(body);
		body->store = p->store;
		body->store_id = (ProtobufCBinaryData){ PS_ID_SIZE, p->store_id };
		body->image_id = making->members[i].image_id;
		body->log_size = p->options.log_size;
		body->roster = &making->roster;
		if (making->roster.level > 0)
			body->key = (ProtobufCBinaryData){ PS_KEY_SIZE, p->key };
		making->requests[i] = PS_REQUEST(create, CREATE, body);
	}
}

int ps_create_withdraw_unfinished(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const Perseas__Header *header = p->mirrors[i].probe.header;
		bool decided;
		int rc;

		if (!is_image_creating(&p->mirrors[i].probe))
			continue;
		if (header->roster->filling && !p->fills_new_store)
			return ps_fail_restore_unfinished(p);
		rc = ps_making_withdraw(p, header->store_id.data, header->roster, &decided);
		if (rc)
			return rc;
		ps_report_add_line(p, "%s: an unfinished creation of store '%s' is %s",
		                   p->mirrors[i].address.text, p->store,
		                   decided ? "completed" : "withdrawn");
		if (decided)
			return PS_AGAIN;
	}
	return 0;
}

/* Abandons the creation on all mirrors. Settle was not sent to any, so none has the store as
 * consistent. */
static void abandon_creation_on_mirrors(struct perseas *p)
{
	Perseas__AbandonRequest body = PERSEAS__ABANDON_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(abandon, ABANDON, &body);

	body.store = p->store;
	body.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, p->store_id };
	ps_ask_mirrors_and_wait(p, (uint32_t)((UINT64_C(1) << p->mirror_count) - 1), &request);
}

/* Sends Create to one mirror after the other. Stops at the first that refuses, and abandons the
 * creation. Returns 0, PS_AGAIN if another process is creating the store, or an error code. */
static int create_on_mirrors(struct perseas *p, const struct create_requests *making)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_error error = { 0 };
		Perseas__Reply *reply;
		int rc = ps_ask_mirror_and_wait(p, &p->mirrors[i], &making->requests[i],
		                                ps_now(p) + ps_ms(p->options.connect_timeout_ms),
		                                &reply, NULL, &error);

		if (!rc) {
			perseas__reply__free_unpacked(reply, NULL);
			continue;
		}
		abandon_creation_on_mirrors(p);
		if (rc != PERSEAS_EEXIST)
			return ps_fail(p, rc, "creating needs every mirror of the list: %s",
			               error.text);
		ps_report_add_line(p, "%s; another process creates it at the same time",
		                   error.text);
		return PS_AGAIN;
	}
	return 0;
}

/* Withdraws the creation after the first mirror did not confirm Settle. Only that mirror can tell
 * whether it settled. Returns PS_AGAIN, or PERSEAS_EUNREACHABLE if it does not answer. */
static int withdraw_undecided_creation(struct perseas *p, const struct create_requests *making,
                                       const struct ps_error *error)
{
	bool decided;

	ps_report_add_line(p, "%s; so the creation of store '%s' is withdrawn", error->text,
	                   p->store);
	if (ps_making_withdraw(p, p->store_id, &making->roster, &decided))
		return ps_fail(p, PERSEAS_EUNREACHABLE,
		               "whether store '%s' was made is not known: %s; create it again, or "
		               "open it, when that mirror answers",
		               p->store, error->text);
	return PS_AGAIN;
}

static int settle_creation_on_mirrors(struct perseas *p, const struct create_requests *making)
{
	unsigned settled_count = 0;

	while (settled_count < p->mirror_count) {
		struct ps_error error = { 0 };

		if (!ps_making_settle_at_mirror(p, &p->mirrors[settled_count], p->store_id,
		                                &error)) {
			settled_count++;
			continue;
		}
		if (!settled_count)
			return withdraw_undecided_creation(p, making, &error);
		ps_report_add_line(p, "%s; the next open settles the store there", error.text);
		break;
	}
	/* With W mirrors settled, the store survives the failures that it must survive. With fewer,
	 * probe again. */
	return settled_count >= given_acks_or_majority(p) ? 0 : PS_AGAIN;
}

static unsigned count_mirrors_of_caller(const struct perseas *p)
{
	unsigned count = p->mirror_count;

	while (p->mirrors[count - 1].is_from_roster)
		count--;
	return count;
}

/* Removes mirrors that a roster added to the list. Their answers counted in the probe, but a store
 * is created only on the mirrors that the caller named. */
static void forget_mirrors_added_by_roster(struct perseas *p)
{
	ps_mirrors_forget_from_index(p, count_mirrors_of_caller(p));
}

int ps_create_after_probe(struct perseas *p)
{
	const unsigned given = count_mirrors_of_caller(p);
	struct ps_error error = { 0 };
	struct create_requests making;
	int rc = ps_mirror_list_await_name_lookup(p, &error);

	if (rc)
		return rc == PS_AGAIN ? rc : ps_fail_error(p, &error);
	if (p->options.acks > given)
		return ps_fail(p, PERSEAS_EINVAL, "%u mirrors cannot give %u acknowledgements",
		               given, p->options.acks);
	if (has_own_creation_settled(p))
		return complete_own_earlier_creation(p);
	rc = check_distinct_daemons(p);
	if (!rc)
		rc = check_store_name_free(p);
	if (!rc)
		rc = ps_create_withdraw_unfinished(p);
	if (rc)
		return rc;
	forget_mirrors_added_by_roster(p);
	prepare_create_requests(p, &making);
	rc = create_on_mirrors(p, &making);
	return rc ? rc : settle_creation_on_mirrors(p, &making);
}
