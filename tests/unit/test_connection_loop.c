/*
 * test_connection_loop.c - peers that are slow, too many or too fast, over real sockets.
 */
#include "../support/daemon_fixture.h"

#include "../../proto/control/version.h"
#include "../../proto/data/frame.h"
#include "../../server/loop/connection.h"
#include "../../server/watch/watch.h"
#include "../support/unit.h"

#include <event2/event.h>

struct unit_fixture unit_fixture = { fixture_setup, fixture_teardown };

enum { ROOM = 16 }; /* connections; three quarters of them for plain ones over TCP */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void ask_list(struct fixture *fixture, int fd)
{
	fixture_ask_list(fd);
	fixture_take_list(fixture, fd);
}

static void step(struct fixture *fixture)
{
	event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
}

/* One that says nothing, and one that says half of its hello, over TCP and a Unix socket. */
TEST(a_hello_must_come_in_time, struct fixture *fixture)
{
	const struct ps_control_hello hello = { PS_CONTROL_MAGIC, ps_version_greeting() };
	int good = fixture_tcp(fixture), silent, half;
	uint64_t began;

	fixture_greet(fixture, good);
	fixture->daemon->handshake_ns = 50000000;
	began = now_ns();
	silent = fixture_tcp(fixture);
	half = fixture_unix(fixture);
	fixture_send(half, &hello, sizeof(hello) / 2);
	assert_true(fixture_ended(fixture, silent));
	assert_true(fixture_ended(fixture, half));
	assert_true(now_ns() - began >= fixture->daemon->handshake_ns / 2);
	ask_list(fixture, good);
}

/* Half of a length; half of a message; a byte now and then. Others are not held up. */
TEST(a_request_must_come_whole_in_time, struct fixture *fixture)
{
	const uint8_t half[] = { 100, 0, 0, 0, 1, 2, 3 };
	int slow = fixture_tcp(fixture), local = fixture_unix(fixture), good = fixture_tcp(fixture);
	uint64_t began;

	fixture_greet(fixture, good);
	fixture_greet(fixture, slow);
	fixture_greet(fixture, local);
	fixture->daemon->message_ns = 50000000;
	began = now_ns();
	fixture_send(slow, half, 2);
	fixture_send(local, half, sizeof(half));
	ask_list(fixture, good);
	assert_true(fixture_ended(fixture, slow));
	assert_true(fixture_ended(fixture, local));
	assert_true(now_ns() - began >= fixture->daemon->message_ns / 2);
	ask_list(fixture, good);
}

/* Bytes trickle in: each comes in time for the last one, the request does not. */
TEST(a_trickle_does_not_stop_the_clock, struct fixture *fixture)
{
	const uint32_t length = PS_MESSAGE_MAX;
	int fd = fixture_tcp(fixture);
	uint64_t began;

	fixture_greet(fixture, fd);
	fixture->daemon->message_ns = 50000000;
	began = now_ns();
	fixture_send(fd, &length, sizeof(length));
	while (send(fd, "x", 1, MSG_NOSIGNAL) == 1 && now_ns() - began < 20000000000u)
		step(fixture);
	assert_true(now_ns() - began >= fixture->daemon->message_ns / 2);
	assert_true(now_ns() - began < 20000000000u);
}

static void ask_read(int fd, uint64_t length)
{
	Perseas__ReadRequest read = PERSEAS__READ_REQUEST__INIT;

	read.store = (char *)(uintptr_t) "bank";
	read.region = PS_REGION_LOG;
	read.length = length;
	fixture_ask(fd, PERSEAS__REQUEST__BODY_READ, &read);
}

/* A peer asks for more than sockets hold and reads none of it. On a busy machine its time may end
 * before the daemon begins to reply; then it asks again. */
TEST(a_reply_must_be_taken_in_time, struct fixture *fixture)
{
	const uint64_t usual_ns = fixture->daemon->message_ns;

	fixture_bank(fixture);
	while (fixture->daemon->large_bytes == 0) {
		int fd = fixture_unix(fixture);

		fixture->daemon->message_ns = usual_ns;
		fixture_greet(fixture, fd);
		fixture->daemon->message_ns = 50000000;
		ask_read(fd, PS_READ_REQUEST_MAX);
		while (fixture->daemon->large_bytes == 0 &&
		       fixture->daemon->admission.connection_count > 0)
			step(fixture);
	}
	while (fixture->daemon->admission.connection_count > 0)
		event_base_loop(fixture->daemon->base, EVLOOP_ONCE);
	assert_int_equal(fixture->daemon->large_bytes, 0);
}

