/*
 * test_store_destroy.c - how a segment ends on a mirror: the mirror keeps all of it until the slot
 * of the transaction that destroys it has arrived, and then removes all of it.
 */
#include "spill_rig.h"

#include "../../server/store/store_private.h"

struct unit_fixture unit_fixture = { setup, teardown };

enum { DEATH = 2 }; /* the seq after that of mirror_bank's transaction */

static const Perseas__Segment *accounts(struct rig *rig)
{
	const Perseas__Header *header = bank(rig);

	return header->n_segments ? header->segments[0] : NULL;
}

static int destroy(struct rig *rig, uint64_t seq)
{
	return peer_destroy(&rig->owner, &rig->mirror.why, 0, seq);
}

static int drop(struct rig *rig)
{
	return peer_drop_segment(&rig->owner, &rig->mirror.why, 0);
}

/* Makes a store with a segment that transaction DEATH is announced to destroy; with `slot`, its
 * slot is written. */
static void begin_death(struct rig *rig, bool slot)
{
	struct writer writer;

	mirror_bank(&rig->mirror, &rig->owner, false);
	assert_int_equal(destroy(rig, DEATH), 0);
	writer_init(&writer, &rig->owner.session);
	if (slot)
		writer_write(&writer, 0, 0, "made", 4, WRITE_ALL);
}

/* Another owner claims the image, which must stand at this seq. */
static void take_over(struct rig *rig, struct peer *peer, uint64_t epoch, uint64_t seq)
{
	Perseas__ClaimReply reply;

	peer_init(peer);
	assert_int_equal(mirror_takeover(&rig->mirror, peer, "bank", epoch, 9, &reply), 0);
	assert_int_equal(reply.slot->seq, seq);
}

/* Its end is announced, and the slot is not there yet. */
TEST(a_segment_lives_until_the_slot, struct rig *rig)
{
	struct writer writer;

	begin_death(rig, false);
	assert_int_equal(accounts(rig)->died, DEATH);
	assert_int_equal(accounts(rig)->died_epoch, BANK_EPOCH);
	assert_int_equal(drop(rig), -STATUS(BAD_STATE));
	assert_memory_equal(session_memory(&rig->owner.session, PS_REGION_SEGMENT, 0, 4, false),
	                    "made", 4);
	writer_init(&writer, &rig->owner.session);
	writer_write(&writer, 0, 0, "made", 4, WRITE_ALL);
	assert_int_equal(drop(rig), 0);
	assert_null(accounts(rig));
	assert_null(session_memory(&rig->owner.session, PS_REGION_SEGMENT, 0, 4, false));
}

/* The owner's link broke after the announcement; another one's transaction gets that seq. */
TEST(a_death_that_did_not_come_is_no_later_owners, struct rig *rig)
{
	struct writer writer;
	struct peer second, third;

	begin_death(rig, false);
	take_over(rig, &second, BANK_EPOCH + 1, 1);
	assert_int_equal(accounts(rig)->died, 0);
	assert_int_equal(accounts(rig)->died_epoch, 0);
	writer_init(&writer, &second.session);
	writer_adopt(&writer, BANK_EPOCH + 1);
	writer_write(&writer, 0, 0, "last", 4, WRITE_ALL);
	take_over(rig, &third, BANK_EPOCH + 2, DEATH);
	assert_non_null(accounts(rig));
	assert_memory_equal(session_memory(&third.session, PS_REGION_SEGMENT, 0, 4, false), "last",
	                    4);
	store_session_ended(&second.session);
	store_session_ended(&third.session);
}

/* The same owner returns with its epoch, as after a broken link, and goes on counting. */
TEST(nor_is_it_that_of_the_owner_that_comes_again, struct rig *rig)
{
	struct peer again;

	begin_death(rig, false);
	peer_init(&again);
	assert_int_equal(mirror_claim(&rig->mirror, &again, "bank", BANK_EPOCH, BANK_OWNER, NULL),
	                 0);
	assert_int_equal(accounts(rig)->died, 0);
	store_session_ended(&again.session);
}

/* The slot is there; nobody asked for the memory back before the owner died. */
TEST(a_claim_takes_out_what_is_dead, struct rig *rig)
{
	struct peer peer;
	unsigned pieces;

	begin_death(rig, true);
	pieces = memory_heap_pieces(rig->mirror.memory);
	take_over(rig, &peer, BANK_EPOCH + 1, DEATH);
	assert_null(accounts(rig));
	assert_int_equal(memory_heap_pieces(rig->mirror.memory), pieces - 1);
	store_session_ended(&peer.session);
}

/* A mark of another epoch than those that the slot can have followed: it is none. */
TEST_WITH(an_epoch_above_the_slots_is_not_covered, NULL, NULL)
{
	const struct ps_slot slot = { .epoch = 5, .seq = 10 };
	Perseas__Segment segment = PERSEAS__SEGMENT__INIT;

	segment.born = 1;
	assert_false(segment_is_destroyed(&segment, &slot));
	segment.died = 10;
	segment.died_epoch = 5;
	assert_true(segment_is_destroyed(&segment, &slot));
	segment.died_epoch = 6;
	assert_false(segment_is_destroyed(&segment, &slot));
	segment.died_epoch = 4;
	assert_true(segment_is_destroyed(&segment, &slot));
	segment.died = 11;
	assert_false(segment_is_destroyed(&segment, &slot));
}

