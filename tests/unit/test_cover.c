/*
 * test_cover.c - the intervals that a transaction declares, against a map of single bytes, which
 * belong to two segments, one next to the other.
 */
#include "../../client/core/cover.h"
#include "../support/unit.h"

enum { BYTES = 512, BASE = 4096, BORDER = 200 };

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
	return unit_draw(&random_state) % below;
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
TEST(test_is_a_bitmap)
{
	struct ps_cover cover = { 0 };

	random_state = 0x1998;
	print_message("seed %#lx\n", (unsigned long)random_state);
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
TEST(test_adjacent_ranges_are_merged)
{
	static const unsigned orders[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 0, 2, 1 }, { 1, 0, 2 } };

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
TEST(test_memory_is_kept_for_the_next_transaction)
{
	struct ps_cover cover = { 0 };
	unsigned grown = 0;

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
TEST(test_empty_cover_has_one_gap)
{
	struct ps_cover cover = { 0 };
	uint64_t start, end;

	assert_false(ps_cover_overlaps(&cover, 0, UINT64_MAX));
	assert_true(ps_cover_gap(&cover, 5, 9, &start, &end));
	assert_int_equal(start, 5);
	assert_int_equal(end, 9);
	assert_false(ps_cover_gap(&cover, 9, 9, &start, &end));
}

/* --- covers of thousands, whose spans are in blocks --- */

enum { MANY = 1 << 16, MANY_BORDER = 4000 };

static bool many[MANY];

static uint64_t many_base(unsigned i)
{
	return BASE + (i < MANY_BORDER ? 0 : MANY_BORDER);
}

static bool many_begins(unsigned i)
{
	return many[i] && (i == 0 || i == MANY_BORDER || !many[i - 1]);
}

/* All spans, read one by one, are the map's runs; and they are what is collected. */
static void check_many(struct ps_cover *cover, bool collects)
{
	const struct ps_span *span = ps_cover_from(cover, 0);
	unsigned spans = 0, bytes = 0, end;

	for (unsigned i = 0; i < MANY; i++) {
		if (!many_begins(i))
			continue;
		for (end = i + 1; end < MANY && many[end] && !many_begins(end); end++)
			;
		assert_non_null(span);
		assert_int_equal(span->start, BASE + i);
		assert_int_equal(span->end, BASE + end);
		assert_int_equal(span->base, many_base(i));
		bytes += end - i;
		spans++;
		span = ps_cover_from(cover, span->end + 1);
	}
	assert_null(span);
	assert_int_equal(cover->count, spans);
	assert_int_equal(cover->bytes, bytes);
	if (!collects)
		return;
	ps_cover_settle(cover);
	for (unsigned i = 0, at = 0; i < MANY; i++)
		if (many_begins(i))
			assert_int_equal(cover->spans[at++].start, BASE + i);
}

/* Covers [from, end), of one segment, by whichever call its fit allows. */
static void add_many(struct ps_cover *cover, unsigned from, unsigned end)
{
	const struct ps_span span = { BASE + from, BASE + end, many_base(from), 3 };
	const bool before = from && from != MANY_BORDER && many[from - 1];
	const bool behind = end < MANY && end != MANY_BORDER && many[end];
	unsigned place;
	const enum ps_fit found = ps_cover_fit(cover, span.base, span.start, span.end, &place);

	if (any(many, from, end) || behind)
		assert_int_equal(found, all(many, from, end) ? PS_FIT_INSIDE : PS_FIT_ACROSS);
	else
		assert_int_equal(found, before ? PS_FIT_BEHIND : PS_FIT_ALONE);
	assert_int_equal(ps_cover_overlaps(cover, span.start, span.end), any(many, from, end));
	/* Memory for more does not change where things are. */
	assert_true(ps_cover_reserve(cover) >= 0);
	if (ps_cover_behind(cover, span.start))
		ps_cover_append(cover, &span);
	else if (found == PS_FIT_ALONE && from % 2)
		ps_cover_insert(cover, place, &span);
	else if (found == PS_FIT_BEHIND && from % 2)
		ps_cover_extend(cover, place, span.end);
	else
		ps_cover_add(cover, &span);
	memset(&many[from], true, end - from);
}

/* A range at `at`, of up to `longest` bytes, that ends at the border if it would cross it. */
static void add_at(struct ps_cover *cover, unsigned at, unsigned longest)
{
	unsigned end = at + 1 + (unsigned)draw(longest);

	end = end < MANY ? end : MANY;
	add_many(cover, at, at < MANY_BORDER && end > MANY_BORDER ? MANY_BORDER : end);
}

/* Thousands of short ranges at random, and downwards, and upwards; then long ones, which melt many
 * together, until one span is left. It is collected in the middle, too, as by a commit that
 * fails. */
TEST(test_thousands_are_a_bitmap)
{
	random_state = 0x1919;
	for (unsigned round = 0; round < 6; round++) {
		struct ps_cover cover = { 0 };
		bool used = false;

		memset(many, false, sizeof(many));
		for (unsigned i = 0; i < 12000; i++) {
			const unsigned ways[] = { (unsigned)draw(MANY), MANY - 1 - i * 5, i * 5 };

			add_at(&cover, ways[round % 3], round < 3 ? 1 : 4);
			used |= cover.used > 0;
			if (i % 1500 == 0)
				check_many(&cover, i % 4500 == 0);
		}
		assert_int_equal(used, round % 3 != 2);
		for (unsigned i = 0; i < 300; i++) {
			add_at(&cover, (unsigned)draw(MANY), 1 + i * 8);
			if (i % 20 == 0)
				check_many(&cover, false);
		}
		add_many(&cover, 0, MANY_BORDER);
		add_many(&cover, MANY_BORDER, MANY);
		check_many(&cover, true);
		assert_int_equal(cover.count, 2);
		ps_cover_free(&cover);
	}
}

/* One by one between two that are there, so that one block is split again and again, and the rest
 * melts away before it: blocks that are emptied are used again, and none is lost. */
TEST(test_blocks_are_used_again)
{
	struct ps_cover cover = { 0 };

	memset(many, false, sizeof(many));
	for (unsigned lap = 0; lap < 40; lap++) {
		memset(many, false, sizeof(many));
		ps_cover_clear(&cover);
		for (unsigned turn = 0; turn < 4; turn++) {
			for (unsigned i = 0; i < 1000; i++)
				if (!many[MANY - 2 - 4 * i])
					add_many(&cover, MANY - 2 - 4 * i, MANY - 1 - 4 * i);
			for (unsigned i = 0; i < 1000; i++)
				add_many(&cover, 9000 * turn + 4 * (999 - i) + 5000,
				         9000 * turn + 4 * (999 - i) + 5001);
			add_many(&cover, 9000 * turn + 4990, 9000 * turn + 9100);
			check_many(&cover, turn == 3);
		}
	}
	ps_cover_free(&cover);
}

/* Each of thousands gets longer twice: what goes on where a block's last span ends is found
 * there. */
TEST(test_spans_in_blocks_get_longer)
{
	struct ps_cover cover = { 0 };

	memset(many, false, sizeof(many));
	for (unsigned i = MANY / 8; i-- > 0;)
		add_many(&cover, i * 8, i * 8 + 1);
	assert_true(cover.used > 1);
	for (unsigned i = 0; i < MANY / 8; i++) {
		add_many(&cover, i * 8 + 1, i * 8 + 2);
		add_many(&cover, i * 8 + 2, i * 8 + 3);
	}
	assert_int_equal(cover.count, MANY / 8);
	check_many(&cover, true);
	ps_cover_free(&cover);
}
