/*
 * test_touching.c - segments that lie next to each other, where perseas_map_at put them: what a
 * transaction declares on both sides of the border are ranges of two segments, whatever is done.
 */
#include "owner.h"

enum { PAGE = 4096 };

struct pair {
	struct owner *o;
	uint8_t *low, *high; /* where each begins: the second where the first ends */
	uint8_t expected[2 * PAGE];
};

static void pair_map(struct pair *pair)
{
	void *addr;

	assert_int_equal(perseas_map(pair->o->p, "low", 0, &addr), 0);
	pair->low = addr;
	assert_int_equal(perseas_map(pair->o->p, "high", 0, &addr), 0);
	pair->high = addr;
	assert_ptr_equal(pair->high, pair->low + PAGE);
	assert_memory_equal(pair->low, pair->expected, 2 * PAGE);
}

/* The second has the lower number, so that what is found is not found in the order of addresses. */
static int setup(void **state)
{
	struct pair *pair = calloc(1, sizeof(*pair));
	uint8_t *at = (uint8_t *)0x5b0000000000;
	void *addr;

	assert_non_null(pair);
	pair->o = owner_new(3);
	owner_begin(pair->o);
	assert_int_equal(perseas_map_at(pair->o->p, "high", PAGE, at + PAGE, &addr, NULL), 0);
	assert_int_equal(perseas_map_at(pair->o->p, "low", PAGE, at, &addr, NULL), 0);
	assert_int_equal(perseas_publish(pair->o->p), 0);
	pair_map(pair);
	*state = pair;
	return 0;
}

static int teardown(void **state)
{
	struct pair *pair = *state;

	owner_free(pair->o);
	free(pair);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static void reopen(struct pair *pair, uint32_t flags)
{
	assert_int_equal(owner_open(pair->o, PERSEAS_TAKEOVER | flags), 0);
	pair_map(pair);
}

/* Declares and changes `length` bytes at this distance from the border. */
static void put(struct pair *pair, perseas_tx_t *tx, int from, unsigned length, uint8_t value)
{
	assert_int_equal(perseas_set_range(tx, pair->high + from, length), 0);
	memset(pair->high + from, value, length);
	memset(pair->expected + PAGE + from, value, length);
}

/* All mirrors took it, and the next owner finds it. */
static void assert_kept(struct pair *pair, uint32_t flags)
{
	assert_int_equal(owner_stat(pair->o).live, 3);
	assert_memory_equal(pair->low, pair->expected, 2 * PAGE);
	reopen(pair, flags);
}

TEST(ranges_on_both_sides_are_two, struct pair *pair)
{
	static const struct {
		int from;
		unsigned length;
	} orders[][4] = {
		{ { -8, 8 }, { 0, 8 }, { -16, 8 }, { 8, 8 } },
		{ { 0, 8 }, { -8, 8 }, { 8, 100 }, { -108, 100 } },
		{ { -300, 300 }, { 0, 300 }, { 100, 8 }, { -8, 8 } },
		{ { 8, 8 }, { -16, 8 }, { 0, 8 }, { -8, 8 } },
		{ { 0, 8 }, { 16, 8 }, { -8, 8 }, { 0, 24 } },
	};
	perseas_tx_t *tx;

	for (unsigned staged = 0; staged < 2; staged++) {
		pair->o->d->staged = staged;
		reopen(pair, 0);
		for (unsigned i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
			tx = owner_tx(pair->o);
			for (unsigned k = 0; k < 4; k++)
				put(pair, tx, orders[i][k].from, orders[i][k].length,
				    (uint8_t)(1 + 8 * i + 2 * k + staged));
			assert_int_equal(perseas_commit(tx, 0), 0);
			assert_kept(pair, 0);
		}
	}
}

/* A roll-back makes of the record again what is declared. */
TEST(savepoints_keep_them_apart, struct pair *pair)
{
	uint8_t before[2 * PAGE];
	uint64_t savepoint;
	perseas_tx_t *tx = owner_tx(pair->o);

	put(pair, tx, -8, 8, 3);
	put(pair, tx, 0, 8, 4);
	memcpy(before, pair->expected, sizeof(before));
	assert_int_equal(perseas_savepoint(tx, &savepoint), 0);
	put(pair, tx, -16, 16, 5);
	put(pair, tx, 0, 16, 6);
	assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
	memcpy(pair->expected, before, sizeof(before));
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_kept(pair, 0);
}

TEST(an_abort_restores_both, struct pair *pair)
{
	uint8_t before[2 * PAGE];
	perseas_tx_t *tx;

	memcpy(before, pair->expected, sizeof(before));
	tx = owner_tx(pair->o);
	put(pair, tx, 0, 8, 7);
	put(pair, tx, -8, 8, 8);
	assert_int_equal(perseas_abort(tx), 0);
	memcpy(pair->expected, before, sizeof(before));
	assert_kept(pair, 0);
}

TEST(what_is_tracked_is_found_in_each, struct pair *pair)
{
	perseas_tx_t *tx;

	assert_kept(pair, PERSEAS_TRACKED);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(perseas_begin(pair->o->p, PERSEAS_TRACK, &tx), 0);
		memset(pair->low, (int)(10 + i), 2 * PAGE);
		memset(pair->expected, (int)(10 + i), 2 * PAGE);
		assert_int_equal(perseas_commit(tx, 0), 0);
		assert_kept(pair, PERSEAS_TRACKED);
	}
}

/* A transaction that is held back, and one that is checked. */
TEST(other_ways_keep_them_apart, struct pair *pair)
{
	perseas_tx_t *tx;

	pair->o->options.gather_us = 1000000;
	reopen(pair, PERSEAS_CHECK_WRITES | PERSEAS_CHECK_OVERLAP);
	for (unsigned i = 0; i < 2; i++) {
		tx = owner_tx(pair->o);
		put(pair, tx, -8, 8, (uint8_t)(20 + i));
		put(pair, tx, 0, 8, (uint8_t)(30 + i));
		assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
	}
	assert_int_equal(perseas_flush(pair->o->p), 0);
	assert_kept(pair, 0);
}
