/*
 * test_store_drop.c - what a mirror tells of its bytes, and images that are deleted by name.
 */
#include "bank_rig.h"

struct unit_fixture unit_fixture = { setup_bank, teardown };

static int read_part(struct mirror *mirror, const char *store, uint32_t region, uint64_t offset,
                     uint64_t length, Perseas__ReadReply *reply)
{
	Perseas__ReadRequest request = PERSEAS__READ_REQUEST__INIT;

	perseas__read_reply__init(reply);
	request.store = (char *)store;
	request.region = region;
	request.offset = offset;
	request.length = length;
	return store_read(mirror->stores, &request, reply, &mirror->why);
}

/* A store whose owner goes on. */
TEST(bytes_are_told_as_they_are_now, struct mirror *mirror)
{
	Perseas__ReadReply reply;
	struct writer writer;
	struct ps_slot slot;

	assert_int_equal(read_part(mirror, "bank", 16, 1, 3, &reply), 0);
	assert_int_equal(reply.bytes.len, 3);
	assert_memory_equal(reply.bytes.data, "ade", 3);
	writer_init(&writer, &holder.session);
	writer_write(&writer, 0, 0, "next", 4, WRITE_ALL);
	assert_int_equal(read_part(mirror, "bank", 16, 0, BANK_SIZE, &reply), 0);
	assert_memory_equal(reply.bytes.data, "next", 4);
	assert_int_equal(read_part(mirror, "bank", PS_REGION_LOG, 0, PS_RING_OFFSET, &reply), 0);
	assert_in_range(ps_slot_choose(reply.bytes.data, &slot), 0, 1);
	assert_int_equal(slot.seq, 2);
}

TEST_WITH(nothing_outside_the_regions_is_told, setup, teardown, struct mirror *mirror)
{
	Perseas__ReadReply reply;
	struct peer owner;

	assert_int_equal(read_part(mirror, "bank", 16, 0, 1, &reply), -STATUS(NO_STORE));
	mirror_bank(mirror, &owner, false);
	assert_int_equal(read_part(mirror, "bank", 16, BANK_SIZE - 1, 1, &reply), 0);
	assert_int_equal(read_part(mirror, "bank", 16, BANK_SIZE, 1, &reply), -STATUS(BAD_REQUEST));
	assert_int_equal(read_part(mirror, "bank", 16, BANK_SIZE - 1, 2, &reply),
	                 -STATUS(BAD_REQUEST));
	assert_int_equal(read_part(mirror, "bank", 16, UINT64_MAX, 1, &reply),
	                 -STATUS(BAD_REQUEST));
	assert_int_equal(read_part(mirror, "bank", 17, 0, 1, &reply), -STATUS(BAD_REQUEST));
	assert_int_equal(read_part(mirror, "bank", UINT32_MAX, 0, 1, &reply), -STATUS(BAD_REQUEST));
	assert_int_equal(read_part(mirror, "bank", 16, 0, 0, &reply), -STATUS(BAD_REQUEST));
	assert_int_equal(read_part(mirror, "bank", 16, 0, PS_READ_REQUEST_MAX + 1, &reply),
	                 -STATUS(BAD_REQUEST));
	memory_heap_piece(mirror->memory, "bank", "header", NULL)[30] ^= 1;
	mirror_restart(mirror);
	assert_int_equal(read_part(mirror, "bank", 16, 0, 1, &reply), -STATUS(DAMAGED));
}

/* Drops the bank of these ids. With a peer, as who has claimed it. */
static int drop_as(struct mirror *mirror, struct peer *peer, uint8_t store_id, uint8_t image_id)
{
	Perseas__DropRequest request = PERSEAS__DROP_REQUEST__INIT;
	uint8_t making[PS_ID_SIZE] = { store_id }, image[PS_ID_SIZE] = { 9, image_id };

	request.store = (char *)"bank";
	if (store_id)
		request.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, making };
	if (image_id)
		request.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, image };
	request.claimed = peer != NULL;
	return store_drop(mirror->stores, peer ? &peer->session : NULL, &request, &mirror->why);
}

static int drop(struct mirror *mirror, uint8_t store_id, uint8_t image_id)
{
	return drop_as(mirror, NULL, store_id, image_id);
}

