/*
 * test_check.c - each field of a message that is out of its range is refused, with a
 * sentence that says so, and its last good value is not.
 */
#include "../../proto/base/expiry.h"
#include "../../proto/control/key.h"
#include "check_rig.h"

/* The ids say which store, daemon and image are meant; each is named whole, or not at all. */
TEST(claims_out_of_range_are_refused)
{
	Perseas__ClaimRequest claim = MESSAGE_OF(ClaimRequest, claim_request, .store = message_bank,
	                                         .epoch = 1, .owner = message_id(1));
	Perseas__Request request = message_request(&claim);

	assert_accepted(request);
	assert_refused_with(request, claim.epoch, 0);
	assert_refused_with(request, claim.owner, message_id(NO_ID));
	assert_refused_with(request, claim.owner.len, 15);
	assert_refused_with(request, claim.store, message_address[2]);
	claim.store_id = claim.daemon = claim.image_id = message_id(0);
	assert_accepted(request);
	assert_refused_with(request, claim.store_id, message_id(NO_ID));
	assert_refused_with(request, claim.store_id.len, 8);
	assert_refused_with(request, claim.daemon.len, 8);
	assert_refused_with(request, claim.image_id.len, 8);
}

TEST(an_images_new_id_is_whole_or_left_out)
{
	Perseas__JoiningRequest joining = MESSAGE_OF(JoiningRequest, joining_request);
	Perseas__Request request = message_request(&joining);

	assert_accepted(request);
	joining.image_id = message_id(1);
	assert_accepted(request);
	assert_refused_with(request, joining.image_id, message_id(NO_ID));
	assert_refused_with(request, joining.image_id.len, 8);
}

/* Settle and abandon name the making of the store that they are for. */
TEST(requests_for_no_store_are_refused)
{
	Perseas__SettleRequest settle = MESSAGE_OF(SettleRequest, settle_request,
	                                           .store = message_bank);
	Perseas__AbandonRequest abandon = MESSAGE_OF(AbandonRequest, abandon_request,
	                                             .store = message_bank);
	Perseas__Request settles = message_request(&settle), abandons = message_request(&abandon);

	assert_refused(settles);
	assert_refused(abandons);
	settle.store_id = abandon.store_id = message_id(1);
	assert_accepted(settles);
	assert_accepted(abandons);
	assert_refused_with(settles, settle.store, message_address[0]);
	assert_refused_with(abandons, abandon.store, message_address[0]);
}

/* Rosters after the first come from owners alone: a client with the right to create could have a
 * roster of its own pass for the newest. */
TEST(creates_out_of_range_are_refused)
{
	struct message_header *h = message_header_new();
	Perseas__CreateRequest create = MESSAGE_OF(CreateRequest, create_request,
	                                           .store = message_bank, .store_id = message_id(3),
	                                           .image_id = message_id(0),
	                                           .log_size = PS_LOG_MIN, .roster = &h->roster);
	Perseas__Request request = message_request(&create);

	assert_accepted(request);
	assert_refused_with(request, create.log_size, PS_LOG_MIN + 1, 0, PS_LOG_MAX + PS_PAGE);
	assert_accepted_with(request, create.log_size, PS_LOG_MAX);
	assert_refused_with(request, create.image_id, message_id(NO_ID));
	assert_refused_with(request, create.store_id.len, 0);
	assert_refused_with(request, create.roster, NULL);
	assert_refused_with(request, h->roster.version, 0, 2);
	assert_refused_with(request, h->roster.epoch, 1);
	free(h);
}

