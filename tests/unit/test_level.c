/*
 * test_level.c - stores of level 1 on a mirror: who must show the key, who is told it, and what a
 * peer gets that does not read the level.
 */
#include "spill_rig.h"

#include "../../proto/base/sha256_tls.h"
#include "../../proto/control/key.h"
#include "../../proto/control/version.h"
#include "../../server/store/control.h"
#include "../../server/store/store_private.h"

struct unit_fixture unit_fixture = { setup, teardown };

enum { BEFORE = 8 }; /* the last version that does not read level 1 */

static uint8_t the_key[PS_KEY_SIZE] = "the key of the bank, 32 bytes...";
static uint8_t another[PS_KEY_SIZE] = "the key of a thief, 32 bytes....";

static ProtobufCBinaryData key_of(uint8_t *key)
{
	return (ProtobufCBinaryData){ key ? PS_KEY_SIZE : 0, key };
}

/* The messages that make a store of level 1. */
struct making {
	Perseas__Roster roster;
	Perseas__Member member, *members[1];
	Perseas__CreateRequest create;
	uint8_t store_id[PS_ID_SIZE], image_id[PS_ID_SIZE];
};

static void making_begin(struct making *m, uint8_t *key)
{
	*m = (struct making){ .image_id = { 9, 1 } };
	ps_key_store_id(key, m->store_id);
	perseas__member__init(&m->member);
	m->member.address = (char *)"127.0.0.1:7170";
	m->member.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, m->image_id };
	m->members[0] = &m->member;
	perseas__roster__init(&m->roster);
	m->roster.version = 1;
	m->roster.acks = 1;
	m->roster.level = 1;
	m->roster.n_members = 1;
	m->roster.members = m->members;
	perseas__create_request__init(&m->create);
	m->create.store = (char *)"bank";
	m->create.store_id = (ProtobufCBinaryData){ PS_ID_SIZE, m->store_id };
	m->create.image_id = m->member.image_id;
	m->create.log_size = PS_LOG_MIN;
	m->create.roster = &m->roster;
	m->create.key = key_of(key);
}

/* The answer to a request of this body, as it is told; the caller frees it. */
static Perseas__Reply *ask(struct rig *rig, struct peer *peer, Perseas__Request__BodyCase body_case,
                           void *body)
{
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	struct control_reply packed;
	Perseas__Reply *reply;
	const char *why;
	uint8_t *bytes;
	size_t len;

	request.id = 1;
	request.body_case = body_case;
	request.list = body;
	assert_int_equal(ps_request_pack(&request, &bytes, &len), 0);
	assert_int_equal(control_handle(rig->mirror.stores, &peer->session, "1.2.3", bytes + 4,
	                                len - 4, &packed),
	                 0);
	reply = ps_reply_unpack(packed.bytes + 4, packed.len - 4, &why);
	if (!reply)
		fail_msg("%s", why);
	free(packed.bytes);
	free(bytes);
	return reply;
}

static Perseas__Status status_of(Perseas__Reply *reply)
{
	Perseas__Status status = reply->status;

	perseas__reply__free_unpacked(reply, NULL);
	return status;
}

static Perseas__Status create(struct rig *rig, struct making *m)
{
	struct peer peer;

	peer_init(&peer);
	return status_of(ask(rig, &peer, PERSEAS__REQUEST__BODY_CREATE, &m->create));
}

/* Creates and settles the store that *m describes. */
static void make_bank_of(struct rig *rig, struct making *m)
{
	Perseas__SettleRequest settle = PERSEAS__SETTLE_REQUEST__INIT;
	struct peer peer;

	assert_int_equal(create(rig, m), STATUS(OK));
	settle.store = (char *)"bank";
	settle.store_id = m->create.store_id;
	peer_init(&peer);
	assert_int_equal(status_of(ask(rig, &peer, PERSEAS__REQUEST__BODY_SETTLE, &settle)),
	                 STATUS(OK));
}

/* A store of level 1 that is settled. */
static void make_bank(struct rig *rig, struct making *m)
{
	making_begin(m, the_key);
	make_bank_of(rig, m);
}

static Perseas__Reply *claim(struct rig *rig, struct peer *peer, uint64_t epoch)
{
	Perseas__ClaimRequest request = PERSEAS__CLAIM_REQUEST__INIT;

	request.store = (char *)"bank";
	request.epoch = epoch;
	request.owner = OWNER(7);
	request.takeover = true;
	return ask(rig, peer, PERSEAS__REQUEST__BODY_CLAIM, &request);
}

