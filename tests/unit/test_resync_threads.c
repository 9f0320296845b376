/*
 * test_resync_threads.c - many threads commit, abort and declare ranges while a mirror is copied
 * whole under them, again and again. Three daemons in processes of their own.
 */
#include "../support/daemon_fixture.h"
#include "../../client/mirror.h"
#include "../../proto/crc32c.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { MIRRORS = 3, THREADS = 4, AREA = 128 << 10, RANGES = 4, RESYNCS = 12, SECONDS = 60 };

struct place {
	pid_t daemons[MIRRORS];
	char folders[MIRRORS][64];
	char list[1024];
};

/* A thread's own part of the segment, and what must be there. */
struct teller {
	perseas_t *p;
	uint8_t *area;
	uint8_t expected[AREA];
	uint64_t random;
	atomic_bool *over;
	unsigned commits;
	int rc;                    /* the first error */
	pthread_t thread;
};

/* A daemon in a process of its own, which says where it listens; it ends with the test. */
static int start(struct place *place, unsigned i, bool local)
{
	char *end = place->list + strlen(place->list);
	size_t room = sizeof(place->list) - strlen(place->list);
	struct fixture *fixture, told;
	int ends[2];

	if (pipe(ends))
		return -1;
	place->daemons[i] = fork();
	if (place->daemons[i] == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fixture_setup((void **)&fixture) ||
		    write(ends[1], fixture, sizeof(*fixture)) != sizeof(*fixture))
			_exit(1);
		daemon_run(fixture->daemon);
		_exit(0);
	}
	close(ends[1]);
	if (place->daemons[i] < 0 || read(ends[0], &told, sizeof(told)) != sizeof(told))
		return -1;
	close(ends[0]);
	memcpy(place->folders[i], told.directory, sizeof(place->folders[i]));
	if (local)
		snprintf(end, room, "%sunix://%s", i ? "," : "", told.local.host);
	else
		snprintf(end, room, "%s127.0.0.1:%u", i ? "," : "", told.port);
	return 0;
}

static int setup_of(void **state, bool local)
{
	struct place *place = calloc(1, sizeof(*place));
	int rc = place ? 0 : -1;

	*state = place;
	for (unsigned i = 0; i < MIRRORS && !rc; i++)
		rc = start(place, i, local);
	return rc;
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
	struct place *place = *state;
	int rc = 0;

	for (unsigned i = 0; i < MIRRORS; i++) {
		char command[128];

		kill(place->daemons[i], SIGKILL);
		waitpid(place->daemons[i], NULL, 0);
		snprintf(command, sizeof(command), "rm -rf '%s'", place->folders[i]);
		rc |= system(command);
	}
	free(place);
	return rc;
}

static uint64_t next(struct teller *teller)
{
	teller->random ^= teller->random << 13;
	teller->random ^= teller->random >> 7;
	teller->random ^= teller->random << 17;
	return teller->random;
}

/* A range anywhere in the area; `wanted` has what it will hold if the transaction commits. */
static int change(struct teller *teller, perseas_tx_t *tx, uint8_t *wanted)
{
	size_t length = 1 + next(teller) % 600, at = next(teller) % (AREA - length);
	uint8_t value = (uint8_t)next(teller);
	int rc = perseas_set_range(tx, teller->area + at, length);

	if (rc)
		return rc;
	memset(teller->area + at, value, length);
	memset(wanted + at, value, length);
	return 0;
}

static int transact(struct teller *teller, uint8_t *wanted)
{
	perseas_tx_t *tx;
	int rc = perseas_begin(teller->p, 0, &tx);

	memcpy(wanted, teller->expected, AREA);
	for (unsigned i = 0; i < RANGES && !rc; i++)
		rc = change(teller, tx, wanted);
	if (rc)
		return rc;
	if (next(teller) % 4 == 0)
		return perseas_abort(tx);
	rc = perseas_commit(tx, 0);
	if (!rc)
		memcpy(teller->expected, wanted, AREA);
	teller->commits += !rc;
	return rc;
}

static void *work(void *arg)
{
	struct teller *teller = arg;
	uint8_t *wanted = malloc(AREA);

	while (!atomic_load(teller->over) && !teller->rc)
		teller->rc = transact(teller, wanted);
	free(wanted);
	return NULL;
}

static perseas_t *open_store(const char *mirrors)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	perseas_t *p;

	options.flags = PERSEAS_CREATE;
	options.log_size = 1 << 20;
	options.ring_size = 4 << 20;
	if (perseas_open("threads", mirrors, &options, &p))
		fail_msg("%s", perseas_message(NULL));
	return p;
}

static void await_resync(perseas_t *p, uint64_t wanted)
{
	const uint64_t until = ps_now(p) + ps_ms(SECONDS * 1000);
	struct perseas_stat stat;

	do {
		assert_int_equal(perseas_stat(p, &stat), 0);
		if (ps_now(p) > until)
			fail_msg("%llu resyncs within %d s; the mirrors are %s, %s, %s",
			         (unsigned long long)stat.resyncs, SECONDS,
			         perseas_mirror_state_name(p->mirrors[0].state),
			         perseas_mirror_state_name(p->mirrors[1].state),
			         perseas_mirror_state_name(p->mirrors[2].state));
		poll(NULL, 0, 1);
	} while (stat.resyncs < wanted);
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
	ps_mirror_break(p, &p->mirrors[mirror], PS_LINK_BROKEN, "by the test");
	seq = p->seq;
	pthread_mutex_unlock(&p->lock);
	while (last_seq(p) < seq + 10)
		sched_yield();
	pthread_mutex_lock(&p->lock);
	for (unsigned i = 0; i < p->mirror_count; i++)
		while (p->mirrors[i].active &&
		       (p->mirrors[i].outstanding || p->mirrors[i].posted < p->seq))
			ps_mirrors_poll(p);
	ps_ring_reset(&p->ring, p->seq + 1);
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
	assert_int_equal(ps_ask(p, &p->mirrors[mirror], &request, ps_answer_by(p), &reply, NULL,
	                        &error), 0);
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

static void mirrors_are_copied_under_threads(void **state)
{
	static struct teller tellers[THREADS];
	struct place *place = *state;
	perseas_t *p = open_store(place->list);
	atomic_bool stop = false;
	void *base;

	assert_int_equal(perseas_map(p, "areas", THREADS * AREA, &base), 0);
	assert_int_equal(perseas_publish(p), 0);
	memset(tellers, 0, sizeof(tellers));
	for (unsigned i = 0; i < THREADS; i++) {
		struct teller *teller = &tellers[i];

		teller->p = p;
		teller->area = (uint8_t *)base + i * AREA;
		teller->random = 0x9e3779b97f4a7c15u * (i + 1);
		teller->over = &stop;
		assert_int_equal(pthread_create(&teller->thread, NULL, work, teller), 0);
	}
	for (unsigned n = 0; n < RESYNCS; n++) {
		make_stale(p, n % MIRRORS);
		await_resync(p, n + 1);
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(tellers[i].thread, NULL);
		assert_int_equal(tellers[i].rc, 0);
		assert_true(tellers[i].commits > 0);
	}
	while (!all_hold_all(p))
		poll(NULL, 0, 1);
	for (unsigned i = 0; i < MIRRORS; i++)
		assert_mirrored(p, i, tellers);
	perseas_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(mirrors_are_copied_under_threads, setup_tcp,
		                                teardown),
		cmocka_unit_test_setup_teardown(mirrors_are_copied_under_threads, setup_local,
		                                teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
