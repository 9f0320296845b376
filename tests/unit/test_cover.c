/*
 * test_cover.c - the intervals that a transaction declares, against a map of single bytes, which
 * belong to two segments, one next to the other.
 */
#include "../../client/core/cover.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 512, BASE = 4096, BORDER = 200 };

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % below;
}

static uint64_t base_of(unsigned i)
{
	return BASE + (i < BORDER ? 0 : BORDER);
}

/* The cover's spans are in order, disjoint, not even adjacent within a segment, and are the map's
 * runs. */
static void check(const struct ps_cover *cover, const bool *map)
{
	unsigned span = 0, bytes = 0;

	for (unsigned i = 0; i < BYTES; i++) {
		if (!map[i])
			continue;
		bytes++;
		if (i == 0 || i == BORDER || !map[i - 1]) {
			assert_true(span < cover->count);
			assert_int_equal(cover->spans[span].start, BASE + i);
			assert_int_equal(cover->spans[span].base, base_of(i));
			assert_int_equal(cover->spans[span].segment, i < BORDER ? 3 : 4);
		}
		if (i + 1 == BYTES || i + 1 == BORDER || !map[i + 1])
			assert_int_equal(cover->spans[span++].end, BASE + i + 1);
	}
	assert_int_equal(span, cover->count);
	assert_int_equal(bytes, cover->bytes);
}

/* Walks the gaps of a range and finds just the bytes that the map lacks. */
static void check_gaps(const struct ps_cover *cover, const bool *map, unsigned from, unsigned end)
{
	uint64_t gap_start, gap_end, at = BASE + from;

	while (ps_cover_gap(cover, at, BASE + end, &gap_start, &gap_end)) {
		assert_true(gap_start >= at && gap_end > gap_start && gap_end <= BASE + end);
		for (; at < gap_start; at++)
			assert_true(map[at - BASE]);
		for (; at < gap_end; at++)
			assert_false(map[at - BASE]);
		assert_true(at == BASE + end || map[at - BASE]);
	}
	for (; at < BASE + end; at++)
		assert_true(map[at - BASE]);
}

static bool any(const bool *map, unsigned from, unsigned end)
{
	for (unsigned i = from; i < end; i++)
		if (map[i])
			return true;
	return false;
}

static bool all(const bool *map, unsigned from, unsigned end)
{
	for (unsigned i = from; i < end; i++)
		if (!map[i])
			return false;
	return true;
}

/* What a range is to what is there, by the bitmap. */
static enum ps_fit fit(const bool *map, unsigned from, unsigned end)
{
	const bool before = from && from != BORDER && map[from - 1];
	const bool behind = end < BYTES && end != BORDER && map[end];

	if (!any(map, from, end) && !behind)
		return before ? PS_FIT_BEHIND : PS_FIT_ALONE;
	return all(map, from, end) ? PS_FIT_INSIDE : PS_FIT_ACROSS;
}

static void add(struct ps_cover *cover, bool *map, unsigned from, unsigned end)
{
	struct ps_span span = { BASE + from, BASE + end, base_of(from), from < BORDER ? 3 : 4 };
	unsigned place;
	const enum ps_fit found = ps_cover_fit(cover, span.base, span.start, span.end, &place);

	assert_true(ps_cover_reserve(cover) >= 0);
	assert_int_equal(found, fit(map, from, end));
	/* Either way of covering it will do, where there are two. */
	if (found == PS_FIT_ALONE && from % 2)
		ps_cover_insert(cover, place, &span);
	else if (found == PS_FIT_BEHIND && from % 2)
		ps_cover_extend(cover, place, BASE + end);
	else
		ps_cover_add(cover, &span);
	for (unsigned i = from; i < end; i++)
		map[i] = true;
}

/* Short and long ranges at random, until nothing more can be added; many times. */
static void test_is_a_bitmap(void **unused)
{
	struct ps_cover cover = { 0 };

	(void)unused;
	state = 0x1998;
	print_message("seed %#lx\n", (unsigned long)state);
	for (int round = 0; round < 300; round++) {
		bool map[BYTES] = { false };
		uint64_t longest = 1 + draw(64);

		ps_cover_clear(&cover);
		for (int i = 0; i < 60; i++) {
			unsigned from = (unsigned)draw(BYTES - 1);
			unsigned end = from + 1 + (unsigned)draw(longest);

			end = end < BYTES ? end : BYTES;
			/* Some end at the border, or begin there. */
			if (from < BORDER && end > BORDER)
				end = BORDER;
			else if (from >= BORDER && draw(8) == 0)
				from = BORDER;
			assert_int_equal(ps_cover_overlaps(&cover, BASE + from, BASE + end),
			                 any(map, from, end));
			check_gaps(&cover, map, from, end);
			add(&cover, map, from, end);
			check(&cover, map);
			check_gaps(&cover, map, 0, BYTES);
		}
	}
	ps_cover_free(&cover);
}

/* Ranges that touch become one, in whichever order they come. */
static void test_adjacent_ranges_are_merged(void **unused)
{
	static const unsigned orders[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 0, 2, 1 }, { 1, 0, 2 } };

	(void)unused;
	for (unsigned i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		struct ps_cover cover = { 0 };
		bool map[BYTES] = { false };

		for (unsigned k = 0; k < 3; k++)
			add(&cover, map, 10 + orders[i][k] * 10, 20 + orders[i][k] * 10);
		assert_int_equal(cover.count, 1);
		check(&cover, map);
		ps_cover_free(&cover);
	}
}

/* Every second byte, more than the first allocation holds: memory is asked for seldom, and a
 * clear keeps it. */
static void test_memory_is_kept_for_the_next_transaction(void **unused)
{
	struct ps_cover cover = { 0 };
	unsigned grown = 0;

	(void)unused;
	for (int round = 0; round < 3; round++) {
		bool map[BYTES] = { false };

		for (unsigned i = 0; i < BYTES; i += 2) {
			const struct ps_span span = { BASE + i, BASE + i + 1, base_of(i),
				                      i < BORDER ? 3 : 4 };

			grown += ps_cover_reserve(&cover) > 0;
			ps_cover_add(&cover, &span);
			map[i] = true;
		}
		check(&cover, map);
		assert_int_equal(grown, 3);
		ps_cover_clear(&cover);
		assert_int_equal(cover.count, 0);
		assert_int_equal(cover.bytes, 0);
	}
	ps_cover_free(&cover);
}

/* Nothing is declared yet. */
static void test_empty_cover_has_one_gap(void **unused)
{
	struct ps_cover cover = { 0 };
	uint64_t start, end;

	(void)unused;
	assert_false(ps_cover_overlaps(&cover, 0, UINT64_MAX));
	assert_true(ps_cover_gap(&cover, 5, 9, &start, &end));
	assert_int_equal(start, 5);
	assert_int_equal(end, 9);
	assert_false(ps_cover_gap(&cover, 9, 9, &start, &end));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_is_a_bitmap),
		cmocka_unit_test(test_adjacent_ranges_are_merged),
		cmocka_unit_test(test_memory_is_kept_for_the_next_transaction),
		cmocka_unit_test(test_empty_cover_has_one_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
