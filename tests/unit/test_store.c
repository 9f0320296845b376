/*
 * test_store.c - creating, claiming and ending: what a mirror promises, and to whom (I5).
 */
#include "bank_rig.h"

struct unit_fixture unit_fixture = { setup_bank, teardown };

static int release(struct mirror *mirror, struct peer *peer)
{
	return store_release(&peer->session, &mirror->why);
}

static struct ps_promise promise_page(struct peer *peer)
{
	struct ps_promise page;

	memcpy(&page, session_memory(&peer->session, PS_REGION_PROMISE, 0, sizeof(page), false),
	       sizeof(page));
	return page;
}

/* Two clients create the same store, at the same time and one after the other. */
TEST_WITH(a_store_is_not_replaced, setup, teardown, struct mirror *mirror)
{
	assert_int_equal(mirror_create(mirror, "bank", 1), 0);
	assert_int_equal(mirror_create(mirror, "bank", 2), -STATUS(EXISTS));
	assert_int_equal(mirror_settle(mirror, "bank", 2), -STATUS(BAD_STATE));
	assert_int_equal(mirror_settle(mirror, "bank", 1), 0);
	assert_int_equal(mirror_settle(mirror, "bank", 1), 0);
	assert_int_equal(mirror_create(mirror, "bank", 2), -STATUS(EXISTS));
	assert_int_equal(mirror_header(mirror, "bank")->state, STATE(CONSISTENT));
	/* header, log and promise of one generation alone */
	assert_int_equal(memory_heap_pieces(mirror->memory), 3);
}

/* A create that failed elsewhere takes back what it made here, and only that. */
TEST_WITH(abandon_removes_only_what_its_caller_creates, setup, teardown, struct mirror *mirror)
{
	Perseas__AbandonRequest request = PERSEAS__ABANDON_REQUEST__INIT;

	request.store = (char *)"bank";
	request.store_id = OWNER(2);
	assert_int_equal(store_abandon(mirror->stores, &request, &mirror->why), -STATUS(NO_STORE));
	assert_int_equal(mirror_create(mirror, "bank", 1), 0);
	assert_int_equal(store_abandon(mirror->stores, &request, &mirror->why), -STATUS(BAD_STATE));
	request.store_id = OWNER(1);
	assert_int_equal(store_abandon(mirror->stores, &request, &mirror->why), 0);
	assert_int_equal(memory_heap_pieces(mirror->memory), 0);
	assert_int_equal(mirror_create(mirror, "bank", 1), 0);
	assert_int_equal(mirror_settle(mirror, "bank", 1), 0);
	assert_int_equal(store_abandon(mirror->stores, &request, &mirror->why), -STATUS(BAD_STATE));
}

/* The memory limit does not hold the log. */
TEST_WITH(a_create_over_the_limit_leaves_nothing, setup, teardown, struct mirror *mirror)
{
	memory_heap_set_limit(mirror->memory, 6000);
	assert_int_equal(mirror_create(mirror, "bank", 1), -STATUS(NO_MEMORY));
	assert_int_equal(memory_heap_pieces(mirror->memory), 0);
	assert_null(mirror_header(mirror, "bank"));
}

/* The refusal says what to raise: a limit of 0 is none, and the file system is full. */
TEST_WITH(a_refusal_of_memory_names_what_limits_it, setup, teardown, struct mirror *mirror)
{
	memory_heap_set_limit(mirror->memory, 6000);
	assert_int_equal(mirror_create(mirror, "bank", 1), -STATUS(NO_MEMORY));
	assert_non_null(strstr(mirror->why.text, "(0 used, limit 6000); raise --max-memory or"));
	memory_heap_set_limit(mirror->memory, 0);
	memory_heap_fail(mirror->memory, 0, 1);
	assert_int_equal(mirror_create(mirror, "bank", 1), -STATUS(NO_MEMORY));
	assert_non_null(strstr(mirror->why.text, "(0 used, no limit); raise the size of its file"));
}

/* A store that is not on all its mirrors yet has no state to be claimed. */
TEST_WITH(a_store_still_creating_is_not_claimed, setup, teardown, struct mirror *mirror)
{
	struct peer peer;

	peer_init(&peer);
	assert_int_equal(mirror_claim(mirror, &peer, "bank", 5, 1, NULL), -STATUS(NO_STORE));
	assert_int_equal(mirror_create(mirror, "bank", 1), 0);
	assert_int_equal(mirror_claim(mirror, &peer, "bank", 5, 1, NULL), -STATUS(NO_STORE));
	assert_null(peer.session.store);
}