static void assert_claim_tells_key(struct rig *rig, uint64_t epoch)
{
	struct peer peer;
	Perseas__Reply *reply;

	peer_init(&peer);
	reply = claim(rig, &peer, epoch);
	assert_int_equal(reply->status, STATUS(OK));
	assert_int_equal(reply->claim->header->key.len, PS_KEY_SIZE);
	assert_memory_equal(reply->claim->header->key.data, the_key, PS_KEY_SIZE);
	perseas__reply__free_unpacked(reply, NULL);
	store_session_ended(&peer.session);
}

static const Perseas__Header *header_here(struct rig *rig)
{
	return store_find(rig->mirror.stores, "bank")->header;
}

/* The store id is the beginning of the key's SHA-256. */
TEST_WITH(a_store_id_is_made_of_the_key, NULL, NULL)
{
	static const uint8_t zeros[PS_KEY_SIZE];
	static const uint8_t hash[] = { 0x66, 0x68, 0x7a, 0xad, 0xf8, 0x62, 0xbd, 0x77,
		                        0x6c, 0x8f, 0xc1, 0x8b, 0x8e, 0x9f, 0x8e, 0x20 };
	uint8_t id[PS_ID_SIZE];

	ps_key_store_id(zeros, id);
	assert_memory_equal(id, hash, sizeof(id));
}

/* A client that knows the id makes no image with it at level 1, whatever it shows as the key. */
TEST(no_image_of_level_1_is_created_without_the_key, struct rig *rig)
{
	struct making m;

	making_begin(&m, the_key);
	m.create.key = key_of(NULL);
	assert_int_equal(create(rig, &m), STATUS(BAD_REQUEST));
	m.create.key = key_of(another);
	assert_int_equal(create(rig, &m), STATUS(BAD_REQUEST));
	m.roster.level = 0;
	assert_int_equal(create(rig, &m), STATUS(BAD_REQUEST));
	assert_null(store_find(rig->mirror.stores, "bank"));
	m.create.key = key_of(the_key);
	m.roster.level = 1;
	assert_int_equal(create(rig, &m), STATUS(OK));
}

/* The same for an owner that makes an image anew. */
TEST(no_image_of_level_1_is_rebuilt_without_the_key, struct rig *rig)
{
	Perseas__RebuildRequest rebuild = PERSEAS__REBUILD_REQUEST__INIT;
	Perseas__Header header = PERSEAS__HEADER__INIT;
	uint8_t *const wrong[] = { NULL, another };
	struct peer peer;
	struct making m;
	Perseas__Reply *reply;

	making_begin(&m, the_key);
	header.store = (char *)"bank";
	header.store_id = m.create.store_id;
	header.image_id = m.create.image_id;
	header.state = STATE(JOINING);
	header.log_size = PS_LOG_MIN;
	header.roster = &m.roster;
	rebuild.header = &header;
	rebuild.epoch = 3;
	rebuild.owner = OWNER(7);
	peer_init(&peer);
	for (unsigned i = 0; i < 2; i++) {
		header.key = key_of(wrong[i]);
		assert_int_equal(status_of(
					 ask(rig, &peer, PERSEAS__REQUEST__BODY_REBUILD, &rebuild)),
		                 STATUS(BAD_REQUEST));
	}
	assert_null(store_find(rig->mirror.stores, "bank"));
	header.key = key_of(the_key);
	reply = ask(rig, &peer, PERSEAS__REQUEST__BODY_REBUILD, &rebuild);
	assert_int_equal(reply->status, STATUS(OK));
	assert_int_equal(reply->rebuild->header->key.len, 0);
	perseas__reply__free_unpacked(reply, NULL);
	store_session_ended(&peer.session);
	assert_int_equal(header_here(rig)->key.len, PS_KEY_SIZE);
}