/* Segments to add: too many, none, out of range, twice, or born already. */
TEST(segments_out_of_range_are_refused)
{
	struct message_header *h = message_header_new();
	Perseas__AddSegmentsRequest add = MESSAGE_OF(AddSegmentsRequest, add_segments_request,
	                                             .segments = h->segment_list, .n_segments = 2);
	Perseas__Request request = message_request(&add);
	Perseas__Segment *one = &h->segments[1];

	for (int i = 0; i < 129; i++)
		h->segments[i].born = 0;
	assert_accepted_with(request, add.n_segments, 2, 128);
	assert_refused_with(request, add.n_segments, 0, 129);
	assert_refused_with(request, one->born, 1);
	assert_refused_with(request, one->id, 0, PS_SEGMENTS_MAX);
	assert_refused_with(request, one->name, h->names[0], message_address[0]);
	assert_accepted_with(request, one->name, message_accounts);
	assert_refused_with(request, one->size, 0, PS_SEGMENT_MAX + 1);
	assert_accepted_with(request, one->size, PS_SEGMENT_MAX);
	assert_refused_with(request, one->address, 0, PS_PAGE + 1, -(uint64_t)PS_PAGE);
	assert_accepted_with(request, one->random_id, message_id(1));
	assert_refused_with(request, one->random_id, message_id(NO_ID),
	                    (ProtobufCBinaryData){ PS_ID_SIZE - 1, message_id(1).data });
	free(h);
}

TEST(a_token_out_of_range_is_refused)
{
	Perseas__LifelineRequest lifeline = PERSEAS__LIFELINE_REQUEST__INIT;
	Perseas__Request request = message_request(&lifeline);

	assert_refused(request);
	lifeline.token = message_id(1);
	assert_accepted(request);
	assert_refused_with(request, lifeline.token.len, PS_ID_SIZE - 1);
}

/* Ids to publish, to destroy, or to drop: at least one, at most 128, none twice, none too high. */
TEST(ids_out_of_range_are_refused)
{
	static uint32_t good[] = { 0, 127 }, twice[] = { 0, 0 }, high[] = { 0, 128 }, many[129];
	static const struct {
		const char *name;
		uint32_t *ids;
		size_t count;
		bool good;
	} lists[] = {
		{ "no ids", good, 0, false },         { "good ids", good, 2, true },
		{ "an id twice", twice, 2, false },   { "an id that is too high", high, 2, false },
		{ "too many ids", many, 129, false },
	};
	Perseas__PublishRequest publish = PERSEAS__PUBLISH_REQUEST__INIT;
	Perseas__DestroyRequest destroy = PERSEAS__DESTROY_REQUEST__INIT;
	Perseas__DropSegmentsRequest drop = PERSEAS__DROP_SEGMENTS_REQUEST__INIT;
	Perseas__Request publishes = message_request(&publish), drops = message_request(&drop);
	Perseas__Request destroys = message_request(&destroy);

	for (uint32_t i = 0; i < 129; i++)
		many[i] = i % 128;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		publish.seq = destroy.seq = 1;
		publish.ids = destroy.ids = drop.ids = lists[i].ids;
		publish.n_ids = destroy.n_ids = drop.n_ids = lists[i].count;
		assert_verdict(&publishes.base, lists[i].good, lists[i].name);
		assert_verdict(&destroys.base, lists[i].good, lists[i].name);
		assert_verdict(&drops.base, lists[i].good, lists[i].name);
		assert_refused_with(publishes, publish.seq, 0);
		assert_refused_with(destroys, destroy.seq, 0);
	}
}

TEST(digests_out_of_range_are_refused)
{
	Perseas__DigestRequest digest = MESSAGE_OF(DigestRequest, digest_request,
	                                           .store = message_bank, .length = 64 << 20,
	                                           .region = PS_REGION_SEGMENT + PS_SEGMENTS_MAX -
	                                                     1);
	Perseas__Request request = message_request(&digest);

	assert_accepted(request);
	assert_refused_with(request, digest.length, (64 << 20) + 1);
	digest.length = 10;
	assert_refused_with(request, digest.offset, UINT64_MAX - 9);
	assert_refused_with(request, digest.region, PS_REGION_SEGMENT + PS_SEGMENTS_MAX, 2);
	assert_refused_with(request, digest.store, message_address[1]);
}

