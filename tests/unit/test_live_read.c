/*
 * test_live_read.c - a store that runs is copied from mirrors that are played: what is read must be
 * the state after one transaction.
 */
#include "played.h"

#include "../../client/command/live/live_copy.h"

/* The state after transaction seq, from nothing. */
static void expect(uint64_t seq, uint8_t want[SEGMENTS][SIZE])
{
	struct ps_range ranges[RANGES];

	memset(want, 0, (size_t)SEGMENTS * SIZE);
	for (uint64_t k = 1; k <= seq; k++) {
		unsigned count = plan(k, ranges);

		for (unsigned i = 0; i < count; i++)
			memset(want[ranges[i].segment] + ranges[i].offset, byte_of(k, i),
			       ranges[i].length);
	}
}

static unsigned without_record;

static void check_copy(const struct ps_live_copy *copy)
{
	static uint8_t want[SEGMENTS][SIZE];

	if (copy->slot.seq == 0)
		return; /* both segments are born later */
	expect(copy->slot.seq, want);
	for (unsigned i = 0; i < copy->header->n_segments; i++)
		assert_memory_equal(copy->segments[i], want[i], SIZE);
	/* Once in a lap the record may have been overwritten. */
	if (copy->record)
		assert_int_equal(copy->record->time, copy->slot.seq * 1000);
	else
		without_record++;
}

/* Any interleaving; a store at rest, also in the middle of a transaction, is always copied. */
TEST(a_copy_is_the_state_after_one_transaction)
{
	unsigned copied = 0, tries = 0, unfinished = 0;

	for (uint32_t seed = 1; seed <= 400; seed++) {
		static const uint64_t rings[] = { 4096, 8192, 32768, 65536, RING_MAX };
		struct ps_live_copy copy;

		/* A large ring takes a fast owner, to be more than one look at it sees. */
		start(seed, 1, rings[seed % 5], seed % 5 == 4 ? 1500 : 1 + seed % 60);
		world.stopped = seed % 7 == 0;
		unfinished += world.stopped && world.controls[0].mirror.links > 0;
		if (ps_live_copy_take(&copy, &world.peers, "s")) {
			assert_false(world.stopped);
			continue;
		}
		copied++;
		tries += copy.tries;
		check_copy(&copy);
		ps_live_copy_free(&copy);
	}
	assert_true(copied > 300 && tries > 20 && unfinished > 20);
	assert_true(without_record < copied / 8);
}

/* A silent owner copies the mirror anew during the read, and leaves header, slot and log alike. */
TEST(what_is_mended_meanwhile_is_no_copy)
{
	unsigned copied = 0, mended = 0;

	for (uint32_t seed = 1; seed <= 400; seed++) {
		struct ps_live_copy copy;

		start(seed, 1, 65536, 1 + seed % 20);
		world.stopped = seed % 2 == 0;
		world.mend = 10 + seed % 60;
		if (ps_live_copy_take(&copy, &world.peers, "s"))
			continue;
		copied++;
		mended += world.controls[0].mirror.rewrites > 0;
		check_copy(&copy);
		ps_live_copy_free(&copy);
	}
	if (copied <= 100 || mended <= 30)
		fail_msg("%u copied, %u of them mended meanwhile", copied, mended);
}

/* A segment is destroyed at any moment of the copy, which then begins again without it. */
TEST(a_segment_that_is_destroyed_meanwhile_fails_no_copy)
{
	unsigned before = 0, meanwhile = 0;

	for (uint32_t seed = 1; seed <= 400; seed++) {
		struct ps_live_copy copy;

		start(seed, 1, RING_MAX, 1 + seed % 20);
		world.end = 2 + seed % 30;
		assert_int_equal(ps_live_copy_take(&copy, &world.peers, "s"), PS_EXIT_OK);
		before += !world.controls[0].mirror.less;
		meanwhile += copy.header->n_segments < SEGMENTS && copy.tries > 0;
		check_copy(&copy);
		ps_live_copy_free(&copy);
	}
	assert_true(before > 20 && meanwhile > 100);
}

/* The tables are equal except for a death, which may be announced before it is known to have
 * happened. */
TEST(a_segment_that_is_dead_is_no_longer_the_same)
{
	Perseas__StoreStatus before = PERSEAS__STORE_STATUS__INIT, after = before;

	start(1, 1, 4096, 0);
	before.header = make_header(&world.controls[0].mirror);
	after.header = make_header(&world.controls[0].mirror);
	after.header->segments[1]->died = 5;
	assert_true(ps_live_copy_is_same_image(&before, &after, 4));
	assert_false(ps_live_copy_is_same_image(&before, &after, 5));
	perseas__header__free_unpacked(before.header, NULL);
	perseas__header__free_unpacked(after.header, NULL);
}

/* Another owner's segment got the name, id and transaction of this one. */
TEST(a_segment_at_another_address_is_not_the_same)
{
	Perseas__StoreStatus before = PERSEAS__STORE_STATUS__INIT, after = before;

	start(1, 1, 4096, 0);
	before.header = make_header(&world.controls[0].mirror);
	after.header = make_header(&world.controls[0].mirror);
	assert_true(ps_live_copy_is_same_image(&before, &after, 4));
	after.header->segments[1]->address += 4096;
	assert_false(ps_live_copy_is_same_image(&before, &after, 4));
	perseas__header__free_unpacked(before.header, NULL);
	perseas__header__free_unpacked(after.header, NULL);
}

/* An owner that laps the ring between any two requests. */
TEST(a_store_that_changes_too_fast_is_refused)
{
	struct ps_live_copy copy;

	start(7, 1, 4096, 4000);
	assert_int_equal(ps_live_copy_take(&copy, &world.peers, "s"), PS_EXIT_NO);
}

/* Whatever a mirror sends, nothing outside the memory is touched, and reading ends. */
TEST(a_mirror_that_lies_does_no_harm)
{
	unsigned refused = 0;

	for (uint32_t seed = 1; seed <= 400; seed++) {
		struct ps_live_copy copy;

		start(seed, 1, seed % 2 ? 4096 : 65536, seed % 40);
		world.spoil = 1 + seed % 30;
		if (ps_live_copy_take(&copy, &world.peers, "s"))
			refused++;
		else
			ps_live_copy_free(&copy);
	}
	assert_true(refused > 100);
}
