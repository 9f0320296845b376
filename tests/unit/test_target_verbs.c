/*
 * test_target_verbs.c - RDMA connections to a daemon, over fake devices.
 */
#include "verbs_daemon.h"

struct unit_fixture unit_fixture = { setup, teardown };

enum { OFFSET = PS_RING_OFFSET + 512 };

/* An owner that wants keys gets them, and one that does not gets none. */
TEST(a_claim_gives_keys_to_who_asks, struct fixture *fixture)
{
	Perseas__Reply *reply;

	fixture_bank(fixture);
	claim(fixture, &alice, "bank", 5);
	assert_true(alice.port > 0);
	assert_string_equal(alice.trouble, "");
	assert_int_equal(alice.regions[PS_REGION_LOG].length, (1 << 20) + PS_RING_OFFSET);
	assert_int_not_equal(alice.regions[PS_REGION_LOG].key, 0);
	assert_int_not_equal(alice.regions[PS_REGION_PROMISE].key, 0);
	/* These two and no more: the header is out of reach. */
	assert_int_equal(verbs_fake_alive().mrs, 2);
	ask_claim(alice.control, "bank", 6, false);
	reply = fixture_reply(fixture, alice.control);
	take_grant(&alice, reply->claim->grant);
	assert_int_equal(alice.port, 0);
	assert_int_equal(alice.regions[PS_REGION_LOG].key, 0);
	assert_int_equal(alice.regions[PS_REGION_LOG].address, 0);
	fixture_done(reply);
}

/* The owner's writes are in the image, and it reads what is there. */
TEST(memory_is_written_and_read, struct fixture *fixture)
{
	begin(fixture);
	assert_int_equal(put(&alice, PS_REGION_LOG, OFFSET, 5000, 77), IBV_WC_SUCCESS);
	assert_int_equal(*seen(fixture, &alice, PS_REGION_LOG, OFFSET), 77);
	assert_int_equal(*seen(fixture, &alice, PS_REGION_LOG, OFFSET + 4999), 77);
	assert_int_equal(*seen(fixture, &alice, PS_REGION_LOG, OFFSET + 5000), 0);
	memset(alice.peer.bytes, 0, 5000);
	assert_int_equal(get(&alice, PS_REGION_LOG, OFFSET + 4000, 1000), IBV_WC_SUCCESS);
	assert_int_equal(alice.peer.bytes[999], 77);
	assert_string_equal(stores_find_session(fixture->stores, alice.token)->fabric, "rdma");
}

/* The promise may be read and not written; before and behind a region there is nothing. */
TEST(only_what_was_granted_is_reached, struct fixture *fixture)
{
	const struct {
		uint32_t region;
		int64_t offset;
		bool write;
	} tries[] = {
		{ PS_REGION_PROMISE, 0, true },
		{ PS_REGION_LOG, -8, true },
		{ PS_REGION_LOG, PS_RING_OFFSET + (1 << 20) - 4, true },
		{ PS_REGION_LOG, PS_RING_OFFSET + (1 << 20), false },
		{ PS_REGION_PROMISE, PS_PAGE, false },
	};

	begin(fixture);
	for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		uint64_t offset = (uint64_t)tries[i].offset, promise;

		assert_int_equal(get(&alice, PS_REGION_PROMISE, 0, 8), IBV_WC_SUCCESS);
		memcpy(&promise, alice.peer.bytes, sizeof(promise));
		assert_int_equal(promise, 5 + i);
		assert_int_equal(tries[i].write ? put(&alice, tries[i].region, offset, 8, 1)
		                                : get(&alice, tries[i].region, offset, 8),
		                 IBV_WC_REM_ACCESS_ERR);
		settle(fixture);
		assert_null(verbs_fake_passive_qp());
		/* The owner may return with another claim. */
		leave(&alice);
		claim(fixture, &alice, "bank", 6 + i);
		open_path(fixture, &alice);
	}
}

/* A whole undo record for the transaction after the slot that is there: `length` bytes at the
 * segment's start get their before-image. */
static unsigned make_record(uint8_t *bytes, uint64_t epoch, uint64_t seq, uint32_t length)
{
	struct ps_record *record = (struct ps_record *)bytes;
	struct ps_range range = { .segment = 0, .length = length };

	memset(bytes, 0, sizeof(*record) + sizeof(range) + length);
	memcpy(record + 1, &range, sizeof(range));
	memset((uint8_t *)(record + 1) + sizeof(range), 0x55, length);
	record->kind = PS_RECORD_TRANSACTION;
	record->ranges = 1;
	record->length = (uint32_t)(sizeof(*record) + sizeof(range) + length);
	ps_record_seal(record, epoch, seq, PS_FIRST_POSITION, 0, 1);
	return record->length;
}

