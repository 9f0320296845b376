/*
 * test_fabric_verbs_attach.c - RDMA connections to a mirror, and the sentences when there is none.
 */
#include "verbs_mirror.h"

#include <sys/resource.h>

struct unit_fixture unit_fixture = { setup, teardown };

static void assert_text_says(const struct ps_error *error, const char *words)
{
	if (!strstr(error->text, words))
		fail_msg("'%s' does not say '%s'", error->text, words);
}

/* No link, for this reason; the mirror is named. */
static void expect(struct verbs_mirror *m, int code, const char *words)
{
	struct ps_error error = { 0 };
	struct ps_link *link = attach(m, &error);

	assert_null(link);
	if (error.code != code)
		fail_msg("%d, and not %d: %s", error.code, code, error.text);
	assert_text_says(&error, words);
	assert_text_says(&error, m->address.text);
}

/* Makes the library ask the devices anew. */
static void forget_devices(struct verbs_mirror *m)
{
	ps_devices_free(m->env.devices);
	m->env.devices = NULL;
}

/* Checks the connection's parameters, and what is left after its end. */
TEST(a_connection_is_made_and_taken_apart, struct verbs_mirror *m)
{
	struct verbs_fake_alive before, first, after;
	struct rdma_conn_param param;
	struct ps_link *link;
	int ack_timeout;

	before = verbs_fake_alive();
	link = attach_well(m);
	param = verbs_fake_connected(&ack_timeout);
	assert_in_range(ack_timeout, 12, 16);     /* 17 to 270 ms */
	assert_in_range(param.retry_count, 1, 6); /* 7 is for ever */
	assert_in_range(param.rnr_retry_count, 0, 6);
	assert_in_range(param.initiator_depth, 8, 128);
	assert_int_equal(param.private_data_len, sizeof(struct ps_hello));
	assert_int_equal(m->hello.magic, PS_DATA_MAGIC);
	assert_int_equal(m->hello.version, PS_DATA_VERSION);
	assert_memory_equal(m->hello.token, m->token, PS_ID_SIZE);
	assert_int_equal(m->hello.zero, 0);
	ps_fabric_rdma.detach(link);
	first = verbs_fake_alive();
	assert_int_equal(first.qps, before.qps + 1); /* the mirror's */
	assert_int_equal(first.cqs, before.cqs);
	assert_int_equal(first.comp_channels, before.comp_channels);
	works(m);
	after = verbs_fake_alive();
	/* The second connection registered nothing that stays. */
	assert_memory_equal(&first, &after, sizeof(first));
}

TEST(refusals_are_told_apart, struct verbs_mirror *m)
{
	const struct {
		enum ps_answer_status status;
		int code;
		const char *words;
	} refusals[] = {
		{ PS_ANSWER_BAD_TOKEN, PERSEAS_EUNREACHABLE, "session" },
		{ PS_ANSWER_USED_TOKEN, PERSEAS_EUNREACHABLE, "before" },
		{ PS_ANSWER_BAD_VERSION, PERSEAS_EVERSION, "version" },
		{ PS_ANSWER_BAD_FRAME, PERSEAS_EPROTOCOL, "understand" },
		{ PS_ANSWER_OTHER_DEVICE, PERSEAS_ERDMA, "another device" },
		{ PS_ANSWER_NO_RESOURCES, PERSEAS_ERDMA, "log" },
	};
	struct ps_answer answer_ = { .op = PS_OP_HELLO };

	for (int exact = 0; exact < 2; exact++) {
		m->here->exact = m->there->exact = exact;
		for (unsigned i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
			m->status = refusals[i].status;
			expect(m, refusals[i].code, refusals[i].words);
		}
		m->status = PS_ANSWER_OK;
		works(m);
	}
	/* Accepted, with something that is no welcome. */
	m->greeting = "HTTP/1.1 400 Bad Request";
	m->greeting_len = 24;
	expect(m, PERSEAS_EPROTOCOL, "greet");
	m->greeting_len = 3;
	expect(m, PERSEAS_EPROTOCOL, "greet");
	answer_.op = PS_OP_WRITE;
	m->greeting = &answer_;
	m->greeting_len = sizeof(answer_);
	expect(m, PERSEAS_EPROTOCOL, "greet");
	m->greeting = NULL;
	works(m);
}

