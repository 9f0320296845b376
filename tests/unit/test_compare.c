/*
 * test_compare.c - pieces of a store that runs are compared between two mirrors that are played:
 * these are never said to differ but where they do.
 */
#include "played.h"

#include "../../client/command/live/compare.h"

/* `end`: as world.end, from when it is known what there is to compare. */
static enum ps_comparison compare(struct ps_piece *piece, unsigned end)
{
	struct ps_compare compare;
	struct ps_images images;
	enum ps_comparison verdict;

	ps_images_fetch(&images, &world.peers, "s");
	world.end = end;
	assert_true(ps_compare_open(&compare, &world.peers, &images, "s", piece->takes_part));
	compare.waits_for_progress = !world.stopped;
	verdict = ps_compare_piece(&compare, piece, 0);
	ps_compare_close(&compare);
	ps_images_free(&images);
	return verdict;
}

static struct ps_piece whole_piece(unsigned segment)
{
	return (struct ps_piece){
		.ids = { segment, segment },
		.size = SIZE,
		.length = SIZE,
		.takes_part = { true, true },
	};
}

/* Two mirrors of one store; every fourth time without an owner. */
static void start_two(uint32_t seed)
{
	start(seed, 2, 131072, 1 + seed % 30);
	world.stopped = seed % 4 == 0;
}

/* Two mirrors that advance independently are compared while they run, and after they stopped
 * anywhere. */
TEST(mirrors_of_one_history_are_never_said_to_differ)
{
	unsigned same = 0;

	for (uint32_t seed = 1; seed <= 400; seed++) {
		struct ps_piece piece = whole_piece(seed % 2);
		enum ps_comparison verdict;

		start_two(seed);
		verdict = compare(&piece, 0);
		assert_int_not_equal(verdict, PS_DIFFERENT);
		assert_int_not_equal(verdict, PS_CHANGED);
		same += verdict == PS_SAME && piece.takes_part[0] && piece.takes_part[1];
	}
	assert_true(same > 200);
}

/* One mirror is copied anew in place at the same time. */
TEST(a_mirror_that_is_mended_is_never_said_to_differ)
{
	unsigned changed = 0;

	for (uint32_t seed = 1; seed <= 400; seed++) {
		struct ps_piece piece = whole_piece(seed % 2);
		enum ps_comparison verdict;

		start_two(seed);
		world.mend = 2 + seed % 20;
		verdict = compare(&piece, 0);
		assert_int_not_equal(verdict, PS_DIFFERENT);
		changed += verdict == PS_CHANGED;
	}
	assert_true(changed > 20);
}

/* The segment that is compared is destroyed meanwhile: no mirror is left out for that. */
TEST(mirrors_that_refuse_what_is_gone_are_asked_again)
{
	unsigned changed = 0;

	for (uint32_t seed = 1; seed <= 400; seed++) {
		struct ps_piece piece = whole_piece(SEGMENTS - 1);
		enum ps_comparison verdict;

		start_two(seed);
		world.stopped = true;
		/* Before it is born nobody compares it. */
		if (!world.controls[0].mirror.seq || !world.controls[1].mirror.seq)
			continue;
		verdict = compare(&piece, 2 + seed % 10);
		assert_int_not_equal(verdict, PS_DIFFERENT);
		if (verdict == PS_SAME)
			assert_int_equal(world.refused, 0);
		changed += verdict == PS_CHANGED;
	}
	assert_true(changed > 100);
}

/* One byte that no transaction touches is flipped. */
TEST(a_flipped_byte_is_found_whatever_the_owner_does)
{
	unsigned found = 0;

	for (uint32_t seed = 1; seed <= 400; seed++) {
		struct ps_piece piece = whole_piece(1);
		uint64_t at = QUIET + seed % (SIZE - QUIET);
		enum ps_comparison verdict;

		start_two(seed);
		world.controls[1].mirror.segments[1][at] ^= 1;
		verdict = compare(&piece, 0);
		if (verdict == PS_TOO_FAST || !piece.takes_part[0] || !piece.takes_part[1])
			continue;
		assert_int_equal(verdict, PS_DIFFERENT);
		assert_int_equal(piece.differing_set, 2);
		assert_int_equal(piece.first_difference[1], at);
		assert_int_equal(piece.difference_bytes[1], 1);
		found++;
	}
	assert_true(found > 200);
}

/* --- entries of segments --- */

enum { OLD, GONE, NEW, MOMENTS };

/* What a mirror tells at a moment: segment "a" is made by transaction 3, destroyed by 12, and made
 * anew by 15, which may give it the same id. */
static Perseas__StoreStatus *tell(unsigned moment, uint32_t new_id)
{
	static const uint64_t seqs[] = { 10, 12, 15 };
	static Perseas__Segment segments[MOMENTS], *tables[MOMENTS];
	static Perseas__Header headers[MOMENTS];
	static Perseas__Slot slots[MOMENTS];
	static Perseas__StoreStatus told[MOMENTS];

	perseas__segment__init(&segments[moment]);
	segments[moment].name = (char *)"a";
	segments[moment].size = SIZE;
	segments[moment].born = moment == OLD ? 3 : 15;
	segments[moment].id = moment == OLD ? 0 : new_id;
	tables[moment] = &segments[moment];
	perseas__header__init(&headers[moment]);
	headers[moment].segments = &tables[moment];
	headers[moment].n_segments = moment != GONE;
	perseas__slot__init(&slots[moment]);
	slots[moment].seq = seqs[moment];
	perseas__store_status__init(&told[moment]);
	told[moment].header = &headers[moment];
	told[moment].slot = &slots[moment];
	return &told[moment];
}

/* Three mirrors answer before, between and after, in all orders. One that answered earlier than
 * another is behind that answer, and none differs. */
TEST(a_segment_that_is_made_anew_between_answers_never_differs)
{
	for (unsigned order = 0; order < MOMENTS * MOMENTS * MOMENTS; order++) {
		const unsigned at[] = { order % MOMENTS, order / MOMENTS % MOMENTS,
			                order / MOMENTS / MOMENTS };
		const uint32_t new_id = order % 2;
		unsigned newest = OLD;

		for (unsigned i = 0; i < 3; i++)
			newest = at[i] > newest ? at[i] : newest;
		if (newest == GONE) /* has no segment to compare with */
			continue;
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(
				ps_compare_table_entry(tell(at[i], new_id),
			                               tell(newest, new_id)->header->segments[0]),
				at[i] == newest ? PS_ENTRY_SAME : PS_ENTRY_BEHIND);
	}
}

TEST(entries_that_differ_are_found)
{
	Perseas__StoreStatus *told = tell(NEW, 1);
	Perseas__Segment segment = *told->header->segments[0];

	segment.size += 4096;
	assert_int_equal(ps_compare_table_entry(told, &segment), PS_ENTRY_DIFFERENT);
	told->header->n_segments = 0;
	assert_int_equal(ps_compare_table_entry(told, &segment), PS_ENTRY_MISSING);
	told->slot->seq = 14;
	assert_int_equal(ps_compare_table_entry(told, &segment), PS_ENTRY_BEHIND);
}
