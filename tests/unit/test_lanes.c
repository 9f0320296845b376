/*
 * test_lanes.c - data connections that threads carry: owners on threads of their own, and the
 * daemon's loop in the test's.
 */
#include "data_rig.h"

#include <event2/event.h>

struct unit_fixture unit_fixture = { fixture_setup, fixture_teardown };

enum { BLOCK = 64 << 10, SECONDS_MS = 600000 };

/* A store's owner. */
struct owner {
	int control, data;
	uint8_t *image; /* of its ring: BLOCK bytes */
	pthread_t thread;
	unsigned echoes; /* that it had */
	unsigned wanted;
	atomic_bool over;
};

static struct owner claim_by(int (*dial)(struct fixture *fixture), struct fixture *fixture,
                             const char *store, uint64_t epoch)
{
	struct owner owner = { .control = dial(fixture) };
	const uint8_t *token;
	Perseas__Reply *reply;

	fixture_greet(fixture, owner.control);
	fixture_ask_claim_of(owner.control, store, epoch, false);
	reply = fixture_reply(fixture, owner.control);
	assert_int_equal(reply->status, STATUS(OK));
	token = reply->claim->grant->token.data;
	owner.data = dial(fixture);
	assert_int_equal(open_data(fixture, owner.data, token).status, PS_ANSWER_OK);
	daemon_lock(fixture->daemon);
	owner.image = session_memory(stores_find_session(fixture->stores, token), PS_REGION_LOG,
	                             PS_RING_OFFSET, BLOCK, true);
	daemon_unlock(fixture->daemon);
	assert_non_null(owner.image);
	fixture_done(reply);
	return owner;
}

static struct owner claim(struct fixture *fixture, const char *store, uint64_t epoch)
{
	return claim_by(fixture_tcp, fixture, store, epoch);
}

static void leave(struct owner *owner)
{
	close(owner->data);
	close(owner->control);
}

static bool get(int fd, void *bytes, size_t len)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	for (size_t have = 0; have < len;) {
		ssize_t n = poll(&ready, 1, SECONDS_MS) == 1
		                    ? recv(fd, (uint8_t *)bytes + have, len - have, 0)
		                    : -1;

		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return true;
}

/* Writes a value, and reads it back. Nobody runs the loop for it. */
static bool echo(const struct owner *owner, uint64_t value)
{
	struct {
		struct request_frame write;
		uint64_t value;
		struct request_frame read;
	} __attribute__((packed)) both = {
		frame_of(PS_OP_WRITE, PS_RING_OFFSET, 8, value),
		value,
		frame_of(PS_OP_READ, PS_RING_OFFSET, 8, value),
	};
	struct ps_answer answers[2];
	uint64_t back;

	return send(owner->data, &both, sizeof(both), MSG_NOSIGNAL) == (ssize_t)sizeof(both) &&
	       get(owner->data, answers, sizeof(answers)) && get(owner->data, &back, 8) &&
	       answers[0].status == PS_ANSWER_OK && answers[1].cookie == value && back == value;
}

static void *run_echoes(void *arg)
{
	struct owner *owner = arg;

	while (owner->echoes < owner->wanted && echo(owner, owner->echoes + 1))
		owner->echoes++;
	atomic_store(&owner->over, true);
	return NULL;
}

/* Writes blocks, each different from the one before, until the connection ends. */
static void *run_flood(void *arg)
{
	struct owner *owner = arg;
	static _Thread_local struct {
		struct request_frame frame;
		uint8_t bytes[BLOCK];
	} __attribute__((packed)) block;

	block.frame = frame_of(PS_OP_WRITE, PS_RING_OFFSET, BLOCK, 1);
	block.frame.frame.flags = 0;
	do
		memset(block.bytes, block.bytes[0] + 1, BLOCK);
	while (send(owner->data, &block, sizeof(block), MSG_NOSIGNAL) == (ssize_t)sizeof(block));
	return NULL;
}

static void begin(struct owner *owner, void *(*run)(void *arg))
{
	assert_int_equal(pthread_create(&owner->thread, NULL, run, owner), 0);
}

static void step(struct fixture *fixture)
{
	event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
}

static void make_stores(struct fixture *fixture, unsigned count, char names[][16])
{
	for (unsigned i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), "s%u", i);
		fixture_make(fixture, names[i]);
	}
}

/* The links of the loop, and of each thread. */
static void count_links(struct fixture *fixture, unsigned counts[3])
{
	daemon_lock(fixture->daemon);
	for (unsigned i = 0; i < 3; i++)
		counts[i] = daemon_get_lane(fixture->daemon, i)->count;
	daemon_unlock(fixture->daemon);
}

