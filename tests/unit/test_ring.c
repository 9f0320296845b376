/*
 * test_ring.c - the ring of sent transactions, against a list of what was appended.
 */
#include "../../client/core/ring.h"
#include "../support/unit.h"

enum { SIZE = 64 * 1024, ENTRIES = 20000 };

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
	return unit_draw(&random_state) % below;
}

static int setup(void **state)
{
	static struct ps_ring ring;

	*state = &ring;
	return ps_ring_init(&ring, SIZE);
}

static int teardown(void **state)
{
	ps_ring_free(*state);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* Fills the entry with a pattern of its seq, so that an overwritten one is found. */
static void fill(struct ps_ring_entry *entry, uint64_t seq, uint64_t length)
{
	memset(entry, (int)(seq % 251), length);
	entry->seq = seq;
	entry->length = length;
}

static bool whole(const struct ps_ring_entry *entry, uint64_t seq)
{
	const uint8_t *bytes = (const uint8_t *)entry;

	if (entry->seq != seq)
		return false;
	for (uint64_t i = 16; i < entry->length; i++)
		if (bytes[i] != seq % 251)
			return false;
	return true;
}

/* Entries of all sizes, many laps: each that is found is whole and inside, and those
 * that are not found are the oldest. */
TEST(test_keeps_the_newest_entries_whole, struct ps_ring *ring)
{
	uint64_t seq = 1;

	random_state = 0x1998;
	print_message("seed %#lx\n", (unsigned long)random_state);
	for (int i = 0; i < ENTRIES; i++, seq++) {
		uint64_t length = 64 + 64 * draw(i % 7 ? 8 : SIZE / 4 / 64);
		struct ps_ring_entry *entry = ps_ring_append_entry(ring, length);
		uint64_t oldest = seq, kept = 0;

		assert_true((uint8_t *)entry >= ring->base);
		assert_true((uint8_t *)entry + length <= ring->base + SIZE);
		fill(entry, seq, length);
		for (; oldest > 0 && ps_ring_find_entry(ring, oldest); oldest--) {
			struct ps_ring_entry *found = ps_ring_find_entry(ring, oldest);

			kept += found->length;
			assert_int_equal(found->seq, oldest);
			assert_true(i % 17 || whole(found, oldest));
		}
		/* Two entries may be missed for the padding, and one for the new one's place. */
		assert_true(kept <= SIZE && (!oldest || kept >= SIZE / 2));
		for (uint64_t gone = oldest; gone > 0 && gone + 3 > oldest; gone--)
			assert_null(ps_ring_find_entry(ring, gone));
		assert_null(ps_ring_find_entry(ring, seq + 1));
	}
}

/* An entry whose lag and two lengths fit is not overwritten by the next: what commit relies on. */
TEST(test_lag_says_what_may_be_appended, struct ps_ring *ring)
{
	uint64_t needed = 1, seq = 1;

	random_state = 7;
	for (int i = 0; i < ENTRIES; i++, seq++) {
		uint64_t length = 64 + 64 * draw(SIZE / 4 / 64);

		while (needed < seq && ps_ring_bytes_from_entry(ring, needed) + 2 * length > SIZE)
			needed++;
		fill(ps_ring_append_entry(ring, length), seq, length);
		assert_non_null(ps_ring_find_entry(ring, needed));
		assert_true(whole(ps_ring_find_entry(ring, needed), needed));
	}
}

TEST(test_lag_of_what_is_not_there, struct ps_ring *ring)
{
	/* Appends one entry, and then so many that it is forgotten. */
	assert_int_equal(ps_ring_bytes_from_entry(ring, 1), 0);
	ps_ring_append_entry(ring, 128);
	assert_int_equal(ps_ring_bytes_from_entry(ring, 1), 128);
	assert_int_equal(ps_ring_bytes_from_entry(ring, 2), 0);
	for (int i = 0; i < 8; i++)
		ps_ring_append_entry(ring, SIZE / 4);
	assert_true(ps_ring_bytes_from_entry(ring, 1) == UINT64_MAX);
	assert_null(ps_ring_find_entry(ring, 1));
	assert_int_equal(ps_ring_bytes_from_entry(ring, 10), 0);
}

/* After a reset history begins with the seq that was said. */
TEST(test_reset_forgets, struct ps_ring *ring)
{
	for (int i = 0; i < 5; i++)
		ps_ring_append_entry(ring, 256);
	ps_ring_drop_all(ring, 42);
	for (uint64_t seq = 0; seq < 50; seq++)
		assert_null(ps_ring_find_entry(ring, seq));
	fill(ps_ring_append_entry(ring, 256), 42, 256);
	assert_non_null(ps_ring_find_entry(ring, 42));
	assert_null(ps_ring_find_entry(ring, 41));
	assert_null(ps_ring_find_entry(ring, 43));
}

/* More entries than the index has places, in a ring that has room for more. */
TEST(test_index_never_overflows)
{
	const uint64_t size = 64 * ((uint64_t)PS_RING_ENTRIES + 1024);
	struct ps_ring ring;
	uint64_t seq;

	assert_int_equal(ps_ring_init(&ring, size), 0);
	for (seq = 1; seq <= PS_RING_ENTRIES + 100; seq++)
		fill(ps_ring_append_entry(&ring, 64), seq, 64);
	assert_null(ps_ring_find_entry(&ring, 100));
	assert_true(whole(ps_ring_find_entry(&ring, 101), 101));
	assert_true(whole(ps_ring_find_entry(&ring, seq - 1), seq - 1));
	/* Long before that, a mirror that needs the oldest counts as one that fills the ring. */
	assert_true(ps_ring_bytes_from_entry(&ring, 101) == size);
	ps_ring_free(&ring);
}
