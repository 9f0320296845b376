/*
 * test_threads.c - one handle used by many threads, over a daemon in a process of its own.
 */
#include "../support/daemon_fixture.h"
#include "../../client/perseas.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { THREADS = 8, ROUNDS = 300, AREA = 4096, RANGES = 4 };

struct place {
	struct fixture *fixture;
	pid_t daemon;
	char tcp[64], local[300];
};

/* A thread's own part of the segment, and what must be there. */
struct teller {
	perseas_t *p;
	uint8_t *area;
	uint8_t expected[AREA];
	uint64_t random;
	int rc;                    /* the first error */
	pthread_t thread;
};

static int setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	if (!place || fixture_setup((void **)&place->fixture))
		return -1;
	snprintf(place->tcp, sizeof(place->tcp), "127.0.0.1:%u", place->fixture->port);
	snprintf(place->local, sizeof(place->local), "unix://%s", place->fixture->local.host);
	place->daemon = fork();
	if (place->daemon == 0) {
		daemon_run(place->fixture->daemon);
		_exit(0);
	}
	*state = place;
	return place->daemon < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct place *place = *state;

	kill(place->daemon, SIGKILL);
	waitpid(place->daemon, NULL, 0);
	fixture_teardown((void **)&place->fixture);
	free(place);
	return 0;
}

static uint64_t next(struct teller *teller)
{
	teller->random ^= teller->random << 13;
	teller->random ^= teller->random >> 7;
	teller->random ^= teller->random << 17;
	return teller->random;
}

/* Changes some ranges and then, as it happens, commits or aborts. */
static int transact(struct teller *teller)
{
	uint8_t wanted[AREA];
	perseas_tx_t *tx;
	int rc = perseas_begin(teller->p, 0, &tx);

	memcpy(wanted, teller->expected, AREA);
	for (unsigned i = 0; i < RANGES && !rc; i++) {
		size_t length = 1 + next(teller) % 100, at = next(teller) % (AREA - length);
		uint8_t value = (uint8_t)next(teller);

		rc = perseas_set_range(tx, teller->area + at, length);
		if (rc)
			break;
		memset(teller->area + at, value, length);
		memset(wanted + at, value, length);
	}
	if (rc)
		return rc;
	if (next(teller) % 8 == 0)
		return perseas_abort(tx);
	rc = perseas_commit(tx, 0);
	if (!rc)
		memcpy(teller->expected, wanted, AREA);
	return rc;
}

static void *work(void *arg)
{
	struct teller *teller = arg;

	for (unsigned i = 0; i < ROUNDS && !teller->rc; i++)
		teller->rc = transact(teller);
	return NULL;
}

static perseas_t *open_store(const char *mirrors)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	perseas_t *p;

	options.flags = PERSEAS_CREATE;
	options.log_size = 65536;
	options.ring_size = 1 << 20;
	if (perseas_open("threads", mirrors, &options, &p))
		fail_msg("%s", perseas_message(NULL));
	return p;
}

/* Segments come and go, and figures are read, while the others commit. */
static void disturb(perseas_t *p)
{
	for (unsigned i = 0; i < 20; i++) {
		struct perseas_mirror_stat mirror;
		struct perseas_stat stat;
		char name[16];
		void *addr;

		snprintf(name, sizeof(name), "other-%u", i);
		assert_int_equal(perseas_map(p, name, 10000, &addr), 0);
		memset(addr, (int)i, 10000);
		assert_int_equal(perseas_publish(p), 0);
		assert_int_equal(perseas_stat(p, &stat), 0);
		assert_int_equal(perseas_mirror_stat(p, 0, &mirror), 0);
		assert_int_equal(perseas_unmap(p, addr), 0);
	}
}

static void many_threads(const char *mirrors)
{
	static struct teller tellers[THREADS];
	perseas_t *p = open_store(mirrors);
	struct perseas_stat stat;
	void *base;

	assert_int_equal(perseas_map(p, "areas", THREADS * AREA, &base), 0);
	assert_int_equal(perseas_publish(p), 0);
	memset(tellers, 0, sizeof(tellers));
	for (unsigned i = 0; i < THREADS; i++) {
		struct teller *teller = &tellers[i];

		teller->p = p;
		teller->area = (uint8_t *)base + i * AREA;
		teller->random = 0x9e3779b97f4a7c15u * (i + 1);
		assert_int_equal(pthread_create(&teller->thread, NULL, work, teller), 0);
	}
	disturb(p);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(tellers[i].thread, NULL);
		assert_int_equal(tellers[i].rc, 0);
	}
	assert_int_equal(perseas_stat(p, &stat), 0);
	assert_true(stat.seq == stat.commits + 21 && stat.durable_seq == stat.seq);
	perseas_close(p);
	p = open_store(mirrors);
	assert_int_equal(perseas_map(p, "areas", 0, &base), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_memory_equal((uint8_t *)base + i * AREA, tellers[i].expected, AREA);
	perseas_close(p);
}

/* Each thread has transactions of its own in ranges of its own; the next owner finds them all. */
static void threads_share_a_handle_over_tcp(void **state)
{
	many_threads(((struct place *)*state)->tcp);
}

static void threads_share_a_handle_over_shared_memory(void **state)
{
	many_threads(((struct place *)*state)->local);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(threads_share_a_handle_over_tcp),
		TEST(threads_share_a_handle_over_shared_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
