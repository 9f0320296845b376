/*
 * test_jobs_loop.c - a request that takes long stops nobody but those for the same store, gives
 * signs of progress, and leaves nothing behind when nobody waits for it any more.
 */
#include "../support/daemon_fixture.h"
#include "../support/memory_heap.h"
#include "../support/spill_heap.h"

#include "../../server/host/jobs.h"
#include "../../server/loop/connection.h"
#include "../support/unit.h"

#include <event2/event.h>

enum {
	SIZE = 2 << 20,
	LOG_SIZE = (1 << 20) + 4096,
	STEPS_MAX = 10000, /* of a millisecond each at most */
};

/* Memory in which making a piece takes as long as the test wants. */
static struct memory_ops slow_ops;
static const struct memory_ops *fast_ops;
static atomic_bool may_end;
static uint64_t slow_size;

/* At work: it takes processor time. */
static void wait_aside(void *arg)
{
	volatile unsigned *spins = arg;

	while (!atomic_load(&may_end) && !job_cancelled())
		++*spins;
}

static int slow_make(struct memory *memory, const char *store, const char *name, uint64_t size,
                     struct piece *piece)
{
	unsigned spins = 0;

	if (size == slow_size)
		job_aside(size, wait_aside, &spins);
	if (job_cancelled())
		return -STATUS(IO);
	return fast_ops->make(memory, store, name, size, piece);
}

static int setup(void **state)
{
	struct fixture *fixture;
	int ret = fixture_setup(state);

	fixture = *state;
	fast_ops = fixture->memory->ops;
	slow_ops = *fast_ops;
	slow_ops.make = slow_make;
	fixture->memory->ops = &slow_ops;
	fixture_bank(fixture);
	slow_size = SIZE;
	atomic_store(&may_end, false);
	return ret;
}

struct unit_fixture unit_fixture = { setup, fixture_teardown };

static void ask_segment(int fd, const char *name)
{
	Perseas__AddSegmentsRequest add = PERSEAS__ADD_SEGMENTS_REQUEST__INIT;
	Perseas__Segment segment = PERSEAS__SEGMENT__INIT, *segments[] = { &segment };

	segment.name = (char *)(uintptr_t)name;
	segment.size = SIZE;
	segment.address = 1 << 20;
	add.n_segments = 1;
	add.segments = segments;
	fixture_ask(fd, PERSEAS__REQUEST__BODY_ADD_SEGMENTS, &add);
}

/* Runs the loop once, and leaves a moment to the threads next to it. */
static void step_and_wait(struct fixture *fixture)
{
	event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
	poll(NULL, 0, 1);
}

/* Makes two owners; the first one's request for a segment does not end. */
static int begin_long(struct fixture *fixture)
{
	int fd = fixture_tcp(fixture);

	fixture_done(fixture_claim(fixture, fd, 1));
	ask_segment(fd, "slow");
	for (int i = 0; i < STEPS_MAX && jobs_count(fixture->daemon->jobs) == 0; i++)
		step_and_wait(fixture);
	assert_int_equal(jobs_count(fixture->daemon->jobs), 1);
	return fd;
}

/* Two signs, the second one of more than the first. */
static void expect_signs(struct fixture *fixture, int fd)
{
	uint64_t done = 0;

	for (int i = 0; i < 2; i++) {
		Perseas__Reply *reply = fixture_message(fixture, fd);

		assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_WORKING);
		assert_true(reply->working->done > done);
		done = reply->working->done;
		fixture_done(reply);
	}
}

TEST(what_takes_long_stops_only_its_own_store, struct fixture *fixture)
{
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	int owner = begin_long(fixture), other = fixture_tcp(fixture), next = fixture_tcp(fixture);
	Perseas__Reply *reply;

	fixture_greet(fixture, other);
	fixture_ask_list(other);
	reply = fixture_reply(fixture, other);
	assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_LIST);
	assert_int_equal(reply->list->n_stores, 1);
	fixture_done(reply);
	status.store = (char *)"bank";
	fixture_ask(other, PERSEAS__REQUEST__BODY_STATUS, &status);
	reply = fixture_reply(fixture, other);
	assert_int_equal(reply->status, STATUS(OK));
	assert_int_equal(reply->store->status->live, true);
	assert_int_equal(reply->store->status->header->n_segments, 0);
	fixture_done(reply);
	/* The owner is told that it goes on, and so is who waits for the same store. */
	expect_signs(fixture, owner);
	fixture_greet(fixture, next);
	fixture_ask_claim(next, 2, false);
	expect_signs(fixture, next);
	assert_int_equal(jobs_count(fixture->daemon->jobs), 1);
	atomic_store(&may_end, true);
	reply = fixture_reply(fixture, owner);
	assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_ADD_SEGMENTS);
	fixture_done(reply);
	reply = fixture_reply(fixture, next);
	assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_CLAIM);
	assert_int_equal(reply->status, STATUS(OK));
	fixture_done(reply);
}

