/*
 * test_target_verbs_faults.c - RDMA connections to a daemon whose devices fail, go away, or say
 * things in an odd order, and owners that misbehave.
 */
#include "verbs_daemon.h"

#include <sys/resource.h>

struct unit_fixture unit_fixture = { setup, teardown };

enum { OFFSET = PS_RING_OFFSET + 512 };

static void assert_says(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("'%s' does not say '%s'", text, words);
}

/* The data path is gone at the daemon's end, and the claim is not. */
static void assert_only_path_ended(struct fixture *fixture, const struct far_owner *owner)
{
	struct session *session;

	settle(fixture);
	assert_null(verbs_fake_passive_qp());
	session = stores_find_session(fixture->stores, owner->token);
	assert_non_null(session);
	assert_null(session->fabric);
}

/* Claims again over the same control connection, and all is well. */
static void assert_comes_back(struct fixture *fixture, struct far_owner *owner, uint64_t epoch)
{
	peer_close(&owner->peer);
	claim_again(fixture, owner, epoch);
	open_path(fixture, owner);
	assert_int_equal(put(owner, PS_REGION_LOG, OFFSET, 8, (uint8_t)epoch), IBV_WC_SUCCESS);
	assert_int_equal(*seen(fixture, owner, PS_REGION_LOG, OFFSET), (uint8_t)epoch);
}

/* An owner sends a message, which no owner does. */
TEST(a_message_ends_the_path, struct fixture *fixture)
{
	begin(fixture);
	assert_int_equal(peer_send(&alice.peer, 0, 0), 0);
	assert_int_equal(peer_settle(&alice.peer), IBV_WC_SUCCESS);
	assert_only_path_ended(fixture, &alice);
	assert_comes_back(fixture, &alice, 6);
	assert_int_equal(peer_send(&alice.peer, 0, 100), 0);
	assert_int_equal(peer_settle(&alice.peer), IBV_WC_REM_INV_REQ_ERR);
	assert_only_path_ended(fixture, &alice);
	assert_comes_back(fixture, &alice, 7);
}

/* An alice hangs up, and another dies with its control connection. */
TEST(a_path_ends_with_its_owner, struct fixture *fixture)
{
	begin(fixture);
	assert_int_equal(verbs_fake_table.disconnect(alice.peer.id), 0);
	assert_only_path_ended(fixture, &alice);
	assert_comes_back(fixture, &alice, 6);
	close(alice.control);
	settle(fixture);
	assert_null(verbs_fake_passive_qp());
	assert_null(stores_find_session(fixture->stores, alice.token));
	assert_int_not_equal(put(&alice, PS_REGION_LOG, OFFSET, 8, 99), IBV_WC_SUCCESS);
}

/* The daemon stops while owners are connected; teardown looks for what is left. */
TEST(a_daemon_that_stops_leaves_nothing, struct fixture *fixture)
{
	struct verbs_fake_alive alive;

	begin(fixture);
	fixture_make(fixture, "other");
	claim(fixture, &bob, "other", 5);
	open_path(fixture, &bob);
	daemon_free(fixture->daemon);
	fixture->daemon = NULL;
	alive = verbs_fake_alive();
	assert_int_equal(alive.qps, 2); /* the owners' */
	assert_int_equal(alive.ids, 2);
	assert_int_equal(alive.mrs, 2);
	assert_int_equal(alive.pds, 2);
}

/* An alice that was accepted, and is gone before it takes notice; one that asked and is gone
 * before it is looked at. */
TEST(owners_may_vanish_while_they_connect, struct fixture *fixture)
{
	struct ps_hello hello;

	fixture_bank(fixture);
	claim(fixture, &alice, "bank", 5);
	hello = hello_of(&alice);
	begin_path(&alice, &hello);
	peer_close(&alice.peer);
	settle(fixture);
	assert_null(verbs_fake_passive_qp());
	assert_comes_back(fixture, &alice, 6);
	peer_close(&alice.peer);
	claim_again(fixture, &alice, 7);
	hello = hello_of(&alice);
	begin_path(&alice, &hello);
	settle(fixture);
	assert_non_null(verbs_fake_passive_qp());
	peer_close(&alice.peer);
	assert_only_path_ended(fixture, &alice);
}

