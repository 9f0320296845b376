/*
 * test_cover.c - the intervals that a transaction declares, against a map of single bytes, which
 * belong to two segments, one next to the other.
 */
#include "../../client/core/cover.h"
#include "../support/unit.h"

enum { BASE = 4096 };

/* A map of the declared bytes of two segments that meet at the border. */
struct area {
	bool *map;
	unsigned size, border;
};

static bool few_bytes[512], many_bytes[1 << 16];
static const struct area few = { few_bytes, sizeof(few_bytes), 200 };
static const struct area many = { many_bytes, sizeof(many_bytes), 4000 };

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
	return unit_draw(&random_state) % below;
}

/* Nothing is declared. */
static void clear(const struct area *a, struct ps_cover *cover)
{
	memset(a->map, false, a->size);
	ps_cover_clear(cover);
}

static struct ps_span span_of(const struct area *a, unsigned from, unsigned end)
{
	const bool second = from >= a->border;

	return (struct ps_span){ BASE + from, BASE + end, BASE + (second ? a->border : 0),
		                 second ? 4 : 3 };
}

/* Returns true if a run of the map begins at byte i. */
static bool begins(const struct area *a, unsigned i)
{
	return a->map[i] && (i == 0 || i == a->border || !a->map[i - 1]);
}

static bool ends(const struct area *a, unsigned i)
{
	return i == a->size || i == a->border || !a->map[i];
}

/* The spans are the map's runs, in order and not even adjacent within a segment, read one by one;
 * and they are what is collected. */
static void check(const struct area *a, struct ps_cover *cover, bool collects)
{
	const struct ps_span *span = ps_cover_span_from(cover, 0);
	unsigned spans = 0, bytes = 0, end;

	for (unsigned i = 0; i < a->size; i++) {
		struct ps_span run;

		if (!begins(a, i))
			continue;
		for (end = i + 1; !ends(a, end); end++)
			;
		run = span_of(a, i, end);
		assert_non_null(span);
		assert_true(span->start == run.start && span->end == run.end);
		assert_true(span->base == run.base && span->segment == run.segment);
		bytes += end - i;
		spans++;
		span = ps_cover_span_from(cover, span->end + 1);
	}
	assert_null(span);
	assert_int_equal(cover->span_count, spans);
	assert_int_equal(cover->covered_bytes, bytes);
	if (!collects)
		return;
	ps_cover_to_array(cover);
	for (unsigned k = 0, at = 0; k < a->size; k++)
		if (begins(a, k))
			assert_int_equal(cover->spans[at++].start, BASE + k);
}

