/*
 * test_watch_loop.c - who watches a store is told when it gets or loses its owner, however that
 * happens, and costs nobody anything meanwhile.
 */
#include "../support/daemon_fixture.h"

#include "../../server/loop/connection.h"
#include "../support/unit.h"

#include <event2/event.h>

static int setup(void **state)
{
	if (fixture_setup(state))
		return -1;
	fixture_bank(*state);
	return 0;
}

struct unit_fixture unit_fixture = { setup, fixture_teardown };

enum { STEPS = 1000, SHORTLY_NS = 30000000 };

static void ask_watch(int fd, const char *store, uint64_t epoch, bool live)
{
	Perseas__WatchRequest watch = PERSEAS__WATCH_REQUEST__INIT;

	watch.store = (char *)(uintptr_t)store;
	watch.epoch = epoch;
	watch.live = live;
	fixture_ask(fd, PERSEAS__REQUEST__BODY_WATCH, &watch);
}

static void expect_watchers(struct fixture *fixture, unsigned n)
{
	for (int i = 0; i < STEPS && fixture->daemon->watcher_count != n; i++)
		event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
	assert_int_equal(fixture->daemon->watcher_count, n);
}

/* Returns a connection whose Watch is the n-th that waits. */
static int begin_watch(struct fixture *fixture, const char *from, uint64_t epoch, bool live,
                       unsigned n)
{
	int fd = fixture_tcp_from(fixture, from);

	fixture_greet(fixture, fd);
	ask_watch(fd, "bank", epoch, live);
	expect_watchers(fixture, n);
	return fd;
}

static void expect_news(struct fixture *fixture, int fd, uint64_t epoch, bool live)
{
	Perseas__Reply *reply = fixture_reply(fixture, fd);

	assert_int_equal(reply->status, STATUS(OK));
	assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_WATCH);
	assert_int_equal(reply->watch->epoch, epoch);
	assert_int_equal((bool)reply->watch->live, live);
	fixture_done(reply);
}

/* Returns a connection that waits for news of this owner. */
static int begin_watch_of(struct fixture *fixture, int owner)
{
	fixture_done(fixture_claim(fixture, owner, 5));
	return begin_watch(fixture, "127.0.0.1", 5, true, 1);
}

static void expect_refusal(struct fixture *fixture, int fd, Perseas__Status status)
{
	Perseas__Reply *reply = fixture_reply(fixture, fd);

	assert_int_equal(reply->status, status);
	fixture_done(reply);
}

static void expect_list(struct fixture *fixture, int fd)
{
	Perseas__Reply *reply;

	fixture_ask_list(fd);
	reply = fixture_reply(fixture, fd);
	assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_LIST);
	fixture_done(reply);
}

/* The one that it had goes, and another one comes. */
TEST(an_owner_that_goes_or_comes_is_told_at_once, struct fixture *fixture)
{
	int owner = fixture_tcp(fixture), next = fixture_tcp(fixture), fd;

	fd = begin_watch_of(fixture, owner);
	/* Events of other stores, and requests that change nothing, are no news. */
	fixture_make(fixture, "other");
	expect_watchers(fixture, 1);
	close(owner);
	expect_news(fixture, fd, 5, false);
	ask_watch(fd, "bank", 5, false);
	expect_watchers(fixture, 1);
	fixture_done(fixture_claim(fixture, next, 6));
	expect_news(fixture, fd, 6, true);
	expect_watchers(fixture, 0);
}

/* The watcher's time ends while large messages are in flight, so it has to wait all the same: its
 * answer goes to no other watcher. */
TEST(one_that_is_let_go_and_must_wait_leaves_nothing_behind, struct fixture *fixture)
{
	int owner = fixture_tcp(fixture), fd = begin_watch_of(fixture, owner);

	fixture->daemon->large_bytes += (size_t)1 << 30;
	close(owner);
	expect_watchers(fixture, 0);
	for (int i = 0; i < STEPS; i++)
		event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
	assert_null(fixture->daemon->connection_to_resume);
	fixture->daemon->large_bytes -= (size_t)1 << 30;
	expect_news(fixture, fd, 5, false);
}

/* The watcher's state is from before a claim, before another owner's claim, and before the owner's
 * end. */
TEST(what_is_new_already_is_told_without_waiting, struct fixture *fixture)
{
	int owner = fixture_tcp(fixture), fd = fixture_tcp(fixture);

	fixture_greet(fixture, fd);
	fixture_done(fixture_claim(fixture, owner, 5));
	ask_watch(fd, "bank", 0, false);
	expect_news(fixture, fd, 5, true);
	ask_watch(fd, "bank", 4, true);
	expect_news(fixture, fd, 5, true);
	ask_watch(fd, "bank", 5, false);
	expect_news(fixture, fd, 5, true);
	ask_watch(fd, "none", 5, false);
	expect_refusal(fixture, fd, STATUS(NO_STORE));
}