/* Said again with the same seq, with another one, of what is not there, or not published. */
TEST(a_segment_is_destroyed_once, struct rig *rig)
{
	begin_death(rig, false);
	assert_int_equal(destroy(rig, DEATH), 0);
	assert_int_equal(destroy(rig, DEATH + 1), -STATUS(BAD_STATE));
	assert_int_equal(peer_destroy(&rig->owner, &rig->mirror.why, 9, 2), -STATUS(BAD_REQUEST));
	assert_int_equal(peer_add(&rig->owner, &rig->mirror.why, 3, "more", 8), 0);
	assert_int_equal(peer_destroy(&rig->owner, &rig->mirror.why, 3, 2), -STATUS(BAD_STATE));
	assert_int_equal(peer_publish(&rig->owner, &rig->mirror.why, 3, 2), 0);
	assert_int_equal(peer_destroy(&rig->owner, &rig->mirror.why, 3, 2), -STATUS(BAD_STATE));
	assert_int_equal(accounts(rig)->died, DEATH);
}

/* A new segment gets the id: nothing of the one before is in its memory. */
TEST(an_id_comes_again_with_zeros, struct rig *rig)
{
	static const uint8_t zeros[BANK_SIZE];

	begin_death(rig, true);
	assert_int_equal(drop(rig), 0);
	assert_int_equal(peer_add(&rig->owner, &rig->mirror.why, 0, "accounts", BANK_SIZE), 0);
	assert_memory_equal(session_memory(&rig->owner.session, PS_REGION_SEGMENT, 0, BANK_SIZE,
	                                   false),
	                    zeros, BANK_SIZE);
}

static void note_crash(void *arg)
{
	struct rig *rig = arg;

	assert_true(rig->crashes < 128);
	rig->memories[rig->crashes] = memory_heap_copy(rig->mirror.memory);
	rig->spills[rig->crashes++] = spill_heap_new();
}

/* The daemon is killed at each change that announcing, and giving back, make: what it starts with
 * is sound, and has the segment with its bytes, or is past its end. */
TEST(a_daemon_is_killed_at_each_step, struct rig *rig)
{
	struct rig *again = calloc(1, sizeof(*again));
	struct writer writer;
	unsigned before;

	mirror_bank(&rig->mirror, &rig->owner, false);
	memory_heap_on_change(rig->mirror.memory, note_crash, rig);
	note_crash(rig);
	assert_int_equal(destroy(rig, DEATH), 0);
	note_crash(rig);
	before = rig->crashes;
	writer_init(&writer, &rig->owner.session);
	writer_write(&writer, 0, 0, "made", 4, WRITE_ALL);
	note_crash(rig);
	assert_int_equal(drop(rig), 0);
	note_crash(rig);
	assert_true(before >= 2 && rig->crashes >= before + 3);
	for (unsigned i = 0; i < rig->crashes; i++) {
		struct peer peer;

		memset(again, 0, sizeof(*again));
		start(again, memory_heap_copy(rig->memories[i]), spill_heap_new());
		assert_int_equal(again->complaints, 0);
		take_over(again, &peer, BANK_EPOCH + 1, i < before ? 1 : DEATH);
		if (i < before)
			assert_memory_equal(session_memory(&peer.session, PS_REGION_SEGMENT, 0, 4,
			                                   false),
			                    "made", 4);
		else
			assert_null(accounts(again));
		stop(again);
		spill_heap_free(again->spill);
		memory_heap_free(again->mirror.memory);
	}
	memory_heap_on_change(rig->mirror.memory, NULL, NULL);
	free(again);
}

/* The host is shut down between the announcement and the slot, or behind it. */
TEST(a_spill_keeps_what_is_to_die, struct rig *rig)
{
	begin_death(rig, false);
	end(rig);
	lose_memory_and_load(rig, 1);
	assert_bank(rig, 1, "made");
	assert_int_equal(accounts(rig)->died, 0);
}

TEST(a_spill_brings_back_nothing_dead, struct rig *rig)
{
	struct peer peer;

	begin_death(rig, true);
	end(rig);
	lose_memory_and_load(rig, 1);
	take_over(rig, &peer, BANK_EPOCH + 1, DEATH);
	assert_null(accounts(rig));
	store_session_ended(&peer.session);
}

/* No memory for another header: nothing has changed. */
TEST(a_header_that_cannot_be_written_keeps_the_segment, struct rig *rig)
{
	mirror_bank(&rig->mirror, &rig->owner, false);
	memory_heap_fail(rig->mirror.memory, 0, 1);
	assert_int_not_equal(destroy(rig, DEATH), 0);
	assert_int_equal(accounts(rig)->died, 0);
	memory_heap_fail(rig->mirror.memory, 0, 0);
	store_session_ended(&rig->owner.session);
	memory_heap_lose(rig->mirror.memory, "none");
}
