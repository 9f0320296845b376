/*
 * test_resync_threads.c - many threads commit, abort and declare ranges while a mirror is copied
 * whole under them, again and again. Three daemons in processes of their own.
 */
#include "tellers.h"

#include "../../client/core/mirror.h"
#include "../../client/keeper/exclusive.h"
#include "../../client/keeper/rpc.h"
#include "../../proto/image/crc32c.h"

#include <sched.h>

enum { MIRRORS = 3, THREADS = 4, AREA = 128 << 10, RESYNCS = 12, SECONDS = 600 };

struct places {
	struct place at[MIRRORS];
	char list[1024];
};

static atomic_bool over;

static int setup_of(void **state, bool local)
{
	static struct places places;
	size_t used = 0;

	*state = &places;
	for (unsigned i = 0; i < MIRRORS; i++) {
		struct place *place = &places.at[i];

		if (place_start(place))
			return -1;
		used += (size_t)snprintf(places.list + used, sizeof(places.list) - used, "%s%s",
		                         i ? "," : "", local ? place->local : place->tcp);
	}
	return 0;
}

static int setup_tcp(void **state)
{
	return setup_of(state, false);
}

static int setup_local(void **state)
{
	return setup_of(state, true);
}

static int teardown(void **state)
{
	struct places *places = *state;
	int rc = 0;

	for (unsigned i = 0; i < MIRRORS; i++)
		rc |= place_end(&places->at[i]);
	return rc;
}

struct unit_fixture unit_fixture = { setup_tcp, teardown };

/* Each thread commits at least once, however late it gets a processor. */
static void *work(void *arg)
{
	struct teller *teller = arg;

	while (!(atomic_load(&over) && teller->commits) && !teller->rc)
		teller->rc = teller_transact(teller);
	return NULL;
}

/* Copies that began, that ended, and that broke, as the mirror reports them. */
static atomic_uint begun, done, broken;

static void note_event(void *arg, const struct perseas_event *event)
{
	(void)arg;
	assert_int_equal(event->missed, 0);
	if (event->kind == PERSEAS_EVENT_RESYNC_BEGUN)
		atomic_fetch_add(&begun, 1);
	else if (event->kind == PERSEAS_EVENT_RESYNC_DONE)
		atomic_fetch_add(&done, 1);
	else if (event->kind == PERSEAS_EVENT_RESYNC_BROKEN)
		atomic_fetch_add(&broken, 1);
}

/* A mirror that was made stale is live again only after a copy. That is not always counted as done:
 * when the answer to its end is late, the link is taken up anew, and the mirror tells that it is
 * whole. */
static void await_live(perseas_t *p)
{
	const uint64_t until = ps_now(p) + ps_ms(SECONDS * 1000);
	struct perseas_stat stat;

	do {
		assert_int_equal(perseas_stat(p, &stat), 0);
		if (ps_now(p) > until)
			fail_msg("%u of %u live within %d s; copies: %u begun, %u done, %u broken",
			         stat.live, MIRRORS, SECONDS, begun, done, broken);
		poll(NULL, 0, 1);
	} while (stat.live < MIRRORS);
}

static uint64_t last_seq(perseas_t *p)
{
	struct perseas_stat stat;

	assert_int_equal(perseas_stat(p, &stat), 0);
	return stat.seq;
}

/* The link of a mirror breaks, the others go on without it, and the ring forgets what it missed.
 * The keeper is held back meanwhile. */
static void make_stale(perseas_t *p, unsigned mirror)
{
	uint64_t seq;

	ps_admin_enter(p);
	pthread_mutex_lock(&p->lock);
	ps_mirror_break_link(p, &p->mirrors[mirror], PS_LINK_BROKEN, "by the test");
	seq = p->commit.seq;
	pthread_mutex_unlock(&p->lock);
	while (last_seq(p) < seq + 10)
		sched_yield();
	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count; i++)
		while (p->mirrors[i].is_active &&
		       (p->mirrors[i].chains_in_flight || p->mirrors[i].posted_seq < p->commit.seq))
			ps_mirrors_poll(p);
	ps_ring_drop_all(&p->commit.ring, p->commit.seq + 1);
	pthread_mutex_unlock(&p->lock);
	ps_admin_leave(p);
}

/* The checksum that the mirror gives of the segment is that of what the tellers expect. */
static void assert_mirrored(perseas_t *p, unsigned mirror, const struct teller *tellers)
{
	Perseas__DigestRequest ask = PERSEAS__DIGEST_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	static uint8_t expected[THREADS * AREA];
	struct ps_error error;
	Perseas__Reply *reply;

	for (unsigned i = 0; i < THREADS; i++)
		memcpy(expected + i * AREA, tellers[i].expected, AREA);
	ask.store = p->store;
	ask.region = PS_REGION_SEGMENT;
	ask.length = sizeof(expected);
	request.body_case = PERSEAS__REQUEST__BODY_DIGEST;
	request.digest = &ask;
	ps_admin_enter(p);
	assert_int_equal(ps_ask_mirror_and_wait(p, &p->mirrors[mirror], &request,
	                                        ps_answer_deadline(p), &reply, NULL, &error),
	                 0);
	ps_admin_leave(p);
	assert_int_equal(reply->digest->crc, ps_crc32c(0, expected, sizeof(expected)));
	perseas__reply__free_unpacked(reply, NULL);
}

static bool all_hold_all(perseas_t *p)
{
	struct perseas_stat stat;
	bool all = true;

	assert_int_equal(perseas_stat(p, &stat), 0);
	for (unsigned i = 0; i < MIRRORS; i++) {
		struct perseas_mirror_stat mirror;

		assert_int_equal(perseas_mirror_stat(p, i, &mirror), 0);
		all &= mirror.state == PERSEAS_MIRROR_LIVE && mirror.seq == stat.seq;
	}
	return all;
}

TEST(mirrors_are_copied_under_threads, const struct places *places)
{
	perseas_t *p = open_store(places->list, 1 << 20, 4 << 20, note_event);
	static struct teller tellers[THREADS];
	void *base;

	assert_int_equal(perseas_map(p, "areas", THREADS * AREA, &base), 0);
	assert_int_equal(perseas_publish(p), 0);
	atomic_store(&over, false);
	begun = done = broken = 0;
	for (unsigned i = 0; i < THREADS; i++)
		teller_begin(&tellers[i], p, base, i, AREA, work);
	for (unsigned n = 0; n < RESYNCS; n++) {
		make_stale(p, n % MIRRORS);
		await_live(p);
	}
	atomic_store(&over, true);
	for (unsigned i = 0; i < THREADS; i++)
		teller_join(&tellers[i]);
	while (!all_hold_all(p))
		poll(NULL, 0, 1);
	for (unsigned i = 0; i < MIRRORS; i++)
		assert_mirrored(p, i, tellers);
	for (unsigned i = 0; i < THREADS; i++)
		teller_free(&tellers[i]);
	perseas_close(p);
	assert_true(begun >= RESYNCS);
	assert_int_equal(begun, done + broken);
}
TEST_ALSO(mirrors_are_copied_under_threads, setup_local, teardown);