/* Its connection stays, but it says nothing: no event tells of that. */
TEST(an_owner_that_fell_silent_is_told, struct fixture *fixture)
{
	int owner = fixture_tcp(fixture), fd;

	stores_set_owner_timeout(fixture->stores, 300);
	fd = begin_watch_of(fixture, owner);
	expect_news(fixture, fd, 5, false);
}

static Perseas__Reply *ask_move(struct fixture *fixture, int fd, uint64_t epoch, bool withdraw)
{
	static uint8_t id[PS_ID_SIZE] = { 1 }, mark[PS_OWNER_MARK] = { 2 };
	Perseas__MoveRequest ask = PERSEAS__MOVE_REQUEST__INIT;

	ask.store = (char *)(uintptr_t) "bank";
	ask.id = (ProtobufCBinaryData){ sizeof(id), id };
	ask.withdraw = withdraw;
	ask.epoch = epoch;
	ask.to = (ProtobufCBinaryData){ sizeof(mark), mark };
	ask.name = (char *)(uintptr_t) "beta";
	ask.within_ms = 60000;
	fixture_ask(fd, PERSEAS__REQUEST__BODY_MOVE, &ask);
	return fixture_reply(fixture, fd);
}

/* An operator asks for a standby as the next owner, and takes that back. */
TEST(a_handover_is_told_at_once, struct fixture *fixture)
{
	int owner = fixture_tcp(fixture), other = fixture_tcp(fixture), fd;
	Perseas__Reply *reply;

	fixture_greet(fixture, other);
	fd = begin_watch_of(fixture, owner);
	fixture_done(ask_move(fixture, other, 5, false));
	reply = fixture_reply(fixture, fd);
	assert_int_equal(reply->watch->epoch, 5);
	assert_true(reply->watch->live);
	assert_int_equal(reply->watch->handover.len, PS_ID_SIZE);
	fixture_done(reply);
	fixture_done(ask_move(fixture, other, 5, true));
	ask_watch(fd, "bank", 5, true);
	expect_watchers(fixture, 1);
}

/* Nobody took the store from the owner meanwhile. */
TEST(an_owner_that_speaks_again_is_told, struct fixture *fixture)
{
	const uint32_t sign = 0;
	int owner = fixture_tcp(fixture), fd;

	stores_set_owner_timeout(fixture->stores, 300);
	fd = begin_watch_of(fixture, owner);
	expect_news(fixture, fd, 5, false);
	ask_watch(fd, "bank", 5, false);
	expect_watchers(fixture, 1);
	fixture_send(owner, &sign, sizeof(sign));
	expect_news(fixture, fd, 5, true);
}

TEST(after_a_while_it_is_told_that_nothing_is_new, struct fixture *fixture)
{
	int fd;

	fixture->daemon->longest_watch_ns = SHORTLY_NS;
	fd = begin_watch(fixture, "127.0.0.1", 0, false, 1);
	for (int i = 0; i < 2; i++) {
		expect_news(fixture, fd, 0, false);
		ask_watch(fd, "bank", 0, false);
	}
	expect_news(fixture, fd, 0, false);
	expect_watchers(fixture, 0);
}

/* A watcher with a short limit is answered sooner, and all others at their time. */
TEST(who_asks_for_it_is_answered_sooner, struct fixture *fixture)
{
	Perseas__WatchRequest watch = PERSEAS__WATCH_REQUEST__INIT;
	const uint64_t asked_ns = daemon_now_ns();
	int fd;

	watch.store = (char *)(uintptr_t) "bank";
	fixture->daemon->longest_watch_ns = 20000000000;
	for (unsigned i = 0; i < 3; i++) {
		const uint32_t within_ms[] = { 1000, 30000, 0 };
		const uint64_t most_ns[] = { 1000000000, 20000000000, 20000000000 };
		uint64_t until_ns;

		watch.within_ms = within_ms[i];
		fd = fixture_tcp_from(fixture, "127.0.0.1");
		fixture_greet(fixture, fd);
		fixture_ask(fd, PERSEAS__REQUEST__BODY_WATCH, &watch);
		expect_watchers(fixture, 1);
		until_ns = fixture->daemon->watchers->watch_until_ns;
		assert_in_range(until_ns, asked_ns + most_ns[i], daemon_now_ns() + most_ns[i]);
		close(fd);
		expect_watchers(fixture, 0);
	}
}

