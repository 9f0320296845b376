/*
 * test_store_table.c - what a header says of a store: segments, rosters, and how it is read
 * again after the daemon crashed.
 */
#include "bank_rig.h"

#include "../../proto/base/keyed_digest_tls.h"

struct unit_fixture unit_fixture = { setup_bank, teardown };

static int add_two(struct mirror *mirror, struct peer *peer, uint32_t first, uint32_t second,
                   const char *name, uint64_t size)
{
	Perseas__AddSegmentsRequest request = PERSEAS__ADD_SEGMENTS_REQUEST__INIT;
	Perseas__AddSegmentsReply reply = PERSEAS__ADD_SEGMENTS_REPLY__INIT;
	Perseas__Segment one = PERSEAS__SEGMENT__INIT, two = PERSEAS__SEGMENT__INIT;
	Perseas__Segment *segments[] = { &one, &two };

	one.id = first;
	one.name = (char *)"one";
	one.size = 100;
	one.address = (uint64_t)2 << 40;
	two.id = second;
	two.name = (char *)name;
	two.size = size;
	two.address = (uint64_t)3 << 40;
	request.n_segments = 2;
	request.segments = segments;
	return store_add_segments(&peer->session, &request, &reply, &mirror->why);
}

static int set_roster(struct mirror *mirror, struct peer *peer, uint64_t version, bool settled)
{
	uint8_t image[PS_ID_SIZE] = { 33 };
	Perseas__RosterRequest request = PERSEAS__ROSTER_REQUEST__INIT;
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	Perseas__Member member = PERSEAS__MEMBER__INIT, *members[] = { &member };

	member.address = (char *)"127.0.0.1:7171";
	member.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, image };
	roster.version = version;
	roster.acks = 1;
	roster.n_members = 1;
	roster.members = members;
	request.roster = &roster;
	request.settled = settled;
	return store_roster(&peer->session, &request, &mirror->why);
}

/* The second of two segments cannot be made. */
TEST(segments_are_added_all_or_none, struct mirror *mirror)
{
	assert_int_equal(add_two(mirror, &holder, 1, 1, "two", 8), -STATUS(EXISTS));
	assert_int_equal(add_two(mirror, &holder, 1, 2, "one", 8), -STATUS(EXISTS));
	assert_int_equal(add_two(mirror, &holder, 1, 2, "accounts", 8), -STATUS(EXISTS));
	assert_int_equal(add_two(mirror, &holder, 1, 0, "two", 8), -STATUS(EXISTS));
	memory_heap_set_limit(mirror->memory, 60000);
	assert_int_equal(add_two(mirror, &holder, 1, 2, "two", 1 << 20), -STATUS(NO_MEMORY));
	memory_heap_set_limit(mirror->memory, 0);
	for (unsigned skip = 0; skip < 3; skip++) {
		memory_heap_fail(mirror->memory, skip, 1);
		assert_int_not_equal(add_two(mirror, &holder, 1, 2, "two", 8), 0);
		assert_int_equal(memory_heap_pieces(mirror->memory), bank_pieces);
		assert_int_equal(mirror_header(mirror, "bank")->n_segments, 1);
	}
	assert_int_equal(add_two(mirror, &holder, 1, 2, "two", 8), 0);
	assert_non_null(session_memory(&holder.session, PS_REGION_SEGMENT + 2, 7, 1, true));
	assert_int_equal(memory_heap_pieces(mirror->memory), bank_pieces + 2);
}

/* Segments that were published, or are not there, are dropped. */
TEST(only_unborn_segments_are_dropped, struct mirror *mirror)
{
	assert_int_equal(peer_add(&holder, &mirror->why, 3, "more", 8), 0);
	assert_int_equal(peer_drop_segment(&holder, &mirror->why, 0), -STATUS(BAD_STATE));
	assert_int_equal(peer_drop_segment(&holder, &mirror->why, 4), -STATUS(BAD_REQUEST));
	assert_int_equal(peer_drop_segment(&holder, &mirror->why, 3), 0);
	assert_null(session_memory(&holder.session, PS_REGION_SEGMENT + 3, 0, 1, true));
	assert_int_equal(peer_add(&holder, &mirror->why, 3, "more", 8), 0);
}

