/*
 * test_check.c - each field of a message that is out of its range is refused, with a
 * sentence that says so, and its last good value is not.
 */
#include "../../proto/base/expiry.h"
#include "check_rig.h"

TEST(claims_out_of_range_are_refused)
{
	Perseas__ClaimRequest claim = PERSEAS__CLAIM_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(claim, CLAIM, &claim);

	claim.store = message_bank;
	claim.epoch = 1;
	claim.owner = message_id(1);
	assert_accepted(request);
	assert_refused_with(request, claim.epoch, 0);
	assert_refused_with(request, claim.owner, message_id(NO_ID));
	assert_refused_with(request, claim.owner.len, 15);
	assert_refused_with(request, claim.store, message_address[2]);
}

/* Settle and abandon name the making of the store that they are for. */
TEST(requests_for_no_store_are_refused)
{
	Perseas__SettleRequest settle = PERSEAS__SETTLE_REQUEST__INIT;
	Perseas__AbandonRequest abandon = PERSEAS__ABANDON_REQUEST__INIT;
	Perseas__Request settles = MESSAGE_REQUEST(settle, SETTLE, &settle);
	Perseas__Request abandons = MESSAGE_REQUEST(abandon, ABANDON, &abandon);

	settle.store = abandon.store = message_bank;
	assert_refused(settles);
	assert_refused(abandons);
	settle.store_id = abandon.store_id = message_id(1);
	assert_accepted(settles);
	assert_accepted(abandons);
	assert_refused_with(settles, settle.store, message_address[0]);
	assert_refused_with(abandons, abandon.store, message_address[0]);
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
	assert_accepted(request);
	assert_refused_with(request, create.log_size, PS_LOG_MIN + 1);
	assert_refused_with(request, create.log_size, 0);
	assert_refused_with(request, create.log_size, PS_LOG_MAX + PS_PAGE);
	assert_accepted_with(request, create.log_size, PS_LOG_MAX);
	assert_refused_with(request, create.image_id, message_id(NO_ID));
	assert_refused_with(request, create.store_id.len, 0);
	assert_refused_with(request, create.roster, NULL);
	free(h);
}

/* Others come from owners alone: a client with the right to create could have a roster of its own
 * pass for the newest. */
TEST(a_create_has_the_first_roster)
{
	Perseas__CreateRequest create = PERSEAS__CREATE_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(create, CREATE, &create);
	struct message_header *h = message_header_new();

	create.store = message_bank;
	create.store_id = message_id(3);
	create.image_id = message_id(0);
	create.log_size = PS_LOG_MIN;
	create.roster = &h->roster;
	assert_accepted(request);
	assert_refused_with(request, h->roster.version, 0);
	assert_refused_with(request, h->roster.version, 2);
	assert_refused_with(request, h->roster.epoch, 1);
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
	add.n_segments = 2;
	assert_accepted(request);
	assert_refused_with(request, add.n_segments, 0);
	assert_accepted_with(request, add.n_segments, 128);
	assert_refused_with(request, add.n_segments, 129);
	assert_refused_with(request, one->born, 1);
	assert_refused_with(request, one->id, 0);
	assert_refused_with(request, one->id, PS_SEGMENTS_MAX);
	assert_refused_with(request, one->name, h->names[0]);
	assert_refused_with(request, one->name, message_address[0]);
	assert_accepted_with(request, one->name, message_accounts);
	assert_refused_with(request, one->size, 0);
	assert_refused_with(request, one->size, PS_SEGMENT_MAX + 1);
	assert_accepted_with(request, one->size, PS_SEGMENT_MAX);
	assert_refused_with(request, one->address, 0);
	assert_refused_with(request, one->address, PS_PAGE + 1);
	assert_refused_with(request, one->address, -(uint64_t)PS_PAGE);
	assert_accepted_with(request, one->random_id, message_id(1));
	assert_refused_with(request, one->random_id, message_id(NO_ID));
	one->random_id = message_id(1);
	assert_refused_with(request, one->random_id.len, PS_ID_SIZE - 1);
	free(h);
}