/* A client that looks, or finishes a copy, learns about the store but not its key. */
TEST(the_key_is_told_only_to_a_claimer, struct rig *rig)
{
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__ListRequest list = PERSEAS__LIST_REQUEST__INIT;
	Perseas__FinishRequest finish = PERSEAS__FINISH_REQUEST__INIT;
	const struct store_view *views;
	Perseas__Reply *reply;
	struct peer peer;
	struct making m;
	size_t count;

	make_bank(rig, &m);
	peer_init(&peer);
	status.store = (char *)"bank";
	reply = ask(rig, &peer, PERSEAS__REQUEST__BODY_STATUS, &status);
	assert_int_equal(reply->store->status->header->roster->level, 1);
	assert_int_equal(reply->store->status->header->key.len, 0);
	perseas__reply__free_unpacked(reply, NULL);
	reply = ask(rig, &peer, PERSEAS__REQUEST__BODY_LIST, &list);
	assert_int_equal(reply->list->n_stores, 1);
	assert_int_equal(reply->list->stores[0]->header->key.len, 0);
	perseas__reply__free_unpacked(reply, NULL);
	assert_int_equal(stores_view(rig->mirror.stores, &views, &count), 0);
	assert_int_equal(views[0].status->header->key.len, 0);
	assert_claim_tells_key(rig, 1);
	perseas__reply__free_unpacked(claim(rig, &peer, 2), NULL);
	reply = ask(rig, &peer, PERSEAS__REQUEST__BODY_FINISH, &finish);
	assert_int_equal(reply->status, STATUS(OK));
	assert_int_equal(reply->finish->header->key.len, 0);
	perseas__reply__free_unpacked(reply, NULL);
	store_session_ended(&peer.session);
}

/* The daemon starts again, over its memory, and over its spill. */
TEST(the_key_stays_with_the_image_and_its_spill, struct rig *rig)
{
	struct making m;

	make_bank(rig, &m);
	stop(rig);
	start(rig, rig->mirror.memory, rig->spill);
	assert_claim_tells_key(rig, 1);
	assert_int_equal(end(rig).stores, 1);
	lose_memory(rig);
	assert_int_equal(rig->loaded, 1);
	assert_claim_tells_key(rig, 2);
}

/* Adds segment 1 with this random id. */
static Perseas__Status add_segment(struct rig *rig, struct peer *peer,
                                   ProtobufCBinaryData random_id)
{
	Perseas__Segment segment = PERSEAS__SEGMENT__INIT, *segments[] = { &segment };
	Perseas__AddSegmentsRequest add = PERSEAS__ADD_SEGMENTS_REQUEST__INIT;

	segment.id = 1;
	segment.name = (char *)"branches";
	segment.size = 4096;
	segment.address = (uint64_t)9 << 40;
	segment.random_id = random_id;
	add.n_segments = 1;
	add.segments = segments;
	return status_of(ask(rig, peer, PERSEAS__REQUEST__BODY_ADD_SEGMENTS, &add));
}

/* The next owner is told of segment "branches", with this random id. */
static void assert_claim_tells_id(struct rig *rig, uint64_t epoch, const uint8_t id[PS_ID_SIZE])
{
	struct peer peer;
	Perseas__Reply *reply;

	peer_init(&peer);
	reply = claim(rig, &peer, epoch);
	assert_int_equal(reply->status, STATUS(OK));
	assert_int_equal(reply->claim->header->n_segments, 1);
	assert_true(ps_id_equal(reply->claim->header->segments[0]->random_id, id));
	perseas__reply__free_unpacked(reply, NULL);
	store_session_ended(&peer.session);
}

/* A segment's random id stays, too, through publish, claims, restarts and spills. */
TEST(a_random_id_stays_with_the_image_and_its_spill, struct rig *rig)
{
	struct writer writer;
	struct making m;
	struct peer peer;

	make_bank(rig, &m);
	peer_init(&peer);
	perseas__reply__free_unpacked(claim(rig, &peer, 1), NULL);
	assert_int_equal(add_segment(rig, &peer, OWNER(5)), STATUS(OK));
	assert_int_equal(peer_publish(&peer, &rig->mirror.why, 1, 1), 0);
	writer_init(&writer, &peer.session);
	writer_adopt(&writer, 1);
	writer_write(&writer, 1, 0, "made", 4, WRITE_ALL);
	store_session_ended(&peer.session);
	assert_claim_tells_id(rig, 2, OWNER(5).data);
	stop(rig);
	start(rig, rig->mirror.memory, rig->spill);
	assert_claim_tells_id(rig, 3, OWNER(5).data);
	assert_int_equal(end(rig).stores, 1);
	lose_memory(rig);
	assert_int_equal(rig->loaded, 1);
	assert_claim_tells_id(rig, 4, OWNER(5).data);
}