static void add_segment(struct fixture *fixture, struct far_owner *owner, uint32_t id,
                        const char *name)
{
	Perseas__AddSegmentsRequest add = PERSEAS__ADD_SEGMENTS_REQUEST__INIT;
	Perseas__Segment segment = PERSEAS__SEGMENT__INIT, *list[] = { &segment };
	Perseas__Reply *reply;

	segment.id = id;
	segment.name = (char *)(uintptr_t)name;
	segment.size = 3 * PS_PAGE;
	segment.address = 0x10000000u + id * 0x100000u;
	add.n_segments = 1;
	add.segments = list;
	fixture_ask(owner->control, PERSEAS__REQUEST__BODY_ADD_SEGMENTS, &add);
	reply = granted_reply(fixture, owner);
	take_grant(owner, reply->add_segments->grant);
	fixture_done(reply);
}

static void drop_segment(struct fixture *fixture, struct far_owner *owner, uint32_t id)
{
	Perseas__DropSegmentsRequest drop = PERSEAS__DROP_SEGMENTS_REQUEST__INIT;
	Perseas__Reply *reply;

	drop.n_ids = 1;
	drop.ids = &id;
	fixture_ask(owner->control, PERSEAS__REQUEST__BODY_DROP_SEGMENTS, &drop);
	reply = granted_reply(fixture, owner);
	take_grant(owner, reply->drop_segments->grant);
	fixture_done(reply);
}

/* Segment 0 exists with transaction 1. */
static void publish_segment(struct fixture *fixture, struct far_owner *owner, uint64_t epoch)
{
	Perseas__PublishRequest publish = PERSEAS__PUBLISH_REQUEST__INIT;
	uint64_t slot_at = at(owner, PS_REGION_LOG, ps_slot_offset(1));
	uint32_t id = 0;
	struct ps_slot slot;
	Perseas__Reply *reply;

	publish.n_ids = 1;
	publish.ids = &id;
	publish.seq = 1;
	fixture_ask(owner->control, PERSEAS__REQUEST__BODY_PUBLISH, &publish);
	reply = granted_reply(fixture, owner);
	fixture_done(reply);
	ps_slot_encode(&slot, epoch, 1, PS_FIRST_POSITION, 0);
	memcpy(owner->peer.bytes, &slot, sizeof(slot));
	assert_int_equal(peer_write(&owner->peer, 0, sizeof(slot), slot_at,
	                            owner->regions[PS_REGION_LOG].key),
	                 0);
	assert_int_equal(peer_settle(&owner->peer), IBV_WC_SUCCESS);
}

/* Segments come and go while the data path is up: their memory is registered and is not. */
TEST(segments_bring_their_keys, struct fixture *fixture)
{
	const uint32_t first = PS_REGION_SEGMENT, second = PS_REGION_SEGMENT + 1;
	Perseas__Region gone;

	begin(fixture);
	add_segment(fixture, &alice, 0, "a");
	add_segment(fixture, &alice, 1, "b");
	assert_int_equal(verbs_fake_alive().mrs, 1 + 4); /* one is the peer's own */
	assert_int_equal(put(&alice, first, 2 * PS_PAGE, 8, 3), IBV_WC_SUCCESS);
	assert_int_equal(put(&alice, second, 8, 8, 4), IBV_WC_SUCCESS);
	assert_int_equal(*seen(fixture, &alice, second, 8), 4);
	gone = alice.regions[second];
	drop_segment(fixture, &alice, 1);
	assert_int_equal(verbs_fake_alive().mrs, 1 + 3);
	assert_int_equal(alice.regions[second].length, 0);
	assert_int_equal(put(&alice, first, 0, 8, 3), IBV_WC_SUCCESS);
	alice.regions[second] = gone;
	assert_int_equal(put(&alice, second, 8, 8, 4), IBV_WC_REM_ACCESS_ERR);
}

