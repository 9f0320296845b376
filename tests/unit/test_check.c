/*
 * test_check.c - each field of a message that is out of its range is refused, with a
 * sentence that says so, and its last good value is not.
 */
#include "check_rig.h"

static bool header_accepted(const Perseas__Header *header)
{
	const char *why;
	bool valid = ps_header_valid(header, &why);

	assert_true(valid ? !why : why && *why);
	return valid;
}

TEST(claims_out_of_range_are_refused)
{
	Perseas__ClaimRequest claim = PERSEAS__CLAIM_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(claim, CLAIM, &claim);

	claim.store = message_bank;
	claim.epoch = 1;
	claim.owner = message_id(1);
	assert_true(accepted(&request));
	claim.epoch = 0;
	assert_false(accepted(&request));
	claim.epoch = 1;
	claim.owner = message_id(NO_ID);
	assert_false(accepted(&request));
	claim.owner = (ProtobufCBinaryData){ 15, claim.owner.data };
	assert_false(accepted(&request));
	claim.owner = message_id(1);
	claim.store = message_address[2];
	assert_false(accepted(&request));
}

/* Settle and abandon name the making of the store that they are for. */
TEST(requests_for_no_store_are_refused)
{
	Perseas__SettleRequest settle = PERSEAS__SETTLE_REQUEST__INIT;
	Perseas__AbandonRequest abandon = PERSEAS__ABANDON_REQUEST__INIT;
	Perseas__Request settles = MESSAGE_REQUEST(settle, SETTLE, &settle);
	Perseas__Request abandons = MESSAGE_REQUEST(abandon, ABANDON, &abandon);

	settle.store = abandon.store = message_bank;
	assert_false(accepted(&settles));
	assert_false(accepted(&abandons));
	settle.store_id = abandon.store_id = message_id(1);
	assert_true(accepted(&settles));
	assert_true(accepted(&abandons));
	settle.store = abandon.store = message_address[0];
	assert_false(accepted(&settles));
	assert_false(accepted(&abandons));
}

TEST(creates_out_of_range_are_refused)
{
	Perseas__CreateRequest create = PERSEAS__CREATE_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(create, CREATE, &create);
	struct message_header *h = message_header_new();

	create.store = message_bank;
	create.store_id = message_id(3);
	create.image_id = message_id(0);
	create.log_size = PS_LOG_MIN;
	create.roster = &h->roster;
	assert_true(accepted(&request));
	create.log_size = PS_LOG_MIN + 1;
	assert_false(accepted(&request));
	create.log_size = 0;
	assert_false(accepted(&request));
	create.log_size = PS_LOG_MAX + PS_PAGE;
	assert_false(accepted(&request));
	create.log_size = PS_LOG_MAX;
	assert_true(accepted(&request));
	create.image_id = message_id(NO_ID);
	assert_false(accepted(&request));
	create.image_id = message_id(0);
	create.store_id.len = 0;
	assert_false(accepted(&request));
	create.store_id.len = PS_ID_SIZE;
	create.roster = NULL;
	assert_false(accepted(&request));
	free(h);
}

/* Segments to add: too many, none, out of range, twice, or born already. */
TEST(segments_out_of_range_are_refused)
{
	Perseas__AddSegmentsRequest add = PERSEAS__ADD_SEGMENTS_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(add_segments, ADD_SEGMENTS, &add);
	struct message_header *h = message_header_new();
	Perseas__Segment *one = &h->segments[1];

	for (int i = 0; i < 129; i++)
		h->segments[i].born = 0;
	add.segments = h->segment_list;
	assert_false(accepted(&request));
	add.n_segments = 128;
	assert_true(accepted(&request));
	add.n_segments = 129;
	assert_false(accepted(&request));
	add.n_segments = 2;
	assert_true(accepted(&request));
	one->born = 1;
	assert_false(accepted(&request));
	one->born = 0;
	one->id = 0;
	assert_false(accepted(&request));
	one->id = PS_SEGMENTS_MAX;
	assert_false(accepted(&request));
	one->id = 1;
	one->name = h->names[0];
	assert_false(accepted(&request));
	one->name = message_address[0];
	assert_false(accepted(&request));
	one->name = message_accounts;
	one->size = 0;
	assert_false(accepted(&request));
	one->size = PS_SEGMENT_MAX + 1;
	assert_false(accepted(&request));
	one->size = PS_SEGMENT_MAX;
	assert_true(accepted(&request));
	one->address = 0;
	assert_false(accepted(&request));
	one->address = PS_PAGE + 1;
	assert_false(accepted(&request));
	one->address = -(uint64_t)PS_PAGE;
	assert_false(accepted(&request));
	free(h);
}

