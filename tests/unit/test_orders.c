/*
 * test_orders.c - an operator orders something of an owner that is in the middle of something else.
 */
#include "roster_rig.h"

#include "../../client/keeper/change.h"
#include "../../client/keeper/operator_orders.h"
#include "../../client/keeper/heartbeat.h"

static int setup(void **state)
{
	*state = begin(3, 2);
	return 0;
}

struct unit_fixture unit_fixture = { setup, owner_teardown };

/* perseas roster, said to one mirror. */
static void order(struct owner *o, const char *mirror, char id, Perseas__OrderKind kind,
                  const char *which)
{
	const struct ps_env_ops *ops = o->p->env->ops;
	Perseas__OrderRequest ask = PERSEAS__ORDER_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	Perseas__Order said = PERSEAS__ORDER__INIT;
	uint8_t bytes[PS_ID_SIZE] = { 0xff, (uint8_t)id };
	struct ps_address address;
	struct ps_control *control;
	Perseas__Reply *reply;
	unsigned count;

	assert_int_equal(ps_address_parse(mirror, &address, &o->error), 0);
	control = ops->connect(o->p->env, &address, &o->error);
	assert_non_null(control);
	said.id = (ProtobufCBinaryData){ PS_ID_SIZE, bytes };
	said.kind = kind;
	if (kind == PERSEAS__ORDER_KIND__ORDER_ADD)
		said.with = (char *)(uintptr_t)which;
	else
		said.address = (char *)(uintptr_t)which;
	ask.store = o->p->store;
	ask.order = &said;
	request.body_case = PERSEAS__REQUEST__BODY_ORDER;
	request.order = &ask;
	assert_int_equal(ops->send(control, &request, &o->error), 0);
	assert_int_equal(ops->receive(control, PS_NEVER, &reply, NULL, &count, &o->error), 0);
	assert_int_equal(reply->status, PERSEAS__STATUS__STATUS_OK);
	perseas__reply__free_unpacked(reply, NULL);
	ops->disconnect(control);
}

static void order_cancel(struct owner *o, const char *mirror)
{
	order(o, mirror, 'c', PERSEAS__ORDER_KIND__ORDER_CANCEL, "");
}

/* The mirror that joins passes on the order to cancel the change, while the application waits for
 * that very mirror to make a segment: it takes part to the end, and leaves after that. */
TEST(test_an_order_ends_no_session_that_is_waited_for, struct owner *o)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_ADD, NULL, "sim://4", 0, 0 };
	struct perseas *p = o->p;
	void *addr;

	ps_admin_enter(p);
	assert_int_equal(ps_change_begin(p, &wanted, NULL), 0);
	ps_admin_leave(p);
	owner_keep(o, 3, PERSEAS_MIRROR_RESYNCING);
	order_cancel(o, "sim://4");
	p->upkeep.next_heartbeat_at = 0;
	p->is_admin_taken = true;
	ps_heartbeat_step(p, o->d->now);
	p->is_admin_taken = false;
	assert_true(p->mirrors[3].pending_answers.answer_count > 0);
	assert_int_equal(perseas_map(p, "other", 1000, &addr), 0);
	assert_int_equal(owner_state(o, 3), PERSEAS_MIRROR_RESYNCING);
	direct_keep(o->d, p);
	assert_int_equal(owner_state(o, 3), PERSEAS_MIRROR_REMOVED);
	assert_int_equal(p->upkeep.change.stage, PS_CHANGE_NONE);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
}

/* The next answer of a mirror brings the order, and the keeper obeys. */
static void hear(struct owner *o)
{
	struct perseas *p = o->p;

	p->upkeep.next_heartbeat_at = 0;
	p->is_admin_taken = true;
	ps_heartbeat_step(p, o->d->now);
	p->is_admin_taken = false;
	direct_keep(o->d, p);
	direct_keep(o->d, p);
}

/* A mirror tells of the order until it was told what became of it, and so once more after that. */
TEST(test_an_order_that_is_told_again_is_obeyed_once, struct owner *o)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_ADD, NULL, "sim://4", 0, 0 };
	struct perseas *p = o->p;

	assert_int_equal(owner_change(o, &wanted), 0);
	owner_keep(o, 3, PERSEAS_MIRROR_RESYNCING);
	order_cancel(o, "sim://1");
	for (unsigned rounds = 0; rounds < 5; rounds++)
		hear(o);
	assert_int_equal(p->upkeep.change.stage, PS_CHANGE_NONE);
	assert_string_equal(p->upkeep.change.text,
	                    "the change was taken back: the roster is as it was before");
}

/* Returns the result that the mirror was told about its last order. */
static const Perseas__OrderResult *result_at(struct owner *o, unsigned mirror)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	struct why why;

	assert_int_equal(store_status(o->d->mirrors[mirror].stores, STORE, &status, &why), 0);
	return status.result;
}