TEST(digests_with_a_key_out_of_range_are_refused)
{
	static uint8_t key[17], digests[65 * 16];
	Perseas__DigestRequest digest = MESSAGE_OF(DigestRequest, digest_request,
	                                           .store = message_bank, .length = 4 << 20,
	                                           .region = PS_REGION_SEGMENT, .offset = 3 << 16,
	                                           .key = { 16, key });
	Perseas__DigestReply answer = MESSAGE_OF(DigestReply, digest_reply,
	                                         .digests = { 64 * 16, digests });
	Perseas__Request request = message_request(&digest);
	Perseas__Reply reply = message_reply(&answer);

	assert_accepted(request);
	assert_refused_with(request, digest.key.len, 15, 17);
	assert_refused_with(request, digest.length, 0, (4 << 20) + 1);
	assert_refused_with(request, digest.offset, 1, (3 << 16) - 1);
	assert_accepted(reply);
	assert_refused_with(reply, answer.digests.len, 15, 17, 65 * 16);
}

TEST(rosters_out_of_range_are_refused)
{
	struct message_header *h = message_header_new();
	Perseas__Member *third = &h->members[2];
	char address[257] = { 0 };

	assert_accepted(h->header);
	assert_refused_with(h->header, h->roster.acks, 0, 4);
	h->roster.acks = 3;
	assert_refused_with(h->header, third->image_id, message_id(0), message_id(NO_ID));
	memset(address, 'a', 255);
	third->address = address;
	assert_accepted(h->header);
	assert_refused_with(h->header, address[255], 'a');
	/* '\x9b' is no character: what shows it would have to alter it */
	assert_refused_with(h->header, address[10], '\n', '\x9b');
	assert_refused_with(h->header, address[0], 0);
	third->address = message_address[2];
	h->roster.acks = 1;
	assert_refused_with(h->header, h->roster.n_members, 0);
	assert_accepted_with(h->header, h->roster.n_members, 16);
	assert_refused_with(h->header, h->roster.n_members, 17);
	free(h);
}

TEST(headers_out_of_range_are_refused)
{
	struct message_header *h = message_header_new();
	const char *why;

	assert_false(ps_header_valid(NULL, &why));
	assert_true(why && *why);
	assert_refused_with(h->header, h->header.image_id, message_id(NO_ID));
	assert_refused_with(h->header, h->header.store_id.len, 8);
	assert_refused_with(h->header, h->header.store, message_control_character);
	assert_accepted_with(h->header, h->header.n_segments, 128);
	assert_refused_with(h->header, h->header.n_segments, 129);
	assert_refused_with(h->header, h->header.state, (Perseas__State)4, (Perseas__State)-1);
	h->header.state = PERSEAS__STATE__STATE_JOINING;
	assert_refused_with(h->header, h->header.promised_owner.len, 0);
	h->header.promised_epoch = 0;
	assert_accepted_with(h->header, h->header.promised_owner.len, 0);
	assert_refused_with(h->header, h->header.promised_owner.len, 3);
	h->header.promised_owner.len = 0;
	h->header.next_roster = &h->next;
	assert_accepted(h->header);
	assert_refused_with(h->header, h->next.acks, 4);
	free(h);
}

/* Only stores of level 1 can have the mark of a store that is being filled, and a roster of such a
 * store cannot lose it. */
TEST(the_mark_of_a_store_that_is_filled_never_changes)
{
	struct message_header *h = message_header_new();
	uint8_t key[PS_KEY_SIZE] = { 1 }, store_id[PS_ID_SIZE];

	assert_refused_with(h->header, h->roster.filling, true);
	ps_key_store_id(key, store_id);
	h->header.store_id.data = store_id;
	h->header.key = (ProtobufCBinaryData){ PS_KEY_SIZE, key };
	h->header.next_roster = &h->next;
	h->roster.level = h->next.level = 1;
	assert_accepted(h->header);
	assert_refused_with(h->header, h->roster.filling, true);
	assert_refused_with(h->header, h->next.filling, true);
	h->roster.filling = true;
	assert_accepted_with(h->header, h->next.filling, true);
	free(h);
}

/* Version 8 reads headers of level 0, and knows no random ids. */
TEST(a_header_of_level_0_has_no_random_ids)
{
	struct message_header *h = message_header_new();

	assert_refused_with(h->header, h->segments[1].random_id, message_id(1));
	h->header.n_segments = 1;
	assert_accepted_with(h->header, h->segments[1].random_id, message_id(1));
	free(h);
}