/* The request ends soon, and the memory that it had taken is free again. */
TEST(who_gives_up_leaves_nothing_behind, struct fixture *fixture)
{
	uint64_t before = fast_ops->used(fixture->memory);
	int owner = begin_long(fixture), next = fixture_tcp(fixture);
	Perseas__Reply *reply;

	close(owner);
	for (int i = 0; i < STEPS_MAX && jobs_count(fixture->daemon->jobs) > 0; i++)
		step_and_wait(fixture);
	assert_int_equal(jobs_count(fixture->daemon->jobs), 0);
	assert_int_equal(fast_ops->used(fixture->memory), before);
	reply = fixture_claim(fixture, next, 2);
	assert_int_equal(reply->claim->header->n_segments, 0);
	fixture_done(reply);
}

TEST(who_waits_may_go, struct fixture *fixture)
{
	int first = fixture_tcp(fixture), next = fixture_tcp(fixture);
	Perseas__Reply *reply;

	begin_long(fixture);
	fixture_greet(fixture, first);
	fixture_ask_claim(first, 3, false);
	fixture_greet(fixture, next);
	fixture_ask_claim(next, 2, false);
	for (int i = 0; i < 100 && !(fixture->daemon->parked &&
	                             fixture->daemon->parked_last != &fixture->daemon->parked);
	     i++)
		event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
	assert_non_null(fixture->daemon->parked);
	close(first);
	expect_signs(fixture, next);
	atomic_store(&may_end, true);
	/* Epoch 2 is granted: that of 3 was never handled. */
	reply = fixture_reply(fixture, next);
	assert_int_equal(reply->status, STATUS(OK));
	fixture_done(reply);
	assert_null(fixture->daemon->parked);
}

TEST(those_who_wait_go_on_in_their_order, struct fixture *fixture)
{
	int waits[3];

	begin_long(fixture);
	for (unsigned i = 0; i < 3; i++) {
		waits[i] = fixture_tcp(fixture);
		fixture_greet(fixture, waits[i]);
		fixture_ask_claim(waits[i], 2 + i, false);
		expect_signs(fixture, waits[i]);
	}
	atomic_store(&may_end, true);
	/* A claim with a lower epoch than one before it would be refused. */
	for (unsigned i = 0; i < 3; i++) {
		Perseas__Reply *reply = fixture_reply(fixture, waits[i]);

		assert_int_equal(reply->status, STATUS(OK));
		fixture_done(reply);
		close(waits[i]);
	}
	assert_null(fixture->daemon->parked);
}

/* Digests wait for each other, whatever their stores are, and nobody waits for one that waits. */
TEST(a_claim_overtakes_a_digest_that_waits, struct fixture *fixture)
{
	int reader = fixture_tcp(fixture), next = fixture_tcp(fixture);
	Perseas__DigestRequest digest = PERSEAS__DIGEST_REQUEST__INIT;
	Perseas__Reply *reply;

	fixture_make(fixture, "other");
	begin_long(fixture);
	/* The loop takes the request of "bank" that goes on for a Digest. */
	for (struct connection *c = fixture->daemon->connections; c; c = c->next)
		if (c->runs_as_job)
			c->subject.course = CONTROL_HASHES;
	fixture_greet(fixture, reader);
	digest.store = (char *)"other";
	digest.length = 4096;
	fixture_ask(reader, PERSEAS__REQUEST__BODY_DIGEST, &digest);
	expect_signs(fixture, reader);
	fixture_greet(fixture, next);
	fixture_ask_claim_of(next, "other", 2, false);
	reply = fixture_reply(fixture, next);
	assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_CLAIM);
	assert_int_equal(reply->status, STATUS(OK));
	fixture_done(reply);
	assert_non_null(fixture->daemon->parked);
	atomic_store(&may_end, true);
	reply = fixture_reply(fixture, reader);
	assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_DIGEST);
	fixture_done(reply);
	assert_null(fixture->daemon->parked);
}

static void count_event(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	++*(unsigned *)arg;
}

/* Other rules come between requests, not in the middle of one; and nothing new begins before. */
TEST(rules_wait_for_what_is_under_way, struct fixture *fixture)
{
	unsigned came = 0;
	struct event *event = event_new(fixture->daemon->base, -1, 0, count_event, &came);
	int owner = begin_long(fixture);

	assert_true(daemon_defer_event_until_no_jobs(fixture->daemon, event));
	for (int i = 0; i < 100; i++)
		event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
	assert_int_equal(came, 0);
	atomic_store(&may_end, true);
	fixture_done(fixture_reply(fixture, owner));
	for (int i = 0; i < STEPS_MAX && came == 0; i++)
		step_and_wait(fixture);
	assert_int_equal(came, 1);
	assert_false(daemon_defer_event_until_no_jobs(fixture->daemon, event));
	event_free(event);
}