TEST(different_stores_are_on_different_threads, struct fixture *fixture)
{
	char names[3][16];
	struct owner owners[3];
	unsigned counts[3];

	make_stores(fixture, 3, names);
	owners[0] = claim(fixture, names[0], 5);
	owners[1] = claim_by(fixture_unix, fixture, names[1], 5);
	count_links(fixture, counts);
	assert_int_equal(counts[0], 0);
	assert_int_equal(counts[1], 1);
	assert_int_equal(counts[2], 1);
	for (unsigned i = 0; i < 2; i++)
		assert_true(echo(&owners[i], i + 1));
	/* Whose place is free: the loop closes what the thread has seen the end of. */
	close(owners[1].data);
	do {
		step(fixture);
		count_links(fixture, counts);
	} while (counts[2] > 0);
	owners[2] = claim(fixture, names[2], 5);
	count_links(fixture, counts);
	assert_int_equal(counts[1], 1);
	assert_int_equal(counts[2], 1);
	assert_true(echo(&owners[2], 3));
	close(owners[1].control);
	leave(&owners[0]);
	leave(&owners[2]);
}

/* The image's bytes when the cut returned. */
static uint8_t at_cut[BLOCK];

static void note_cut(void *arg, const struct store_event_info *news)
{
	const struct owner *owner = arg;

	if (news->event == STORE_SESSION_ENDED && owner->image)
		memcpy(at_cut, owner->image, BLOCK);
}

static uint8_t first_byte(struct fixture *fixture, const struct owner *owner)
{
	uint8_t byte;

	daemon_lock(fixture->daemon);
	byte = owner->image[0];
	daemon_unlock(fixture->daemon);
	return byte;
}

/* I5: an owner floods the thread of its store, and another claims the store. */
TEST(nothing_is_written_after_a_cut, struct fixture *fixture)
{
	enum { ROUNDS = 200 };
	struct owner owner = { 0 }, next;

	fixture_bank(fixture);
	stores_on_event(fixture->stores, note_cut, &owner);
	owner = claim(fixture, "bank", 1);
	for (uint64_t epoch = 2; epoch < ROUNDS; epoch++) {
		const time_t until = time(NULL) + SECONDS_MS / 1000;
		const uint8_t before = first_byte(fixture, &owner);

		begin(&owner, run_flood);
		while (first_byte(fixture, &owner) == before)
			assert_true(time(NULL) < until);
		next = claim(fixture, "bank", epoch);
		pthread_join(owner.thread, NULL);
		daemon_lock(fixture->daemon);
		assert_memory_equal(owner.image, at_cut, BLOCK);
		daemon_unlock(fixture->daemon);
		leave(&owner);
		owner = next;
	}
	leave(&owner);
	stores_on_event(fixture->stores, NULL, NULL);
}

/* More stores than threads; their owners commit while others ask the daemon, and claim. */
TEST(all_get_their_turn, struct fixture *fixture)
{
	enum { OWNERS = 9, ECHOES = 500 };
	static struct owner owners[OWNERS];
	char names[OWNERS][16];
	struct traffic traffic;
	bool over;
	int fd = fixture_tcp(fixture);

	make_stores(fixture, OWNERS, names);
	for (unsigned i = 0; i < OWNERS; i++) {
		owners[i] = claim(fixture, names[i], 5);
		owners[i].wanted = ECHOES;
		begin(&owners[i], run_echoes);
	}
	fixture_greet(fixture, fd);
	do {
		fixture_ask_list(fd);
		fixture_done(fixture_reply(fixture, fd));
		over = true;
		for (unsigned i = 0; i < OWNERS; i++)
			over = over && atomic_load(&owners[i].over);
	} while (!over);
	daemon_lock(fixture->daemon);
	traffic = daemon_sum_traffic(fixture->daemon);
	daemon_unlock(fixture->daemon);
	assert_int_equal(traffic.acknowledged_chains, OWNERS * ECHOES);
	assert_true(traffic.received_bytes > OWNERS * ECHOES * sizeof(struct request_frame));
	for (unsigned i = 0; i < OWNERS; i++) {
		pthread_join(owners[i].thread, NULL);
		assert_int_equal(owners[i].echoes, ECHOES);
		leave(&owners[i]);
	}
}

/* No thread is idle; then the daemon ends. */
TEST(floods_keep_nobody_out, struct fixture *fixture)
{
	enum { OWNERS = 4, REQUESTS = 300 };
	struct owner owners[OWNERS];
	char names[OWNERS][16];
	int fd = fixture_tcp(fixture);

	make_stores(fixture, OWNERS, names);
	fixture_greet(fixture, fd);
	for (unsigned i = 0; i < OWNERS; i++) {
		owners[i] = claim(fixture, names[i], 5);
		begin(&owners[i], run_flood);
	}
	for (unsigned i = 0; i < REQUESTS; i++) {
		fixture_ask_list(fd);
		fixture_done(fixture_reply(fixture, fd));
	}
	daemon_end_sessions(fixture->daemon);
	for (unsigned i = 0; i < OWNERS; i++) {
		pthread_join(owners[i].thread, NULL);
		leave(&owners[i]);
	}
}