/* A publish is repeated after its answer was lost; another seq is named later. */
TEST(a_segment_is_born_once, struct mirror *mirror)
{
	assert_int_equal(peer_publish(&holder, &mirror->why, 0, 1), 0);
	assert_int_equal(peer_publish(&holder, &mirror->why, 0, 2), -STATUS(BAD_STATE));
	assert_int_equal(peer_publish(&holder, &mirror->why, 9, 2), -STATUS(BAD_REQUEST));
	assert_int_equal(mirror_header(mirror, "bank")->segments[0]->born, 1);
}

/* A roster with its next one, of these (epoch, version); next_epoch 0: without. */
static int set_rosters(struct mirror *mirror, struct peer *peer, uint64_t epoch, uint64_t version,
                       uint64_t next_epoch, uint64_t next_version)
{
	Perseas__RosterRequest request = PERSEAS__ROSTER_REQUEST__INIT;
	const Perseas__Roster *there = mirror_header(mirror, "bank")->roster;
	int ret;

	request.settled = true;
	request.roster = ps_roster_copy(there);
	request.roster->epoch = epoch;
	request.roster->version = version;
	if (next_epoch) {
		request.next = ps_roster_copy(there);
		request.next->epoch = next_epoch;
		request.next->version = next_version;
	}
	ret = store_roster(&peer->session, &request, &mirror->why);
	perseas__roster__free_unpacked(request.roster, NULL);
	if (request.next)
		perseas__roster__free_unpacked(request.next, NULL);
	return ret;
}

/* An owner that was fenced had gone on counting versions: its successor's are newer all the
 * same. */
TEST(of_two_rosters_the_later_epochs_is_newer, struct mirror *mirror)
{
	const Perseas__Header *header;

	assert_int_equal(set_rosters(mirror, &holder, 3, 90, 0, 0), 0);
	assert_int_equal(set_rosters(mirror, &holder, 2, 91, 0, 0), -STATUS(BAD_STATE));
	assert_int_equal(set_rosters(mirror, &holder, 4, 2, 0, 0), 0);
	assert_int_equal(set_rosters(mirror, &holder, 4, 2, 0, 0), 0);
	assert_int_equal(set_rosters(mirror, &holder, 4, 1, 4, 3), 0);
	header = mirror_header(mirror, "bank");
	assert_int_equal(header->roster->version, 1);
	assert_int_equal(header->next_roster->version, 3);
	assert_int_equal(set_rosters(mirror, &holder, 4, 2, 0, 0), -STATUS(BAD_STATE));
	assert_int_equal(set_rosters(mirror, &holder, 3, 9, 3, 10), -STATUS(BAD_STATE));
	assert_int_equal(set_rosters(mirror, &holder, 5, 1, 0, 0), 0);
	mirror_restart(mirror);
	header = mirror_header(mirror, "bank");
	assert_int_equal(header->roster->epoch, 5);
	assert_null(header->next_roster);
}

/* A change of roster: first joint, then settled; an older one comes late. */
TEST(a_roster_never_goes_back, struct mirror *mirror)
{
	const Perseas__Header *header;

	assert_int_equal(set_roster(mirror, &holder, 3, false), 0);
	header = mirror_header(mirror, "bank");
	assert_int_equal(header->roster->version, 1);
	assert_int_equal(header->next_roster->version, 3);
	assert_int_equal(set_roster(mirror, &holder, 2, false), -STATUS(BAD_STATE));
	assert_int_equal(set_roster(mirror, &holder, 2, true), -STATUS(BAD_STATE));
	assert_int_equal(set_roster(mirror, &holder, 3, true), 0);
	mirror_restart(mirror);
	header = mirror_header(mirror, "bank");
	assert_int_equal(header->roster->version, 3);
	assert_null(header->next_roster);
}