TEST(a_token_out_of_range_is_refused)
{
	Perseas__LifelineRequest lifeline = PERSEAS__LIFELINE_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(lifeline, LIFELINE, &lifeline);

	assert_false(accepted(&request));
	lifeline.token = message_id(1);
	assert_true(accepted(&request));
	lifeline.token.len--;
	assert_false(accepted(&request));
}

/* Ids to publish, to destroy, or to drop. */
TEST(ids_out_of_range_are_refused)
{
	Perseas__PublishRequest publish = PERSEAS__PUBLISH_REQUEST__INIT;
	Perseas__DestroyRequest destroy = PERSEAS__DESTROY_REQUEST__INIT;
	Perseas__DropSegmentsRequest drop = PERSEAS__DROP_SEGMENTS_REQUEST__INIT;
	Perseas__Request publishes = MESSAGE_REQUEST(publish, PUBLISH, &publish);
	Perseas__Request destroys = MESSAGE_REQUEST(destroy, DESTROY, &destroy);
	Perseas__Request drops = MESSAGE_REQUEST(drop_segments, DROP_SEGMENTS, &drop);
	uint32_t list[129] = { 0, 127 };

	publish.seq = destroy.seq = 1;
	publish.ids = destroy.ids = drop.ids = list;
	assert_false(accepted(&publishes));
	assert_false(accepted(&destroys));
	assert_false(accepted(&drops));
	publish.n_ids = destroy.n_ids = drop.n_ids = 2;
	assert_true(accepted(&publishes));
	assert_true(accepted(&destroys));
	assert_true(accepted(&drops));
	publish.seq = destroy.seq = 0;
	assert_false(accepted(&publishes));
	assert_false(accepted(&destroys));
	publish.seq = destroy.seq = 1;
	list[1] = 0;
	assert_false(accepted(&publishes));
	assert_false(accepted(&destroys));
	assert_false(accepted(&drops));
	list[1] = 128;
	assert_false(accepted(&publishes));
	assert_false(accepted(&destroys));
	assert_false(accepted(&drops));
	for (uint32_t i = 0; i < 129; i++)
		list[i] = i % 128;
	publish.n_ids = destroy.n_ids = drop.n_ids = 129;
	assert_false(accepted(&publishes));
	assert_false(accepted(&destroys));
	assert_false(accepted(&drops));
}

TEST(digests_out_of_range_are_refused)
{
	Perseas__DigestRequest digest = PERSEAS__DIGEST_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(digest, DIGEST, &digest);

	digest.store = message_bank;
	digest.region = PS_REGION_SEGMENT + PS_SEGMENTS_MAX - 1;
	digest.length = 64 << 20;
	assert_true(accepted(&request));
	digest.length++;
	assert_false(accepted(&request));
	digest.length = 10;
	digest.offset = UINT64_MAX - 9;
	assert_false(accepted(&request));
	digest.offset = 0;
	digest.region++;
	assert_false(accepted(&request));
	digest.region = 2;
	assert_false(accepted(&request));
	digest.region = PS_REGION_LOG;
	digest.store = message_address[1];
	assert_false(accepted(&request));
}

TEST(rosters_out_of_range_are_refused)
{
	struct message_header *h = message_header_new();
	char address[257];

	assert_true(header_accepted(&h->header));
	h->roster.acks = 0;
	assert_false(header_accepted(&h->header));
	h->roster.acks = 4;
	assert_false(header_accepted(&h->header));
	h->roster.acks = 3;
	h->members[2].image_id = message_id(0);
	assert_false(header_accepted(&h->header));
	h->members[2].image_id = message_id(NO_ID);
	assert_false(header_accepted(&h->header));
	h->members[2].image_id = message_id(2);
	memset(address, 'a', sizeof address);
	address[256] = 0;
	h->members[2].address = address;
	assert_false(header_accepted(&h->header));
	address[255] = 0;
	assert_true(header_accepted(&h->header));
	address[10] = '\n';
	assert_false(header_accepted(&h->header));
	address[10] = '\x9b'; /* no character: what shows it would have to alter it */
	assert_false(header_accepted(&h->header));
	address[0] = 0;
	assert_false(header_accepted(&h->header));
	h->roster.acks = 1;
	h->roster.n_members = 0;
	assert_false(header_accepted(&h->header));
	h->members[2].address = message_address[2];
	h->roster.n_members = 16;
	assert_true(header_accepted(&h->header));
	h->roster.n_members = 17;
	assert_false(header_accepted(&h->header));
	free(h);
}