/* A peer of the version before: it cannot know what the level means, and nothing happens. */
TEST(who_does_not_read_the_level_gets_nothing_of_the_store, struct rig *rig)
{
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__WatchRequest watch = PERSEAS__WATCH_REQUEST__INIT;
	Perseas__ListRequest list = PERSEAS__LIST_REQUEST__INIT;
	Perseas__Reply *reply;
	struct peer peer;
	struct making m;

	make_bank(rig, &m);
	assert_int_equal(mirror_create(&rig->mirror, "old", 3), 0);
	assert_claim_tells_key(rig, 1);
	peer_init(&peer);
	peer.session.version = BEFORE;
	status.store = watch.store = (char *)"bank";
	assert_int_equal(status_of(ask(rig, &peer, PERSEAS__REQUEST__BODY_STATUS, &status)),
	                 STATUS(BAD_VERSION));
	assert_int_equal(status_of(ask(rig, &peer, PERSEAS__REQUEST__BODY_WATCH, &watch)),
	                 STATUS(BAD_VERSION));
	assert_int_equal(status_of(claim(rig, &peer, 9)), STATUS(BAD_VERSION));
	assert_int_equal(header_here(rig)->promised_epoch, 1);
	reply = ask(rig, &peer, PERSEAS__REQUEST__BODY_LIST, &list);
	assert_int_equal(reply->list->n_stores, 1);
	assert_string_equal(reply->list->stores[0]->header->store, "old");
	perseas__reply__free_unpacked(reply, NULL);
	/* The client may learn that the name is taken. */
	making_begin(&m, another);
	m.roster.level = 0;
	m.create.key = key_of(NULL);
	assert_int_equal(status_of(ask(rig, &peer, PERSEAS__REQUEST__BODY_CREATE, &m.create)),
	                 STATUS(EXISTS));
}

/* --- raising --- */

/* The bank at level 0, held by an owner; *m describes its roster, one version on. */
static uint8_t bank_image[PS_ID_SIZE];

static void hold_bank(struct rig *rig, struct making *m)
{
	mirror_bank(&rig->mirror, &rig->owner, false);
	making_begin(m, the_key);
	m->roster.version = 2;
	m->roster.epoch = BANK_EPOCH;
	/* Each roster that is recorded replaces the header. */
	memcpy(bank_image, header_here(rig)->image_id.data, PS_ID_SIZE);
	m->member.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, bank_image };
}

static Perseas__Status record(struct rig *rig, Perseas__Roster *settled, Perseas__Roster *next,
                              uint8_t *key)
{
	Perseas__RosterRequest request = PERSEAS__ROSTER_REQUEST__INIT;

	request.roster = settled;
	request.settled = true;
	request.next = next;
	request.key = key_of(key);
	return status_of(ask(rig, &rig->owner, PERSEAS__REQUEST__BODY_ROSTER, &request));
}

/* A roster names its key by a hash; only with that key a mirror records it. What is taken back
 * leaves a header of level 0 as it was, and what is settled stays. */
TEST(a_store_is_raised_with_its_key_and_never_lowered, struct rig *rig)
{
	Perseas__Roster low, back;
	uint8_t hash[PS_KEY_SIZE];
	struct making m;

	hold_bank(rig, &m);
	low = m.roster;
	low.level = 0;
	low.version = 1;
	ps_sha256(the_key, sizeof(the_key), hash);
	assert_int_equal(record(rig, &low, &m.roster, the_key), STATUS(BAD_REQUEST));
	m.roster.key_hash = key_of(hash);
	assert_int_equal(record(rig, &low, &m.roster, NULL), STATUS(BAD_REQUEST));
	assert_int_equal(record(rig, &low, &m.roster, another), STATUS(BAD_REQUEST));
	assert_int_equal(header_here(rig)->key.len, 0);
	assert_int_equal(record(rig, &low, &m.roster, the_key), STATUS(OK));
	assert_memory_equal(header_here(rig)->key.data, the_key, PS_KEY_SIZE);
	back = low;
	back.version = 3;
	assert_int_equal(record(rig, &back, NULL, NULL), STATUS(OK));
	assert_int_equal(header_here(rig)->key.len, 0);
	m.roster.version = 4;
	assert_int_equal(record(rig, &m.roster, NULL, the_key), STATUS(OK));
	back.version = 5;
	assert_int_equal(record(rig, &back, NULL, NULL), STATUS(BAD_STATE));
	assert_int_equal(header_here(rig)->roster->level, 1);
	store_session_ended(&rig->owner.session);
	assert_claim_tells_key(rig, BANK_EPOCH + 1);
}

