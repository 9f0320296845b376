/*
 * test_undo.c - before-images are put back in a window: just the bytes that lie in it, whatever a
 * range says.
 */
#include "record_rig.h"
#include "../../proto/image/undo.h"
#include "../support/unit.h"

enum { GUARD = 32, LENGTH = 24, AT = 100, BEFORE = 80 };

/* A window of LENGTH bytes, from byte AT of segment 3 on, with bytes around it that are not its. */
struct fixture {
	uint8_t bytes[GUARD + LENGTH + GUARD];
	uint8_t before[BEFORE];
	struct ps_window window;
};

static void make(struct fixture *f)
{
	memset(f->bytes, 0xee, sizeof f->bytes);
	for (unsigned i = 0; i < BEFORE; i++)
		f->before[i] = (uint8_t)(1 + i);
	f->window = (struct ps_window){ f->bytes + GUARD, AT, LENGTH, 3 };
}

static void assert_untouched(const struct fixture *f)
{
	for (unsigned i = 0; i < sizeof f->bytes; i++)
		assert_int_equal(f->bytes[i], 0xee);
}

/* Ranges of every length around the window, byte by byte. */
TEST(a_range_is_clipped_at_both_edges)
{
	struct fixture f;

	for (uint64_t offset = AT - 40; offset < AT + LENGTH + 4; offset++) {
		for (uint32_t length = 0; length < BEFORE; length++) {
			const struct ps_range range = { 3, length, offset };
			uint8_t want[sizeof f.bytes];

			make(&f);
			memcpy(want, f.bytes, sizeof want);
			for (uint32_t i = 0; i < length; i++)
				if (offset + i >= AT && offset + i < AT + LENGTH)
					want[GUARD + offset + i - AT] = f.before[i];
			ps_window_restore(&f.window, &range, f.before);
			assert_memory_equal(f.bytes, want, sizeof want);
		}
	}
}

/* Ranges outside the window's bytes, whose numbers come near or wrap. */
TEST(a_range_elsewhere_changes_nothing)
{
	static const struct ps_range ranges[] = {
		{ 2, LENGTH, AT },
		{ 3 + (1 << 16), LENGTH, AT },
		{ 3, 0, AT + 1 },
		{ 3, 16, UINT64_MAX - 7 },
		{ 3, UINT32_MAX, UINT64_MAX - UINT32_MAX + AT + 1 },
		{ 3, UINT32_MAX, AT + LENGTH },
		{ 3, AT, 0 },
	};
	struct fixture f;

	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		make(&f);
		ps_window_restore(&f.window, &ranges[i], f.before);
		assert_untouched(&f);
	}
}

/* A length that no memory has: of the before-image no more is read than the window takes. */
TEST(a_huge_range_fills_the_window_and_no_more)
{
	const struct ps_range range = { 3, UINT32_MAX, AT - 10 };
	struct fixture f;
	uint8_t *exact = malloc(10 + LENGTH);

	make(&f);
	memcpy(exact, f.before, 10 + LENGTH);
	ps_window_restore(&f.window, &range, exact);
	assert_memory_equal(f.bytes + GUARD, f.before + 10, LENGTH);
	memset(f.bytes + GUARD, 0xee, LENGTH);
	assert_untouched(&f);
	free(exact);
}

/* Two entries of one record that overlap: the first one tells what was there before. */
TEST(the_last_entry_goes_back_first)
{
	_Alignas(64) uint8_t memory[512];
	struct ps_record *record = begin_record(memory, PS_RECORD_TRANSACTION);
	uint8_t first[8], second[8];
	struct fixture f;

	make(&f);
	memset(first, 1, sizeof first);
	memset(second, 2, sizeof second);
	add_range(record, 3, AT - 4, 8, first);
	add_range(record, 4, AT, 8, second);
	add_range(record, 3, AT, 8, second);
	ps_record_seal(record, 5, 78, 64, 0, 0);
	ps_undo_record(record, ps_window_restore, &f.window);
	assert_memory_equal(f.bytes + GUARD, first, 4);
	assert_memory_equal(f.bytes + GUARD + 4, second, 4);
	memset(f.bytes + GUARD, 0xee, 8);
	assert_untouched(&f);
}

/* A published segment did not exist before. */
TEST(a_publish_has_nothing_to_put_back)
{
	_Alignas(64) uint8_t memory[512];
	struct ps_record *record = begin_record(memory, PS_RECORD_PUBLISH);
	struct fixture f;

	make(&f);
	add_range(record, 3, 0, 0, f.before);
	add_range(record, 3, AT, LENGTH, f.before);
	ps_record_seal(record, 5, 78, 64, 0, 0);
	ps_undo_record(record, ps_window_restore, &f.window);
	assert_untouched(&f);
}
