/*
 * test_gather_real.c - threads whose commits are held back to be sent as one, over a daemon in a
 * process of its own: the thread that posts them is the library's.
 */
#include "tellers.h"

enum { THREADS = 4, ROUNDS_EACH = 400, AREA = 1024 };

struct poster {
	pthread_t thread;
	perseas_t *p;
	uint8_t *area, expected[AREA];
	unsigned index;
	int rc;
};

static int put_once(struct poster *poster, unsigned round)
{
	const unsigned at = round * 37 % (AREA - 64), length = 1 + round % 64;
	struct perseas_token token;
	perseas_tx_t *tx;
	int rc = perseas_begin(poster->p, 0, &tx);

	if (rc)
		return rc;
	rc = perseas_set_range(tx, poster->area + at, length);
	memset(poster->area + at, (int)(round + poster->index), length);
	memset(poster->expected + at, (int)(round + poster->index), length);
	if (!rc)
		rc = perseas_commit_token(tx, round % 50 == 49 ? 0 : PERSEAS_NOWAIT, &token);
	return rc || round % 20 ? rc : perseas_wait(poster->p, &token, -1);
}

static void *put_many(void *arg)
{
	struct poster *poster = arg;

	for (unsigned i = 0; i < ROUNDS_EACH && !poster->rc; i++)
		poster->rc = put_once(poster, i);
	return NULL;
}

static perseas_t *open_gathering(const char *mirrors)
{
	struct perseas_options options = patient_options();
	perseas_t *p;

	options.flags = PERSEAS_CREATE;
	options.gather_us = 300;
	if (perseas_open("gathered", mirrors, &options, &p))
		fail_msg("%s", perseas_message(NULL));
	return p;
}

/* Threads post, wait now and then, and close; the next owner finds it all. */
static void many_post(const char *mirrors)
{
	static struct poster posters[THREADS];
	perseas_t *p = open_gathering(mirrors);
	struct perseas_stat stat;
	void *base;

	memset(posters, 0, sizeof(posters));
	assert_int_equal(perseas_map(p, "areas", (size_t)THREADS * AREA, &base), 0);
	assert_int_equal(perseas_publish(p), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		posters[i].p = p;
		posters[i].index = i;
		posters[i].area = (uint8_t *)base + (size_t)i * AREA;
		pthread_create(&posters[i].thread, NULL, put_many, &posters[i]);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(posters[i].thread, NULL);
		assert_int_equal(posters[i].rc, 0);
	}
	assert_int_equal(perseas_stat(p, &stat), 0);
	assert_true(stat.commits == THREADS * ROUNDS_EACH);
	assert_true(stat.gathered == THREADS * ROUNDS_EACH / 50 * 49);
	assert_true(stat.groups <= stat.gathered && stat.seq < stat.commits + 2);
	assert_int_equal(perseas_close(p), 0);
	p = open_gathering(mirrors);
	assert_int_equal(perseas_map(p, "areas", 0, &base), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_memory_equal((uint8_t *)base + (size_t)i * AREA, posters[i].expected, AREA);
	perseas_close(p);
}

struct unit_fixture unit_fixture = { place_setup, place_teardown };

TEST(test_over_tcp, struct place *place)
{
	many_post(place->tcp);
}

TEST(test_over_shared_memory, struct place *place)
{
	many_post(place->local);
}
