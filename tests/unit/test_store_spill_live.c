/*
 * test_store_spill_live.c - spills while owners are there: what they write meanwhile, and spills
 * that are asked for and fail.
 */
#include "spill_rig.h"

struct unit_fixture unit_fixture = { setup, teardown };

struct intruder {
	struct rig *rig;
	struct writer writer;
	int steps;
	unsigned calls;
	bool retired;
};

static void write_meanwhile(void *arg)
{
	struct intruder *intruder = arg;
	const struct ps_promise *page = (void *)memory_heap_piece(intruder->rig->mirror.memory,
	                                                          "bank", "promise.1", NULL);

	/* 0 begins the spill, 1 and 2 write its head. */
	if (intruder->calls++ != 2)
		return;
	intruder->retired = page->epoch == UINT64_MAX && intruder->rig->owner.cuts == 1;
	writer_write(&intruder->writer, 0, 0, "more", 4, intruder->steps);
}

/* An owner does not know yet that it was fenced, and finishes what it had begun. */
TEST(what_an_owner_writes_during_a_spill_is_undone, struct rig *rig)
{
	static const int steps[] = { WRITE_RECORD, WRITE_RECORD | WRITE_DATA, WRITE_ALL };

	for (int i = 0; i < 3; i++) {
		struct intruder intruder = { .rig = rig, .steps = steps[i] };

		mirror_bank(&rig->mirror, &rig->owner, true);
		writer_init(&intruder.writer, &rig->owner.session);
		spill_heap_on_change(rig->spill, write_meanwhile, &intruder);
		end(rig);
		assert_true(intruder.retired);
		assert_in_range(intruder.calls, 3, 100);
		spill_heap_on_change(rig->spill, NULL, NULL);
		lose_memory_and_load(rig, 1);
		assert_false(bank(rig)->shared);
		assert_bank(rig, 1, "made");
		rig = unit_begin_again();
	}
}

/* The transaction that an owner died in goes along, and is undone when the image is claimed. */
TEST(an_unfinished_transaction_is_undone_after_the_load, struct rig *rig)
{
	struct writer writer;

	mirror_bank(&rig->mirror, &rig->owner, false);
	writer_init(&writer, &rig->owner.session);
	writer_write(&writer, 0, 0, "torn", 4, WRITE_RECORD | WRITE_DATA);
	end(rig);
	lose_memory(rig);
	assert_bank(rig, 1, "made");
}

static int ask(struct rig *rig, Perseas__SpillReply *reply)
{
	perseas__spill_reply__init(reply);
	memset(&rig->mirror.why, 0, sizeof(rig->mirror.why));
	return store_spill(rig->mirror.stores, reply, &rig->mirror.why);
}

TEST(a_spill_is_refused_where_there_is_nowhere_to, struct rig *rig)
{
	Perseas__SpillReply reply;
	struct spill_sum sum;

	mirror_bank(&rig->mirror, &rig->owner, false);
	stores_set_spill(rig->mirror.stores, NULL);
	assert_int_equal(ask(rig, &reply), -STATUS(BAD_STATE));
	assert_false(stores_spill(rig->mirror.stores, &sum, complain, rig));
	assert_int_equal(rig->owner.cuts, 0);
}

TEST(a_spill_without_room_cuts_nobody, struct rig *rig)
{
	Perseas__SpillReply reply;

	mirror_bank(&rig->mirror, &rig->owner, false);
	spill_heap_set_room(rig->spill, 10000);
	assert_int_equal(ask(rig, &reply), -STATUS(IO));
	assert_non_null(strstr(rig->mirror.why.text, "room"));
	assert_int_equal(rig->owner.cuts, 0);
	assert_non_null(session_memory(&rig->owner.session, 16, 0, 1, true));
}

/* The next daemon would not find the spills. */
TEST(a_spill_to_a_moved_directory_cuts_nobody, struct rig *rig)
{
	Perseas__SpillReply reply;

	mirror_bank(&rig->mirror, &rig->owner, false);
	spill_heap_move(rig->spill);
	assert_int_equal(ask(rig, &reply), -STATUS(IO));
	assert_non_null(strstr(rig->mirror.why.text, "heap leads elsewhere; nothing was ended"));
	assert_int_equal(rig->owner.cuts, 0);
	assert_int_equal(spill_heap_count(rig->spill), 0);
	end(rig);
	assert_non_null(strstr(rig->complaint, "the folder that is there now"));
	assert_int_equal(spill_heap_count(rig->spill), 1);
}