TEST(headers_out_of_range_are_refused)
{
	struct message_header *h = message_header_new();

	assert_false(header_accepted(NULL));
	h->header.image_id = message_id(NO_ID);
	assert_false(header_accepted(&h->header));
	h->header.image_id = message_id(0);
	h->header.parent_id = message_id(0);
	assert_false(header_accepted(&h->header));
	h->header.parent_id = message_id(5);
	assert_true(header_accepted(&h->header));
	h->header.store_id.len = 8;
	assert_false(header_accepted(&h->header));
	h->header.store_id = message_id(3);
	h->header.store = message_control_character;
	assert_false(header_accepted(&h->header));
	h->header.store = message_bank;
	h->header.n_segments = 128;
	assert_true(header_accepted(&h->header));
	h->header.n_segments = 129;
	assert_false(header_accepted(&h->header));
	h->header.n_segments = 2;
	h->header.state = (Perseas__State)4;
	assert_false(header_accepted(&h->header));
	h->header.state = (Perseas__State)-1;
	assert_false(header_accepted(&h->header));
	h->header.state = PERSEAS__STATE__STATE_JOINING;
	h->header.promised_owner.len = 0;
	assert_false(header_accepted(&h->header));
	h->header.promised_epoch = 0;
	assert_true(header_accepted(&h->header));
	h->header.promised_owner.len = 3;
	assert_false(header_accepted(&h->header));
	h->header.promised_owner.len = 0;
	h->header.next_roster = &h->next;
	assert_true(header_accepted(&h->header));
	h->next.acks = 4;
	assert_false(header_accepted(&h->header));
	free(h);
}

/* What a mirror says of itself: status, text, and the body that goes with OK. */
TEST(replies_out_of_range_are_refused)
{
	Perseas__CreateReply create = PERSEAS__CREATE_REPLY__INIT;
	Perseas__Reply reply = MESSAGE_REPLY(create, CREATE, &create);
	char text[800];

	assert_true(reply_accepted(&reply));
	reply.body_case = PERSEAS__REPLY__BODY__NOT_SET;
	assert_false(reply_accepted(&reply));
	reply.status = PERSEAS__STATUS__STATUS_NO_RDMA;
	assert_true(reply_accepted(&reply));
	reply.status = (Perseas__Status)15;
	assert_false(reply_accepted(&reply));
	reply.status = PERSEAS__STATUS__STATUS_BUSY;
	memset(text, 'a', sizeof text);
	text[769] = 0;
	reply.message = text;
	assert_false(reply_accepted(&reply));
	text[768] = 0;
	assert_true(reply_accepted(&reply));
	memcpy(text, "\xc3\xa4", 2); /* not ASCII, but harmless */
	assert_true(reply_accepted(&reply));
	memcpy(text, "\xc2\x9b", 2); /* moves a terminal's cursor */
	assert_false(reply_accepted(&reply));
	memcpy(text, "a\x1b", 2);
	assert_false(reply_accepted(&reply));
}