/* The mark says how the store was created: no later roster sets it or takes it away. */
TEST(no_roster_changes_the_mark_of_a_store_to_be_filled, struct rig *rig)
{
	struct making m;

	for (int marked = 0; marked < 2; marked++) {
		making_begin(&m, the_key);
		m.roster.filling = marked;
		make_bank_of(rig, &m);
		peer_init(&rig->owner);
		perseas__reply__free_unpacked(claim(rig, &rig->owner, 1), NULL);
		m.roster.version = 2;
		m.roster.epoch = 1;
		m.roster.filling = !marked;
		assert_int_equal(record(rig, &m.roster, NULL, the_key), STATUS(BAD_STATE));
		assert_int_equal(header_here(rig)->roster->filling, marked);
		m.roster.filling = marked;
		assert_int_equal(record(rig, &m.roster, NULL, the_key), STATUS(OK));
		store_session_ended(&rig->owner.session);
		lose_memory(rig);
	}
}

/* A store of level 0 has no random ids, and a store that has one cannot get level 0 again: no
 * daemon could read its header. */
TEST(a_random_id_needs_level_1, struct rig *rig)
{
	Perseas__Roster low;
	uint8_t hash[PS_KEY_SIZE];
	struct making m;

	hold_bank(rig, &m);
	low = m.roster;
	low.level = 0;
	low.version = 1;
	ps_sha256(the_key, sizeof(the_key), hash);
	m.roster.key_hash = key_of(hash);
	assert_int_equal(add_segment(rig, &rig->owner, OWNER(5)), STATUS(BAD_REQUEST));
	assert_int_equal(header_here(rig)->n_segments, 1);
	assert_int_equal(record(rig, &low, &m.roster, the_key), STATUS(OK));
	assert_int_equal(add_segment(rig, &rig->owner, OWNER(5)), STATUS(OK));
	low.version = 3;
	assert_int_equal(record(rig, &low, NULL, NULL), STATUS(BAD_REQUEST));
	assert_int_equal(header_here(rig)->next_roster->level, 1);
	m.roster.version = 4;
	assert_int_equal(record(rig, &m.roster, NULL, the_key), STATUS(OK));
	store_session_ended(&rig->owner.session);
	assert_claim_tells_key(rig, BANK_EPOCH + 1);
}

/* An owner of the version before would not know these orders, and end the session. */
TEST(only_an_owner_that_knows_an_order_is_given_it, struct rig *rig)
{
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__OrderRequest request = PERSEAS__ORDER_REQUEST__INIT;
	Perseas__Order order = PERSEAS__ORDER__INIT;
	Perseas__Reply *reply;
	struct peer peer;

	mirror_bank(&rig->mirror, &rig->owner, false);
	order.id = OWNER(8);
	order.kind = PERSEAS__ORDER_KIND__ORDER_RAISE;
	request.store = (char *)"bank";
	request.order = &order;
	peer_init(&peer);
	rig->owner.session.version = BEFORE;
	assert_int_equal(status_of(ask(rig, &peer, PERSEAS__REQUEST__BODY_ORDER, &request)),
	                 STATUS(BAD_VERSION));
	order.kind = PERSEAS__ORDER_KIND__ORDER_REPAIR;
	assert_int_equal(status_of(ask(rig, &peer, PERSEAS__REQUEST__BODY_ORDER, &request)),
	                 STATUS(BAD_VERSION));
	order.kind = PERSEAS__ORDER_KIND__ORDER_RAISE;
	rig->owner.session.version = BEFORE + 1;
	assert_int_equal(status_of(ask(rig, &peer, PERSEAS__REQUEST__BODY_ORDER, &request)),
	                 STATUS(OK));
	/* A client of that version is not told about it. */
	status.store = (char *)"bank";
	reply = ask(rig, &peer, PERSEAS__REQUEST__BODY_STATUS, &status);
	assert_int_equal(reply->store->status->order->kind, PERSEAS__ORDER_KIND__ORDER_RAISE);
	perseas__reply__free_unpacked(reply, NULL);
	peer.session.version = BEFORE;
	reply = ask(rig, &peer, PERSEAS__REQUEST__BODY_STATUS, &status);
	assert_null(reply->store->status->order);
	perseas__reply__free_unpacked(reply, NULL);
	store_session_ended(&rig->owner.session);
}
