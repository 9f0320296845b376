/*
 * test_threads.c - one handle used by many threads, over a daemon in a process of its own.
 */
#include "tellers.h"

enum { THREADS = 8, ROUNDS = 300, AREA = 4096 };

struct unit_fixture unit_fixture = { place_setup, place_teardown };

static void *work(void *arg)
{
	struct teller *teller = arg;

	for (unsigned i = 0; i < ROUNDS && !teller->rc; i++)
		teller->rc = teller_transact(teller);
	return NULL;
}

static perseas_t *reopen(const char *mirrors)
{
	return open_store(mirrors, 65536, 1 << 20, NULL);
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
	perseas_t *p = reopen(mirrors);
	struct perseas_stat stat;
	void *base;

	assert_int_equal(perseas_map(p, "areas", THREADS * AREA, &base), 0);
	assert_int_equal(perseas_publish(p), 0);
	for (unsigned i = 0; i < THREADS; i++)
		teller_begin(&tellers[i], p, base, i, AREA, work);
	disturb(p);
	for (unsigned i = 0; i < THREADS; i++)
		teller_join(&tellers[i]);
	assert_int_equal(perseas_stat(p, &stat), 0);
	assert_true(stat.seq == stat.commits + 21 && stat.durable_seq == stat.seq);
	perseas_close(p);
	p = reopen(mirrors);
	assert_int_equal(perseas_map(p, "areas", 0, &base), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_memory_equal((uint8_t *)base + i * AREA, tellers[i].expected, AREA);
		teller_free(&tellers[i]);
	}
	perseas_close(p);
}

/* Each thread has transactions of its own in ranges of its own; the next owner finds them all. */
TEST(threads_share_a_handle_over_tcp, struct place *place)
{
	many_threads(place->tcp);
}

TEST(threads_share_a_handle_over_shared_memory, struct place *place)
{
	many_threads(place->local);
}