/* n and W before the change, and after it. */
static void assert_sizes(const Perseas__OrderResult *result, unsigned members_before,
                         unsigned acks_before, unsigned members, unsigned acks)
{
	assert_int_equal(result->members_before, members_before);
	assert_int_equal(result->acks_before, acks_before);
	assert_int_equal(result->members, members);
	assert_int_equal(result->acks, acks);
}

/* Asserts that the result has these bytes, sent to the mirror that joined, and this reason. */
static void assert_copy(const Perseas__OrderResult *result, uint64_t sent, const char *whole)
{
	assert_int_equal(result->sent, sent);
	assert_string_equal(result->whole, whole);
}

static void hear_until_told(struct owner *o, unsigned mirror)
{
	for (unsigned rounds = 0; !result_at(o, mirror) || !result_at(o, mirror)->done; rounds++) {
		assert_true(rounds < ROUNDS);
		hear(o);
	}
}

/* The mirror that passed an order on died before its end was told, and another one is given the
 * order when the next one was carried out already. Its end is told there, and it takes others. */
TEST(test_an_end_is_told_when_others_came_since, struct owner *o)
{
	order(o, "sim://1", 'a', PERSEAS__ORDER_KIND__ORDER_ADD, "sim://4");
	hear_until_told(o, 1);
	order(o, "sim://2", 'b', PERSEAS__ORDER_KIND__ORDER_ADD, "sim://0");
	hear_until_told(o, 2);
	assert_int_not_equal(result_at(o, 2)->code, 0);
	assert_sizes(result_at(o, 2), 0, 0, 0, 0);
	assert_copy(result_at(o, 2), 0, "");
	order(o, "sim://2", 'a', PERSEAS__ORDER_KIND__ORDER_ADD, "sim://4");
	hear_until_told(o, 2);
	assert_int_equal(result_at(o, 2)->code, 0);
	assert_string_equal(result_at(o, 2)->text, "the roster is changed");
	assert_sizes(result_at(o, 2), 3, 2, 4, 3);
	assert_copy(result_at(o, 2), SIZE, "joins");
	order(o, "sim://2", 'd', PERSEAS__ORDER_KIND__ORDER_REMOVE, "sim://4");
	hear_until_told(o, 2);
	assert_int_equal(result_at(o, 2)->code, 0);
	assert_sizes(result_at(o, 2), 4, 3, 3, 2);
	assert_copy(result_at(o, 2), 0, "");
	assert_int_equal(o->p->member_count, 3);
}

/* The owner cannot renew its claims, because the last mirror has no room for the copy. An order
 * that arrives meanwhile is not refused because mirrors are missing: it is carried out
 * afterwards. */
TEST(an_order_waits_until_claims_are_renewed, struct owner *o)
{
	direct_crash(o->d, 2);
	owner_die(o);
	reopen_with(o, 0, 3, 0);
	direct_crash(o->d, 1);
	memory_heap_set_limit(o->d->mirrors[2].memory, 1);
	direct_start(o->d, 2);
	OWNER_KEEP_UNTIL(o, o->p->is_renewing);
	order(o, "sim://0", 'w', PERSEAS__ORDER_KIND__ORDER_REMOVE, "sim://1");
	OWNER_KEEP_UNTIL(o, o->p->upkeep.orders.answer_with_waiting_order);
	for (unsigned rounds = 0; rounds < 200; rounds++)
		direct_keep_after(o->d, o->p, ps_ms(20));
	assert_true(o->p->is_renewing);
	assert_null(result_at(o, 0));
	memory_heap_set_limit(o->d->mirrors[2].memory, 0);
	OWNER_KEEP_UNTIL(o, !o->p->is_renewing);
	OWNER_KEEP_UNTIL(o, o->p->member_count == 2);
	assert_int_equal(o->p->upkeep.change.result_code, 0);
}

/* A mirror of the version before is told the result in words it knows, and no boot of this host. */
TEST_WITH(test_an_older_mirror_is_told_no_sizes, NULL, NULL)
{
	struct owner *o = owner_new(MIRRORS);

	o->d->mirrors[2].version = 8;
	open_well(o, 0, 3, PERSEAS_CREATE);
	o->p->env->has_boot_id = true;
	order(o, "sim://2", 'a', PERSEAS__ORDER_KIND__ORDER_ADD, "sim://4");
	hear_until_told(o, 2);
	assert_int_equal(result_at(o, 2)->code, 0);
	assert_sizes(result_at(o, 2), 0, 0, 0, 0);
	assert_copy(result_at(o, 2), 0, "");
	assert_int_equal(o->p->acks, 3);
	owner_free(o);
}

/* Returns what the mirror was told of where another one runs. */
static const Perseas__Location *location_at(struct owner *o, unsigned mirror, unsigned of)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	struct why why;

	assert_int_equal(store_status(o->d->mirrors[mirror].stores, STORE, &status, &why), 0);
	return of < status.n_mirrors ? status.mirrors[of]->location : NULL;
}

/* Each mirror tells its owner where it runs, and the owner tells all of them. A mirror of the
 * version before takes no part in this. */