/* kill -9 of the daemon with an owner in the middle of its work. */
TEST(what_was_there_is_served_after_a_crash, struct mirror *mirror)
{
	struct writer writer;
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;

	assert_int_equal(mirror_create(mirror, "other", 2), 0);
	writer_init(&writer, &holder.session);
	writer_write(&writer, 0, 100, "more", 4, WRITE_ALL);
	mirror_restart(mirror);
	assert_int_equal(mirror->complaints, 0);
	assert_int_equal(mirror_header(mirror, "other")->state, STATE(CREATING));
	assert_int_equal(store_status(mirror->stores, "bank", &status, &mirror->why), 0);
	assert_int_equal(status.slot->seq, 2);
	assert_false(status.live);
	peer_init(&holder);
	assert_int_equal(mirror_claim(mirror, &holder, "bank", 9, 2, NULL), 0);
	assert_memory_equal(session_memory(&holder.session, 16, 100, 4, false), "more", 4);
}

/* Files of other generations, and of a creation that was cut short, are left over. */
TEST(what_belongs_to_no_image_is_removed, struct mirror *mirror)
{
	struct piece piece;

	for (int i = 0; i < 3; i++) {
		static const char *const stores[] = { "bank", "bank", "cut-short" };
		static const char *const names[] = { "log.2", "segment-1.1", "log.1" };

		assert_int_equal(mirror->memory->ops->make(mirror->memory, stores[i], names[i], 64,
		                                           &piece),
		                 0);
		mirror->memory->ops->close(mirror->memory, &piece);
	}
	mirror_restart(mirror);
	assert_int_equal(memory_heap_pieces(mirror->memory), bank_pieces);
	assert_int_equal(mirror->complaints, 1);
	assert_null(mirror_header(mirror, "cut-short"));
	assert_non_null(mirror_header(mirror, "bank"));
}

/* A file is shorter than the header says: mapping it would end in SIGBUS. */
TEST(a_piece_of_another_size_makes_the_store_damaged, struct mirror *mirror)
{
	static const char *const pieces[] = { "log.1", "segment-0.1" };

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(mirror->memory->ops->replace(mirror->memory, "bank", pieces[i],
		                                              "short", 5),
		                 0);
		mirror_restart(mirror);
		assert_int_equal(mirror->complaints, 1);
		assert_null(mirror_header(mirror, "bank"));
		assert_non_null(strstr(mirror->why.text, pieces[i]));
		assert_non_null(strstr(mirror->why.text, " has 5 bytes instead of "));
		assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 2, NULL),
		                 -STATUS(DAMAGED));
		assert_non_null(memory_heap_piece(mirror->memory, "bank", pieces[!i], NULL));
		mirror = unit_begin_again();
	}
}

/* The promise page is lost, or the daemon crashed between the header and the page. */
TEST(the_promise_page_follows_the_header, struct mirror *mirror)
{
	struct ps_promise *page;

	assert_true(memory_heap_lose_piece(mirror->memory, "bank", "promise.1"));
	mirror_restart(mirror);
	assert_int_equal(mirror->complaints, 0);
	page = promise_of_bank(mirror);
	assert_int_equal(page->epoch, BANK_EPOCH);
	assert_int_equal(page->owner[0], BANK_OWNER);
	page->epoch = 3;
	mirror_restart(mirror);
	page = promise_of_bank(mirror);
	assert_int_equal(page->epoch, BANK_EPOCH);
}

/* The memory was given away, and the header promises to another than the page does. */
TEST_WITH(a_page_that_was_given_away_is_never_made_valid_again, setup_shared_bank, teardown,
          struct mirror *mirror)
{
	struct ps_promise *page = (void *)memory_heap_piece(mirror->memory, "bank", "promise.1",
	                                                    NULL);

	page->owner[0]++;
	mirror_restart(mirror);
	page = promise_of_bank(mirror);
	assert_int_equal(page->epoch, UINT64_MAX);
}