/* A claim over shared memory; a descriptor of that, which the caller closes. */
static int claim_and_keep(struct fixture *fixture, int owner)
{
	char path[128];
	int memory;

	fixture_ask_claim(owner, 1, true);
	fixture_done(fixture_reply(fixture, owner));
	snprintf(path, sizeof(path), "%s/memory/bank/log.1", fixture->directory);
	memory = open(path, O_RDWR);
	assert_true(memory >= 0);
	return memory;
}

/* A takeover copies the image away from an owner that keeps its memory, for however long. */
TEST(a_takeover_that_copies_stops_nobody, struct fixture *fixture)
{
	int owner = fixture_unix(fixture), other = fixture_tcp(fixture),
	    next = fixture_tcp(fixture);
	int memory;
	Perseas__Reply *reply;

	fixture_greet(fixture, owner);
	memory = claim_and_keep(fixture, owner);
	slow_size = LOG_SIZE;
	fixture_greet(fixture, next);
	fixture_ask_claim(next, 2, false);
	expect_signs(fixture, next);
	assert_int_equal(jobs_count(fixture->daemon->jobs), 1);
	fixture_greet(fixture, other);
	fixture_ask_list(other);
	reply = fixture_reply(fixture, other);
	assert_int_equal(reply->list->n_stores, 1);
	fixture_done(reply);
	atomic_store(&may_end, true);
	reply = fixture_reply(fixture, next);
	assert_int_equal(reply->status, STATUS(OK));
	assert_true(reply->claim->copied);
	fixture_done(reply);
	close(memory);
}

struct ruling {
	struct job job;
	struct fixture *fixture;
};

static void run_ruling(struct job *job)
{
	fixture_rules(((struct ruling *)job)->fixture, "allow anonymous all");
}

/* New rules take a store away from an owner that keeps its memory: the image is copied. Meanwhile
 * requests that only look are answered, and those that would change something wait. */
TEST(rules_that_have_an_image_copied_stop_nobody, struct fixture *fixture)
{
	struct ruling ruling = { { .run = run_ruling }, fixture };
	int owner = fixture_unix(fixture), other = fixture_tcp(fixture), memory;
	Perseas__Reply *reply;

	fixture_greet(fixture, owner);
	fixture_greet(fixture, other);
	memory = claim_and_keep(fixture, owner);
	slow_size = LOG_SIZE;
	daemon_lock(fixture->daemon);
	daemon_run_exclusive_job(fixture->daemon, &ruling.job);
	daemon_unlock(fixture->daemon);
	assert_false(ruling.job.over);
	fixture_ask_list(other);
	reply = fixture_reply(fixture, other);
	assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_LIST);
	fixture_done(reply);
	fixture_ask_claim(other, 2, false);
	expect_signs(fixture, other);
	atomic_store(&may_end, true);
	reply = fixture_reply(fixture, other);
	assert_int_equal(reply->status, STATUS(OK));
	/* The rules ended the owner's session, so the claim found nobody who had the memory. */
	assert_false(reply->claim->copied);
	assert_true(ruling.job.over);
	fixture_done(reply);
	close(memory);
}

static int (*fast_write)(struct ps_archive_sink *sink, const void *bytes, size_t len);

static int slow_write(struct ps_archive_sink *sink, const void *bytes, size_t len)
{
	unsigned spins = 0;

	wait_aside(&spins);
	return fast_write(sink, bytes, len);
}

/* Somebody asks for a spill, and the disk is slow. */
static int begin_spill(struct fixture *fixture, struct spill *spill)
{
	Perseas__SpillRequest ask = PERSEAS__SPILL_REQUEST__INIT;
	int fd = fixture_tcp(fixture);

	fast_write = spill->sink.write;
	spill->sink.write = slow_write;
	stores_set_spill(fixture->stores, spill);
	fixture_greet(fixture, fd);
	fixture_ask(fd, PERSEAS__REQUEST__BODY_SPILL, &ask);
	for (int i = 0; i < STEPS_MAX && jobs_count(fixture->daemon->jobs) == 0; i++)
		step_and_wait(fixture);
	assert_int_equal(jobs_count(fixture->daemon->jobs), 1);
	return fd;
}

