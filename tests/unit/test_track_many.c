/*
 * test_track_many.c - transactions without set_range that changed thousands of places, in segments
 * whose order in the store is not that of their addresses.
 */
#include "track_rig.h"

enum { STRIDE = 96, CELLS = LARGE / STRIDE, BELOW = 64 << 20 };

static uint8_t *low;

/* The store knows this segment after the other one, and it lies below it: what is found of it comes
 * before all that was found, which goes into blocks (core/blocks.c) then. */
static void map_low(size_t size)
{
	void *addr;

	assert_int_equal(perseas_map_at(o->p, "low", size, size ? large - BELOW : NULL, &addr,
	                                NULL),
	                 0);
	assert_true((uint8_t *)addr < large);
	low = addr;
}

/* A word of each cell, and two words that touch where a page ends. */
static void put_thousands(uint8_t *bytes, uint8_t value)
{
	for (unsigned i = 0; i < CELLS; i++)
		bytes[i * STRIDE + 8] = value;
	bytes[20 * PAGE - 1] = bytes[20 * PAGE] = value;
}

static void put_all_thousands(uint8_t value)
{
	put_thousands(large, value);
	put_thousands(low, value);
	put_thousands(expected, value);
}

static void assert_thousands_stored(uint8_t value)
{
	static uint8_t other[LARGE];

	memset(other, 0, sizeof(other));
	put_thousands(other, value);
	assert_stored();
	map_low(0);
	assert_memory_equal(low, other, LARGE);
}

EACH_WAY(thousands_are_found_whatever_their_order)
{
	perseas_tx_t *tx;
	uint64_t before;
	void *addr;

	map_low(LARGE);
	assert_int_equal(perseas_map(o->p, "huge", 2 << 20, &addr), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	before = owner_stat(o).range_bytes;
	tx = track();
	put_all_thousands(1);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_true(owner_stat(o).range_bytes >= before + (uint64_t)2 * 8 * CELLS);
	/* The shadow has all of them: nothing is found twice. */
	before = owner_stat(o).range_bytes;
	assert_int_equal(perseas_commit(track(), 0), 0);
	assert_int_equal(owner_stat(o).range_bytes, before);
	/* Refused when thousands have been found; then there are fewer, and again as many. */
	for (unsigned again = 0; again < 2; again++) {
		tx = track();
		put_all_thousands((uint8_t)(again + 2));
		memset(addr, (int)again + 1, 2 << 20);
		assert_int_equal(perseas_commit(tx, 0), PERSEAS_ETOOBIG);
		memset(addr, 0, 2 << 20);
		if (!again)
			put_all_thousands(1);
		assert_int_equal(perseas_commit(tx, 0), 0);
	}
	assert_thousands_stored(3);
}