/* Checks a mirror's replies: status, text, and the body that belongs to OK. */
TEST(replies_out_of_range_are_refused)
{
	Perseas__CreateReply create = PERSEAS__CREATE_REPLY__INIT;
	Perseas__Reply reply = message_reply(&create);
	char text[800];

	assert_accepted(reply);
	reply.body_case = PERSEAS__REPLY__BODY__NOT_SET;
	assert_refused(reply);
	assert_accepted_with(reply, reply.status, PERSEAS__STATUS__STATUS_OTHER);
	assert_refused_with(reply, reply.status, (Perseas__Status)16);
	reply.status = PERSEAS__STATUS__STATUS_BUSY;
	reply.daemon = message_id(1);
	assert_accepted(reply);
	assert_refused_with(reply, reply.daemon.len, PS_ID_SIZE - 1);
	assert_refused_with(reply, reply.daemon, message_id(NO_ID));
	memset(text, 'a', sizeof text);
	text[769] = 0;
	reply.message = text;
	assert_refused(reply);
	text[768] = 0;
	assert_accepted(reply);
	memcpy(text, "\xc3\xa4", 2); /* not ASCII, but harmless */
	assert_accepted(reply);
	memcpy(text, "\xc2\x9b", 2); /* moves a terminal's cursor */
	assert_refused(reply);
	memcpy(text, "a\x1b", 2);
	assert_refused(reply);
}

/* The regions that a claim grants, and the descriptors that are said to come with them. */
TEST(grants_out_of_range_are_refused)
{
	Perseas__Region log = MESSAGE_OF(Region, region, .length = PS_RING_OFFSET + PS_LOG_MIN);
	Perseas__Region segment = MESSAGE_OF(Region, region, .length = 1000,
	                                     .id = PS_REGION_SEGMENT + 1);
	Perseas__Region *regions[2] = { &log, &segment };
	Perseas__Grant grant = MESSAGE_OF(Grant, grant, .token = message_id(1), .n_regions = 2,
	                                  .regions = regions);
	Perseas__Slot slot = MESSAGE_OF(Slot, slot, .next = 64);
	struct message_header *h = message_header_new();
	Perseas__ClaimReply claim = MESSAGE_OF(ClaimReply, claim_reply, .header = &h->header,
	                                       .slot = &slot, .grant = &grant);
	Perseas__Reply reply = message_reply(&claim);

	assert_accepted(reply);
	assert_refused_with(reply, grant.descriptors, 1);
	assert_accepted_with(reply, grant.descriptors, 2);
	assert_refused_with(reply, segment.id, PS_REGION_LOG, PS_REGIONS_MAX, 7);
	segment.id = PS_REGION_SEGMENT;
	assert_refused_with(reply, segment.length, 0, PS_SEGMENT_MAX + 1);
	segment.id = PS_REGION_PROMISE;
	assert_accepted_with(reply, segment.length, PS_PAGE);
	assert_refused_with(reply, segment.length, sizeof(struct ps_promise) - 1, PS_PAGE + 1);
	segment.length = PS_PAGE;
	assert_refused_with(reply, log.length, PS_RING_OFFSET);
	assert_refused_with(reply, grant.token, message_id(NO_ID));
	assert_refused_with(reply, slot.next, 0, 65);
	slot.last = 128;
	assert_refused_with(reply, slot.next, 128);
	slot.last = 0;
	assert_refused_with(reply, slot.index, 2);
	claim.slot = NULL;
	assert_refused(reply);
	h->header.state = PERSEAS__STATE__STATE_JOINING;
	assert_accepted(reply);
	assert_refused_with(reply, claim.grant, NULL);
	free(h);
}

/* Checks a grant's rdma part: the address, or the reason why there is none. */
TEST(a_grant_of_rdma_out_of_range_is_refused)
{
	Perseas__Grant grant = MESSAGE_OF(Grant, grant, .token = message_id(1));
	Perseas__AddSegmentsReply add = MESSAGE_OF(AddSegmentsReply, add_segments_reply,
	                                           .grant = &grant);
	Perseas__Reply reply = message_reply(&add);

	assert_accepted_with(reply, grant.rdma_port, 65535);
	assert_refused_with(reply, grant.rdma_port, 65536);
	assert_refused_with(reply, grant.rdma_trouble, message_control_character);
	assert_accepted_with(reply, grant.rdma_trouble, message_address[0]);
}