TEST_WITH(an_image_is_dropped_by_its_ids, setup, teardown, struct mirror *mirror)
{
	struct peer owner;

	assert_int_equal(drop(mirror, 1, 1), -STATUS(NO_STORE));
	mirror_bank(mirror, &owner, false);
	store_session_ended(&owner.session);
	assert_int_equal(drop(mirror, 2, 1), -STATUS(BAD_STATE));
	assert_int_equal(drop(mirror, 1, 2), -STATUS(BAD_STATE));
	assert_int_equal(drop(mirror, 0, 0), -STATUS(BAD_STATE));
	assert_non_null(mirror_header(mirror, "bank"));
	assert_int_equal(drop(mirror, 1, 1), 0);
	assert_null(mirror_header(mirror, "bank"));
	assert_int_equal(memory_heap_pieces(mirror->memory), 0);
	assert_int_equal(drop(mirror, 1, 1), -STATUS(NO_STORE));
}

/* A session drops the image only while it holds the claim. */
TEST(the_holder_of_the_claim_drops_the_image, struct mirror *mirror)
{
	struct peer other = { 0 };

	assert_int_equal(drop_as(mirror, &other, 1, 1), -STATUS(NO_SESSION));
	assert_int_equal(drop_as(mirror, &holder, 1, 1), 0);
	assert_null(mirror_header(mirror, "bank"));
	mirror_bank(mirror, &holder, false);
	store_session_ended(&holder.session);
	assert_int_equal(drop_as(mirror, &holder, 1, 1), -STATUS(NO_SESSION));
	assert_non_null(mirror_header(mirror, "bank"));
}

/* A live owner has it; then it falls silent, and may still write to memory that it was given. */
TEST_WITH(an_image_is_not_dropped_under_a_live_owner, setup_shared_bank, teardown,
          struct mirror *mirror)
{
	const struct ps_promise *page;

	memory_heap_keep_removed(mirror->memory, true);
	stores_set_owner_timeout(mirror->stores, 5000);
	page = (void *)session_memory(&holder.session, PS_REGION_PROMISE, 0, sizeof(*page), false);
	assert_int_equal(drop(mirror, 1, 1), -STATUS(BUSY));
	assert_int_equal(holder.cuts, 0);
	assert_int_equal(page->epoch, BANK_EPOCH);
	holder.silent_ms = 6000;
	assert_int_equal(drop(mirror, 1, 1), 0);
	assert_int_equal(holder.cuts, 1);
	assert_null(holder.session.store);
	assert_int_equal(page->epoch, UINT64_MAX);
}

/* An unreadable image has no ids by which to name it. */
TEST(a_damaged_image_is_dropped_by_name, struct mirror *mirror)
{
	memory_heap_piece(mirror->memory, "bank", "header", NULL)[30] ^= 1;
	mirror_restart(mirror);
	assert_int_equal(drop(mirror, 1, 1), -STATUS(BAD_STATE));
	assert_int_equal(drop(mirror, 0, 0), 0);
	assert_int_equal(memory_heap_pieces(mirror->memory), 0);
	assert_int_equal(mirror_create(mirror, "bank", 2), 0);
}

struct watch {
	struct mirror *mirror;
	unsigned calls;
};

/* Every change of a drop may be the last: what is left then is the whole image, or none. */
static void look_at_what_a_crash_leaves(void *arg)
{
	struct watch *watch = arg;
	struct mirror left = { .memory = memory_heap_copy(watch->mirror->memory) };
	struct peer peer;

	watch->calls++;
	left.stores = stores_new(left.memory);
	mirror_restart(&left);
	if (mirror_header(&left, "bank")) {
		peer_init(&peer);
		assert_int_equal(mirror_claim(&left, &peer, "bank", 9, 2, NULL), 0);
		assert_memory_equal(session_memory(&peer.session, 16, 0, 4, false), "made", 4);
	} else {
		assert_int_equal(memory_heap_pieces(left.memory), 0);
	}
	mirror_close(&left);
}

TEST(a_crash_in_a_drop_leaves_all_or_nothing, struct mirror *mirror)
{
	struct watch watch = { .mirror = mirror };

	store_session_ended(&holder.session);
	memory_heap_on_change(watch.mirror->memory, look_at_what_a_crash_leaves, &watch);
	assert_int_equal(drop(watch.mirror, 1, 1), 0);
	memory_heap_on_change(watch.mirror->memory, NULL, NULL);
	assert_int_equal(watch.calls, 4);
}
