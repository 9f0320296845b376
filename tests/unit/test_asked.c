/*
 * test_asked.c - which request a reply answers, and for what an answer counts.
 */
#include "owner.h"
#include "../support/messages.h"
#include "../../client/host/asked.h"
#include "../../client/core/mirror.h"
#include "../../client/keeper/operator_orders.h"
#include "../../client/keeper/heartbeat.h"
#include "../../client/keeper/rpc.h"

static Perseas__Reply a_reply(uint64_t id, Perseas__Reply__BodyCase body)
{
	static Perseas__WorkingReply working = PERSEAS__WORKING_REPLY__INIT;
	Perseas__Reply reply = PERSEAS__REPLY__INIT;

	reply.id = id;
	reply.body_case = body;
	if (body == PERSEAS__REPLY__BODY_WORKING)
		reply.working = &working;
	return reply;
}

static enum ps_match match(struct ps_asked *asked, uint64_t id, Perseas__Reply__BodyCase body)
{
	Perseas__Reply reply = a_reply(id, body);

	return ps_asked_match(asked, &reply);
}

/* Asks as often as allowed at once, and gets answers in order, round after round. */
TEST(replies_answer_the_oldest_request)
{
	struct ps_asked asked = { 0 };
	uint64_t next = 1;

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < PS_ASKED_MAX; i++)
			assert_int_equal(ps_asked_add(&asked, i % 2 ? PERSEAS__REQUEST__BODY_READ
			                                            : PERSEAS__REQUEST__BODY_LIST),
			                 next + i);
		for (unsigned i = 0; i < PS_ASKED_MAX; i++) {
			Perseas__Reply__BodyCase kind = i % 2 ? PERSEAS__REPLY__BODY_READ
			                                      : PERSEAS__REPLY__BODY_LIST;
			Perseas__Reply__BodyCase other = i % 2 ? PERSEAS__REPLY__BODY_LIST
			                                       : PERSEAS__REPLY__BODY_READ;

			assert_int_equal(match(&asked, next + 1, kind), PS_MATCH_NONE);
			assert_int_equal(match(&asked, next - 1, kind), PS_MATCH_NONE);
			assert_int_equal(match(&asked, next, other), PS_MATCH_NONE);
			assert_int_equal(match(&asked, next++, kind), PS_MATCH_ANSWER);
		}
		assert_int_equal(match(&asked, next, PERSEAS__REPLY__BODY_LIST), PS_MATCH_NONE);
	}
}

/* A refusal has no body, so that its id alone tells what it refuses. */
TEST(a_refusal_answers_any_kind)
{
	struct ps_asked asked = { 0 };
	Perseas__Reply reply = a_reply(1, PERSEAS__REPLY__BODY__NOT_SET);

	ps_asked_add(&asked, PERSEAS__REQUEST__BODY_CLAIM);
	reply.status = PERSEAS__STATUS__STATUS_BUSY;
	assert_int_equal(ps_asked_match(&asked, &reply), PS_MATCH_ANSWER);
	assert_int_equal(ps_asked_match(&asked, &reply), PS_MATCH_NONE);
}

/* Signs of progress count for the request that is worked on, and each must tell of more. */
TEST(signs_of_progress_grow)
{
	struct ps_asked asked = { 0 };
	Perseas__Reply reply = a_reply(1, PERSEAS__REPLY__BODY_WORKING);

	for (unsigned i = 0; i < 2; i++) {
		ps_asked_add(&asked, PERSEAS__REQUEST__BODY_CLAIM);
		reply.id = asked.last;
		reply.working->done = 1;
		assert_int_equal(ps_asked_match(&asked, &reply), PS_MATCH_WORKING);
		assert_int_equal(ps_asked_match(&asked, &reply), PS_MATCH_NONE);
		reply.working->done = 2;
		assert_int_equal(ps_asked_match(&asked, &reply), PS_MATCH_WORKING);
		reply.id++;
		reply.working->done = 3;
		assert_int_equal(ps_asked_match(&asked, &reply), PS_MATCH_NONE);
		assert_int_equal(match(&asked, asked.last, PERSEAS__REPLY__BODY_CLAIM),
		                 PS_MATCH_ANSWER);
	}
}

/* The owner has asked all its mirrors for a sign of life, and has not looked at the answers, when
 * another one takes over. Those answers are good, and say nothing of the time after. */
TEST_WITH(what_was_asked_before_counts_for_nothing, owner_setup_three, owner_teardown,
          struct owner *o)
{
	perseas_t *second;

	o->p->upkeep.next_heartbeat_at = 0;
	o->p->is_admin_taken = true;
	ps_heartbeat_step(o->p, ps_now(o->p));
	for (unsigned i = 0; i < 3; i++)
		assert_true(o->p->mirrors[i].pending_answers.answer_count);
	second = owner_rival(o);
	assert_int_equal(ps_await_claim_confirmations(o->p, 7), 0);
	o->p->is_admin_taken = false;
	assert_int_equal(perseas_close(second), 0);
}

