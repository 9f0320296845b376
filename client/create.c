/*
 * create.c - makes a store: on all mirrors or on none. Until every mirror has it, its state is
 * `creating`, in which nobody can claim it and a later create may replace it.
 */
#include "claim.h"
#include "mirror.h"

#include <string.h>

/* All must have answered, and none may have the store. */
static int check_free(struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++) {
		const struct ps_mirror *m = &p->mirrors[i];
		const struct ps_found *f = &m->found;

		if (!f->code && f->header->state != PERSEAS__STATE__STATE_CREATING)
			return ps_fail(p, PERSEAS_EEXIST,
			               "%s has a store '%s' already: open it, or take another name",
			               m->address.text, p->store);
		if (f->code && f->code != PERSEAS_ENOSTORE)
			return ps_fail(p, f->code, "creating needs every mirror of the list: %s",
			               f->error.text);
	}
	return 0;
}

struct making {
	Perseas__Roster roster;
	Perseas__Member members[PS_MIRRORS_MAX], *list[PS_MIRRORS_MAX];
	Perseas__CreateRequest bodies[PS_MIRRORS_MAX];
	Perseas__Request requests[PS_MIRRORS_MAX];
	uint8_t ids[PS_MIRRORS_MAX][PS_ID_SIZE];
};

static void prepare(struct perseas *p, struct making *making)
{
	p->env->ops->random(p->env, p->store_id, PS_ID_SIZE);
	p->env->ops->random(p->env, making->ids, sizeof(making->ids));
	perseas__roster__init(&making->roster);
	making->roster.version = 1;
	making->roster.acks = p->options.acks ? p->options.acks : p->mirror_count / 2 + 1;
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
		perseas__request__init(&making->requests[i]);
		making->requests[i].body_case = PERSEAS__REQUEST__BODY_CREATE;
		making->requests[i].create = body;
	}
}

/* The same request to every mirror. How many said yes; *failed is the first that did not. */
static unsigned ask_all(struct perseas *p, const Perseas__Request *one,
                        const Perseas__Request *each, struct ps_error *failed)
{
	struct ps_round round;
	unsigned yes = 0;

	memset(round.errors, 0, sizeof(round.errors));
	failed->code = 0;
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		round.ask[i] = i < p->mirror_count && p->mirrors[i].control;
		round.requests[i] = one ? one : &each[i];
	}
	ps_round_run(p, &round, ps_now(p) + ps_ms(p->options.connect_timeout_ms));
	for (unsigned i = 0; i < p->mirror_count; i++) {
		yes += round.replies[i] != NULL;
		if (!round.replies[i] && !failed->code)
			*failed = round.errors[i];
	}
	ps_round_free(&round);
	return yes;
}

static void abandon(struct perseas *p)
{
	Perseas__AbandonRequest body = PERSEAS__ABANDON_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_error ignored;

	body.store = p->store;
	body.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, p->store_id };
	request.body_case = PERSEAS__REQUEST__BODY_ABANDON;
	request.abandon = &body;
	ask_all(p, &request, NULL, &ignored);
}

int ps_create_probed(struct perseas *p)
{
	Perseas__SettleRequest body = PERSEAS__SETTLE_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct ps_error failed;
	struct making making;
	int rc;

	if (p->options.acks > p->mirror_count)
		return ps_fail(p, PERSEAS_EINVAL, "%u mirrors cannot give %u acknowledgements",
		               p->mirror_count, p->options.acks);
	rc = check_free(p);
	if (rc)
		return rc;
	prepare(p, &making);
	if (ask_all(p, NULL, making.requests, &failed) < p->mirror_count) {
		abandon(p);
		return ps_fail(p, failed.code, "creating needs every mirror of the list: %s",
		               failed.text);
	}
	body.store = p->store;
	body.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, p->store_id };
	request.body_case = PERSEAS__REQUEST__BODY_SETTLE;
	request.settle = &body;
	/* All have it: when one calls it consistent, the next open can settle the rest. */
	if (!ask_all(p, &request, NULL, &failed))
		return ps_fail(p, failed.code, "%s", failed.text);
	return 0;
}
