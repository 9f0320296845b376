/*
 * test_orders.c - an operator orders something of an owner that is in the middle of something else.
 */
#include "roster_rig.h"

#include "../../client/keeper/change.h"
#include "../../client/keeper/orders.h"
#include "../../client/keeper/pulse.h"

static int teardown(void **state)
{
	owner_free(*state);
	return 0;
}

static int setup(void **state)
{
	*state = begin(3, 2);
	return 0;
}

/* perseas roster cancel, said to one mirror. */
static void order_cancel(struct owner *o, const char *mirror)
{
	const struct ps_env_ops *ops = o->p->env->ops;
	Perseas__OrderRequest ask = PERSEAS__ORDER_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	Perseas__Order order = PERSEAS__ORDER__INIT;
	uint8_t id[PS_ID_SIZE] = "an order's own i";
	struct ps_address address;
	struct ps_control *control;
	Perseas__Reply *reply;
	unsigned count;

	assert_int_equal(ps_address_parse(mirror, &address, &o->error), 0);
	control = ops->connect(o->p->env, &address, &o->error);
	assert_non_null(control);
	order.id = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	order.kind = PERSEAS__ORDER_KIND__ORDER_CANCEL;
	ask.store = o->p->store;
	ask.order = &order;
	request.body_case = PERSEAS__REQUEST__BODY_ORDER;
	request.order = &ask;
	assert_int_equal(ops->send(control, &request, &o->error), 0);
	assert_int_equal(ops->receive(control, PS_NEVER, &reply, NULL, &count, &o->error), 0);
	assert_int_equal(reply->status, PERSEAS__STATUS__STATUS_OK);
	perseas__reply__free_unpacked(reply, NULL);
	ops->disconnect(control);
}

/* The mirror that is to join tells that the change is to be taken back, while the application waits
 * for that very mirror to make a segment: it takes part in that to its end, and leaves after it. */
static void test_an_order_ends_no_session_that_is_waited_for(void **state)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_ADD, NULL, "sim://4", 0, 0 };
	struct owner *o = *state;
	struct perseas *p = o->p;
	void *addr;

	ps_admin_enter(p);
	assert_int_equal(ps_change_begin(p, &wanted, NULL), 0);
	ps_admin_leave(p);
	owner_keep(o, 3, PERSEAS_MIRROR_RESYNCING);
	order_cancel(o, "sim://4");
	p->upkeep.pulse_at = 0;
	p->admin = true;
	ps_pulse(p, o->d->now);
	p->admin = false;
	assert_true(p->mirrors[3].asked > 0);
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

	p->upkeep.pulse_at = 0;
	p->admin = true;
	ps_pulse(p, o->d->now);
	p->admin = false;
	direct_keep(o->d, p);
	direct_keep(o->d, p);
}

/* A mirror tells of the order until it was told what became of it, and so once more after that. */
static void test_an_order_that_is_told_again_is_obeyed_once(void **state)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_ADD, NULL, "sim://4", 0, 0 };
	struct owner *o = *state;
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

/* One of three that are all needed was lost, and the one that takes its place is gone, too. What is
 * told of the change says why it is not taken back, and it is taken back when the first one has
 * started again. */
static void test_a_cancel_waits_for_the_roster_as_it_was(void **state)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REPLACE, "sim://2", "sim://4",
		                                      0, 0 };
	struct owner *o = begin(3, 3);
	struct perseas *p = o->p;

	(void)state;
	direct_crash(o->d, 2);
	assert_int_equal(owner_change(o, &wanted), 0);
	o->d->mirrors[4].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	for (unsigned rounds = 0; p->upkeep.change.stage != PS_CHANGE_JOINT; rounds++) {
		assert_true(rounds < ROUNDS);
		direct_keep(o->d, p);
	}
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_order_ends_no_session_that_is_waited_for),
		TEST(test_an_order_that_is_told_again_is_obeyed_once),
		cmocka_unit_test(test_a_cancel_waits_for_the_roster_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