/* A large request is counted until it is answered. */
TEST(a_large_request_is_counted_while_it_is_there, struct fixture *fixture)
{
	const uint32_t length = PS_MESSAGE_MAX, part = 32768;
	uint8_t *noise = calloc(1, length);
	int fd = fixture_peer(fixture);

	fixture_send(fd, &length, sizeof(length));
	fixture_send(fd, noise, part);
	while (fixture->daemon->large_bytes < part)
		step(fixture);
	for (uint32_t sent = part; sent < length; sent += part) {
		fixture_send(fd, noise, part);
		step(fixture);
	}
	assert_int_equal(fixture_status(fixture, fd), STATUS(BAD_REQUEST));
	assert_int_equal(fixture->daemon->large_bytes, 0);
	free(noise);
}

/* More large messages than there may be are under way. Small ones wait, an owner's do not; then
 * there is room again. */
TEST(large_messages_hold_up_no_owner, struct fixture *fixture)
{
	int owner = fixture_tcp(fixture), other = fixture_tcp(fixture);
	const size_t much = (size_t)1 << 30;

	fixture_bank(fixture);
	fixture_done(fixture_claim(fixture, owner, 5));
	fixture_greet(fixture, other);
	fixture->daemon->large_bytes += much;
	fixture_ask_list(other);
	for (int i = 0; i < 3; i++) {
		fixture_confirm(fixture, owner);
	}
	assert_int_equal(recv(other, &(uint8_t){ 0 }, 1, MSG_DONTWAIT), -1);
	fixture->daemon->large_bytes -= much;
	fixture_take_list(fixture, other);
}

/* Twice as many requests as a second allows, all at once, of two connections. */
TEST(who_asks_too_fast_is_answered_later, struct fixture *fixture)
{
	const int rate = 40;
	int fds[2] = { fixture_tcp(fixture), fixture_tcp(fixture) };
	uint64_t began;

	fixture_rules(fixture, "allow * all\nlimit anonymous requests 40/s");
	fixture_greet(fixture, fds[0]);
	fixture_greet(fixture, fds[1]);
	began = now_ns();
	for (int i = 0; i < rate; i++) {
		fixture_ask_list(fds[0]);
		fixture_ask_list(fds[1]);
	}
	for (int i = 0; i < rate; i++) {
		fixture_take_list(fixture, fds[0]);
		fixture_take_list(fixture, fds[1]);
	}
	assert_true(now_ns() - began >= 900000000);
}

/* Its identity has used up its rate for an hour; what an owner asks has a rate of its own. The
 * greedy ones may be read late, and take their part of the rate then. */
TEST(an_owner_does_not_wait_for_its_identity, struct fixture *fixture)
{
	const uint64_t second = 1000000000;
	int owner = fixture_tcp(fixture), greedy[8];
	struct bucket *bucket;
	uint64_t next_ns;

	fixture_bank(fixture);
	fixture_done(fixture_claim(fixture, owner, 5));
	fixture_rules(fixture, "allow * all\nlimit anonymous requests 1/s");
	for (int i = 0; i < 8; i++) {
		greedy[i] = fixture_peer(fixture);
		fixture_ask_list(greedy[i]);
	}
	fixture_take_list(fixture, greedy[0]);
	bucket = &fixture->daemon->admission.origins->bucket;
	next_ns = bucket->next_ns += 3600 * second;
	for (int i = 0; i < 20; i++) {
		fixture_confirm(fixture, owner);
	}
	assert_true(bucket->next_ns <= next_ns + 8 * second);
}

/* More than there is room for: the owner stays, a Unix socket and the next owner get in. */
TEST(a_crowd_locks_nobody_out, struct fixture *fixture)
{
	int owner = fixture_tcp(fixture), local, next, idle[3 * ROOM];

	daemon_set_max_connections(fixture->daemon, ROOM);
	fixture_bank(fixture);
	fixture_done(fixture_claim(fixture, owner, 5));
	for (int i = 0; i < 3 * ROOM; i++)
		idle[i] = fixture_peer(fixture);
	assert_true(fixture->daemon->admission.connection_count <= ROOM);
	assert_true(fixture_ended(fixture, idle[0]));
	fixture_confirm(fixture, owner);
	local = fixture_unix(fixture);
	fixture_greet(fixture, local);
	ask_list(fixture, local);
	next = fixture_tcp(fixture);
	fixture_done(fixture_claim(fixture, next, 6));
}