/* While images are written, requests that only look are answered; others hear of the progress. */
TEST(a_spill_keeps_nobody_from_looking, struct fixture *fixture)
{
	struct spill *spill = spill_heap_new();
	int asker = begin_spill(fixture, spill), other = fixture_tcp(fixture);
	Perseas__Reply *reply;

	fixture_greet(fixture, other);
	fixture_ask_list(other);
	reply = fixture_reply(fixture, other);
	assert_int_equal(reply->list->n_stores, 1);
	fixture_done(reply);
	expect_signs(fixture, asker);
	/* Nothing changes meanwhile. */
	fixture_ask_claim(other, 2, false);
	expect_signs(fixture, other);
	atomic_store(&may_end, true);
	reply = fixture_reply(fixture, asker);
	assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_SPILL);
	assert_int_equal(reply->spill->stores, 1);
	fixture_done(reply);
	assert_true(fixture->daemon->is_stopping);
	assert_int_equal(spill_heap_count(spill), 1);
	close(asker);
	close(other);
	stores_set_spill(fixture->stores, NULL);
	spill_heap_free(spill);
}

/* Nobody would learn that all stores were ended, so they are served again. */
TEST(a_spill_that_nobody_waits_for_is_taken_back, struct fixture *fixture)
{
	struct spill *spill = spill_heap_new();
	int asker = begin_spill(fixture, spill), next = fixture_tcp(fixture);

	close(asker);
	for (int i = 0; i < STEPS_MAX && jobs_count(fixture->daemon->jobs) > 0; i++)
		step_and_wait(fixture);
	assert_int_equal(jobs_count(fixture->daemon->jobs), 0);
	assert_int_equal(spill_heap_count(spill), 0);
	assert_false(fixture->daemon->is_stopping);
	fixture_done(fixture_claim(fixture, next, 2));
	close(next);
	stores_set_spill(fixture->stores, NULL);
	spill_heap_free(spill);
}

static long (*fast_read)(struct ps_archive_source *source, void *bytes, size_t len);
static atomic_uint steps;
static unsigned stood; /* reads during which the loop stood still */

static void count_step(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	atomic_fetch_add(&steps, 1);
}

/* The disk takes as long as the loop needs for something else. */
static void wait_for_step(void)
{
	const unsigned before = atomic_load(&steps);

	for (int i = 0; i < STEPS_MAX && atomic_load(&steps) == before; i++)
		poll(NULL, 0, 1);
	stood += atomic_load(&steps) == before;
}

static long slow_read(struct ps_archive_source *source, void *bytes, size_t len)
{
	if (len >= 1 << 10)
		wait_for_step();
	return fast_read(source, bytes, len);
}

static int (*fast_retire)(struct spill *spill, const char *store);

static int slow_retire(struct spill *spill, const char *store)
{
	wait_for_step();
	return fast_retire(spill, store);
}

struct load {
	struct job job;
	struct stores *stores;
	unsigned loaded;
};

static void complain(void *arg, const char *text)
{
	(void)arg;
	fail_msg("%s", text);
}

static void run_load(struct job *job)
{
	struct load *load = (struct load *)job;

	stores_load(load->stores, complain, NULL);
	load->loaded = stores_load_spills(load->stores, complain, NULL);
}

/* A daemon that starts answers watchers while it reads images from a slow disk. */
TEST(a_load_stops_nobody, struct fixture *fixture)
{
	const struct timeval often = { .tv_usec = 1000 };
	struct event *event = event_new(fixture->daemon->base, -1, EV_PERSIST, count_step, NULL);
	struct spill *spill = spill_heap_new();
	struct memory *memory = memory_heap_new(0, 1);
	struct load load = { .job.run = run_load, .stores = stores_new(memory) };
	struct spill_ops slow = *spill->ops;
	struct spill_sum sum;

	stores_set_spill(fixture->stores, spill);
	assert_true(stores_spill(fixture->stores, &sum, complain, NULL));
	fast_read = spill->source.read;
	spill->source.read = slow_read;
	fast_retire = slow.retire;
	slow.retire = slow_retire;
	spill->ops = &slow;
	stores_set_spill(load.stores, spill);
	event_add(event, &often);
	stood = 0;
	daemon_run_job_to_end(fixture->daemon, &load.job);
	assert_int_equal(load.loaded, 1);
	assert_int_equal(stood, 0);
	assert_true(atomic_load(&steps) > 1);
	event_free(event);
	stores_free(load.stores);
	memory_heap_free(memory);
	stores_set_spill(fixture->stores, NULL);
	spill_heap_free(spill);
}

TEST(the_daemon_ends_while_it_works, struct fixture *fixture)
{
	uint64_t before = fast_ops->used(fixture->memory);

	begin_long(fixture);
	daemon_end_sessions(fixture->daemon);
	assert_int_equal(jobs_count(fixture->daemon->jobs), 0);
	assert_null(fixture->daemon->connections);
	assert_int_equal(fast_ops->used(fixture->memory), before);
}