/* The regions that a claim grants, and the descriptors that are said to come with them. */
TEST(grants_out_of_range_are_refused)
{
	Perseas__ClaimReply claim = PERSEAS__CLAIM_REPLY__INIT;
	Perseas__Reply reply = MESSAGE_REPLY(claim, CLAIM, &claim);
	Perseas__Slot slot = PERSEAS__SLOT__INIT;
	Perseas__Grant grant = PERSEAS__GRANT__INIT;
	Perseas__Region log = PERSEAS__REGION__INIT, segment = PERSEAS__REGION__INIT;
	Perseas__Region *regions[2] = { &log, &segment };
	struct message_header *h = message_header_new();

	claim.header = &h->header;
	claim.slot = &slot;
	slot.next = 64;
	claim.grant = &grant;
	grant.token = message_id(1);
	grant.n_regions = 2;
	grant.regions = regions;
	log.length = PS_RING_OFFSET + (1 << 20);
	segment.id = PS_REGION_SEGMENT + 1;
	segment.length = 1000;
	assert_true(reply_accepted(&reply));
	grant.descriptors = 1;
	assert_false(reply_accepted(&reply));
	grant.descriptors = 2;
	assert_true(reply_accepted(&reply));
	segment.id = PS_REGION_LOG;
	assert_false(reply_accepted(&reply));
	segment.id = PS_REGIONS_MAX;
	assert_false(reply_accepted(&reply));
	segment.id = 7;
	assert_false(reply_accepted(&reply));
	segment.id = PS_REGION_SEGMENT;
	segment.length = 0;
	assert_false(reply_accepted(&reply));
	segment.length = PS_SEGMENT_MAX + 1;
	assert_false(reply_accepted(&reply));
	segment.id = PS_REGION_PROMISE;
	segment.length = sizeof(struct ps_promise) - 1;
	assert_false(reply_accepted(&reply));
	segment.length = PS_PAGE + 1;
	assert_false(reply_accepted(&reply));
	segment.length = PS_PAGE;
	assert_true(reply_accepted(&reply));
	log.length = PS_RING_OFFSET;
	assert_false(reply_accepted(&reply));
	log.length = PS_RING_OFFSET + PS_LOG_MIN;
	grant.token = message_id(NO_ID);
	assert_false(reply_accepted(&reply));
	grant.token = message_id(1);
	slot.next = 65;
	assert_false(reply_accepted(&reply));
	slot.next = slot.last = 128;
	assert_false(reply_accepted(&reply));
	slot.next = slot.last = 0;
	assert_false(reply_accepted(&reply));
	slot.next = 64;
	slot.index = 2;
	assert_false(reply_accepted(&reply));
	claim.slot = NULL;
	assert_false(reply_accepted(&reply));
	h->header.state = PERSEAS__STATE__STATE_JOINING;
	assert_true(reply_accepted(&reply));
	claim.grant = NULL;
	assert_false(reply_accepted(&reply));
	free(h);
}

/* Where rdma is to be had, or why it is not. */
TEST(a_grant_of_rdma_out_of_range_is_refused)
{
	Perseas__AddSegmentsReply add = PERSEAS__ADD_SEGMENTS_REPLY__INIT;
	Perseas__Reply reply = MESSAGE_REPLY(add_segments, ADD_SEGMENTS, &add);
	Perseas__Grant grant = PERSEAS__GRANT__INIT;

	add.grant = &grant;
	grant.token = message_id(1);
	grant.rdma_port = 65535;
	assert_true(reply_accepted(&reply));
	grant.rdma_port = 65536;
	assert_false(reply_accepted(&reply));
	grant.rdma_port = 0;
	grant.rdma_trouble = message_control_character;
	assert_false(reply_accepted(&reply));
	grant.rdma_trouble = message_address[0];
	assert_true(reply_accepted(&reply));
}

/* What a mirror tells of a store that is not there, or in words that move the cursor. */
TEST(a_status_out_of_range_is_refused)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT, *stores[1] = { &status };
	Perseas__StatusReply store = PERSEAS__STATUS_REPLY__INIT;
	Perseas__ListReply list = PERSEAS__LIST_REPLY__INIT;
	Perseas__Reply status_reply = MESSAGE_REPLY(store, STORE, &store);
	Perseas__Reply list_reply = MESSAGE_REPLY(list, LIST, &list);
	struct message_header *h = message_header_new();

	assert_false(reply_accepted(&status_reply));
	store.status = &status;
	status.header = &h->header;
	list.stores = stores;
	list.n_stores = 1;
	assert_true(reply_accepted(&status_reply));
	assert_true(reply_accepted(&list_reply));
	status.owner_address = message_control_character;
	assert_false(reply_accepted(&status_reply));
	status.owner_address = message_address[0];
	status.fabric = message_control_character;
	assert_false(reply_accepted(&list_reply));
	status.fabric = message_address[0];
	list.version = message_control_character;
	assert_false(reply_accepted(&list_reply));
	free(h);
}

