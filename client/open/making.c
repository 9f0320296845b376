/*
 * making.c - see making.h. create.c and the probe of an open call it. It must never abandon a
 * making on a member before every earlier member of the making's roster has abandoned it or
 * answered that it has no image of it: the first of these members decides, or the next if the first
 * has lost its memory.
 */
#include "making.h"

#include "../core/mirror.h"
#include "../keeper/rpc.h"
#include "../keeper/session.h"

#include <string.h>

static uint64_t answer_deadline(struct perseas *p)
{
	return ps_now(p) + ps_ms(p->options.connect_timeout_ms);
}

/* Asks one mirror. Disconnects it if it times out, so that a late answer is not taken for that of a
 * later request. */
static int ask_mirror(struct perseas *p, struct ps_mirror *m, const Perseas__Request *request,
                      Perseas__Reply **reply, struct ps_error *error)
{
	int rc = ps_ask_mirror_and_wait(p, m, request, answer_deadline(p), reply, NULL, error);

	if (rc == PERSEAS_EUNREACHABLE)
		ps_mirror_disconnect(p, m);
	return rc;
}

int ps_making_settle_at_mirror(struct perseas *p, struct ps_mirror *m, const uint8_t *store_id,
                               struct ps_error *error)
{
	Perseas__SettleRequest body = PERSEAS__SETTLE_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(settle, SETTLE, &body);
	Perseas__Reply *reply;
	int rc;

	body.store = p->store;
	body.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, (uint8_t *)store_id };
	rc = ask_mirror(p, m, &request, &reply, error);
	perseas__reply__free_unpacked(reply, NULL);
	return rc;
}

/* --- completing --- */

static bool has_image_past_joining(const struct perseas *p, const struct ps_mirror *m)
{
	return ps_has_store(p, m) && m->probe.header->state != PERSEAS__STATE__STATE_JOINING;
}

static const Perseas__Roster *find_making_roster(const struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (has_image_past_joining(p, &p->mirrors[i]) &&
		    p->mirrors[i].probe.header->state == PERSEAS__STATE__STATE_CREATING)
			return p->mirrors[i].probe.header->roster;
	return NULL;
}

static bool is_same_id(ProtobufCBinaryData a, ProtobufCBinaryData b)
{
	return b.len == PS_ID_SIZE && ps_id_equal(a, b.data);
}

/* Returns the mirror that has this member's image, or an image that was loaded from its spill, or
 * NULL. */
static struct ps_mirror *find_holder_of_member_image(struct perseas *p,
                                                     const Perseas__Member *member)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (has_image_past_joining(p, m) &&
		    (is_same_id(m->probe.header->image_id, member->image_id) ||
		     is_same_id(m->probe.header->parent_id, member->image_id)))
			return m;
	}
	return NULL;
}

/* Sets an error for every mirror that is still `creating`, so that the open does not use it. */
static void exclude_unsettled_mirrors(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		struct ps_mirror *m = &p->mirrors[i];

		if (has_image_past_joining(p, m) &&
		    m->probe.header->state == PERSEAS__STATE__STATE_CREATING)
			m->probe.code = ps_error_set(&m->probe.error, PERSEAS_EUNREACHABLE,
			                             "%s: the creation of store '%s' is not "
			                             "settled there yet",
			                             m->address.text, p->store);
	}
}

/* Sends Settle to the members that are in this state, in the roster's order. Returns false if one
 * did not grant it; then later members were not asked. */
static bool settle_members_in_state(struct perseas *p, const Perseas__Roster *roster,
                                    Perseas__State state)
{
	for (size_t k = 0; k < roster->n_members; k++) {
		struct ps_mirror *m = find_holder_of_member_image(p, roster->members[k]);

		if (!m || m->probe.header->state != state)
			continue;
		m->probe.code = ps_making_settle_at_mirror(p, m, p->store_id, &m->probe.error);
		if (m->probe.code)
			return false;
		m->probe.header->state = PERSEAS__STATE__STATE_CONSISTENT;
	}
	return true;
}

void ps_making_complete(struct perseas *p)
{
	const Perseas__Roster *roster = find_making_roster(p);

	/* Mirrors that were consistent must confirm it first: one that does not may have been
	 * restarted, and the making may be withdrawn on the others by now. */
	if (roster && settle_members_in_state(p, roster, PERSEAS__STATE__STATE_CONSISTENT))
		settle_members_in_state(p, roster, PERSEAS__STATE__STATE_CREATING);
	exclude_unsettled_mirrors(p);
}

/* --- withdrawing --- */

/* Returns the mirror at this address, connected: the handle's own, or *visited, which the caller
 * must disconnect. Returns NULL with *error if there is no connection. */
static struct ps_mirror *connect_mirror_at_address(struct perseas *p, const char *address,
                                                   struct ps_mirror *visited,
                                                   struct ps_error *error)
{
	struct ps_mirror *m = visited;

	memset(visited, 0, sizeof(*visited));
	if (ps_address_parse(address, &visited->address, error))
		return NULL;
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (!strcmp(p->mirrors[i].address.text, visited->address.text))
			m = &p->mirrors[i];
	if (!m->control)
		m->control = p->env->ops->connect(p->env, &m->address, error);
	return m->control ? m : NULL;
}

