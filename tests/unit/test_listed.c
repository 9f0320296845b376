/*
 * test_listed.c - perseas_open_transactions: what it tells of transactions, and that looking into
 * them disturbs neither the threads that use them nor copies that look into them, too.
 */
#include "tellers.h"

#include "owner.h"
#include "../../client/core/tx.h"

struct unit_fixture unit_fixture = { owner_setup_one, owner_teardown };

enum { MANY = 40, THREADS = 4, PIECE = 64, PIECES = 40, LOOKS = 3000 };

static perseas_tx_t *begin(struct owner *o, unsigned flags)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(o->p, flags, &tx), 0);
	return tx;
}

static size_t listed(struct owner *o, struct perseas_transaction *list, size_t max)
{
	size_t count = 12345;

	assert_int_equal(perseas_open_transactions(o->p, list, max, &count), 0);
	return count;
}

TEST(each_is_told_with_what_it_has, struct owner *o)
{
	struct perseas_transaction list[4];
	perseas_tx_t *first, *second, *third;

	assert_int_equal(listed(o, list, 4), 0);
	first = begin(o, 0);
	assert_int_equal(perseas_set_range(first, o->bytes, 10), 0);
	assert_int_equal(perseas_set_range(first, o->bytes + 100, 10), 0);
	/* The range touches and overlaps the one before it. */
	assert_int_equal(perseas_set_range(first, o->bytes + 105, 10), 0);
	assert_int_equal(owner_put(o, 500, 5, 1), 0);
	assert_int_equal(owner_put(o, 500, 5, 2), 0);
	second = begin(o, PERSEAS_SERIAL);
	assert_int_equal(perseas_lock(second, 7, PERSEAS_LOCK_EXCLUSIVE), 0);
	assert_int_equal(perseas_lock(second, 7, PERSEAS_LOCK_SHARED), 0);
	assert_int_equal(perseas_lock(second, 8, PERSEAS_LOCK_SHARED), 0);
	third = begin(o, 0);
	memset(list, 0xff, sizeof(list));
	assert_int_equal(listed(o, list, 4), 3);
	assert_int_equal(owner_stat(o).open, 3);
	assert_ptr_equal(list[0].tx, first);
	assert_int_equal(list[0].since, 1);
	assert_int_equal(list[0].bytes, 25);
	assert_int_equal(list[0].ranges, 2);
	assert_int_equal(list[0].flags, 0);
	assert_int_equal(list[0].locks, 0);
	assert_ptr_equal(list[1].tx, second);
	assert_int_equal(list[1].since, 3);
	assert_int_equal(list[1].bytes, 0);
	assert_int_equal(list[1].flags, PERSEAS_SERIAL);
	assert_int_equal(list[1].locks, 2);
	assert_ptr_equal(list[2].tx, third);
	assert_int_equal(list[3].ranges, UINT32_MAX);
	/* A transaction that ended is not listed any more. */
	assert_int_equal(perseas_abort(second), 0);
	assert_int_equal(listed(o, list, 4), 2);
	assert_ptr_equal(list[1].tx, third);
	assert_int_equal(perseas_abort(third), 0);
	assert_int_equal(perseas_commit(first, 0), 0);
	assert_int_equal(listed(o, list, 4), 0);
	assert_int_equal(owner_stat(o).open, 0);
}

/* A transaction that begins with a handle that was used before has nothing of that. */
TEST(tracked_ones_are_told, struct owner *o)
{
	struct perseas_transaction told;
	perseas_tx_t *tx;

	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER | PERSEAS_TRACKED), 0);
	owner_map(o);
	assert_int_equal(owner_put(o, 0, 100, 1), 0);
	tx = begin(o, PERSEAS_SERIAL | PERSEAS_TRACK);
	o->bytes[5] ^= 1;
	assert_int_equal(listed(o, &told, 1), 1);
	assert_ptr_equal(told.tx, tx);
	assert_int_equal(told.flags, PERSEAS_SERIAL | PERSEAS_TRACK);
	assert_int_equal(told.bytes, 0);
	assert_int_equal(told.ranges, 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
}