/* Owners claim with epochs below, at and above the promised one. */
TEST(a_claim_needs_a_higher_epoch_or_the_same_owner, struct mirror *mirror)
{
	assert_int_equal(mirror_takeover(mirror, &rival, "bank", BANK_EPOCH - 1, BANK_OWNER, NULL),
	                 -STATUS(STALE_EPOCH));
	assert_int_equal(mirror->why.promised_epoch, BANK_EPOCH);
	assert_int_equal(mirror_takeover(mirror, &rival, "bank", BANK_EPOCH, 2, NULL),
	                 -STATUS(STALE_EPOCH));
	assert_int_equal(holder.cuts, 0);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", BANK_EPOCH, BANK_OWNER, NULL), 0);
	assert_int_equal(holder.cuts, 1);
	assert_int_equal(mirror_takeover(mirror, &holder, "bank", BANK_EPOCH + 1, 2, NULL), 0);
	assert_int_equal(mirror_header(mirror, "bank")->promised_epoch, BANK_EPOCH + 1);
}

/* A live owner is there and takeover is not asked for. */
TEST(a_live_owner_is_not_fenced_without_takeover, struct mirror *mirror)
{
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, NULL), -STATUS(BUSY));
	assert_int_equal(mirror->why.promised_epoch, BANK_EPOCH);
	assert_int_equal(holder.cuts, 0);
	assert_non_null(holder.session.store);
	assert_int_equal(mirror_header(mirror, "bank")->promised_epoch, BANK_EPOCH);
	store_session_ended(&holder.session);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, NULL), 0);
}

static int claim_as_asked(struct mirror *mirror, const Perseas__ClaimRequest *request)
{
	Perseas__ClaimReply reply = PERSEAS__CLAIM_REPLY__INIT;

	return store_claim(mirror->stores, &rival.session, request, &reply, &mirror->why);
}

/* The store was lost and another made under its name, while its owner could not reach it. */
TEST(a_claim_of_another_making_fences_nobody, struct mirror *mirror)
{
	Perseas__ClaimRequest request = PERSEAS__CLAIM_REQUEST__INIT;
	uint8_t other[PS_ID_SIZE] = { 0xee };

	request.store = (char *)"bank";
	request.epoch = BANK_EPOCH + 1;
	request.owner = (ProtobufCBinaryData){ PS_ID_SIZE, other };
	request.takeover = true;
	request.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, other };
	assert_int_equal(claim_as_asked(mirror, &request), -STATUS(NO_STORE));
	assert_int_equal(holder.cuts, 0);
	assert_int_equal(mirror_header(mirror, "bank")->promised_epoch, BANK_EPOCH);
}

struct order {
	struct mirror *mirror;
	unsigned fences;
	bool promised_before_fence;
	bool fenced_before_cut;
};

static void look_at_fence(void *arg)
{
	struct order *order = arg;
	const struct ps_promise *page = (void *)memory_heap_piece(order->mirror->memory, "bank",
	                                                          "promise.1", NULL);
	const char *why;
	uint64_t size;
	uint8_t *bytes = memory_heap_piece(order->mirror->memory, "bank", "header", &size);
	Perseas__Header *header = ps_header_unpack(bytes, size, &why);

	order->fences++;
	order->promised_before_fence = page->epoch == 9 && page->owner[0] == 2 &&
	                               header->promised_epoch == 9;
	perseas__header__free_unpacked(header, NULL);
}

static void look_at_cut(struct peer *peer)
{
	struct order *order = peer->arg;

	order->fenced_before_cut = order->fences == 1;
}

TEST(a_claim_that_means_another_daemon_or_image_is_refused, struct mirror *mirror)
{
	uint8_t daemon[PS_ID_SIZE], image[PS_ID_SIZE];
	Perseas__ClaimRequest request = PERSEAS__CLAIM_REQUEST__INIT;

	memcpy(daemon, stores_daemon_id(mirror->stores).data, PS_ID_SIZE);
	memcpy(image, mirror_header(mirror, "bank")->image_id.data, PS_ID_SIZE);
	request.store = (char *)(uintptr_t) "bank";
	request.epoch = 9;
	request.owner = OWNER(2);
	request.takeover = true;
	request.daemon = (ProtobufCBinaryData){ PS_ID_SIZE, daemon };
	request.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, image };
	daemon[0] ^= 1;
	assert_int_equal(claim_as_asked(mirror, &request), -STATUS(OTHER));
	daemon[0] ^= 1;
	image[15] ^= 1;
	assert_int_equal(claim_as_asked(mirror, &request), -STATUS(OTHER));
	assert_int_equal(mirror_header(mirror, "bank")->promised_epoch, BANK_EPOCH);
	assert_int_equal(holder.cuts, 0);
	image[15] ^= 1;
	assert_int_equal(claim_as_asked(mirror, &request), 0);
	assert_int_equal(holder.cuts, 1);
}