/* First, last, and between two others; the connection ends, and with it what it waits for. */
TEST(who_goes_is_forgotten, struct fixture *fixture)
{
	int owner = fixture_tcp(fixture), fds[5];

	for (unsigned i = 0; i < 5; i++)
		fds[i] = begin_watch(fixture, "127.0.0.1", 0, false, i + 1);
	close(fds[2]);
	expect_watchers(fixture, 4);
	close(fds[0]);
	expect_watchers(fixture, 3);
	close(fds[4]);
	expect_watchers(fixture, 2);
	fds[0] = begin_watch(fixture, "127.0.0.1", 0, false, 3);
	fixture_done(fixture_claim(fixture, owner, 1));
	expect_news(fixture, fds[1], 1, true);
	expect_news(fixture, fds[3], 1, true);
	expect_news(fixture, fds[0], 1, true);
}

/* One address takes all places, and two others come: the oldest of its watchers is let go. */
TEST(a_full_table_lets_go_of_whoever_has_most, struct fixture *fixture)
{
	int owner = fixture_tcp(fixture), first, many[3], last;

	fixture->daemon->watchers_max = 4;
	first = begin_watch(fixture, "127.0.0.2", 0, false, 1);
	for (unsigned i = 0; i < 3; i++)
		many[i] = begin_watch(fixture, "127.0.0.3", 0, false, i + 2);
	last = begin_watch(fixture, "127.0.0.4", 0, false, 4);
	expect_news(fixture, many[0], 0, false);
	assert_int_equal(fixture->daemon->watcher_count, 4);
	/* The watcher returns, and takes the place of its own next one. */
	ask_watch(many[0], "bank", 0, false);
	expect_news(fixture, many[1], 0, false);
	assert_int_equal(fixture->daemon->watcher_count, 4);
	fixture_done(fixture_claim(fixture, owner, 1));
	expect_news(fixture, first, 1, true);
	expect_news(fixture, last, 1, true);
	expect_news(fixture, many[0], 1, true);
	expect_news(fixture, many[2], 1, true);
	expect_watchers(fixture, 0);
}

/* Its signs of life would wait behind it, and it would be taken for dead. */
TEST(an_owner_is_not_made_to_wait, struct fixture *fixture)
{
	int owner = fixture_tcp(fixture);

	fixture_done(fixture_claim(fixture, owner, 5));
	ask_watch(owner, "bank", 5, true);
	expect_news(fixture, owner, 5, true);
}

/* The answers come in the order of the requests, also when the one behind would not wait. */
TEST(what_is_asked_behind_it_waits_with_it, struct fixture *fixture)
{
	int owner = fixture_tcp(fixture), other = fixture_tcp(fixture), fd;
	Perseas__Reply *reply;

	fixture_greet(fixture, other);
	fd = begin_watch(fixture, "127.0.0.1", 0, false, 1);
	fixture_ask_list(fd);
	expect_list(fixture, other);
	expect_watchers(fixture, 1);
	fixture_done(fixture_claim(fixture, owner, 5));
	expect_news(fixture, fd, 5, true);
	reply = fixture_reply(fixture, fd);
	assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_LIST);
	fixture_done(reply);
}

/* Rules come that allow no more to read: the news is not told. */
TEST(a_right_that_was_lost_is_missed, struct fixture *fixture)
{
	int owner = fixture_tcp(fixture), fd;

	fixture_rules(fixture, "allow anonymous read,own,recover\n");
	fd = begin_watch(fixture, "127.0.0.1", 0, false, 1);
	fixture_rules(fixture, "allow anonymous own,recover\n");
	fixture_done(fixture_claim(fixture, owner, 5));
	expect_refusal(fixture, fd, STATUS(DENIED));
	ask_watch(fd, "bank", 5, true);
	expect_refusal(fixture, fd, STATUS(DENIED));
	assert_int_equal(fixture->daemon->watcher_count, 0);
}

TEST(a_store_that_is_dropped_is_told, struct fixture *fixture)
{
	Perseas__DropRequest drop = PERSEAS__DROP_REQUEST__INIT;
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	int other = fixture_tcp(fixture), fd;
	Perseas__Reply *reply, *told;

	fixture_greet(fixture, other);
	fd = begin_watch(fixture, "127.0.0.1", 0, false, 1);
	ask.store = drop.store = (char *)(uintptr_t) "bank";
	fixture_ask(other, PERSEAS__REQUEST__BODY_STATUS, &ask);
	told = fixture_reply(fixture, other);
	drop.store_id = told->store->status->header->store_id;
	drop.image_id = told->store->status->header->image_id;
	fixture_ask(other, PERSEAS__REQUEST__BODY_DROP, &drop);
	reply = fixture_reply(fixture, other);
	assert_int_equal(reply->status, STATUS(OK));
	fixture_done(reply);
	fixture_done(told);
	expect_refusal(fixture, fd, STATUS(NO_STORE));
}