TEST(the_oldest_come_first, struct owner *o)
{
	struct perseas_transaction list[MANY];
	perseas_tx_t *txs[MANY];

	for (unsigned i = 0; i < MANY; i++)
		txs[i] = begin(o, 0);
	for (size_t max = 0; max <= MANY; max += 13) {
		memset(list, 0, sizeof(list));
		assert_int_equal(listed(o, max ? list : NULL, max), MANY);
		for (size_t i = 0; i < MANY; i++)
			assert_ptr_equal(list[i].tx, i < max ? txs[i] : NULL);
	}
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(perseas_abort(txs[i]), 0);
}

TEST(bad_arguments_are_refused, struct owner *o)
{
	struct perseas_transaction told;
	size_t count = 5;

	assert_int_equal(perseas_open_transactions(NULL, &told, 1, &count), PERSEAS_EINVAL);
	assert_int_equal(perseas_open_transactions(o->p, NULL, 1, &count), PERSEAS_EINVAL);
	assert_int_equal(perseas_open_transactions(o->p, &told, 1, NULL), PERSEAS_EINVAL);
	assert_int_equal(count, 5);
	assert_int_equal(perseas_open_transactions(o->p, NULL, 0, &count), 0);
	assert_int_equal(count, 0);
}

static bool is_observed(struct owner *o)
{
	return atomic_load(&o->p->observing.has_observers);
}

/* Several threads observe at the same time: set_range takes the lock until all have ended. */
TEST(an_observer_that_ends_ends_no_other, struct owner *o)
{
	if (!o->p->observing.has_barrier)
		skip();
	assert_false(is_observed(o));
	ps_tx_observe_begin(o->p);
	assert_int_equal(listed(o, NULL, 0), 0);
	assert_true(is_observed(o));
	ps_tx_observe_begin(o->p);
	ps_tx_observe_end(o->p);
	assert_true(is_observed(o));
	ps_tx_observe_end(o->p);
	assert_false(is_observed(o));
}

/* --- threads --- */

static struct place place;
static atomic_bool over;

struct worker {
	pthread_t thread;
	perseas_t *p;
	uint8_t *area;
};

/* Each of its ranges is PIECE long and touches no other. In the midst is a savepoint. */
static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t savepoint;
	perseas_tx_t *tx;

	while (!atomic_load(&over)) {
		assert_int_equal(perseas_begin(w->p, 0, &tx), 0);
		for (unsigned i = 0; i < PIECES; i++) {
			if (i == PIECES / 2)
				assert_int_equal(perseas_savepoint(tx, &savepoint), 0);
			assert_int_equal(perseas_set_range(tx, w->area + 2 * PIECE * (size_t)i,
			                                   PIECE),
			                 0);
		}
		assert_int_equal(perseas_abort(tx), 0);
	}
	return NULL;
}

static void looks_are_whole(const char *mirrors)
{
	struct perseas_transaction list[THREADS + 1];
	struct worker workers[THREADS];
	uint64_t seen = 0;
	size_t count;
	void *base;
	perseas_t *p = open_store(mirrors, 65536, 1 << 20, NULL);

	assert_int_equal(perseas_map(p, "areas", THREADS * 2 * PIECE * PIECES, &base), 0);
	assert_int_equal(perseas_publish(p), 0);
	atomic_store(&over, false);
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].p = p;
		workers[i].area = (uint8_t *)base + i * 2 * PIECE * (size_t)PIECES;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (unsigned looks = 0; looks < LOOKS || !seen; looks++) {
		assert_int_equal(perseas_open_transactions(p, list, THREADS + 1, &count), 0);
		assert_true(count <= THREADS);
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(list[i].bytes, (uint64_t)list[i].ranges * PIECE);
			assert_int_equal(list[i].since, 1);
			seen += list[i].ranges > 0 && list[i].ranges < PIECES;
		}
	}
	atomic_store(&over, true);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	assert_int_equal(perseas_open_transactions(p, list, THREADS, &count), 0);
	assert_int_equal(count, 0);
	perseas_close(p);
}

static int setup_place(void **state)
{
	*state = &place;
	return place_start(&place);
}

static int teardown_place(void **state)
{
	(void)state;
	return place_end(&place);
}

TEST_WITH(looks_are_whole_over_tcp, setup_place, teardown_place)
{
	looks_are_whole(place.tcp);
}

TEST_WITH(looks_are_whole_over_shared_memory, setup_place, teardown_place)
{
	looks_are_whole(place.local);
}