static void ask_rebuild(struct fixture *fixture, struct far_owner *owner, uint64_t epoch)
{
	uint8_t store[PS_ID_SIZE] = { 1 }, image[PS_ID_SIZE] = { 77 };
	uint8_t id[PS_ID_SIZE] = { (uint8_t)epoch };
	Perseas__RebuildRequest rebuild = PERSEAS__REBUILD_REQUEST__INIT;
	Perseas__Header header = PERSEAS__HEADER__INIT;
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	Perseas__Member member = PERSEAS__MEMBER__INIT, *members[] = { &member };
	Perseas__Reply *reply;

	member.address = (char *)"127.0.0.1:1";
	member.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, image };
	roster.version = 2;
	roster.acks = 1;
	roster.n_members = 1;
	roster.members = members;
	header.store = (char *)"bank";
	header.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, store };
	header.image_id = member.image_id;
	header.log_size = 1 << 20;
	header.roster = &roster;
	rebuild.header = &header;
	rebuild.epoch = epoch;
	rebuild.owner = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	rebuild.rdma = true;
	fixture_ask(owner->control, PERSEAS__REQUEST__BODY_REBUILD, &rebuild);
	reply = granted_reply(fixture, owner);
	take_grant(owner, reply->rebuild->grant);
	fixture_done(reply);
}

/* A second image is filled over the same queue pair, and replaces the first one, whose memory is
 * then deregistered. */
TEST(an_image_beside_has_keys_of_its_own, struct fixture *fixture)
{
	Perseas__FinishRequest finish = PERSEAS__FINISH_REQUEST__INIT;
	Perseas__Region old;
	Perseas__Reply *reply;
	struct ps_slot slot;

	begin(fixture);
	old = alice.regions[PS_REGION_LOG];
	assert_int_equal(put(&alice, PS_REGION_LOG, OFFSET, 8, 1), IBV_WC_SUCCESS);
	ask_rebuild(fixture, &alice, 5);
	assert_int_equal(verbs_fake_alive().mrs, 1 + 4);
	assert_int_not_equal(alice.regions[PS_REGION_LOG].key, old.key);
	assert_int_equal(put(&alice, PS_REGION_LOG, OFFSET, 8, 2), IBV_WC_SUCCESS);
	ps_slot_encode(&slot, 5, 7, 640, 576);
	memcpy(alice.peer.bytes, &slot, sizeof(slot));
	assert_int_equal(peer_write(&alice.peer, 0, sizeof(slot), at(&alice, PS_REGION_LOG, 0),
	                            alice.regions[PS_REGION_LOG].key),
	                 0);
	assert_int_equal(peer_settle(&alice.peer), IBV_WC_SUCCESS);
	fixture_ask(alice.control, PERSEAS__REQUEST__BODY_FINISH, &finish);
	reply = granted_reply(fixture, &alice);
	fixture_done(reply);
	assert_int_equal(verbs_fake_alive().mrs, 1 + 2);
	assert_int_equal(*seen(fixture, &alice, PS_REGION_LOG, OFFSET), 2);
	assert_int_equal(put(&alice, PS_REGION_LOG, OFFSET, 8, 3), IBV_WC_SUCCESS);
	alice.regions[PS_REGION_LOG] = old;
	assert_int_equal(put(&alice, PS_REGION_LOG, OFFSET, 8, 4), IBV_WC_REM_ACCESS_ERR);
}

/* A takeover while the old alice's writes are under way: once the claim is answered, the queue
 * pair is gone, and what was not written by then never is. */
TEST(a_claim_cuts_what_is_under_way, struct fixture *fixture)
{
	begin(fixture);
	memset(alice.peer.bytes, 9, 3 * 4096);
	assert_int_equal(peer_write(&alice.peer, 0, 3 * 4096, at(&alice, PS_REGION_LOG, OFFSET),
	                            alice.regions[PS_REGION_LOG].key),
	                 0);
	assert_int_equal(peer_write(&alice.peer, 0, 1, at(&alice, PS_REGION_LOG, OFFSET + 20000),
	                            alice.regions[PS_REGION_LOG].key),
	                 0);
	assert_int_equal(verbs_fake_step(1), 1);
	claim(fixture, &bob, "bank", 6);
	assert_null(verbs_fake_passive_qp());
	assert_int_equal(*seen(fixture, &bob, PS_REGION_LOG, OFFSET + 4095), 9);
	verbs_fake_run();
	assert_int_equal(*seen(fixture, &bob, PS_REGION_LOG, OFFSET + 4096), 0);
	assert_int_equal(*seen(fixture, &bob, PS_REGION_LOG, OFFSET + 20000), 0);
	/* Unless the alice's queue pair went first, its requests ran out of retries. */
	assert_int_not_equal(peer_done(&alice.peer), IBV_WC_SUCCESS);
	open_path(fixture, &bob);
	assert_int_equal(put(&bob, PS_REGION_LOG, OFFSET, 8, 1), IBV_WC_SUCCESS);
}

/* A device that has taken writes in, and places them when their queue pair is destroyed: an error
 * state does not stop them. */
static struct ps_verbs late;
static struct {
	uint64_t to;
	const uint8_t *from;
	unsigned length;
} taken[2];

