/*
 * test_fabric_verbs_steps.c - RDMA connections that are made in steps: a mirror, a device or a
 * connection manager that says nothing holds nobody up, and what it says later is taken in then.
 */
#include "verbs_mirror.h"

struct unit_fixture unit_fixture = { setup, teardown };

enum { STEPS_MOST = 50 };

static struct ps_link *begin(struct verbs_mirror *m)
{
	struct ps_error error = { 0 };
	struct ps_link *link = ps_fabric_rdma.attach_begin(&m->env, &m->address, &m->grant, NULL, 5,
	                                                   &error);

	if (!link)
		fail_msg("%s", error.text);
	return link;
}

static struct ps_link *ask(struct verbs_mirror *m)
{
	struct ps_error error = { 0 };
	struct ps_link *link = ps_fabric_rdma.begin_route_test(&m->env, &m->address, &m->grant,
	                                                       &error);

	if (!link)
		fail_msg("%s", error.text);
	return link;
}

static bool is_ready(struct ps_link *link)
{
	struct pollfd fd;

	assert_true(ps_fabric_rdma.waits(link, &fd));
	return poll(&fd, 1, 0) == 1;
}

/* Steps until there is nothing more to be taken in: the last step's result. */
static int steps(struct ps_link *link, struct ps_error *error)
{
	int rc = 0;

	for (unsigned i = 0; !rc && is_ready(link); i++) {
		assert_true(i < STEPS_MOST);
		rc = ps_fabric_rdma.attach_step(link, soon(), error);
	}
	return rc;
}

/* Lets the mirror destroy its ends. Returns what is still alive. */
static struct verbs_fake_alive alive(struct verbs_mirror *m)
{
	answer(m);
	if (m->path)
		peer_drop(m->path);
	m->path = NULL;
	return verbs_fake_alive();
}

/* Whichever step stays silent, steps return, other links are made, and a deadline tells why. */
TEST(a_step_waits_for_nobody, struct verbs_mirror *m)
{
	const enum rdma_cm_event_type silent[] = {
		RDMA_CM_EVENT_ADDR_RESOLVED,
		RDMA_CM_EVENT_ROUTE_RESOLVED,
		RDMA_CM_EVENT_CONNECT_REQUEST,
		RDMA_CM_EVENT_ESTABLISHED,
	};
	struct verbs_fake_alive before, after;

	works(m);
	for (unsigned i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
		const uint64_t until = soon();
		struct ps_error error = { 0 };
		struct ps_link *link;

		before = alive(m);
		verbs_fake_mute(silent[i], true);
		link = begin(m);
		assert_int_equal(steps(link, &error), 0);
		verbs_fake_mute(silent[i], false);
		/* This mirror keeps one connection: the newest that it accepted. */
		if (silent[i] != RDMA_CM_EVENT_ESTABLISHED)
			works(m);
		assert_false(is_ready(link));
		assert_int_equal(ps_fabric_rdma.attach_step(link, until, &error), 0);
		assert_true(ps_monotonic() < until);
		assert_int_equal(ps_fabric_rdma.attach_step(link, ps_monotonic(), &error),
		                 PERSEAS_ERDMA);
		assert_non_null(strstr(error.text, "took too long"));
		ps_fabric_rdma.detach(link);
		after = alive(m);
		assert_memory_equal(&before, &after, sizeof(before));
	}
}

/* The mirror goes on, and answers what it had been asked: that is readable, and the link is up. */
TEST(a_late_answer_is_taken_in, struct verbs_mirror *m)
{
	struct ps_error error = { 0 };
	struct ps_link *link;

	m->silent = true;
	link = begin(m);
	assert_int_equal(steps(link, &error), 0);
	assert_null(m->path);
	m->silent = false;
	answer(m);
	assert_non_null(m->path);
	assert_true(is_ready(link));
	assert_int_equal(steps(link, &error), 1);
	assert_memory_equal(m->hello.token, m->token, PS_ID_SIZE);
	/* Up it is for good. */
	assert_int_equal(ps_fabric_rdma.attach_step(link, 0, &error), 1);
	is_up(m, link);
}

/* The mirror, or its host, refuses late. */
TEST(a_late_refusal_is_told, struct verbs_mirror *m)
{
	const struct {
		enum ps_answer_status status;
		int code;
	} refusals[] = {
		{ PS_ANSWER_BAD_TOKEN, PERSEAS_EUNREACHABLE },
		{ PS_ANSWER_USED_TOKEN, PERSEAS_EUNREACHABLE },
		{ PS_ANSWER_NO_RESOURCES, PERSEAS_ERDMA },
		{ PS_ANSWER_BAD_VERSION, PERSEAS_EVERSION },
	};

	for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct ps_error error = { 0 };
		struct ps_link *link;

		m->silent = true;
		link = begin(m);
		assert_int_equal(steps(link, &error), 0);
		m->silent = false;
		m->status = refusals[i].status;
		answer(m);
		assert_int_equal(steps(link, &error), refusals[i].code);
		assert_int_equal(error.code, refusals[i].code);
		ps_fabric_rdma.detach(link);
		m->status = PS_ANSWER_OK;
	}
	works(m);
}