/* Walks the gaps of a range and finds just the bytes that the map lacks. */
static void check_gaps(const struct ps_cover *cover, const bool *map, unsigned from, unsigned end)
{
	uint64_t gap_start, gap_end, at = BASE + from;

	while (ps_cover_find_gap(cover, at, BASE + end, &gap_start, &gap_end)) {
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

/* Returns how a range relates to the declared ones, by the map. */
static enum ps_fit fit(const struct area *a, unsigned from, unsigned end)
{
	const bool before = from && from != a->border && a->map[from - 1];
	unsigned count = 0;

	for (unsigned i = from; i < end; i++)
		count += a->map[i];
	if (!count && ends(a, end))
		return before ? PS_FIT_EXTENDS : PS_FIT_DISJOINT;
	return count == end - from ? PS_FIT_INSIDE : PS_FIT_OVERLAPS;
}

/* Covers [from, end), of one segment, by one of the calls that its fit allows. */
static void add(const struct area *a, struct ps_cover *cover, unsigned from, unsigned end)
{
	const struct ps_span span = span_of(a, from, end);
	unsigned place;
	const enum ps_fit found = ps_cover_fit(cover, span.base, span.start, span.end, &place);

	assert_int_equal(found, fit(a, from, end));
	assert_int_equal(ps_cover_overlaps(cover, span.start, span.end),
	                 memchr(a->map + from, true, end - from) != NULL);
	/* Memory for more does not change where things are. */
	assert_true(ps_cover_reserve_span(cover) >= 0);
	if (from % 3 && ps_cover_is_behind_all_spans(cover, span.start))
		ps_cover_append_span(cover, &span);
	else if (found == PS_FIT_DISJOINT && from % 2)
		ps_cover_insert_span(cover, place, &span);
	else if (found == PS_FIT_EXTENDS && from % 2)
		ps_cover_extend_span(cover, place, span.end);
	else
		ps_cover_add_and_merge_span(cover, &span);
	memset(a->map + from, true, end - from);
}

/* A range at `from`, of up to `longest` bytes, that ends at the border if it would cross it.
 * Returns its end. */
static unsigned draw_end(const struct area *a, unsigned from, unsigned longest)
{
	unsigned end = from + 1 + (unsigned)draw(longest);

	end = end < a->size ? end : a->size;
	return from < a->border && end > a->border ? a->border : end;
}

/* Short and long ranges at random, until nothing more can be added; many times. */
TEST(test_is_a_bitmap)
{
	struct ps_cover cover = { 0 };

	random_state = 0x1998;
	print_message("seed %#lx\n", (unsigned long)random_state);
	for (int round = 0; round < 300; round++) {
		const unsigned longest = 1 + (unsigned)draw(64);

		clear(&few, &cover);
		for (int i = 0; i < 60; i++) {
			unsigned from = (unsigned)draw(few.size - 1), end;

			if (from >= few.border && draw(8) == 0)
				from = few.border;
			end = draw_end(&few, from, longest);
			check_gaps(&cover, few.map, from, end);
			add(&few, &cover, from, end);
			check(&few, &cover, true);
			check_gaps(&cover, few.map, 0, few.size);
		}
	}
	ps_cover_free(&cover);
}

/* Ranges that touch become one, in whichever order they come. */
TEST(test_adjacent_ranges_are_merged)
{
	static const unsigned orders[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 0, 2, 1 }, { 1, 0, 2 } };
	struct ps_cover cover = { 0 };

	for (unsigned i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		clear(&few, &cover);
		for (unsigned k = 0; k < 3; k++)
			add(&few, &cover, 10 + orders[i][k] * 10, 20 + orders[i][k] * 10);
		assert_int_equal(cover.span_count, 1);
		check(&few, &cover, true);
	}
	ps_cover_free(&cover);
}

/* Every second byte, more than the first allocation holds: memory is asked for seldom, and a
 * clear keeps it. */
TEST(test_memory_is_kept_for_the_next_transaction)
{
	struct ps_cover cover = { 0 };
	unsigned grown = 0;

	for (int round = 0; round < 3; round++) {
		clear(&few, &cover);
		assert_int_equal(cover.span_count, 0);
		assert_int_equal(cover.covered_bytes, 0);
		for (unsigned i = 0; i < few.size; i += 2) {
			const struct ps_span span = span_of(&few, i, i + 1);

			grown += ps_cover_reserve_span(&cover) > 0;
			ps_cover_add_and_merge_span(&cover, &span);
			few.map[i] = true;
		}
		check(&few, &cover, true);
		assert_int_equal(grown, 3);
	}
	ps_cover_free(&cover);
}

/* Nothing is declared yet. */
TEST(test_empty_cover_has_one_gap)
{
	struct ps_cover cover = { 0 };
	uint64_t start, end;

	assert_false(ps_cover_overlaps(&cover, 0, UINT64_MAX));
	assert_true(ps_cover_find_gap(&cover, 5, 9, &start, &end));
	assert_int_equal(start, 5);
	assert_int_equal(end, 9);
	assert_false(ps_cover_find_gap(&cover, 9, 9, &start, &end));
}

/* --- covers of thousands, whose spans are in blocks --- */

static void add_at(struct ps_cover *cover, unsigned from, unsigned longest)
{
	add(&many, cover, from, draw_end(&many, from, longest));
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

		clear(&many, &cover);
		for (unsigned i = 0; i < 12000; i++) {
			const unsigned ways[] = { (unsigned)draw(many.size), many.size - 1 - i * 5,
				                  i * 5 };

			add_at(&cover, ways[round % 3], round < 3 ? 1 : 4);
			used |= cover.block_count > 0;
			if (i % 1500 == 0)
				check(&many, &cover, i % 4500 == 0);
		}
		assert_int_equal(used, round % 3 != 2);
		for (unsigned i = 0; i < 300; i++) {
			add_at(&cover, (unsigned)draw(many.size), 1 + i * 8);
			if (i % 20 == 0)
				check(&many, &cover, false);
		}
		add(&many, &cover, 0, many.border);
		add(&many, &cover, many.border, many.size);
		check(&many, &cover, true);
		assert_int_equal(cover.span_count, 2);
		ps_cover_free(&cover);
	}
}

/* Ranges are added between others one by one, so that one block splits again and again while the
 * rest shrinks away: emptied blocks are used again, and none is lost. */
TEST(test_blocks_are_used_again)
{
	struct ps_cover cover = { 0 };

	for (unsigned lap = 0; lap < 40; lap++) {
		clear(&many, &cover);
		for (unsigned turn = 0; turn < 4; turn++) {
			for (unsigned i = 0; i < 1000; i++)
				if (!many.map[many.size - 2 - 4 * i])
					add(&many, &cover, many.size - 2 - 4 * i,
					    many.size - 1 - 4 * i);
			for (unsigned i = 0; i < 1000; i++)
				add(&many, &cover, 9000 * turn + 4 * (999 - i) + 5000,
				    9000 * turn + 4 * (999 - i) + 5001);
			add(&many, &cover, 9000 * turn + 4990, 9000 * turn + 9100);
			check(&many, &cover, turn == 3);
		}
	}
	ps_cover_free(&cover);
}

/* Each of thousands gets longer twice: what goes on where a block's last span ends is found
 * there. */
TEST(test_spans_in_blocks_get_longer)
{
	struct ps_cover cover = { 0 };

	clear(&many, &cover);
	for (unsigned i = many.size / 8; i-- > 0;)
		add(&many, &cover, i * 8, i * 8 + 1);
	assert_true(cover.block_count > 1);
	for (unsigned i = 0; i < many.size / 8; i++) {
		add(&many, &cover, i * 8 + 1, i * 8 + 2);
		add(&many, &cover, i * 8 + 2, i * 8 + 3);
	}
	assert_int_equal(cover.span_count, many.size / 8);
	check(&many, &cover, true);
	ps_cover_free(&cover);
}