TEST(a_token_out_of_range_is_refused)
{
	Perseas__LifelineRequest lifeline = PERSEAS__LIFELINE_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(lifeline, LIFELINE, &lifeline);

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
	Perseas__Request publishes = MESSAGE_REQUEST(publish, PUBLISH, &publish);
	Perseas__Request destroys = MESSAGE_REQUEST(destroy, DESTROY, &destroy);
	Perseas__Request drops = MESSAGE_REQUEST(drop_segments, DROP_SEGMENTS, &drop);

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
	Perseas__DigestRequest digest = PERSEAS__DIGEST_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(digest, DIGEST, &digest);

	digest.store = message_bank;
	digest.region = PS_REGION_SEGMENT + PS_SEGMENTS_MAX - 1;
	digest.length = 64 << 20;
	assert_accepted(request);
	assert_refused_with(request, digest.length, (64 << 20) + 1);
	digest.length = 10;
	assert_refused_with(request, digest.offset, UINT64_MAX - 9);
	assert_refused_with(request, digest.region, PS_REGION_SEGMENT + PS_SEGMENTS_MAX);
	assert_refused_with(request, digest.region, 2);
	digest.region = PS_REGION_LOG;
	assert_refused_with(request, digest.store, message_address[1]);
}

TEST(rosters_out_of_range_are_refused)
{
	struct message_header *h = message_header_new();
	Perseas__Member *third = &h->members[2];
	char address[257] = { 0 };

	assert_accepted(h->header);
	assert_refused_with(h->header, h->roster.acks, 0);
	assert_refused_with(h->header, h->roster.acks, 4);
	h->roster.acks = 3;
	assert_refused_with(h->header, third->image_id, message_id(0));
	assert_refused_with(h->header, third->image_id, message_id(NO_ID));
	memset(address, 'a', 255);
	third->address = address;
	assert_accepted(h->header);
	assert_refused_with(h->header, address[255], 'a');
	assert_refused_with(h->header, address[10], '\n');
	/* no character: what shows it would have to alter it */
	assert_refused_with(h->header, address[10], '\x9b');
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
	assert_refused_with(h->header, h->header.parent_id, message_id(0));
	h->header.parent_id = message_id(5);
	assert_accepted(h->header);
	assert_refused_with(h->header, h->header.store_id.len, 8);
	assert_refused_with(h->header, h->header.store, message_control_character);
	assert_accepted_with(h->header, h->header.n_segments, 128);
	assert_refused_with(h->header, h->header.n_segments, 129);
	assert_refused_with(h->header, h->header.state, (Perseas__State)4);
	assert_refused_with(h->header, h->header.state, (Perseas__State)-1);
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

/* Version 8 reads headers of level 0, and knows no random ids. */
TEST(a_header_of_level_0_has_no_random_ids)
{
	struct message_header *h = message_header_new();

	assert_refused_with(h->header, h->segments[1].random_id, message_id(1));
	h->header.n_segments = 1;
	assert_accepted_with(h->header, h->segments[1].random_id, message_id(1));
	free(h);
}

/* What a claim means is named whole, or not at all. */
TEST(a_claim_names_ids_or_none)
{
	uint8_t id[PS_ID_SIZE] = { 1 };
	Perseas__ClaimRequest claim = PERSEAS__CLAIM_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(claim, CLAIM, &claim);

	claim.store = (char *)(uintptr_t) "bank";
	claim.epoch = 1;
	claim.owner = message_id(1);
	assert_accepted(request);
	claim.store_id = claim.daemon = claim.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	assert_accepted(request);
	assert_refused_with(request, claim.store_id.len, 8);
	assert_refused_with(request, claim.daemon.len, 8);
	assert_refused_with(request, claim.image_id.len, 8);
	assert_refused_with(request, id[0], 0);
}

/* What a mirror says of itself: status, text, and the body that goes with OK. */
TEST(replies_out_of_range_are_refused)
{
	Perseas__CreateReply create = PERSEAS__CREATE_REPLY__INIT;
	Perseas__Reply reply = MESSAGE_REPLY(create, CREATE, &create);
	uint8_t daemon[PS_ID_SIZE] = { 1 };
	char text[800];

	assert_accepted(reply);
	reply.body_case = PERSEAS__REPLY__BODY__NOT_SET;
	assert_refused(reply);
	assert_accepted_with(reply, reply.status, PERSEAS__STATUS__STATUS_OTHER);
	assert_refused_with(reply, reply.status, (Perseas__Status)16);
	reply.status = PERSEAS__STATUS__STATUS_BUSY;
	reply.daemon = (ProtobufCBinaryData){ PS_ID_SIZE, daemon };
	assert_accepted(reply);
	assert_refused_with(reply, reply.daemon.len, PS_ID_SIZE - 1);
	assert_refused_with(reply, daemon[0], 0);
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
	assert_accepted(reply);
	assert_refused_with(reply, grant.descriptors, 1);
	assert_accepted_with(reply, grant.descriptors, 2);
	assert_refused_with(reply, segment.id, PS_REGION_LOG);
	assert_refused_with(reply, segment.id, PS_REGIONS_MAX);
	assert_refused_with(reply, segment.id, 7);
	segment.id = PS_REGION_SEGMENT;
	assert_refused_with(reply, segment.length, 0);
	assert_refused_with(reply, segment.length, PS_SEGMENT_MAX + 1);
	segment.id = PS_REGION_PROMISE;
	segment.length = PS_PAGE;
	assert_accepted(reply);
	assert_refused_with(reply, segment.length, sizeof(struct ps_promise) - 1);
	assert_refused_with(reply, segment.length, PS_PAGE + 1);
	assert_refused_with(reply, log.length, PS_RING_OFFSET);
	log.length = PS_RING_OFFSET + PS_LOG_MIN;
	assert_refused_with(reply, grant.token, message_id(NO_ID));
	assert_refused_with(reply, slot.next, 65);
	slot.last = 128;
	assert_refused_with(reply, slot.next, 128);
	slot.last = 0;
	assert_refused_with(reply, slot.next, 0);
	assert_refused_with(reply, slot.index, 2);
	claim.slot = NULL;
	assert_refused(reply);
	h->header.state = PERSEAS__STATE__STATE_JOINING;
	assert_accepted(reply);
	assert_refused_with(reply, claim.grant, NULL);
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
	assert_accepted_with(reply, grant.rdma_port, 65535);
	assert_refused_with(reply, grant.rdma_port, 65536);
	assert_refused_with(reply, grant.rdma_trouble, message_control_character);
	assert_accepted_with(reply, grant.rdma_trouble, message_address[0]);
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

	assert_refused(status_reply);
	store.status = &status;
	status.header = &h->header;
	list.stores = stores;
	list.n_stores = 1;
	assert_accepted(status_reply);
	assert_accepted(list_reply);
	assert_refused_with(status_reply, status.owner_address, message_control_character);
	assert_refused_with(list_reply, status.fabric, message_control_character);
	assert_refused_with(list_reply, status.files_missing, message_control_character);
	status.owner_boot = (ProtobufCBinaryData){ 15, (uint8_t *)(uintptr_t) "not 16 bytes at" };
	assert_refused(status_reply);
	status.owner_boot.len = 0;
	assert_refused_with(list_reply, status.host, message_control_character);
	assert_refused_with(status_reply, status.rack, message_control_character);
	assert_refused_with(status_reply, status.zone, message_control_character);
	assert_refused_with(list_reply, list.version, message_control_character);
	free(h);
}

/* What a daemon tells of certificates: a name that a terminal would obey, or too long, a kind of a
 * later version, and too many of them. */
TEST(what_expires_has_a_kind_and_a_printable_name)
{
	Perseas__Expiry expiry = PERSEAS__EXPIRY__INIT, *expiries[PS_EXPIRIES_MAX + 1];
	Perseas__ListReply list = PERSEAS__LIST_REPLY__INIT;
	Perseas__Reply reply = MESSAGE_REPLY(list, LIST, &list);
	Perseas__ConfirmReply confirm = PERSEAS__CONFIRM_REPLY__INIT;
	Perseas__Reply confirmed = MESSAGE_REPLY(confirm, CONFIRM, &confirm);
	char name[PS_EXPIRY_NAME + 1];

	memset(name, 'x', sizeof(name));
	name[PS_EXPIRY_NAME - 1] = name[PS_EXPIRY_NAME] = '\0';
	for (unsigned i = 0; i <= PS_EXPIRIES_MAX; i++)
		expiries[i] = &expiry;
	list.expiries = expiries;
	list.n_expiries = PS_EXPIRIES_MAX;
	expiry.name = name;
	assert_accepted(reply);
	expiry.kind = PERSEAS__EXPIRY__KIND__CRL;
	assert_accepted(reply);
	assert_refused_with(reply, expiry.name, message_control_character);
	assert_refused_with(reply, list.n_expiries, PS_EXPIRIES_MAX + 1);
	assert_refused_with(reply, expiry.kind, PERSEAS__EXPIRY__KIND__CRL + 1);
	assert_refused_with(reply, expiry.kind, -1);
	confirm.expiring = expiries;
	confirm.n_expiring = 1;
	assert_accepted(confirmed);
	name[PS_EXPIRY_NAME - 1] = 'x';
	assert_refused(confirmed);
	assert_refused(reply);
}

/* Who is asked to hand a store over, to whom, and for how long. */
TEST(moves_out_of_range_are_refused)
{
	Perseas__MoveRequest move = PERSEAS__MOVE_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(move, MOVE, &move);
	uint8_t mark[5] = { 0 };

	move.store = message_bank;
	move.withdraw = true;
	assert_refused(request);
	move.id = message_id(1);
	assert_accepted(request);
	move.withdraw = false;
	move.epoch = 1;
	move.name = message_bank;
	move.within_ms = 1000;
	assert_refused(request);
	move.to = (ProtobufCBinaryData){ 4, mark };
	assert_accepted(request);
	assert_refused_with(request, move.to.len, 5);
	assert_refused_with(request, move.epoch, 0);
	assert_refused_with(request, move.epoch, (uint64_t)1 << 63);
	move.epoch = ((uint64_t)1 << 63) - 1;
	assert_refused_with(request, move.within_ms, 999);
	assert_refused_with(request, move.within_ms, 86400001);
	assert_accepted_with(request, move.within_ms, 86400000);
	assert_refused_with(request, move.name, message_control_character);
	assert_refused_with(request, move.store, message_control_character);
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
	assert_accepted(request);
	assert_accepted_with(request, watch.handover, message_id(1));
	assert_accepted_with(reply, told.handover, message_id(1));
	assert_refused_with(request, watch.handover,
	                    (ProtobufCBinaryData){ 15, message_id(1).data });
	assert_refused_with(reply, told.handover, (ProtobufCBinaryData){ 15, message_id(1).data });
	watch.standby = &standby;
	standby.name = message_bank;
	assert_refused(request);
	standby.mark = (ProtobufCBinaryData){ 4, mark };
	assert_accepted_with(request, standby.order, 100);
	assert_refused_with(request, standby.order, 101);
	assert_refused_with(request, standby.name, message_control_character);
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
	assert_refused(confirmed);
	handover.id = message_id(1);
	handover.epoch = 1;
	handover.name = message_bank;
	handover.to = (ProtobufCBinaryData){ 4, mark };
	assert_accepted(confirmed);
	assert_accepted(told);
	handover.first = &slot;
	assert_refused_with(confirmed, slot.index, 2);
	assert_refused_with(told, slot.index, 2);
	slot.index = 1;
	standby.name = message_bank;
	standby.mark = handover.to;
	for (unsigned i = 0; i < 65; i++)
		standbys[i] = &standby;
	status.standbys = standbys;
	assert_accepted_with(told, status.n_standbys, 64);
	assert_refused_with(told, status.n_standbys, 65);
	free(h);
}
