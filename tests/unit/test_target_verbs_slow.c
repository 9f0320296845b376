/*
 * test_target_verbs_slow.c - a device takes its time for memory: the loop goes on meanwhile, and
 * nothing is left when the device is taken away.
 */
#include "verbs_daemon.h"

#include "../../server/host/jobs.h"
#include "../../server/loop/connection.h"

enum { PATIENCE = 10000 }; /* ms, of a machine with much else to do */

static struct ps_verbs slow;
static atomic_uint steps, held, aside; /* of the loop; calls that stopped it, and others */
static atomic_bool port_gone, waits_for_port, registers;
static struct event *stepping;

static void count_step(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	atomic_fetch_add(&steps, 1);
}

/* Checks that the loop goes on meanwhile. */
static void look_at_loop(void)
{
	const unsigned before = atomic_load(&steps);

	for (int i = 0; i < PATIENCE; i++) {
		if (atomic_load(&steps) != before) {
			atomic_fetch_add(&aside, 1);
			return;
		}
		poll(NULL, 0, 1);
	}
	atomic_fetch_add(&held, 1);
}

/* Until the daemon's port is gone, or the test says so. */
static void wait_for_port(void)
{
	atomic_store(&registers, true);
	for (int i = 0; i < PATIENCE && !atomic_load(&port_gone); i++)
		poll(NULL, 0, 1);
}

static struct ibv_mr *slow_reg_mr(struct ibv_pd *pd, void *base, size_t length, int access)
{
	if (length >= JOB_ASIDE_LEAST && atomic_load(&waits_for_port))
		wait_for_port();
	else if (length >= JOB_ASIDE_LEAST)
		look_at_loop();
	return verbs_fake_table.reg_mr(pd, base, length, access);
}

static int slow_dereg_mr(struct ibv_mr *memory)
{
	if (memory->length >= JOB_ASIDE_LEAST && !atomic_load(&waits_for_port))
		look_at_loop();
	return verbs_fake_table.dereg_mr(memory);
}

/* Frees a port whose device goes, before the memory registered with it. */
static int note_destroy_id(struct rdma_cm_id *id)
{
	atomic_store(&port_gone, true);
	return verbs_fake_table.destroy_id(id);
}

static int setup_slow(void **state)
{
	const struct rdma_options options = { .enabled = true };
	const struct timeval often = { .tv_usec = 1000 };
	struct fixture *fixture;
	int ret;

	slow = verbs_fake_table;
	slow.reg_mr = slow_reg_mr;
	slow.dereg_mr = slow_dereg_mr;
	slow.destroy_id = note_destroy_id;
	ret = start(state, &slow, &options);
	fixture = *state;
	stepping = event_new(fixture->daemon->base, -1, EV_PERSIST, count_step, NULL);
	event_add(stepping, &often);
	atomic_store(&held, 0);
	atomic_store(&aside, 0);
	atomic_store(&port_gone, false);
	atomic_store(&registers, false);
	atomic_store(&waits_for_port, false);
	fixture_bank(fixture);
	return ret;
}

static int teardown_slow(void **state)
{
	event_free(stepping);
	atomic_store(&waits_for_port, true);
	return teardown(state);
}

struct unit_fixture unit_fixture = { setup_slow, teardown_slow };

/* Steps the daemon until memory is being registered, which does not end. */
static void wait_for_registration(struct fixture *fixture)
{
	for (int i = 0; i < PATIENCE && !atomic_load(&registers); i++) {
		event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
		poll(NULL, 0, 1);
	}
	assert_true(atomic_load(&registers));
}

/* Steps the daemon until it knows that an owner has hung up. */
static void wait_for_hangup(struct fixture *fixture)
{
	const struct connection *gone = NULL;

	for (int i = 0; i < PATIENCE && !gone; i++) {
		event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
		gone = fixture->daemon->connections;
		while (gone && !gone->close_after_job)
			gone = gone->next;
		poll(NULL, 0, 1);
	}
	assert_non_null(gone);
}

static void drop_bank(struct fixture *fixture, int fd, const Perseas__Header *header)
{
	Perseas__DropRequest drop = PERSEAS__DROP_REQUEST__INIT;
	Perseas__Reply *reply;

	drop.store = (char *)"bank";
	drop.store_id = header->store_id;
	drop.image_id = header->image_id;
	fixture_ask(fd, PERSEAS__REQUEST__BODY_DROP, &drop);
	reply = fixture_reply(fixture, fd);
	assert_string_equal(reply->message, "");
	fixture_done(reply);
}

/* An owner gets its keys, and its store is dropped later. */
TEST(memory_is_registered_beside_the_loop, struct fixture *fixture)
{
	int other = fixture_tcp(fixture);
	Perseas__Reply *reply;

	greet(fixture, &alice);
	fixture_greet(fixture, other);
	ask_claim(alice.control, "bank", 5, true);
	reply = granted_reply(fixture, &alice);
	take_grant(&alice, reply->claim->grant);
	assert_string_equal(alice.trouble, "");
	assert_int_equal(atomic_load(&aside), 1);
	open_path(fixture, &alice);
	assert_int_equal(put(&alice, PS_REGION_LOG, PS_RING_OFFSET, 64, 7), IBV_WC_SUCCESS);
	leave(&alice);
	settle(fixture);
	drop_bank(fixture, other, reply->claim->header);
	fixture_done(reply);
	assert_int_equal(verbs_fake_alive().mrs, 0);
	assert_int_equal(verbs_fake_alive().pds, 0);
	assert_int_equal(atomic_load(&aside), 2);
	assert_int_equal(atomic_load(&held), 0);
}

/* The owner is told, and has its claim; it goes over tcp. */
TEST(a_device_that_goes_meanwhile, struct fixture *fixture)
{
	Perseas__Reply *reply;

	atomic_store(&waits_for_port, true);
	greet(fixture, &alice);
	ask_claim(alice.control, "bank", 5, true);
	wait_for_registration(fixture);
	verbs_fake_remove(rxe);
	reply = fixture_reply(fixture, alice.control);
	assert_true(atomic_load(&port_gone));
	assert_int_equal(reply->status, STATUS(OK));
	take_grant(&alice, reply->claim->grant);
	fixture_done(reply);
	assert_int_equal(alice.port, 0);
	assert_int_equal(alice.regions[PS_REGION_LOG].key, 0);
	assert_string_equal(alice.trouble, "its device was taken away");
	assert_int_equal(verbs_fake_alive().mrs, 0);
	assert_int_equal(verbs_fake_alive().pds, 0);
}

/* Memory registered so far goes with the store; the rest is not begun. */
TEST(who_hangs_up_gets_no_more_of_it, struct fixture *fixture)
{
	int owner = fixture_tcp(fixture), other = fixture_tcp(fixture);
	Perseas__Reply *reply;

	atomic_store(&waits_for_port, true);
	fixture_greet(fixture, owner);
	fixture_greet(fixture, other);
	ask_claim(owner, "bank", 5, true);
	wait_for_registration(fixture);
	close(owner);
	wait_for_hangup(fixture);
	atomic_store(&port_gone, true);
	ask_claim(other, "bank", 6, false);
	reply = fixture_reply(fixture, other);
	assert_int_equal(reply->status, STATUS(OK));
	fixture_done(reply);
	/* The log's, and not the promise page's. */
	assert_int_equal(verbs_fake_alive().mrs, 1);
}