/* Checks the status of a store that does not exist, and texts that would move the cursor. */
TEST(a_status_out_of_range_is_refused)
{
	struct message_header *h = message_header_new();
	Perseas__StoreStatus status = MESSAGE_OF(StoreStatus, store_status, .header = &h->header);
	Perseas__StoreStatus *stores[1] = { &status };
	Perseas__StatusReply store = PERSEAS__STATUS_REPLY__INIT;
	Perseas__ListReply list = MESSAGE_OF(ListReply, list_reply, .n_stores = 1,
	                                     .stores = stores);
	Perseas__Reply status_reply = message_reply(&store), list_reply = message_reply(&list);

	assert_refused(status_reply);
	store.status = &status;
	assert_accepted(status_reply);
	assert_accepted(list_reply);
	assert_refused_with(status_reply, status.owner_address, message_control_character);
	assert_refused_with(list_reply, status.fabric, message_control_character);
	assert_refused_with(list_reply, status.files_missing, message_control_character);
	assert_refused_with(status_reply, status.owner_boot,
	                    (ProtobufCBinaryData){ 15, message_id(1).data });
	assert_refused_with(list_reply, status.host, message_control_character);
	assert_refused_with(status_reply, status.rack, message_control_character);
	assert_refused_with(status_reply, status.zone, message_control_character);
	assert_refused_with(list_reply, list.version, message_control_character);
	free(h);
}

/* Checks a daemon's expiry dates: a name that a terminal would obey or that is too long, an unknown
 * kind, and too many of them. */
TEST(what_expires_has_a_kind_and_a_printable_name)
{
	char name[PS_EXPIRY_NAME + 1] = "";
	Perseas__Expiry expiry = MESSAGE_OF(Expiry, expiry, .name = name);
	Perseas__Expiry *expiries[PS_EXPIRIES_MAX + 1];
	Perseas__ListReply list = MESSAGE_OF(ListReply, list_reply, .expiries = expiries,
	                                     .n_expiries = PS_EXPIRIES_MAX);
	Perseas__ConfirmReply confirm = MESSAGE_OF(ConfirmReply, confirm_reply,
	                                           .expiring = expiries, .n_expiring = 1);
	Perseas__Reply reply = message_reply(&list), confirmed = message_reply(&confirm);

	memset(name, 'x', PS_EXPIRY_NAME - 1);
	for (unsigned i = 0; i <= PS_EXPIRIES_MAX; i++)
		expiries[i] = &expiry;
	assert_accepted_with(reply, expiry.kind, PERSEAS__EXPIRY__KIND__CERTIFICATE,
	                     PERSEAS__EXPIRY__KIND__CRL);
	assert_refused_with(reply, expiry.kind, PERSEAS__EXPIRY__KIND__CRL + 1, -1);
	assert_refused_with(reply, expiry.name, message_control_character);
	assert_refused_with(reply, list.n_expiries, PS_EXPIRIES_MAX + 1);
	assert_accepted(confirmed);
	name[PS_EXPIRY_NAME - 1] = 'x';
	assert_refused(confirmed);
	assert_refused(reply);
}

/* Checks requests to move a store: which owner, to which standby, and for how long. */
TEST(moves_out_of_range_are_refused)
{
	uint8_t mark[5] = { 0 };
	Perseas__MoveRequest withdraw = MESSAGE_OF(MoveRequest, move_request, .withdraw = true,
	                                           .store = message_bank);
	Perseas__MoveRequest move = MESSAGE_OF(MoveRequest, move_request, .store = message_bank,
	                                       .id = message_id(1), .epoch = PS_EPOCH_MAX,
	                                       .name = message_bank, .within_ms = 86400000,
	                                       .to = { 4, mark });
	Perseas__Request withdraws = message_request(&withdraw), moves = message_request(&move);

	assert_refused(withdraws);
	assert_accepted_with(withdraws, withdraw.id, message_id(1));
	assert_accepted(moves);
	assert_refused_with(moves, move.to.len, 0, 5);
	assert_refused_with(moves, move.epoch, 0, PS_EPOCH_MAX + 1);
	assert_refused_with(moves, move.within_ms, 999, 86400001);
	assert_accepted_with(moves, move.within_ms, 1000);
	assert_refused_with(moves, move.name, message_control_character);
	assert_refused_with(moves, move.store, message_control_character);
}