/* An owner is fenced. Its session must not be cut, nor the image be read, before the promise
 * is durable and can be seen. */
TEST(a_claim_promises_then_fences_then_cuts, struct mirror *mirror)
{
	struct order order = { .mirror = mirror };

	holder.on_cut = look_at_cut;
	holder.arg = &order;
	memory_heap_on_fence(order.mirror->memory, look_at_fence, &order);
	assert_int_equal(mirror_takeover(order.mirror, &rival, "bank", 9, 2, NULL), 0);
	assert_true(order.promised_before_fence);
	assert_true(order.fenced_before_cut);
	assert_int_equal(holder.cuts, 1);
}

/* The owner died between the data and the slot of its second transaction. */
TEST(a_claim_rolls_the_unfinished_transaction_back, struct mirror *mirror)
{
	struct writer writer;

	writer_init(&writer, &holder.session);
	writer_write(&writer, 0, 0, "torn", 4, WRITE_RECORD | WRITE_DATA);
	store_session_ended(&holder.session);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, &granted), 0);
	assert_true(granted.undone);
	assert_false(granted.copied);
	assert_int_equal(granted.slot->seq, 1);
	assert_int_equal(granted.slot->epoch, BANK_EPOCH);
	assert_memory_equal(session_memory(&rival.session, 16, 0, 4, false), "made", 4);
}

/* A segment was made and never published; another was published with a seq that the slot has
 * not reached. */
TEST(a_claim_drops_segments_that_do_not_exist, struct mirror *mirror)
{
	assert_int_equal(peer_add(&holder, &mirror->why, 1, "never", 100), 0);
	assert_int_equal(peer_add(&holder, &mirror->why, 2, "later", 100), 0);
	assert_int_equal(peer_publish(&holder, &mirror->why, 2, 2), 0);
	store_session_ended(&holder.session);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, &granted), 0);
	assert_int_equal(granted.header->n_segments, 1);
	assert_string_equal(granted.header->segments[0]->name, "accounts");
	assert_int_equal(memory_heap_pieces(mirror->memory), bank_pieces);
	assert_null(session_memory(&rival.session, PS_REGION_SEGMENT + 1, 0, 1, false));
	assert_int_equal(granted.grant->n_regions, 3);
	assert_int_equal(granted.grant->regions[0]->id, PS_REGION_LOG);
	assert_int_equal(granted.grant->regions[1]->id, PS_REGION_PROMISE);
	assert_int_equal(granted.grant->regions[2]->id, PS_REGION_SEGMENT);
}

/* Neither commit slot passes its check. */
TEST(an_image_without_a_slot_is_refused_as_damaged, struct mirror *mirror)
{
	memset(session_memory(&holder.session, PS_REGION_LOG, 0, PS_RING_OFFSET, true), 0xff,
	       PS_RING_OFFSET);
	store_session_ended(&holder.session);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, NULL), -STATUS(DAMAGED));
	assert_null(rival.session.store);
}

/* A peer names regions and offsets as it likes. */
TEST(the_data_path_reaches_nothing_outside_the_regions)
{
	struct session *session = &holder.session;

	assert_non_null(session_memory(session, 16, BANK_SIZE - 1, 1, true));
	assert_null(session_memory(session, 16, BANK_SIZE, 1, true));
	assert_null(session_memory(session, 16, BANK_SIZE - 1, 2, true));
	assert_null(session_memory(session, 16, UINT64_MAX, 1, true));
	assert_null(session_memory(session, 16, 1, UINT64_MAX, true));
	assert_null(session_memory(session, 17, 0, 1, true));
	assert_null(session_memory(session, 2, 0, 1, true));
	assert_null(session_memory(session, PS_REGIONS_MAX, 0, 1, true));
	assert_null(session_memory(session, UINT32_MAX, 0, 1, true));
	assert_null(session_memory(session, PS_REGION_PROMISE, 0, 8, true));
	assert_non_null(session_memory(session, PS_REGION_PROMISE, 0, 8, false));
}