TEST_WITH(mirrors_are_told_where_the_others_run, NULL, NULL)
{
	const struct labels first = { "h0", "r0", "" }, second = { "h1", "", "z1" };
	struct owner *o = owner_new(MIRRORS);

	stores_set_labels(o->d->mirrors[0].stores, &first);
	stores_set_labels(o->d->mirrors[1].stores, &second);
	stores_set_labels(o->d->mirrors[2].stores, &second);
	o->d->mirrors[2].version = 8;
	open_well(o, 0, 3, PERSEAS_CREATE);
	for (unsigned rounds = 0; !location_at(o, 0, 1) || !location_at(o, 1, 0); rounds++) {
		assert_true(rounds < ROUNDS);
		hear(o);
	}
	for (unsigned mirror = 0; mirror < 2; mirror++) {
		assert_string_equal(location_at(o, mirror, 0)->host, "h0");
		assert_string_equal(location_at(o, mirror, 0)->rack, "r0");
		assert_string_equal(location_at(o, mirror, 1)->zone, "z1");
		assert_null(location_at(o, mirror, 2));
	}
	assert_null(location_at(o, 2, 0));
	owner_free(o);
}

/* The keeper carries the change out and hears of an order before the waiting thread looks. */
static void keep_and_hear(void *arg)
{
	struct owner *o = arg;

	o->d->on_pause = NULL;
	pthread_mutex_unlock(&o->p->lock); /* a waiter would have released the lock, too */
	owner_keep_stage(o, PS_CHANGE_NONE);
	hear(o);
	pthread_mutex_lock(&o->p->lock);
}

TEST(test_whoever_waits_sees_the_end_of_its_own_change, struct owner *o)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_ADD, NULL, "sim://4", 0, 0 };

	order(o, "sim://2", 'b', PERSEAS__ORDER_KIND__ORDER_ADD, "sim://0");
	owner_at_pause(o, keep_and_hear);
	assert_int_equal(perseas_roster(o->p, &wanted), 0);
	assert_string_equal(o->p->upkeep.change.text, "the roster is changed");
	hear_until_told(o, 2);
	assert_int_equal(result_at(o, 2)->code, PERSEAS_EINVAL);
}

/* One of three mirrors that are all needed was lost, and so is its replacement: the change says why
 * it cannot be cancelled, and is cancelled after the first mirror has started again. */
TEST_WITH(test_a_cancel_waits_for_the_roster_as_it_was, NULL, NULL)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REPLACE, "sim://2", "sim://4",
		                                      0, 0 };
	struct owner *o = begin(3, 3);
	struct perseas *p = o->p;

	direct_crash(o->d, 2);
	assert_int_equal(owner_change(o, &wanted), 0);
	o->d->mirrors[4].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	owner_keep_stage(o, PS_CHANGE_JOINT);
	direct_crash(o->d, 4);
	direct_keep(o->d, p);
	order_cancel(o, "sim://1");
	hear(o);
	assert_int_equal(p->upkeep.change.stage, PS_CHANGE_JOINT);
	assert_non_null(strstr(p->upkeep.change.text, "cannot be taken back"));
	assert_non_null(strstr(p->upkeep.change.text, "not connected: sim://2"));
	direct_start(o->d, 2);
	for (unsigned rounds = 0; p->upkeep.change.stage != PS_CHANGE_NONE; rounds++) {
		assert_true(rounds < ROUNDS);
		hear(o);
	}
	assert_string_equal(p->upkeep.change.text,
	                    "the change was taken back: the roster is as it was before");
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	owner_free(o);
}

/* A repair is told as one that goes on, until it has ended. A second mirror that passes the same
 * order on is told the same end, and nothing is done again. */
TEST(a_repair_is_carried_out_once, struct owner *o)
{
	uint64_t asked;

	order(o, "sim://1", 'r', PERSEAS__ORDER_KIND__ORDER_REPAIR, "");
	o->p->is_admin_taken = true;
	for (unsigned rounds = 0; !result_at(o, 1) && rounds < ROUNDS; rounds++) {
		o->p->upkeep.next_heartbeat_at = 0;
		ps_heartbeat_step(o->p, o->d->now);
		ps_orders_carry_out_waiting_order(o->p);
	}
	o->p->is_admin_taken = false;
	assert_non_null(result_at(o, 1));
	assert_false(result_at(o, 1)->done);
	hear_until_told(o, 1);
	assert_int_equal(result_at(o, 1)->code, 0);
	assert_string_equal(result_at(o, 1)->text, "no mirror differs from the owner");
	assert_sizes(result_at(o, 1), 0, 0, 0, 0);
	asked = o->p->upkeep.last_question_id;
	order(o, "sim://2", 'r', PERSEAS__ORDER_KIND__ORDER_REPAIR, "");
	hear_until_told(o, 2);
	assert_string_equal(result_at(o, 2)->text, "no mirror differs from the owner");
	assert_int_equal(o->p->upkeep.last_question_id, asked);
}