/* Before each event, those of other steps arrive: they are ignored, and none replaces it. */
TEST(events_of_other_steps_are_passed_over, struct verbs_mirror *m)
{
	const enum rdma_cm_event_type order[] = {
		RDMA_CM_EVENT_ADDR_RESOLVED,
		RDMA_CM_EVENT_ROUTE_RESOLVED,
		RDMA_CM_EVENT_ESTABLISHED,
	};

	works(m);
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < 3; k++) {
			struct ps_error error = { 0 };
			struct ps_link *link;

			if (k == i)
				continue;
			if (m->path)
				peer_drop(m->path);
			m->path = NULL;
			verbs_fake_before(order[i], order[k]);
			link = begin(m);
			if (steps(link, &error) != 1)
				fail_msg("event %d before %d: %s", order[k], order[i], error.text);
			assert_non_null(m->path);
			is_up(m, link);
		}
	}
}

/* The mirror's acceptance carries bytes of any length that are no welcome. */
TEST(what_comes_with_the_acceptance_is_checked, struct verbs_mirror *m)
{
	uint8_t bytes[64];

	m->here->exact = m->there->exact = true;
	for (unsigned length = 0; length <= sizeof(bytes); length++) {
		struct ps_error error = { 0 };
		struct ps_link *link;

		memset(bytes, 0xff, sizeof(bytes));
		bytes[0] = PS_OP_HELLO;
		m->greeting = bytes;
		m->greeting_len = length;
		link = begin(m);
		assert_int_equal(steps(link, &error), PERSEAS_EPROTOCOL);
		ps_fabric_rdma.detach(link);
	}
	m->greeting = NULL;
	works(m);
}

static unsigned registered; /* times that the ring was */
static const void *ring;

static struct ibv_mr *count_reg_mr(struct ibv_pd *pd, void *memory, size_t length, int access)
{
	registered += memory == ring;
	return verbs_fake_table.reg_mr(pd, memory, length, access);
}

/* The ring is registered with a device once, also by links that are made at the same time. */
TEST(the_ring_is_registered_once, struct verbs_mirror *m)
{
	struct ps_error error = { 0 };
	struct ps_link *first, *second;

	registered = 0;
	ring = m->env.staging_memory;
	m->verbs.reg_mr = count_reg_mr;
	m->silent = true;
	first = begin(m);
	second = begin(m);
	assert_int_equal(steps(first, &error), 0);
	assert_int_equal(steps(second, &error), 0);
	ps_fabric_rdma.detach(first);
	ps_fabric_rdma.detach(second);
	m->silent = false;
	answer(m);
	works(m);
	works(m);
	assert_int_equal(registered, 1);
}

/* The attempt is given up after any number of steps; nothing is left. */
TEST(it_may_be_given_up_at_any_time, struct verbs_mirror *m)
{
	int rc = 0;

	works(m);
	for (unsigned count = 0; rc == 0; count++) {
		struct verbs_fake_alive before = alive(m), after;
		struct ps_error error = { 0 };
		struct ps_link *link = begin(m);

		assert_true(count < STEPS_MOST);
		for (unsigned i = 0; i < count && !rc; i++)
			rc = ps_fabric_rdma.attach_step(link, soon(), &error);
		assert_true(rc >= 0);
		ps_fabric_rdma.detach(link);
		after = alive(m);
		assert_memory_equal(&before, &after, sizeof(before));
	}
}

/* Asks whether the fabric leads to the mirror while another one carries the session. A mirror that
 * knows the session answers that its data path is taken, which means yes. Everything else means no,
 * and none of it blocks. */
TEST(a_question_is_answered_without_a_session, struct verbs_mirror *m)
{
	const struct {
		enum ps_answer_status status;
		int rc;
	} answers[] = {
		{ PS_ANSWER_USED_TOKEN, 1 },
		{ PS_ANSWER_OK, PERSEAS_ERDMA },
		{ PS_ANSWER_BAD_TOKEN, PERSEAS_EUNREACHABLE },
		{ PS_ANSWER_NO_RESOURCES, PERSEAS_ERDMA },
	};
	unsigned port = m->grant.rdma_port;
	struct ps_error error = { 0 };
	struct ps_link *link;

	m->grant.n_regions = 0;
	for (unsigned i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		m->silent = true;
		m->status = answers[i].status;
		link = ask(m);
		assert_int_equal(steps(link, &error), 0);
		m->silent = false;
		answer(m);
		assert_int_equal(steps(link, &error), answers[i].rc);
		ps_fabric_rdma.detach(link);
	}
	m->grant.rdma_port = 9;
	link = ask(m);
	assert_int_equal(steps(link, &error), PERSEAS_ERDMA);
	ps_fabric_rdma.detach(link);
	m->grant.rdma_port = port;
	m->silent = true;
	link = ask(m);
	assert_int_equal(steps(link, &error), 0);
	ps_fabric_rdma.detach(link);
	m->silent = false;
	m->status = PS_ANSWER_OK;
	m->grant.n_regions = 2;
	answer(m);
	works(m);
}