/* Nobody listens at the port; the grant has no port, or no token. */
TEST(a_mirror_without_rdma_is_named, struct verbs_mirror *m)
{
	unsigned port = m->grant.rdma_port;

	m->grant.rdma_port = 9;
	expect(m, PERSEAS_ERDMA, "nobody listens");
	expect(m, PERSEAS_ERDMA, "port 9");
	m->grant.rdma_port = 0;
	expect(m, PERSEAS_ERDMA, "offers no RDMA");
	m->grant.rdma_trouble = (char *)"rxe0 is full";
	expect(m, PERSEAS_ERDMA, "rxe0 is full");
	m->grant.rdma_port = 70000;
	expect(m, PERSEAS_EPROTOCOL, "port");
	m->grant.rdma_port = port;
	m->grant.token.len = 3;
	expect(m, PERSEAS_EPROTOCOL, "token");
	m->grant.token.len = PS_ID_SIZE;
	m->regions[0].key = 0;
	m->regions[0].address = 0;
	expect(m, PERSEAS_ERDMA, "no key");
	m->grant.n_regions = 0;
	expect(m, PERSEAS_EPROTOCOL, "no log");
}

/* This host has no device; none that leads there; one for RoCE v1 only. */
TEST(a_host_without_rdma_is_told, struct verbs_mirror *m)
{
	verbs_fake_fail(VERBS_FAKE_create_event_channel, 0, 1, ENODEV);
	expect(m, PERSEAS_ERDMA, "no RDMA device");
	verbs_fake_fail(VERBS_FAKE_create_event_channel, 0, 1, EACCES);
	expect(m, PERSEAS_ERDMA, "/dev/infiniband/rdma_cm");
	m->there->address_count = 0;
	expect(m, PERSEAS_ERDMA, "leads there");
	m->there->address_count = 1;
	m->here->gid_type = IBV_GID_TYPE_ROCE_V1;
	expect(m, PERSEAS_ERDMA, "RoCE v2");
	expect(m, PERSEAS_ERDMA, "rxe9");
	m->here->gid_type = IBV_GID_TYPE_ROCE_V2;
	m->here->gid_v1_too = true;
	works(m);
	m->here->gid_type = IBV_GID_TYPE_IB;
	works(m);
	verbs_fake_fail(VERBS_FAKE_query_gid_table, 0, 1, EOPNOTSUPP);
	works(m);
}

/* The connection manager says nothing at some step: the owner's own clock ends it. */
TEST(silence_ends_at_the_deadline, struct verbs_mirror *m)
{
	const enum rdma_cm_event_type steps[] = {
		RDMA_CM_EVENT_ADDR_RESOLVED,
		RDMA_CM_EVENT_ROUTE_RESOLVED,
		RDMA_CM_EVENT_CONNECT_REQUEST,
		RDMA_CM_EVENT_ESTABLISHED,
	};

	works(m);
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		uint64_t start = ps_monotonic();
		struct ps_error error = { 0 };

		verbs_fake_mute(steps[i], true);
		assert_null(ps_fabric_rdma.attach(&m->env, &m->address, &m->grant, NULL, 5,
		                                  start + 20000000, &error));
		verbs_fake_mute(steps[i], false);
		assert_int_equal(error.code, PERSEAS_ERDMA);
		assert_text_says(&error, "too long");
		assert_true(ps_monotonic() - start >= 20000000);
	}
	works(m);
}

/* Events of the connection manager other than the expected one. */
TEST(failures_of_each_step_are_told, struct verbs_mirror *m)
{
	const struct {
		enum rdma_cm_event_type step, instead;
		int status;
		int code;
		const char *words;
	} failures[] = {
		{ RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV, PERSEAS_ERDMA,
		  "no RDMA device" },
		{ RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_RESOLVED, -EIO, PERSEAS_ERDMA,
		  "Input/output error" },
		{ RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT,
		  PERSEAS_ERDMA, "route" },
		{ RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_DEVICE_REMOVAL, 0, PERSEAS_ERDMA,
		  "removed" },
		{ RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, PERSEAS_ERDMA,
		  "4791" },
		{ RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_CONNECT_ERROR, -ECONNRESET,
		  PERSEAS_ERDMA, "reset" },
		{ RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_REJECTED, 28, PERSEAS_ERDMA,
		  "rejected" },
		{ RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED, PERSEAS_ERDMA,
		  "nobody listens" },
		{ RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED, 0, PERSEAS_EUNREACHABLE,
		  "ended" },
	};

	for (unsigned i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		verbs_fake_instead(failures[i].step, failures[i].instead, failures[i].status);
		expect(m, failures[i].code, failures[i].words);
		works(m);
	}
}