static int destroy_late(struct ibv_qp *qp)
{
	bool passive = qp == verbs_fake_passive_qp();

	for (unsigned i = 0; passive && i < 2; i++) {
		if (taken[i].length > 0)
			memcpy((void *)(uintptr_t)taken[i].to, taken[i].from, taken[i].length);
		taken[i].length = 0;
	}
	return verbs_fake_table.destroy_qp(qp);
}

static int setup_late(void **state)
{
	const struct rdma_options options = { .enabled = true };

	late = verbs_fake_table;
	late.destroy_qp = destroy_late;
	return start(state, &late, &options);
}

/* The zombie's transaction, all but its slot, is placed in the instant in which its queue pair is
 * destroyed: the claim must see it, and roll it back. */
TEST_WITH(the_image_is_read_after_the_queue_pair_is_gone, setup_late, teardown,
          struct fixture *fixture)
{
	const uint32_t segment = PS_REGION_SEGMENT;
	Perseas__Reply *reply;

	begin(fixture);
	add_segment(fixture, &alice, 0, "a");
	assert_int_equal(put(&alice, segment, 0, 64, 0x55), IBV_WC_SUCCESS);
	publish_segment(fixture, &alice, 5);
	taken[0].to = at(&alice, PS_REGION_LOG, PS_RING_OFFSET + PS_FIRST_POSITION);
	taken[0].from = alice.peer.bytes;
	taken[0].length = make_record(alice.peer.bytes, 5, 2, 64);
	memset(alice.peer.bytes + 1024, 0x66, 64);
	taken[1].to = at(&alice, segment, 0);
	taken[1].from = alice.peer.bytes + 1024;
	taken[1].length = 64;
	greet(fixture, &bob);
	reply = claim_reply(fixture, &bob, "bank", 6);
	assert_int_equal(taken[1].length, 0);
	assert_true(reply->claim->undone);
	fixture_done(reply);
	assert_int_equal(*seen(fixture, &bob, segment, 0), 0x55);
	assert_int_equal(*seen(fixture, &bob, segment, 63), 0x55);
}

/* Hellos that open nothing, each with its answer. */
TEST(a_wrong_hello_is_refused, struct fixture *fixture)
{
	struct ps_hello good, bad[5];

	fixture_bank(fixture);
	claim(fixture, &alice, "bank", 5);
	good = hello_of(&alice);
	for (unsigned i = 0; i < 5; i++)
		bad[i] = good;
	bad[0].token[3] ^= 1;
	memset(bad[1].token, 0, PS_ID_SIZE);
	bad[2].zero = 1;
	bad[3].version++;
	bad[4].magic++;
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(refused_with(fixture, &alice, &bad[i], sizeof(bad[i])),
		                 i < 3 ? PS_ANSWER_BAD_TOKEN : PS_ANSWER_BAD_VERSION);
	/* Where lengths are known: all that is too short. */
	rxe->exact = far->exact = true;
	for (unsigned length = 0; length < sizeof(good); length++)
		assert_int_equal(refused_with(fixture, &alice, &good, length),
		                 PS_ANSWER_BAD_VERSION);
	open_path(fixture, &alice);
}

/* A claim's token, of an alice that has a path, had one, or was fenced. */
TEST(a_token_opens_one_path, struct fixture *fixture)
{
	struct far_owner copy;
	struct ps_hello hello;

	begin(fixture);
	copy = alice;
	hello = hello_of(&alice);
	assert_int_equal(refused_with(fixture, &copy, &hello, sizeof(hello)), PS_ANSWER_USED_TOKEN);
	assert_int_equal(put(&alice, PS_REGION_LOG, OFFSET, 8, 1), IBV_WC_SUCCESS);
	peer_close(&alice.peer);
	settle(fixture);
	assert_int_equal(refused_with(fixture, &copy, &hello, sizeof(hello)), PS_ANSWER_USED_TOKEN);
	claim(fixture, &bob, "bank", 6);
	assert_int_equal(refused_with(fixture, &copy, &hello, sizeof(hello)), PS_ANSWER_BAD_TOKEN);
}

/* A claim without keys has a token for tcp only. */
TEST(a_token_without_keys_opens_nothing, struct fixture *fixture)
{
	struct ps_hello hello;
	Perseas__Reply *reply;
	unsigned port;

	fixture_bank(fixture);
	fixture_make(fixture, "other");
	claim(fixture, &bob, "other", 5);
	port = bob.port;
	greet(fixture, &alice);
	ask_claim(alice.control, "bank", 5, false);
	reply = fixture_reply(fixture, alice.control);
	take_grant(&alice, reply->claim->grant);
	fixture_done(reply);
	alice.port = port;
	hello = hello_of(&alice);
	assert_int_equal(refused_with(fixture, &alice, &hello, sizeof(hello)), PS_ANSWER_BAD_TOKEN);
}