/* One step of the making at a mirror that has been reached. Returns 0 or an error code with *error.
 * Sets *decided to true if the mirror shows that the making is decided. */
typedef int making_step(struct perseas *p, struct ps_mirror *m, const uint8_t *store_id,
                        bool *decided, struct ps_error *error);

/* Asks a mirror for its image of the store. Sets *has_image to true if the image is of this making,
 * and *decided to true if it is past `creating`. Returns 0, also if the mirror has no image, or an
 * error code. */
static int ask_for_making(struct perseas *p, struct ps_mirror *m, const uint8_t *store_id,
                          bool *has_image, bool *decided, struct ps_error *error)
{
	Perseas__StatusRequest body = PERSEAS__STATUS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(status, STATUS, &body);
	const Perseas__Header *header;
	Perseas__Reply *reply;
	int rc;

	*has_image = false;
	body.store = p->store;
	rc = ask_mirror(p, m, &request, &reply, error);
	if (rc)
		return rc == PERSEAS_ENOSTORE ? 0 : rc;
	header = reply->store->status->header;
	*has_image = ps_id_equal(header->store_id, store_id);
	*decided = *has_image && header->state != PERSEAS__STATE__STATE_CREATING;
	perseas__reply__free_unpacked(reply, NULL);
	return 0;
}

static int check_decided_step(struct perseas *p, struct ps_mirror *m, const uint8_t *store_id,
                              bool *decided, struct ps_error *error)
{
	bool has_image;

	return ask_for_making(p, m, store_id, &has_image, decided, error);
}

/* Sends Abandon to a mirror. If the mirror refuses, asks for its image to learn why: the making
 * may be decided, gone, or about to end. Returns 0 if it has no image of the making, or a
 * decided one. */
static int abandon_step(struct perseas *p, struct ps_mirror *m, const uint8_t *store_id,
                        bool *decided, struct ps_error *error)
{
	Perseas__AbandonRequest body = PERSEAS__ABANDON_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(abandon, ABANDON, &body);
	struct ps_error refusal;
	Perseas__Reply *reply;
	bool has_image;
	int rc;

	body.store = p->store;
	body.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, (uint8_t *)store_id };
	rc = ask_mirror(p, m, &request, &reply, error);
	perseas__reply__free_unpacked(reply, NULL);
	if (!rc || rc == PERSEAS_ENOSTORE)
		return 0;
	if (rc != PERSEAS_EPROTOCOL)
		return rc;
	refusal = *error;
	rc = ask_for_making(p, m, store_id, &has_image, decided, error);
	if (rc || !has_image || *decided)
		return rc;
	*error = refusal;
	return refusal.code;
}

static int settle_step(struct perseas *p, struct ps_mirror *m, const uint8_t *store_id,
                       bool *decided, struct ps_error *error)
{
	const int rc = ps_making_settle_at_mirror(p, m, store_id, error);

	*decided = *decided || !rc;
	return rc;
}

static int run_step_at_address(struct perseas *p, making_step *step, const char *address,
                               const uint8_t *store_id, bool *decided, struct ps_error *error)
{
	struct ps_mirror visited, *m = connect_mirror_at_address(p, address, &visited, error);
	int rc = m ? step(p, m, store_id, decided, error) : error->code;

	if (m == &visited)
		ps_mirror_disconnect(p, m);
	return rc;
}

/* Runs a step at every member in the roster's order, until one fails or *decided is set. *index is
 * the index of that member. */
static int run_step_at_members(struct perseas *p, making_step *step, const uint8_t *store_id,
                               const Perseas__Roster *roster, size_t *index, bool *decided,
                               struct ps_error *error)
{
	int rc = 0;

	for (*index = 0; *index < roster->n_members; (*index)++) {
		rc = run_step_at_address(p, step, roster->members[*index]->address, store_id,
		                         decided, error);
		if (rc || *decided)
			break;
	}
	return rc;
}

/* Settles the making on all members, beginning with member `first`, which has settled before. If
 * that one no longer confirms it, the making may be withdrawn on the others by now. The next open
 * settles members that fail here. */
static void settle_decided_making(struct perseas *p, const uint8_t *store_id,
                                  const Perseas__Roster *roster, size_t first)
{
	struct ps_error ignored = { 0 };
	bool decided = true;
	int rc = run_step_at_address(p, settle_step, roster->members[first]->address, store_id,
	                             &decided, &ignored);

	for (size_t k = 0; k < roster->n_members && !rc; k++)
		if (k != first)
			rc = run_step_at_address(p, settle_step, roster->members[k]->address,
			                         store_id, &decided, &ignored);
}

int ps_making_withdraw(struct perseas *p, const uint8_t *store_id, const Perseas__Roster *roster,
                       bool *decided)
{
	struct ps_error error = { 0 };
	size_t index;
	int rc;

	*decided = false;
	rc = run_step_at_members(p, check_decided_step, store_id, roster, &index, decided, &error);
	if (!rc && !*decided)
		rc = run_step_at_members(p, abandon_step, store_id, roster, &index, decided,
		                         &error);
	if (*decided)
		settle_decided_making(p, store_id, roster, index);
	if (!rc || *decided)
		return 0;
	return ps_fail(p, rc, "an unfinished creation of store '%s' cannot be withdrawn: %s",
	               p->store, error.text);
}