TEST(a_spill_that_is_granted_ends_everything, struct rig *rig)
{
	Perseas__SpillReply reply;
	struct spill_sum sum;
	struct peer peer;

	mirror_bank(&rig->mirror, &rig->owner, false);
	assert_int_equal(ask(rig, &reply), 0);
	assert_int_equal(reply.stores, 1);
	assert_in_range(reply.bytes, 8000, 30000);
	assert_string_equal(reply.directory, "heap");
	assert_int_equal(rig->owner.cuts, 1);
	peer_init(&peer);
	assert_int_equal(mirror_claim(&rig->mirror, &peer, "bank", 9, 9, NULL), -STATUS(BAD_STATE));
	assert_int_equal(mirror_create(&rig->mirror, "other", 2), -STATUS(BAD_STATE));
	assert_int_equal(ask(rig, &reply), -STATUS(BAD_STATE));
	assert_false(stores_spill(rig->mirror.stores, &sum, complain, rig));
	lose_memory(rig);
	assert_bank(rig, 1, "made");
}

static void fill_disk(void *arg)
{
	struct rig *rig = arg;

	/* The first store is written; then other files come. */
	if (spill_heap_count(rig->spill) == 1)
		spill_heap_set_room(rig->spill, 0);
}

static void freeze_disk(void *arg)
{
	struct rig *rig = arg;

	fill_disk(arg);
	if (spill_heap_count(rig->spill) == 1)
		spill_heap_freeze(rig->spill, true);
}

/* The disk fills up under the second store. */
TEST(a_spill_that_fails_is_taken_back_and_images_are_served, struct rig *rig)
{
	Perseas__SpillReply reply;

	mirror_bank(&rig->mirror, &rig->owner, false);
	assert_int_equal(mirror_create(&rig->mirror, "small", 2), 0);
	spill_heap_on_change(rig->spill, fill_disk, rig);
	assert_int_equal(ask(rig, &reply), -STATUS(IO));
	assert_int_equal(spill_heap_count(rig->spill), 0);
	assert_bank(rig, 1, "made");
	assert_int_equal(mirror_settle(&rig->mirror, "small", 2), 0);
}

static void fill_at_once(void *arg)
{
	spill_heap_set_room(((struct rig *)arg)->spill, 0);
}

/* The spill of the second store was kept since it could not be loaded, and the store was made again
 * since. The first one's fails: what was kept stays. */
TEST(a_spill_that_fails_removes_none_that_was_kept, struct rig *rig)
{
	Perseas__SpillReply reply;
	uint8_t *kept;
	size_t len;

	spill_bank(rig);
	kept = spill_heap_bytes(rig->spill, "bank", &len);
	kept[len / 2] ^= 1;
	lose_memory(rig);
	assert_int_equal(mirror_create(&rig->mirror, "bank", 2), 0);
	assert_int_equal(mirror_create(&rig->mirror, "small", 3), 0);
	spill_heap_on_change(rig->spill, fill_at_once, rig);
	assert_int_equal(ask(rig, &reply), -STATUS(IO));
	assert_non_null(strstr(rig->mirror.why.text, "small"));
	assert_ptr_equal(spill_heap_bytes(rig->spill, "bank", NULL), kept);
	assert_int_equal(mirror_settle(&rig->mirror, "bank", 2), 0);
}

/* The daemon writes a spill, goes on, and cannot remove what it wrote. */
TEST(a_store_whose_spill_stays_is_served_no_more, struct rig *rig)
{
	Perseas__SpillReply reply;
	struct peer peer;

	mirror_bank(&rig->mirror, &rig->owner, false);
	assert_int_equal(mirror_create(&rig->mirror, "small", 2), 0);
	spill_heap_on_change(rig->spill, freeze_disk, rig);
	assert_int_equal(ask(rig, &reply), -STATUS(IO));
	assert_int_equal(spill_heap_count(rig->spill), 1);
	assert_non_null(spill_heap_bytes(rig->spill, "small", NULL));
	assert_int_equal(mirror_settle(&rig->mirror, "small", 2), -STATUS(DAMAGED));
	peer_init(&peer);
	assert_int_equal(mirror_claim(&rig->mirror, &peer, "bank", 9, 9, NULL), 0);
	store_session_ended(&peer.session);
}