/* Lets the mirror's next sign of life tell the owner of this order. Returns the number of the last
 * order that was carried out. */
static uint8_t hear_order(struct owner *o, unsigned mirror, uint8_t id, const char *address)
{
	uint8_t bytes[PS_ID_SIZE] = { id };
	Perseas__Order order = MESSAGE_OF(Order, order, .id = { PS_ID_SIZE, bytes },
	                                  .kind = PERSEAS__ORDER_KIND__ORDER_REMOVE,
	                                  .address = (char *)address, .with = (char *)"");
	Perseas__OrderRequest request = MESSAGE_OF(OrderRequest, order_request,
	                                           .store = (char *)STORE, .order = &order);
	struct why why;

	assert_int_equal(store_order(o->d->mirrors[mirror].stores, &request, &why), 0);
	o->p->upkeep.next_heartbeat_at = 0;
	ps_admin_enter(o->p);
	ps_heartbeat_step(o->p, ps_now(o->p));
	ps_heartbeat_step(o->p, ps_now(o->p));
	ps_orders_carry_out_waiting_order(o->p);
	ps_admin_leave(o->p);
	assert_int_equal(o->p->upkeep.change.stage, PS_CHANGE_NONE);
	return o->p->upkeep.change.order_id[0];
}

/* Two orders were carried out, and a mirror that was stopped meanwhile tells of the first one: it
 * is not carried out again. */
TEST_WITH(an_order_is_carried_out_once, owner_setup_three, owner_teardown, struct owner *o)
{
	assert_int_equal(hear_order(o, 0, 1, "192.0.2.1:7170"), 1);
	assert_int_equal(hear_order(o, 1, 2, "192.0.2.1:7170"), 2);
	assert_int_equal(hear_order(o, 2, 1, "192.0.2.1:7170"), 2);
}

/* An owner that salvages a store only reads it, and operators see it as a live owner. */
TEST_WITH(an_owner_that_saves_changes_no_roster, owner_setup_three, owner_teardown, struct owner *o)
{
	assert_int_equal(owner_open(o, PERSEAS_SALVAGE), 0);
	assert_int_equal(hear_order(o, 0, 1, "sim://2"), 1);
	assert_int_equal(o->p->upkeep.change.result_code, PERSEAS_ESALVAGE);
	owner_reopen(o);
	assert_int_equal(o->p->member_count, 3);
}

/* Every status but OK is an error, and those that a client goes by have codes of their own. */
TEST(every_refusal_has_its_code)
{
	static const struct {
		Perseas__Status status;
		int code;
	} codes[] = {
		{ PERSEAS__STATUS__STATUS_OK, 0 },
		{ PERSEAS__STATUS__STATUS_BAD_REQUEST, PERSEAS_EPROTOCOL },
		{ PERSEAS__STATUS__STATUS_NO_STORE, PERSEAS_ENOSTORE },
		{ PERSEAS__STATUS__STATUS_EXISTS, PERSEAS_EEXIST },
		{ PERSEAS__STATUS__STATUS_BUSY, PERSEAS_EBUSY },
		{ PERSEAS__STATUS__STATUS_STALE_EPOCH, PERSEAS_EFENCED },
		{ PERSEAS__STATUS__STATUS_NO_SESSION, PERSEAS_EFENCED },
		{ PERSEAS__STATUS__STATUS_NO_MEMORY, PERSEAS_EMIRRORMEM },
		{ PERSEAS__STATUS__STATUS_DAMAGED, PERSEAS_EDAMAGED },
		{ PERSEAS__STATUS__STATUS_BAD_STATE, PERSEAS_EPROTOCOL },
		{ PERSEAS__STATUS__STATUS_BAD_VERSION, PERSEAS_EVERSION },
		{ PERSEAS__STATUS__STATUS_LIMIT, PERSEAS_ELIMIT },
		{ PERSEAS__STATUS__STATUS_IO, PERSEAS_ESYSTEM },
		{ PERSEAS__STATUS__STATUS_DENIED, PERSEAS_EDENIED },
		{ PERSEAS__STATUS__STATUS_NO_RDMA, PERSEAS_ERDMA },
		{ PERSEAS__STATUS__STATUS_OTHER, PERSEAS_EUNREACHABLE },
	};
	Perseas__Reply reply = a_reply(1, PERSEAS__REPLY__BODY__NOT_SET);

	assert_int_equal(sizeof(codes) / sizeof(codes[0]), perseas__status__descriptor.n_values);
	reply.message = (char *)(uintptr_t) "not today";
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct ps_error error = { 0 };

		reply.status = codes[i].status;
		assert_int_equal(ps_asked_refusal(&reply, "host:1", &error), codes[i].code);
		assert_int_equal(error.code, codes[i].code);
		assert_string_equal(error.text, codes[i].code ? "host:1: not today" : "");
	}
}