/* Sessions end by a later claim, by release, and by their connection's end. */
TEST(a_token_opens_only_the_session_that_is_there, struct mirror *mirror)
{
	uint8_t old[PS_ID_SIZE], zero[PS_ID_SIZE] = { 0 };

	memcpy(old, holder.session.token, PS_ID_SIZE);
	assert_ptr_equal(stores_find_session(mirror->stores, old), &holder.session);
	assert_int_equal(mirror_takeover(mirror, &rival, "bank", 9, 2, NULL), 0);
	assert_null(stores_find_session(mirror->stores, old));
	assert_null(session_memory(&holder.session, 16, 0, 1, true));
	memcpy(old, rival.session.token, PS_ID_SIZE);
	assert_int_equal(release(mirror, &rival), 0);
	assert_null(stores_find_session(mirror->stores, old));
	assert_null(stores_find_session(mirror->stores, zero));
	assert_int_equal(mirror_claim(mirror, &holder, "bank", 10, 3, NULL), 0);
	memcpy(old, holder.session.token, PS_ID_SIZE);
	store_session_ended(&holder.session);
	assert_null(stores_find_session(mirror->stores, old));
	assert_null(stores_find_session(mirror->stores, zero));
}

/* Makes an owner's requests over a connection without a claim. */
TEST(without_a_claim_nothing_is_changed, struct mirror *mirror)
{
	const Perseas__ConfirmRequest said = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__ConfirmReply confirm = PERSEAS__CONFIRM_REPLY__INIT;
	Perseas__FinishReply finish = PERSEAS__FINISH_REPLY__INIT;

	assert_int_equal(store_confirm(&rival.session, &said, &confirm, &mirror->why),
	                 -STATUS(NO_SESSION));
	assert_int_equal(peer_add(&rival, &mirror->why, 1, "x", 1), -STATUS(NO_SESSION));
	assert_int_equal(peer_publish(&rival, &mirror->why, 0, 1), -STATUS(NO_SESSION));
	assert_int_equal(store_finish(&rival.session, &finish, &mirror->why), -STATUS(NO_SESSION));
	assert_int_equal(release(mirror, &rival), -STATUS(NO_SESSION));
	assert_int_equal(store_confirm(&holder.session, &said, &confirm, &mirror->why), 0);
	assert_int_equal(confirm.slot->seq, 1);
}

/* One connection claims two stores. */
TEST(a_connection_holds_one_store, struct mirror *mirror)
{
	assert_int_equal(mirror_create(mirror, "other", 2), 0);
	assert_int_equal(mirror_settle(mirror, "other", 2), 0);
	assert_int_equal(mirror_claim(mirror, &holder, "other", 5, 1, NULL), -STATUS(BAD_REQUEST));
	assert_string_equal(session_store(&holder.session), "bank");
}

/* Memory is asked for over a connection that cannot carry descriptors. */
TEST_WITH(memory_is_shared_over_local_connections_only, setup, teardown, struct mirror *mirror)
{
	struct peer peer;

	assert_int_equal(mirror_create(mirror, "bank", 1), 0);
	assert_int_equal(mirror_settle(mirror, "bank", 1), 0);
	peer_init(&peer);
	peer.session.local = false;
	assert_int_equal(mirror_share(mirror, &peer, "bank", 5, 1, NULL), -STATUS(BAD_REQUEST));
	assert_int_equal(mirror_header(mirror, "bank")->promised_epoch, 0);
}

/* The header cannot be written, at each point of a claim in turn. Whatever is refused, the
 * image that the files say is there must be one that the next claim takes. */
TEST_WITH(a_claim_that_fails_leaves_a_sound_image, setup_shared_bank, teardown,
          struct mirror *mirror)
{
	unsigned failed = 0;
	int ret = -1;

	for (unsigned skip = 0; ret != 0; skip++) {
		assert_in_range(skip, 0, 20);
		memory_heap_fail(mirror->memory, skip, 1);
		ret = mirror_share(mirror, &rival, "bank", 10 + skip, 2, NULL);
		memory_heap_fail(mirror->memory, 0, 0);
		failed += ret != 0;
		assert_int_equal(rival.session.store != NULL, ret == 0);
		mirror_restart(mirror);
		assert_int_equal(mirror->complaints, 0);
		assert_non_null(mirror_header(mirror, "bank"));
	}
	/* the promise, three pieces of the copy, the image's header */
	assert_int_equal(failed, 5);
	peer_init(&rival);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 99, 2, NULL), 0);
	assert_memory_equal(session_memory(&rival.session, 16, 0, 4, false), "made", 4);
}

/* A daemon that stops and starts is given back what it promised. */
TEST(promises_outlive_the_daemon, struct mirror *mirror)
{
	mirror_restart(mirror);
	assert_int_equal(mirror->complaints, 0);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", BANK_EPOCH, 2, NULL),
	                 -STATUS(STALE_EPOCH));
	assert_int_equal(mirror_claim(mirror, &rival, "bank", BANK_EPOCH, BANK_OWNER, NULL), 0);
	assert_int_equal(promise_page(&rival).epoch, BANK_EPOCH);
	assert_memory_equal(session_memory(&rival.session, 16, 0, 4, false), "made", 4);
}