/* Each identity has two connections, and anonymous clients two for each address. */
TEST(an_identity_has_only_so_many_connections, struct fixture *fixture)
{
	int fds[4];

	fixture_rules(fixture, "allow * all\nlimit * connections 2");
	for (int i = 0; i < 4; i++) {
		fds[i] = i % 2 ? fixture_unix(fixture) : fixture_tcp(fixture);
		fixture_greet(fixture, fds[i]);
	}
	for (int i = 0; i < 2; i++) {
		int fd = i % 2 ? fixture_unix(fixture) : fixture_tcp(fixture);

		assert_true(fixture_ended(fixture, fd));
		close(fd);
	}
	close(fds[0]);
	while (fixture->daemon->admission.connection_count > 3)
		step(fixture);
	fixture_peer(fixture);
}

/* An owner comes before others as often as it has reason to ask, and after that takes its turn. */
TEST(an_owner_that_floods_comes_after_commits, struct fixture *fixture)
{
	int fd = fixture_tcp(fixture);
	struct connection *connection;
	unsigned asked = 0;

	fixture_bank(fixture);
	fixture_done(fixture_claim(fixture, fd, 1));
	connection = fixture->daemon->connections;
	assert_int_equal(event_get_priority(connection->readable), PRIORITY_OWNERS);
	for (; asked < 100000 && connection->has_priority; asked++)
		fixture_confirm(fixture, fd);
	assert_true(asked > 10);
	assert_int_equal(event_get_priority(connection->readable), PRIORITY_NON_OWNERS);
	/* A second later. */
	connection->priority_bucket.next_ns -= 1000000000u;
	fixture_confirm(fixture, fd);
	assert_int_equal(event_get_priority(connection->readable), PRIORITY_OWNERS);
}

/* While owners' data comes, a stranger's many requests are not answered in one go. */
TEST(others_get_one_message_while_owners_commit, struct fixture *fixture)
{
	int fd = fixture_peer(fixture);
	uint64_t before;

	for (int i = 0; i < 3; i++)
		fixture_ask_list(fd);
	fixture->daemon->loop_lane.last_data_ns = now_ns() + 1000000000000u;
	before = fixture->daemon->counters.requests[PERSEAS__REQUEST__BODY_LIST].count;
	event_base_loop(fixture->daemon->base, EVLOOP_ONCE);
	assert_int_equal(fixture->daemon->counters.requests[PERSEAS__REQUEST__BODY_LIST].count,
	                 before + 1);
	for (int i = 0; i < 3; i++)
		fixture_take_list(fixture, fd);
}

static int claim_store(struct fixture *fixture, int fd, const char *store)
{
	Perseas__ClaimRequest claim = PERSEAS__CLAIM_REQUEST__INIT;
	uint8_t owner[PS_ID_SIZE] = { 7 };
	Perseas__Reply *reply;
	int status;

	fixture_make(fixture, store);
	fixture_greet(fixture, fd);
	claim.store = (char *)(uintptr_t)store;
	claim.epoch = 1;
	claim.owner = (ProtobufCBinaryData){ PS_ID_SIZE, owner };
	fixture_ask(fd, PERSEAS__REQUEST__BODY_CLAIM, &claim);
	reply = fixture_reply(fixture, fd);
	status = reply->status;
	if (status == PERSEAS__STATUS__STATUS_LIMIT)
		assert_non_null(strstr(reply->message, "--max-connections"));
	fixture_done(reply);
	return status;
}

/* Owners fill all places, and one more comes: it is told, watchers are told, and operators still
 * get in. */
TEST(owners_lock_nobody_out, struct fixture *fixture)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
	char why[WATCH_REASON] = "";
	int fds[8];

	fixture->daemon->phase = DAEMON_SERVING;
	daemon_set_max_connections(fixture->daemon, 16);
	for (int i = 0; i < 7; i++) {
		assert_true(watch_is_ready(fixture->daemon, why, sizeof(why)));
		fds[i] = fixture_tcp(fixture);
		assert_int_equal(claim_store(fixture, fds[i], names[i]), 0);
	}
	assert_false(watch_is_ready(fixture->daemon, why, sizeof(why)));
	assert_non_null(strstr(why, "--max-connections"));
	fds[7] = fixture_tcp(fixture);
	assert_int_equal(claim_store(fixture, fds[7], names[7]), PERSEAS__STATUS__STATUS_LIMIT);
	ask_list(fixture, fixture_peer(fixture));
}