/* DISCONNECTED before ESTABLISHED, twice, and TIMEWAIT_EXIT after all is over. */
TEST(events_may_come_in_any_order, struct fixture *fixture)
{
	struct rdma_cm_id *id;

	begin(fixture);
	id = verbs_fake_id(verbs_fake_passive_qp());
	verbs_fake_event(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	verbs_fake_event(id, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	settle(fixture);
	assert_int_equal(put(&alice, PS_REGION_LOG, OFFSET, 8, 1), IBV_WC_SUCCESS);
	verbs_fake_event(id, RDMA_CM_EVENT_DISCONNECTED, 0);
	verbs_fake_event(id, RDMA_CM_EVENT_DISCONNECTED, 0);
	verbs_fake_event(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	assert_only_path_ended(fixture, &alice);
	verbs_fake_timewait();
	verbs_fake_before(RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_DISCONNECTED);
	assert_comes_back(fixture, &alice, 6);
	verbs_fake_instead(RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	verbs_fake_table.disconnect(alice.peer.id);
	assert_only_path_ended(fixture, &alice);
}

/* The channel of events gives nothing at first, is interrupted, or fails for good. */
TEST(the_event_channel_may_fail, struct fixture *fixture)
{
	const int errors[] = { EAGAIN, EINTR, EIO };

	begin(fixture);
	for (uint64_t i = 0; i < 3; i++) {
		verbs_fake_fail(VERBS_FAKE_get_cm_event, 0, i < 2 ? 2 : 1, errors[i]);
		verbs_fake_event(verbs_fake_id(verbs_fake_passive_qp()), RDMA_CM_EVENT_DISCONNECTED,
		                 0);
		assert_only_path_ended(fixture, &alice);
		assert_comes_back(fixture, &alice, 6 + i);
	}
}

/* Registration fails: the owner is told why, and goes over tcp. */
TEST(memory_that_cannot_be_registered_is_named, struct fixture *fixture)
{
	struct ps_hello hello;
	struct rlimit limit, small;
	struct ps_answer answer;
	int data;

	fixture_bank(fixture);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	small = limit;
	small.rlim_cur = 8192;
	setrlimit(RLIMIT_MEMLOCK, &small);
	verbs_fake_fail(VERBS_FAKE_reg_mr, 0, 1, ENOMEM);
	claim(fixture, &alice, "bank", 5);
	setrlimit(RLIMIT_MEMLOCK, &limit);
	assert_int_equal(alice.port, 0);
	assert_int_equal(alice.regions[PS_REGION_LOG].key, 0);
	assert_says(alice.trouble, "RLIMIT_MEMLOCK is 8192");
	assert_says(alice.trouble, "rxe0");
	assert_int_equal(verbs_fake_alive().mrs, 0);
	/* The second region. */
	verbs_fake_fail(VERBS_FAKE_reg_mr, 1, 1, EINVAL);
	claim_again(fixture, &alice, 6);
	assert_int_equal(alice.port, 0);
	assert_int_equal(alice.regions[PS_REGION_LOG].address, 0);
	assert_says(alice.trouble, strerror(EINVAL));
	rxe->attr.max_mr_size = 100000;
	claim_again(fixture, &alice, 7);
	rxe->attr.max_mr_size = (uint64_t)1 << 40;
	data = fixture_tcp(fixture);
	hello = hello_of(&alice);
	fixture_send(data, &hello, sizeof(hello));
	assert_true(fixture_receive(fixture, data, &answer, sizeof(answer)));
	assert_int_equal(answer.status, PS_ANSWER_OK);
	close(data);
	claim_again(fixture, &alice, 8);
	open_path(fixture, &alice);
}

/* A ring that is larger than the device registers. */
TEST(a_device_with_small_regions_is_named, struct fixture *fixture)
{
	fixture_bank(fixture);
	rxe->attr.max_mr_size = 100000;
	claim(fixture, &alice, "bank", 5);
	assert_int_equal(alice.port, 0);
	assert_says(alice.trouble, "max_mr_size");
	assert_says(alice.trouble, "100000");
}

static struct rdma_options later = { .enabled = true };

static int setup_bare(void **state)
{
	verbs_fake_begin();
	return fixture_setup(state);
}

/* Asks for store `name` as who would go over RDMA alone; says the refusal's reason, or "". */
static Perseas__Status ask_for_rdma(struct fixture *fixture, int control, const char *name,
                                    char reason[800])
{
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__Status status;
	Perseas__Reply *reply;

	ask.store = (char *)(uintptr_t)name;
	ask.rdma = true;
	fixture_ask(control, PERSEAS__REQUEST__BODY_STATUS, &ask);
	reply = fixture_reply(fixture, control);
	status = reply->status;
	snprintf(reason, 800, "%s", reply->message);
	fixture_done(reply);
	return status;
}

/* Before anything is made or claimed, and also of a store that is not there. */
TEST_WITH(who_needs_rdma_is_told_that_there_is_none, setup_bare, teardown, struct fixture *fixture)
{
	static const char *const names[] = { "bank", "nowhere" };
	char reason[800];
	int control;

	fixture_bank(fixture);
	control = fixture_tcp(fixture);
	fixture_greet(fixture, control);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ask_for_rdma(fixture, control, names[i], reason), STATUS(NO_RDMA));
		assert_says(reason, "built without RDMA");
	}
	later.enabled = false;
	assert_int_equal(rdma_start(fixture->daemon, &verbs_fake_table, &later), 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ask_for_rdma(fixture, control, names[i], reason), STATUS(NO_RDMA));
		assert_says(reason, "--rdma off");
		assert_says(reason, "tcp://");
	}
	later.enabled = true;
	rdma_stop(fixture->daemon);
	assert_int_equal(rdma_start(fixture->daemon, &verbs_fake_table, &later), 0);
	assert_int_equal(ask_for_rdma(fixture, control, "bank", reason), STATUS(NO_RDMA));
	assert_says(reason, "perseas-rxe");
	rxe = verbs_fake_device("rxe0", "127.0.0.1");
	assert_int_equal(ask_for_rdma(fixture, control, "bank", reason), STATUS(OK));
	assert_int_equal(ask_for_rdma(fixture, control, "nowhere", reason), STATUS(NO_STORE));
	close(control);
	/* Where it was asked has no address at which a device could be. */
	control = fixture_unix(fixture);
	fixture_greet(fixture, control);
	assert_int_equal(ask_for_rdma(fixture, control, "bank", reason), STATUS(NO_RDMA));
	assert_says(reason, "Unix socket");
}

/* No device at all; none with the address; RDMA is switched off; its port is taken. */
TEST_WITH(a_daemon_without_rdma_says_why, setup_bare, teardown, struct fixture *fixture)
{
	struct verbs_peer other;

	later.enabled = false;
	assert_int_equal(rdma_start(fixture->daemon, &verbs_fake_table, &later), 0);
	fixture_bank(fixture);
	claim(fixture, &alice, "bank", 5);
	assert_int_equal(alice.port, 0);
	assert_says(alice.trouble, "--rdma off");
	rdma_stop(fixture->daemon);
	later.enabled = true;
	assert_int_equal(rdma_start(fixture->daemon, &verbs_fake_table, &later), 0);
	claim_again(fixture, &alice, 6);
	assert_int_equal(alice.port, 0);
	assert_says(alice.trouble, "127.0.0.1");
	assert_says(alice.trouble, "perseas-rxe");
	/* When the daemon starts, and when an alice comes. */
	verbs_fake_fail(VERBS_FAKE_create_event_channel, 0, 2, ENODEV);
	rdma_stop(fixture->daemon);
	assert_int_equal(rdma_start(fixture->daemon, &verbs_fake_table, &later), 0);
	claim_again(fixture, &alice, 7);
	assert_says(alice.trouble, "no RDMA");
	/* A device comes after the daemon. */
	rxe = verbs_fake_device("rxe0", "127.0.0.1");
	claim_again(fixture, &alice, 8);
	open_path(fixture, &alice);
	peer_close(&alice.peer);
	rdma_stop(fixture->daemon);
	later.port = peer_listen(&other, "127.0.0.1");
	assert_int_equal(rdma_start(fixture->daemon, &verbs_fake_table, &later), 0);
	later.port = 0;
	claim_again(fixture, &alice, 9);
	assert_int_equal(alice.port, 0);
	assert_says(alice.trouble, strerror(EADDRINUSE));
	peer_close(&other);
}

/* The host's devices are looked for when the daemon starts, and not again for an alice. */
TEST_WITH(an_owner_does_not_wait_for_the_first_look_at_devices, setup_bare, teardown,
          struct fixture *fixture)
{
	rxe = verbs_fake_device("rxe0", "127.0.0.1");
	assert_int_equal(rdma_start(fixture->daemon, &verbs_fake_table, &later), 0);
	verbs_fake_fail(VERBS_FAKE_create_event_channel, 0, UINT32_MAX, ENODEV);
	fixture_bank(fixture);
	claim(fixture, &alice, "bank", 5);
	assert_int_not_equal(alice.port, 0);
	verbs_fake_fail(VERBS_FAKE_create_event_channel, 0, 0, 0);
}

/* The daemon passes its network's options on to owners. */
TEST_WITH(modes_are_told_to_owners, setup_bare, teardown, struct fixture *fixture)
{
	const struct rdma_options options = { .enabled = true,
		                              .phased = true,
		                              .flush_by_read = true };
	Perseas__Reply *reply;

	rxe = verbs_fake_device("rxe0", "127.0.0.1");
	assert_int_equal(rdma_start(fixture->daemon, &verbs_fake_table, &options), 0);
	fixture_bank(fixture);
	greet(fixture, &alice);
	reply = claim_reply(fixture, &alice, "bank", 5);
	assert_true(reply->claim->grant->phased);
	assert_true(reply->claim->grant->flush);
	fixture_done(reply);
}

/* The device says that a queue pair failed; that its port went down; and what it says of nobody. */
TEST(the_device_tells_of_its_troubles, struct fixture *fixture)
{
	begin(fixture);
	verbs_fake_async(rxe, IBV_EVENT_COMM_EST, verbs_fake_passive_qp());
	verbs_fake_async(rxe, IBV_EVENT_PORT_ERR, NULL);
	verbs_fake_async(rxe, IBV_EVENT_PORT_ACTIVE, NULL);
	settle(fixture);
	assert_int_equal(put(&alice, PS_REGION_LOG, OFFSET, 8, 1), IBV_WC_SUCCESS);
	verbs_fake_async(rxe, IBV_EVENT_QP_FATAL, verbs_fake_passive_qp());
	verbs_fake_async(rxe, IBV_EVENT_QP_ACCESS_ERR, verbs_fake_passive_qp());
	assert_only_path_ended(fixture, &alice);
	assert_comes_back(fixture, &alice, 6);
	verbs_fake_break(verbs_fake_passive_qp());
	assert_only_path_ended(fixture, &alice);
	assert_comes_back(fixture, &alice, 7);
}

/* The device is taken away under its owners, and another takes its place. */
TEST(a_device_may_go, struct fixture *fixture)
{
	begin(fixture);
	rxe->lost = true;
	verbs_fake_remove(rxe);
	assert_only_path_ended(fixture, &alice);
	assert_int_equal(verbs_fake_alive().mrs, 1); /* the alice's own */
	claim_again(fixture, &alice, 6);
	assert_int_equal(alice.port, 0);
	rxe = verbs_fake_device("rxe1", "127.0.0.1");
	assert_comes_back(fixture, &alice, 7);
}

/* An alice came to one address and claims; it connects at another, of another device. */
TEST(memory_is_registered_with_one_device, struct fixture *fixture)
{
	struct endpoint second = { .host = "127.0.0.2", .port = "0" };
	uint16_t first = fixture->port;
	struct ps_hello hello;
	unsigned ports[2];
	char path[100];
	FILE *file;

	verbs_fake_device("rxe1", "127.0.0.2");
	assert_int_equal(fixture_listen(fixture, &second), 0);
	snprintf(path, sizeof(path), "%s/ports", fixture->directory);
	assert_int_equal(daemon_write_ports(fixture->daemon, path, fixture->why,
	                                    sizeof(fixture->why)),
	                 0);
	file = fopen(path, "r");
	assert_int_equal(fscanf(file, "%u %u", &ports[0], &ports[1]), 2);
	fclose(file);
	fixture_bank(fixture);
	fixture_make(fixture, "other");
	memset(&bob, 0, sizeof(bob));
	fixture->port = (uint16_t)(ports[0] == first ? ports[1] : ports[0]);
	bob.control = fixture_tcp_at(fixture, "127.0.0.2");
	fixture->port = first;
	fixture_greet(fixture, bob.control);
	fixture_done(claim_reply(fixture, &bob, "other", 5));
	claim(fixture, &alice, "bank", 5);
	assert_int_not_equal(alice.port, 0);
	hello = hello_of(&alice);
	peer_open(&bob.peer, "127.0.0.2", bob.port);
	assert_int_equal(peer_connect(&bob.peer, &hello, sizeof(hello)), 0);
	settle(fixture);
	assert_int_equal(peer_event(&bob.peer, NULL), RDMA_CM_EVENT_REJECTED);
	assert_int_equal(((struct ps_answer *)(void *)bob.peer.given)->status,
	                 PS_ANSWER_OTHER_DEVICE);
	open_path(fixture, &alice);
}

/* Every call fails once, while an alice claims and connects: it gets a path, or a sentence, or a
 * refusal, and the next one gets its path. */
TEST(every_call_may_fail, struct fixture *fixture)
{
	unsigned struck = 0, delay = 0;
	uint64_t epoch = 5;

	fixture_bank(fixture);
	greet(fixture, &alice);
	do {
		rdma_stop(fixture->daemon);
		verbs_fake_fail_any(delay++, ENOMEM);
		assert_int_equal(rdma_start(fixture->daemon, &verbs_fake_table, &later), 0);
		claim_again(fixture, &alice, epoch++);
		struck = verbs_fake_failed();
		verbs_fake_fail_any(0, 0);
		if (alice.port == 0) {
			assert_true(strlen(alice.trouble) > 10);
			claim_again(fixture, &alice, epoch++);
		}
		open_path(fixture, &alice);
		peer_close(&alice.peer);
		settle(fixture);
	} while (struck != VERBS_FAKE_MEMBER_COUNT);
	assert_true(delay > 8);
}

/* The same for the calls with which the daemon answers a request. */
TEST(every_answer_may_fail, struct fixture *fixture)
{
	const enum verbs_fake_member members[] = {
		VERBS_FAKE_create_cq, VERBS_FAKE_create_qp, VERBS_FAKE_req_notify_cq,
		VERBS_FAKE_post_recv, VERBS_FAKE_accept,    VERBS_FAKE_reject,
	};
	uint64_t epoch = 5;

	fixture_bank(fixture);
	greet(fixture, &alice);
	for (unsigned i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		struct ps_hello hello;

		claim_again(fixture, &alice, epoch++);
		hello = hello_of(&alice);
		if (members[i] == VERBS_FAKE_reject)
			hello.version++;
		peer_open(&alice.peer, "127.0.0.1", alice.port);
		verbs_fake_fail(members[i], 0, 1, ENOMEM);
		assert_int_equal(peer_connect(&alice.peer, &hello, sizeof(hello)), 0);
		settle(fixture);
		assert_int_equal(peer_event(&alice.peer, NULL), RDMA_CM_EVENT_REJECTED);
		verbs_fake_fail(members[i], 0, 0, 0);
		assert_only_path_ended(fixture, &alice);
		assert_comes_back(fixture, &alice, epoch++);
		peer_close(&alice.peer);
	}
}

/* A queue pair that cannot be destroyed may write on: the daemon must not answer the claim. */
TEST(a_queue_pair_that_stays_ends_the_daemon, struct fixture *fixture)
{
	struct rlimit none = { 0, 0 };
	int status, nothing;
	pid_t pid;

	begin(fixture);
	greet(fixture, &bob);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &none);
		nothing = open("/dev/null", O_WRONLY);
		dup2(nothing, STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		/* Threads are not in the child. */
		assert_int_equal(daemon_open_jobs(fixture->daemon), 0);
		verbs_fake_fail(VERBS_FAKE_destroy_qp, 0, UINT32_MAX, EBUSY);
		ask_claim(bob.control, "bank", 6, true);
		settle(fixture);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}