/* Data comes without a pause, and others are so far ahead of their part of the loop's time. */
static void let_others_be_ahead(struct fixture *fixture, uint64_t ns)
{
	daemon_lock(fixture->daemon);
	daemon_get_lane(fixture->daemon, 1)->last_data_ns = UINT64_MAX / 2;
	fixture->daemon->unprioritized_wait_until_ns = daemon_now_ns() + ns;
	daemon_unlock(fixture->daemon);
}

static void ask_and_get(struct fixture *fixture, int fd)
{
	fixture_ask_list(fd);
	fixture_done(fixture_reply(fixture, fd));
}

/* The owner's requests and its data do not. */
TEST(others_wait_for_what_they_took_beside_data, struct fixture *fixture)
{
	const uint64_t hour_ns = 3600 * 1000000000ull;
	int fd = fixture_tcp(fixture);
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	struct owner owner;

	fixture_bank(fixture);
	owner = claim(fixture, "bank", 5);
	fixture_greet(fixture, fd);
	let_others_be_ahead(fixture, hour_ns);
	fixture_ask_list(fd);
	for (unsigned i = 0; i < 10; i++)
		ask_and_get(fixture, owner.control);
	assert_true(echo(&owner, 1));
	assert_int_equal(poll(&ready, 1, 0), 0);
	assert_true(fixture->daemon->unprioritized_wait_until_ns > daemon_now_ns() + hour_ns / 2);
	leave(&owner);
}

/* Other requests continue when their turn comes. */
TEST(others_get_their_part_beside_data, struct fixture *fixture)
{
	enum { REQUESTS = 100, AHEAD_NS = 2000000, WAIT_NS = 30000000 };
	uint64_t until_ns;
	int fd = fixture_tcp(fixture);

	fixture_greet(fixture, fd);
	let_others_be_ahead(fixture, WAIT_NS);
	for (unsigned i = 0; i < REQUESTS; i++) {
		until_ns = fixture->daemon->unprioritized_wait_until_ns;
		ask_and_get(fixture, fd);
		assert_true(until_ns < daemon_now_ns() + AHEAD_NS);
	}
}

/* Time that others use counts, with or without data, but nobody waits for more than a tenth of a
 * second. */
TEST(what_others_take_counts_until_it_is_too_much, struct fixture *fixture)
{
	enum { SOME_NS = 90000000, TOO_MUCH_NS = 2000000000 };
	uint64_t until_ns;
	int fd = fixture_tcp(fixture);

	fixture_greet(fixture, fd);
	let_others_be_ahead(fixture, SOME_NS);
	daemon_get_lane(fixture->daemon, 1)->last_data_ns = 0;
	until_ns = fixture->daemon->unprioritized_wait_until_ns;
	ask_and_get(fixture, fd);
	assert_true(fixture->daemon->unprioritized_wait_until_ns > until_ns);
	let_others_be_ahead(fixture, TOO_MUCH_NS);
	daemon_get_lane(fixture->daemon, 1)->last_data_ns = 0;
	until_ns = fixture->daemon->unprioritized_wait_until_ns;
	ask_and_get(fixture, fd);
	assert_int_equal(fixture->daemon->unprioritized_wait_until_ns, until_ns);
}

/* The loop is busy without a pause. */
TEST(the_loop_keeps_nobody_out, struct fixture *fixture)
{
	struct owner owner;

	fixture_bank(fixture);
	owner = claim(fixture, "bank", 5);
	owner.wanted = 500;
	begin(&owner, run_echoes);
	while (!atomic_load(&owner.over)) {
		daemon_lock(fixture->daemon);
		daemon_unlock(fixture->daemon);
	}
	pthread_join(owner.thread, NULL);
	assert_int_equal(owner.echoes, owner.wanted);
	leave(&owner);
}

/* The thread polls for an hour after each byte. */
TEST(a_thread_that_spins_still_stops, struct fixture *fixture)
{
	struct owner owner;

	lanes_close(fixture->daemon);
	fixture->daemon->spin_ns = 3600000000000u;
	assert_int_equal(lanes_open(fixture->daemon, 2), 0);
	fixture_bank(fixture);
	owner = claim(fixture, "bank", 5);
	for (unsigned i = 1; i < 100; i++)
		assert_true(echo(&owner, i));
	daemon_end_sessions(fixture->daemon);
	assert_int_equal(daemon_spin_count(fixture->daemon), 1);
	leave(&owner);
}

int main(void)
{
	fixture_threads = 2;
	return unit_run("tests");
}