/* Who is asked to hand a store over, to whom, and for how long. */
TEST(moves_out_of_range_are_refused)
{
	Perseas__MoveRequest move = PERSEAS__MOVE_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(move, MOVE, &move);
	uint8_t mark[5] = { 0 };

	move.store = message_bank;
	move.withdraw = true;
	assert_false(accepted(&request));
	move.id = message_id(1);
	assert_true(accepted(&request));
	move.withdraw = false;
	move.epoch = 1;
	move.name = message_bank;
	move.within_ms = 1000;
	assert_false(accepted(&request));
	move.to = (ProtobufCBinaryData){ 4, mark };
	assert_true(accepted(&request));
	move.to.len = 5;
	assert_false(accepted(&request));
	move.to.len = 4;
	move.epoch = 0;
	assert_false(accepted(&request));
	move.epoch = (uint64_t)1 << 63;
	assert_false(accepted(&request));
	move.epoch--;
	move.within_ms = 999;
	assert_false(accepted(&request));
	move.within_ms = 86400001;
	assert_false(accepted(&request));
	move.within_ms--;
	assert_true(accepted(&request));
	move.name = message_control_character;
	assert_false(accepted(&request));
	move.name = message_bank;
	move.store = message_control_character;
	assert_false(accepted(&request));
}

/* Who waits, and what it has seen. */
TEST(watches_out_of_range_are_refused)
{
	Perseas__WatchRequest watch = PERSEAS__WATCH_REQUEST__INIT;
	Perseas__WatchReply told = PERSEAS__WATCH_REPLY__INIT;
	Perseas__Standby standby = PERSEAS__STANDBY__INIT;
	Perseas__Request request = MESSAGE_REQUEST(watch, WATCH, &watch);
	Perseas__Reply reply = MESSAGE_REPLY(watch, WATCH, &told);
	uint8_t mark[4] = { 0 };

	watch.store = message_bank;
	assert_true(accepted(&request));
	watch.handover = told.handover = message_id(1);
	assert_true(accepted(&request));
	assert_true(reply_accepted(&reply));
	watch.handover.len = told.handover.len = 15;
	assert_false(accepted(&request));
	assert_false(reply_accepted(&reply));
	watch.handover.len = 0;
	watch.standby = &standby;
	standby.name = message_bank;
	assert_false(accepted(&request));
	standby.mark = (ProtobufCBinaryData){ 4, mark };
	standby.order = 100;
	assert_true(accepted(&request));
	standby.order = 101;
	assert_false(accepted(&request));
	standby.order = 0;
	standby.name = message_control_character;
	assert_false(accepted(&request));
}

/* A slot of it, like any other; and as many standbys as a mirror may tell. */
TEST(a_handover_out_of_range_is_refused)
{
	Perseas__ConfirmReply confirm = PERSEAS__CONFIRM_REPLY__INIT;
	Perseas__Handover handover = PERSEAS__HANDOVER__INIT;
	Perseas__Slot slot = PERSEAS__SLOT__INIT;
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	Perseas__StatusReply store = PERSEAS__STATUS_REPLY__INIT;
	Perseas__Standby standby = PERSEAS__STANDBY__INIT, *standbys[65];
	Perseas__Reply confirmed = MESSAGE_REPLY(confirm, CONFIRM, &confirm);
	Perseas__Reply told = MESSAGE_REPLY(store, STORE, &store);
	struct message_header *h = message_header_new();
	uint8_t mark[4] = { 0 };

	store.status = &status;
	status.header = &h->header;
	status.handover = confirm.handover = &handover;
	assert_false(reply_accepted(&confirmed));
	handover.id = message_id(1);
	handover.epoch = 1;
	handover.name = message_bank;
	handover.to = (ProtobufCBinaryData){ 4, mark };
	assert_true(reply_accepted(&confirmed));
	assert_true(reply_accepted(&told));
	handover.first = &slot;
	slot.index = 2;
	assert_false(reply_accepted(&confirmed));
	assert_false(reply_accepted(&told));
	slot.index = 1;
	standby.name = message_bank;
	standby.mark = handover.to;
	for (unsigned i = 0; i < 65; i++)
		standbys[i] = &standby;
	status.standbys = standbys;
	status.n_standbys = 64;
	assert_true(reply_accepted(&told));
	status.n_standbys = 65;
	assert_false(reply_accepted(&told));
	free(h);
}