/* Two mirrors' images are compared part by part. */
TEST(a_digest_covers_the_bytes_that_it_names, struct mirror *mirror)
{
	Perseas__DigestRequest request = PERSEAS__DIGEST_REQUEST__INIT;
	Perseas__DigestReply reply = PERSEAS__DIGEST_REPLY__INIT;
	uint32_t before;

	request.store = (char *)"bank";
	request.region = PS_REGION_SEGMENT;
	request.offset = 4;
	request.length = BANK_SIZE - 4;
	assert_int_equal(store_digest(mirror->stores, &request, &reply, &mirror->why), 0);
	before = reply.crc;
	assert_int_equal(reply.slot->seq, 1);
	assert_true(reply.live);
	session_memory(&holder.session, 16, 3, 1, true)[0] ^= 1;
	assert_int_equal(store_digest(mirror->stores, &request, &reply, &mirror->why), 0);
	assert_int_equal(reply.crc, before);
	session_memory(&holder.session, 16, 4, 1, true)[0] ^= 1;
	assert_int_equal(store_digest(mirror->stores, &request, &reply, &mirror->why), 0);
	assert_int_not_equal(reply.crc, before);
	request.length++;
	assert_int_equal(store_digest(mirror->stores, &request, &reply, &mirror->why),
	                 -STATUS(BAD_REQUEST));
	request.region = PS_REGION_SEGMENT + 1;
	assert_int_equal(store_digest(mirror->stores, &request, &reply, &mirror->why),
	                 -STATUS(BAD_REQUEST));
}

/* A Digest with a key gives a digest of each granule. The last granule may be short. */
TEST(digests_with_a_key_depend_on_bytes_and_key, struct mirror *mirror)
{
	Perseas__DigestRequest request = PERSEAS__DIGEST_REQUEST__INIT;
	Perseas__DigestReply reply = PERSEAS__DIGEST_REPLY__INIT;
	uint8_t key[PS_DIGEST_KEY] = { 7 }, digest[PS_DIGEST];
	uint8_t *bytes = session_memory(&holder.session, PS_REGION_SEGMENT, 0, BANK_SIZE, true);

	request.store = (char *)"bank";
	request.region = PS_REGION_SEGMENT;
	request.length = BANK_SIZE;
	request.key = (ProtobufCBinaryData){ sizeof(key), key };
	assert_true(ps_keyed_digests(key, bytes, BANK_SIZE, PS_GRANULE, digest));
	assert_int_equal(store_digest(mirror->stores, &request, &reply, &mirror->why), 0);
	assert_int_equal(reply.digests.len, PS_DIGEST);
	assert_memory_equal(reply.digests.data, digest, PS_DIGEST);
	assert_int_equal(reply.crc, 0);
	bytes[BANK_SIZE - 1] ^= 1;
	assert_int_equal(store_digest(mirror->stores, &request, &reply, &mirror->why), 0);
	assert_memory_not_equal(reply.digests.data, digest, PS_DIGEST);
	bytes[BANK_SIZE - 1] ^= 1;
	key[PS_DIGEST_KEY - 1] ^= 1;
	assert_int_equal(store_digest(mirror->stores, &request, &reply, &mirror->why), 0);
	assert_memory_not_equal(reply.digests.data, digest, PS_DIGEST);
}

/* Many stores: one more than there may be. */
TEST_WITH(stores_are_limited_in_number, setup, teardown, struct mirror *mirror)
{
	Perseas__ListReply list = PERSEAS__LIST_REPLY__INIT;
	char name[16];

	for (int i = 0; i < 1024; i++) {
		snprintf(name, sizeof(name), "store-%d", i);
		assert_int_equal(mirror_create(mirror, name, 1), 0);
	}
	assert_int_equal(mirror_create(mirror, "one-more", 1), -STATUS(LIMIT));
	assert_int_equal(store_list(mirror->stores, NULL, &list, &mirror->why), 0);
	assert_int_equal(list.n_stores, 1024);
}
