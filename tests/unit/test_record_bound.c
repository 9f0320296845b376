/*
 * test_record_bound.c - the bound of the past, compared with what the record after a slot can
 * overwrite, whatever its length.
 */
#include "../../proto/image/layout.h"
#include "../support/unit.h"

enum { RING = 4096, LAPS = 3 };

/* Returns the lowest position from which all bytes up to `next` stay unchanged when the record
 * after the slot, with its terminator, has this length. */
static uint64_t lowest_after(uint64_t next, uint64_t length)
{
	uint8_t held[RING / PS_ALIGN] = { 0 };
	const uint64_t place = ps_record_position(next, length, RING);
	const uint64_t after = place + ps_align64(length);
	const uint64_t end = after + ps_terminator_size(after, RING);
	uint64_t lowest = next;

	for (uint64_t at = place; at < end; at += PS_ALIGN)
		held[at % RING / PS_ALIGN] = 1;
	while (lowest > 0 && next - lowest < RING && !held[(lowest - PS_ALIGN) % RING / PS_ALIGN])
		lowest -= PS_ALIGN;
	return lowest;
}

static uint64_t lowest_after_any(uint64_t next)
{
	uint64_t lowest = 0;

	for (uint64_t length = PS_ALIGN; length <= ps_record_limit(RING); length += PS_ALIGN)
		if (lowest_after(next, length) > lowest)
			lowest = lowest_after(next, length);
	return lowest;
}

/* Nothing from the bound on can be overwritten, and everything below it can. A record that ends
 * with the ring has no terminator: there the bound may be higher by one. */
TEST(the_bound_is_what_the_next_record_can_reach)
{
	for (uint64_t next = PS_FIRST_POSITION; next < LAPS * RING; next += PS_ALIGN) {
		const uint64_t bound = ps_lowest_intact_position(next, RING),
			       lowest = lowest_after_any(next);
		const uint64_t end = ps_record_position(next, RING / 2, RING) + RING / 2;

		if (end % RING)
			assert_int_equal(bound, lowest);
		else
			assert_in_range(bound, lowest, lowest + PS_TERMINATOR);
	}
}