/* The alice of one store knows the keys of another's memory. */
TEST(keys_are_good_for_one_store_only, struct fixture *fixture)
{
	begin(fixture);
	fixture_make(fixture, "other");
	claim(fixture, &bob, "other", 5);
	open_path(fixture, &bob);
	bob.regions[PS_REGION_LOG] = alice.regions[PS_REGION_LOG];
	assert_int_equal(put(&bob, PS_REGION_LOG, OFFSET, 8, 66), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(*seen(fixture, &alice, PS_REGION_LOG, OFFSET), 0);
	settle(fixture);
	assert_int_equal(put(&alice, PS_REGION_LOG, OFFSET, 8, 1), IBV_WC_SUCCESS);
}

/* A path has a place of its own as long as it is there; where owners have taken all of them, the
 * next path is refused, and one of theirs that ends makes room. */
TEST(a_path_is_one_of_the_connections, struct fixture *fixture)
{
	const struct counters *counters = &fixture->daemon->counters;
	struct ps_hello hello;

	fixture_bank(fixture);
	fixture_make(fixture, "other");
	claim(fixture, &alice, "bank", 5);
	assert_int_equal(fixture->daemon->admission.connection_count, 1);
	open_path(fixture, &alice);
	assert_int_equal(fixture->daemon->admission.connection_count, 2);
	claim(fixture, &bob, "other", 5);
	daemon_set_max_connections(fixture->daemon, 3);
	hello = hello_of(&bob);
	assert_int_equal(refused_with(fixture, &bob, &hello, sizeof(hello)),
	                 PS_ANSWER_NO_RESOURCES);
	assert_int_equal(counters->connections_refused[REFUSED_FULL], 1);
	assert_int_equal(put(&alice, PS_REGION_LOG, OFFSET, 8, 1), IBV_WC_SUCCESS);
	peer_close(&alice.peer);
	settle(fixture);
	assert_int_equal(fixture->daemon->admission.connection_count, 2);
	open_path(fixture, &bob);
	assert_int_equal(fixture->daemon->admission.connection_count, 3);
}

/* Three are allowed: two owners' control connections, and the path of one. */
TEST(a_path_counts_for_its_owners_identity, struct fixture *fixture)
{
	const struct counters *counters = &fixture->daemon->counters;
	struct ps_hello hello;

	fixture_bank(fixture);
	fixture_make(fixture, "other");
	fixture_rules(fixture, "allow * all\nlimit anonymous connections 3");
	claim(fixture, &alice, "bank", 5);
	claim(fixture, &bob, "other", 5);
	open_path(fixture, &alice);
	hello = hello_of(&bob);
	assert_int_equal(refused_with(fixture, &bob, &hello, sizeof(hello)),
	                 PS_ANSWER_NO_RESOURCES);
	assert_int_equal(counters->connections_refused[REFUSED_LIMIT], 1);
	assert_int_equal(fixture->daemon->admission.connection_count, 3);
	leave(&alice);
	settle(fixture);
	open_path(fixture, &bob);
}

/* Tokens of nobody, and of another version: none keeps a place, each is counted. */
TEST(requests_that_are_refused_are_counted, struct fixture *fixture)
{
	enum { MANY = 100 };
	const struct counters *counters = &fixture->daemon->counters;
	struct ps_hello wrong, newer;

	begin(fixture);
	wrong = newer = hello_of(&alice);
	wrong.token[0] ^= 1;
	newer.version++;
	for (unsigned i = 0; i < MANY; i++) {
		struct far_owner stranger = { .port = alice.port };

		assert_int_equal(refused_with(fixture, &stranger, i % 2 ? &wrong : &newer,
		                              sizeof(wrong)),
		                 i % 2 ? PS_ANSWER_BAD_TOKEN : PS_ANSWER_BAD_VERSION);
	}
	assert_int_equal(counters->connections_refused[REFUSED_TOKEN], MANY / 2);
	assert_int_equal(counters->connections_refused[REFUSED_HELLO], MANY / 2);
	assert_int_equal(fixture->daemon->refusal_log_limits[REFUSED_TOKEN].left_out,
	                 MANY / 2 - LOG_BURST);
	assert_int_equal(fixture->daemon->admission.connection_count, 2);
	assert_int_equal(put(&alice, PS_REGION_LOG, OFFSET, 8, 1), IBV_WC_SUCCESS);
}