/* Checks who watches and what it has seen. A watch of 0 ms lasts as long as the mirror likes. */
TEST(watches_out_of_range_are_refused)
{
	uint8_t mark[4] = { 0 };
	Perseas__Standby standby = MESSAGE_OF(Standby, standby, .name = message_bank);
	Perseas__WatchRequest watch = MESSAGE_OF(WatchRequest, watch_request,
	                                         .store = message_bank);
	Perseas__WatchReply told = PERSEAS__WATCH_REPLY__INIT;
	Perseas__Request request = message_request(&watch);
	Perseas__Reply reply = message_reply(&told);
	const ProtobufCBinaryData cut = { 15, message_id(1).data };

	assert_accepted_with(request, watch.handover, watch.handover, message_id(1));
	assert_accepted_with(reply, told.handover, message_id(1));
	assert_refused_with(request, watch.handover, cut);
	assert_refused_with(reply, told.handover, cut);
	assert_accepted_with(request, watch.within_ms, 1000, 30000);
	assert_refused_with(request, watch.within_ms, 999, 30001);
	watch.standby = &standby;
	assert_refused(request);
	standby.mark = (ProtobufCBinaryData){ 4, mark };
	assert_accepted_with(request, standby.order, 100);
	assert_refused_with(request, standby.order, 101);
	assert_refused_with(request, standby.name, message_control_character);
}

/* A standby's copy has at most what the store has, and that is bounded. */
TEST(a_copy_out_of_range_is_refused)
{
	const uint64_t most = PS_SEGMENTS_MAX * PS_SEGMENT_MAX;
	uint8_t mark[4] = { 0 };
	Perseas__Standby standby = MESSAGE_OF(Standby, standby, .name = message_bank,
	                                      .mark = { 4, mark });
	Perseas__WatchRequest watch = MESSAGE_OF(WatchRequest, watch_request, .store = message_bank,
	                                         .standby = &standby);
	Perseas__Request request = message_request(&watch);

	assert_accepted_with(request, standby.memory, most - 1, most);
	assert_refused_with(request, standby.memory, most + 1);
	assert_refused_with(request, standby.warm, 1);
	standby.warm = most;
	assert_accepted_with(request, standby.memory, most);
	assert_refused_with(request, standby.memory, most - 1);
}

/* A slot of it, like any other; and as many standbys as a mirror may tell. */
TEST(a_handover_out_of_range_is_refused)
{
	uint8_t mark[4] = { 0 };
	struct message_header *h = message_header_new();
	Perseas__Slot slot = PERSEAS__SLOT__INIT;
	Perseas__Standby standby = MESSAGE_OF(Standby, standby, .name = message_bank,
	                                      .mark = { 4, mark });
	Perseas__Standby *standbys[65];
	Perseas__Handover handover = PERSEAS__HANDOVER__INIT;
	Perseas__StoreStatus status = MESSAGE_OF(StoreStatus, store_status, .header = &h->header,
	                                         .handover = &handover, .standbys = standbys);
	Perseas__StatusReply store = MESSAGE_OF(StatusReply, status_reply, .status = &status);
	Perseas__ConfirmReply confirm = MESSAGE_OF(ConfirmReply, confirm_reply,
	                                           .handover = &handover);
	Perseas__Reply confirmed = message_reply(&confirm), told = message_reply(&store);

	assert_refused(confirmed);
	handover = MESSAGE_OF(Handover, handover, .id = message_id(1), .epoch = 1,
	                      .name = message_bank, .to = { 4, mark });
	assert_accepted(confirmed);
	assert_accepted(told);
	handover.first = &slot;
	assert_refused_with(confirmed, slot.index, 2);
	assert_refused_with(told, slot.index, 2);
	for (unsigned i = 0; i < 65; i++)
		standbys[i] = &standby;
	assert_accepted_with(told, status.n_standbys, 64);
	assert_refused_with(told, status.n_standbys, 65);
	free(h);
}