/* Events of no meaning come first; DISCONNECTED even before ESTABLISHED. */
TEST(events_may_come_in_an_odd_order, struct verbs_mirror *m)
{
	works(m);
	verbs_fake_before(RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_CHANGE);
	verbs_fake_before(RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	verbs_fake_before(RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_ADDR_CHANGE);
	works(m);
	verbs_fake_before(RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_DISCONNECTED);
	expect(m, PERSEAS_EUNREACHABLE, "ended");
	works(m);
	verbs_fake_timewait();
	works(m);
}

static unsigned good_gets, bad_gets;
static int bad_get_error;

/* Fails for the owner's end only. */
static int get_badly(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	if (good_gets > 0) {
		good_gets--;
	} else if (bad_gets > 0) {
		bad_gets--;
		errno = bad_get_error;
		return -1;
	}
	return verbs_fake_table.get_cm_event(channel, event);
}

/* The channel gives nothing at first, is interrupted, or fails. */
TEST(the_event_channel_may_fail, struct verbs_mirror *m)
{
	const int errors[] = { EAGAIN, EINTR };

	m->verbs.get_cm_event = get_badly;
	for (unsigned i = 0; i < 6; i++) {
		good_gets = i / 2;
		bad_gets = 3;
		bad_get_error = errors[i % 2];
		works(m);
		assert_int_equal(bad_gets, 0);
	}
	for (unsigned i = 0; i < 3; i++) {
		good_gets = i;
		bad_gets = 1;
		bad_get_error = EIO;
		expect(m, PERSEAS_ERDMA, "events cannot be read");
	}
	works(m);
}

/* The ring cannot be pinned: the limit that stands in the way is named. */
TEST(limits_of_registration_are_named, struct verbs_mirror *m)
{
	struct rlimit limit, small;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	small = limit;
	small.rlim_cur = 12288;
	setrlimit(RLIMIT_MEMLOCK, &small);
	for (unsigned delay = 0; delay < 3; delay++) {
		verbs_fake_fail(VERBS_FAKE_reg_mr, delay, 1, ENOMEM);
		expect(m, PERSEAS_ERDMA, "RLIMIT_MEMLOCK is 12288");
	}
	setrlimit(RLIMIT_MEMLOCK, &limit);
	forget_devices(m);
	m->here->attr.max_mr_size = STAGING_SIZE - 1;
	expect(m, PERSEAS_ERDMA, "max_mr_size");
	expect(m, PERSEAS_ERDMA, "rxe9");
	m->here->attr.max_mr_size = STAGING_SIZE;
	verbs_fake_fail(VERBS_FAKE_fork_init, 0, 1, EINVAL);
	expect(m, PERSEAS_ERDMA, "fork");
	works(m);
}

/* Queue pairs that the device does not make as asked. */
TEST(what_the_device_grants_is_used, struct verbs_mirror *m)
{
	const uint32_t inlines[] = { 1000, 256, 255, 64, 63, 40, 39, 1, 0 };

	for (int strict = 0; strict < 2; strict++)
		for (unsigned i = 0; i < sizeof(inlines) / sizeof(inlines[0]); i++) {
			m->here->inline_strict = strict;
			m->here->max_inline = inlines[i];
			works(m);
		}
	forget_devices(m);
	m->here->attr.max_qp_wr = 1;
	m->here->attr.max_sge = 1;
	m->here->attr.max_cqe = 2;
	works(m);
	forget_devices(m);
	m->here->attr.max_qp_wr = 4;
	m->here->attr.max_cqe = 100;
	works(m);
	verbs_fake_fail(VERBS_FAKE_set_option, 0, 1, ENOSYS);
	works(m);
	verbs_fake_fail(VERBS_FAKE_create_qp, 0, 100, EINVAL);
	expect(m, PERSEAS_ERDMA, "queue pair");
	expect(m, PERSEAS_ERDMA, "max_qp_wr 4");
	verbs_fake_fail(VERBS_FAKE_create_qp, 0, 0, 0);
	verbs_fake_fail(VERBS_FAKE_create_cq, 0, 1, ENOMEM);
	expect(m, PERSEAS_ERDMA, "completion queue");
	works(m);
}

/* The device is taken out while the owner is connected, and there is another afterwards. */
TEST(a_device_may_be_replaced, struct verbs_mirror *m)
{
	struct ps_link *link = attach_well(m);
	struct verbs_fake_alive alive;
	struct transaction t;
	struct pollfd fd;

	fill_transaction(m, &t, 1);
	assert_int_equal(ps_fabric_rdma.post(link, &t.chain), PS_LINK_OK);
	assert_true(ps_fabric_rdma.waits(link, &fd));
	verbs_fake_remove(m->here);
	assert_int_equal(ps_fabric_rdma.poll(link), PS_LINK_BROKEN);
	ps_fabric_rdma.detach(link);
	m->here = verbs_fake_device("rxe8", "10.9.0.8");
	verbs_fake_source(m->here);
	works(m);
	/* The old device's registrations are given up. */
	alive = verbs_fake_alive();
	assert_int_equal(alive.pds, 2);
	works(m);
}

/* A queue pair is not destroyed at once; and one is destroyed by the loss of its device. */
TEST(a_queue_pair_is_destroyed_in_the_end, struct verbs_mirror *m)
{
	struct ps_link *link = attach_well(m);
	struct ibv_qp *qp = verbs_fake_active_qp();

	verbs_fake_fail(VERBS_FAKE_destroy_qp, 0, 3, EBUSY);
	ps_fabric_rdma.detach(link);
	assert_ptr_not_equal(verbs_fake_active_qp(), qp);
	link = attach_well(m);
	m->here->lost = true;
	ps_fabric_rdma.detach(link);
}

/* A queue pair that stays could send what the ring holds next, so the process ends instead. */
TEST(a_queue_pair_that_stays_ends_the_process, struct verbs_mirror *m)
{
	struct ps_link *link = attach_well(m);
	struct rlimit none = { 0, 0 };
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		verbs_fake_fail(VERBS_FAKE_destroy_qp, 0, UINT32_MAX, EBUSY);
		ps_fabric_rdma.detach(link);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	ps_fabric_rdma.detach(link);
}

/* Every call fails once: a link comes of it all the same, or a sentence, and nothing is left. */
TEST(every_call_may_fail, struct verbs_mirror *m)
{
	unsigned delay = 0, refused = 0;

	for (;; delay++) {
		struct verbs_fake_alive before, after;
		struct ps_error error = { 0 };
		struct ps_link *link;

		forget_devices(m);
		answer(m);
		if (m->path)
			peer_drop(m->path);
		m->path = NULL;
		before = verbs_fake_alive();
		verbs_fake_fail_any(delay, ENOMEM);
		link = ps_fabric_rdma.attach(&m->env, &m->address, &m->grant, NULL, 5,
		                             ps_monotonic() + 50000000, &error);
		if (verbs_fake_failed() == VERBS_FAKE_MEMBER_COUNT) {
			assert_non_null(link);
			verbs_fake_fail_any(0, 0);
			ps_fabric_rdma.detach(link);
			break;
		}
		verbs_fake_fail_any(0, 0);
		if (!link) {
			refused++;
			assert_true(error.code < 0);
			assert_true(strlen(error.text) > 30);
		} else {
			ps_fabric_rdma.detach(link);
		}
		forget_devices(m);
		if (m->path)
			peer_drop(m->path);
		m->path = NULL;
		after = verbs_fake_alive();
		if (memcmp(&before, &after, sizeof(before)) != 0)
			fail_msg("%s left something", verbs_fake_name(verbs_fake_failed()));
	}
	assert_true(delay > 20);
	assert_true(refused > 12);
}
