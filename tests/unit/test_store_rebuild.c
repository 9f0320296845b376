/*
 * test_store_rebuild.c - images made beside another or anew, and joining in place (I8, I9).
 */
#include "bank_rig.h"

struct unit_fixture unit_fixture = { setup_bank, teardown };

/* A rebuild of "bank" of making `id`, with one published segment of `size` bytes. */
static int rebuild(struct mirror *mirror, struct peer *peer, uint8_t id, uint64_t epoch,
                   uint8_t owner, uint64_t size, Perseas__RebuildReply *reply)
{
	uint8_t image[PS_ID_SIZE] = { 77, id };
	Perseas__RebuildRequest request = PERSEAS__REBUILD_REQUEST__INIT;
	Perseas__Header header = PERSEAS__HEADER__INIT;
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	Perseas__Member member = PERSEAS__MEMBER__INIT, *members[] = { &member };
	Perseas__Segment segment = PERSEAS__SEGMENT__INIT, *segments[] = { &segment };

	member.address = (char *)"127.0.0.1:7170";
	member.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, image };
	roster.version = 2;
	roster.acks = 1;
	roster.n_members = 1;
	roster.members = members;
	segment.name = (char *)"accounts";
	segment.size = size;
	segment.address = (uint64_t)1 << 40;
	segment.born = 1;
	header.store = (char *)"bank";
	header.store_id = OWNER(id);
	header.image_id = member.image_id;
	header.log_size = PS_LOG_MIN;
	header.roster = &roster;
	header.n_segments = 1;
	header.segments = segments;
	request.header = &header;
	request.epoch = epoch;
	request.owner = OWNER(owner);
	perseas__rebuild_reply__init(reply);
	return store_rebuild(mirror->stores, &peer->session, &request, reply, &mirror->why);
}

static int finish(struct mirror *mirror, struct peer *peer)
{
	Perseas__FinishReply reply = PERSEAS__FINISH_REPLY__INIT;

	return store_finish(&peer->session, &reply, &mirror->why);
}

static int joining(struct mirror *mirror, struct peer *peer, bool harmless)
{
	Perseas__JoiningRequest request = PERSEAS__JOINING_REQUEST__INIT;

	request.harmless = harmless;
	return store_joining(&peer->session, &request, &mirror->why);
}

static int joining_whole(struct mirror *mirror, struct peer *peer)
{
	Perseas__JoiningRequest request = PERSEAS__JOINING_REQUEST__INIT;

	request.harmless = true;
	request.whole = true;
	return store_joining(&peer->session, &request, &mirror->why);
}

/* Writes data and then a slot, as a resync does. */
static void fill(struct peer *peer, const char *text)
{
	uint8_t *log = session_memory(&peer->session, PS_REGION_LOG, 0, PS_RING_OFFSET, true);
	struct ps_slot slot;

	memcpy(session_memory(&peer->session, PS_REGION_SEGMENT, 0, 4, true), text, 4);
	ps_slot_encode(&slot, BANK_EPOCH, 7, 640, 576);
	memcpy(log, &slot, sizeof(slot));
}

/* The second image is filled while the first one still counts, and then replaces it. */
TEST(an_image_beside_replaces_the_old_one_when_finished, struct mirror *mirror)
{
	Perseas__RebuildReply reply;

	assert_int_equal(rebuild(mirror, &holder, 1, BANK_EPOCH, BANK_OWNER, 4096, &reply), 0);
	assert_int_equal(reply.grant->n_regions, 3);
	assert_int_equal(reply.grant->regions[2]->length, 4096);
	assert_int_equal(mirror_header(mirror, "bank")->state, STATE(CONSISTENT));
	assert_int_equal(mirror_header(mirror, "bank")->segments[0]->size, BANK_SIZE);
	fill(&holder, "copy");
	assert_int_equal(finish(mirror, &holder), 0);
	assert_int_equal(mirror_header(mirror, "bank")->state, STATE(CONSISTENT));
	assert_int_equal(mirror_header(mirror, "bank")->segments[0]->size, 4096);
	assert_int_equal(mirror_header(mirror, "bank")->roster->version, 2);
	assert_int_equal(memory_heap_pieces(mirror->memory), bank_pieces);
	assert_memory_equal(session_memory(&holder.session, 16, 0, 4, true), "copy", 4);
	assert_null(session_memory(&holder.session, 16, 4096, 1, true));
}

/* The second image needs the newest roster, too. */
TEST(an_image_beside_learns_of_a_roster, struct mirror *mirror)
{
	Perseas__RosterRequest request = PERSEAS__ROSTER_REQUEST__INIT;
	Perseas__RebuildReply reply;

	assert_int_equal(rebuild(mirror, &holder, 1, BANK_EPOCH, BANK_OWNER, 4096, &reply), 0);
	request.roster = ps_roster_copy(mirror_header(mirror, "bank")->roster);
	request.roster->epoch = BANK_EPOCH;
	request.roster->version = 9;
	request.settled = true;
	assert_int_equal(store_roster(&holder.session, &request, &mirror->why), 0);
	perseas__roster__free_unpacked(request.roster, NULL);
	fill(&holder, "copy");
	assert_int_equal(finish(mirror, &holder), 0);
	assert_int_equal(mirror_header(mirror, "bank")->segments[0]->size, 4096);
	assert_int_equal(mirror_header(mirror, "bank")->roster->version, 9);
}

/* The daemon crashes before, and after, the rebuild is finished. */
TEST(a_crash_serves_the_old_image_or_the_new_one, struct mirror *mirror)
{
	Perseas__RebuildReply reply;

	assert_int_equal(rebuild(mirror, &holder, 1, BANK_EPOCH, BANK_OWNER, 4096, &reply), 0);
	fill(&holder, "copy");
	mirror_restart(mirror);
	assert_int_equal(mirror->complaints, 0);
	assert_int_equal(memory_heap_pieces(mirror->memory), bank_pieces);
	peer_init(&holder);
	assert_int_equal(mirror_claim(mirror, &holder, "bank", BANK_EPOCH, BANK_OWNER, NULL), 0);
	assert_memory_equal(session_memory(&holder.session, 16, 0, 4, true), "made", 4);
	assert_int_equal(rebuild(mirror, &holder, 1, BANK_EPOCH, BANK_OWNER, 4096, &reply), 0);
	fill(&holder, "copy");
	assert_int_equal(finish(mirror, &holder), 0);
	mirror_restart(mirror);
	peer_init(&holder);
	assert_int_equal(mirror_claim(mirror, &holder, "bank", BANK_EPOCH, BANK_OWNER, NULL), 0);
	assert_memory_equal(session_memory(&holder.session, 16, 0, 4, true), "copy", 4);
}

/* The owner that rebuilt is fenced before it was done. */
TEST(a_claim_drops_an_unfinished_rebuild, struct mirror *mirror)
{
	Perseas__RebuildReply reply;

	assert_int_equal(rebuild(mirror, &holder, 1, BANK_EPOCH, BANK_OWNER, 4096, &reply), 0);
	assert_int_equal(memory_heap_pieces(mirror->memory), 2 * bank_pieces - 1);
	assert_int_equal(mirror_takeover(mirror, &rival, "bank", 9, 2, NULL), 0);
	assert_int_equal(memory_heap_pieces(mirror->memory), bank_pieces);
	assert_null(session_memory(&holder.session, 16, 0, 4, true));
	assert_memory_equal(session_memory(&rival.session, 16, 0, 4, true), "made", 4);
}

/* The second rebuild finds no memory. The session's writes must not reach the old image. */
TEST(a_rebuild_that_fails_never_leads_back_to_the_image, struct mirror *mirror)
{
	Perseas__RebuildReply reply;

	assert_int_equal(rebuild(mirror, &holder, 1, BANK_EPOCH, BANK_OWNER, 4096, &reply), 0);
	memory_heap_set_limit(mirror->memory, 30000);
	assert_int_equal(rebuild(mirror, &holder, 1, BANK_EPOCH, BANK_OWNER, 1 << 20, &reply),
	                 -STATUS(NO_MEMORY));
	assert_null(session_memory(&holder.session, 16, 0, 1, true));
	assert_null(session_memory(&holder.session, PS_REGION_LOG, 0, 1, true));
	assert_int_equal(peer_add(&holder, &mirror->why, 3, "x", 8), -STATUS(BAD_STATE));
	assert_int_not_equal(finish(mirror, &holder), 0);
	memory_heap_set_limit(mirror->memory, 0);
	assert_int_equal(rebuild(mirror, &holder, 1, BANK_EPOCH, BANK_OWNER, 4096, &reply), 0);
	assert_non_null(session_memory(&holder.session, 16, 0, 1, true));
}

/* A mirror lost its memory; an owner with its quorum gives it the store again. */
TEST_WITH(a_lost_store_is_made_anew_and_counts_when_finished, setup, teardown,
          struct mirror *mirror)
{
	struct peer peer, other;
	Perseas__RebuildReply reply;

	peer_init(&peer);
	assert_int_equal(rebuild(mirror, &peer, 1, 7, 3, 4096, &reply), 0);
	assert_int_equal(reply.header->state, STATE(JOINING));
	assert_int_equal(reply.header->promised_epoch, 7);
	assert_false(reply.header->harmless);
	assert_int_equal(finish(mirror, &peer), -STATUS(DAMAGED));
	peer_init(&other);
	assert_int_equal(mirror_takeover(mirror, &other, "bank", 6, 2, NULL), -STATUS(STALE_EPOCH));
	fill(&peer, "copy");
	assert_int_equal(finish(mirror, &peer), 0);
	assert_int_equal(mirror_header(mirror, "bank")->state, STATE(CONSISTENT));
}

/* The mirror has a whole store, of this making or of another. */
TEST(a_whole_store_is_not_made_anew, struct mirror *mirror)
{
	Perseas__RebuildReply reply;

	assert_int_equal(rebuild(mirror, &rival, 2, 9, 3, 4096, &reply), -STATUS(BAD_STATE));
	assert_int_equal(rebuild(mirror, &rival, 1, 9, 3, 4096, &reply), -STATUS(NO_SESSION));
	assert_int_equal(rebuild(mirror, &holder, 1, 9, 3, 4096, &reply), -STATUS(BAD_REQUEST));
	assert_memory_equal(session_memory(&holder.session, 16, 0, 4, true), "made", 4);
}

/* A damaged image is as good as lost, but its promise can still be read. */
TEST(a_damaged_store_is_made_anew_under_its_promise, struct mirror *mirror)
{
	Perseas__RebuildReply reply;

	assert_true(memory_heap_lose_piece(mirror->memory, "bank", "segment-0.1"));
	mirror_restart(mirror);
	assert_int_equal(mirror->complaints, 1);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 3, NULL), -STATUS(DAMAGED));
	assert_int_equal(rebuild(mirror, &rival, 1, BANK_EPOCH, 3, 4096, &reply),
	                 -STATUS(STALE_EPOCH));
	assert_int_equal(rebuild(mirror, &rival, 1, 9, 3, 4096, &reply), 0);
	fill(&rival, "copy");
	assert_int_equal(finish(mirror, &rival), 0);
}

/* The header itself cannot be read: no field of it counts. */
TEST(a_store_with_a_torn_header_is_refused_until_it_is_made_anew, struct mirror *mirror)
{
	Perseas__RebuildReply reply;

	memory_heap_piece(mirror->memory, "bank", "header", NULL)[30] ^= 1;
	mirror_restart(mirror);
	assert_int_equal(mirror->complaints, 1);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", 9, 3, NULL), -STATUS(DAMAGED));
	assert_int_equal(mirror_create(mirror, "bank", 4), -STATUS(EXISTS));
	assert_int_equal(rebuild(mirror, &rival, 1, 9, 3, 4096, &reply), 0);
	assert_int_equal(memory_heap_pieces(mirror->memory), 4);
}

/* An image is mended in place; the daemon crashes meanwhile. */
TEST(a_joining_image_is_claimed_as_it_is, struct mirror *mirror)
{
	assert_int_equal(joining(mirror, &holder, true), 0);
	memset(session_memory(&holder.session, PS_REGION_LOG, 0, PS_RING_OFFSET, true), 0xff,
	       PS_RING_OFFSET);
	mirror_restart(mirror);
	peer_init(&holder);
	assert_int_equal(mirror_claim(mirror, &holder, "bank", 9, 2, &granted), 0);
	assert_int_equal(granted.header->state, STATE(JOINING));
	assert_true(granted.header->harmless);
	assert_int_equal(granted.slot->epoch, 0);
	assert_int_equal(granted.slot->seq, 0);
}

/* An image that was not harmless when its joining began is told so later. */
TEST(joining_does_not_become_harmless, struct mirror *mirror)
{
	assert_int_equal(joining(mirror, &holder, false), 0);
	assert_int_equal(joining(mirror, &holder, true), 0);
	assert_false(mirror_header(mirror, "bank")->harmless);
	assert_int_equal(finish(mirror, &holder), 0);
	assert_int_equal(joining(mirror, &holder, true), 0);
	assert_true(mirror_header(mirror, "bank")->harmless);
	assert_int_equal(joining(mirror, &holder, false), 0);
	assert_false(mirror_header(mirror, "bank")->harmless);
}

/* The image gets a new id with its state. */
TEST(joining_may_make_the_image_another_one, struct mirror *mirror)
{
	Perseas__JoiningRequest request = PERSEAS__JOINING_REQUEST__INIT;

	request.image_id = OWNER(77);
	assert_int_equal(store_joining(&holder.session, &request, &mirror->why), 0);
	assert_true(ps_id_equal(mirror_header(mirror, "bank")->image_id, request.image_id.data));
	assert_int_equal(mirror_header(mirror, "bank")->state, STATE(JOINING));
	assert_int_equal(joining_whole(mirror, &holder), 0);
	assert_true(ps_id_equal(mirror_header(mirror, "bank")->image_id, request.image_id.data));
}

struct past {
	struct mirror *mirror;
	uint32_t magic; /* of the first record */
};

static uint32_t first_record(struct mirror *mirror)
{
	uint8_t *log = memory_heap_piece(mirror->memory, "bank", "log.1", NULL);
	uint32_t magic;

	memcpy(&magic, log + PS_RING_OFFSET + PS_FIRST_POSITION, sizeof(magic));
	return magic;
}

static void note_past(void *arg)
{
	struct past *past = arg;

	past->magic = first_record(past->mirror);
}

/* An image that is overwritten as a whole has nothing to do with its log any more. */
TEST(joining_whole_forgets_the_past_after_the_header_says_so, struct mirror *mirror)
{
	struct past past = { .mirror = mirror };

	assert_int_equal(first_record(mirror), PS_RECORD_MAGIC);
	memory_heap_fail(mirror->memory, 0, 1);
	assert_int_equal(joining_whole(mirror, &holder), -STATUS(IO));
	assert_int_equal(first_record(mirror), PS_RECORD_MAGIC);
	memory_heap_on_change(mirror->memory, note_past, &past);
	assert_int_equal(joining_whole(mirror, &holder), 0);
	memory_heap_on_change(mirror->memory, NULL, NULL);
	assert_int_equal(past.magic, PS_RECORD_MAGIC);
	assert_int_equal(first_record(mirror), 0);
	assert_int_equal(mirror_header(mirror, "bank")->state, STATE(JOINING));
	/* The attempt breaks off; the next one claims it, and goes on. */
	mirror_restart(mirror);
	peer_init(&holder);
	assert_int_equal(mirror_claim(mirror, &holder, "bank", 9, 2, &granted), 0);
	assert_true(granted.header->harmless);
	assert_int_equal(granted.header->n_segments, 1);
	assert_int_equal(joining_whole(mirror, &holder), 0);
	fill(&holder, "copy");
	assert_int_equal(finish(mirror, &holder), 0);
	assert_memory_equal(session_memory(&holder.session, 16, 0, 4, false), "copy", 4);
}

static void map_another(struct mirror *mirror, struct peer *peer)
{
	Perseas__DropSegmentsRequest drop = PERSEAS__DROP_SEGMENTS_REQUEST__INIT;
	Perseas__DropSegmentsReply reply = PERSEAS__DROP_SEGMENTS_REPLY__INIT;
	uint32_t id = 2;

	assert_int_equal(peer_add(peer, &mirror->why, 1, "more", 100), 0);
	assert_int_equal(peer_add(peer, &mirror->why, 2, "unused", 100), 0);
	assert_int_equal(peer_publish(peer, &mirror->why, 1, 7), 0);
	drop.n_ids = 1;
	drop.ids = &id;
	assert_int_equal(store_drop_segments(&peer->session, &drop, &reply, &mirror->why), 0);
	memcpy(session_memory(&peer->session, PS_REGION_SEGMENT + 1, 0, 4, true), "more", 4);
	assert_null(session_memory(&peer->session, PS_REGION_SEGMENT + 2, 0, 1, true));
}

/* The owner maps and publishes segments while the mirror is being resynced, either way. */
TEST_WITH(segments_come_and_go_while_an_image_joins, setup, teardown, struct mirror *mirror)
{
	for (int beside = 0; beside < 2; beside++) {
		Perseas__RebuildReply rebuilt;
		Perseas__ClaimReply reply;
		struct peer peer;

		mirror_bank(mirror, &peer, false);
		if (beside)
			assert_int_equal(rebuild(mirror, &peer, 1, BANK_EPOCH, BANK_OWNER,
			                         BANK_SIZE, &rebuilt),
			                 0);
		else
			assert_int_equal(joining_whole(mirror, &peer), 0);
		map_another(mirror, &peer);
		fill(&peer, "copy");
		assert_int_equal(finish(mirror, &peer), 0);
		store_session_ended(&peer.session);
		mirror_restart(mirror);
		peer_init(&peer);
		assert_int_equal(mirror_claim(mirror, &peer, "bank", 9, 2, &reply), 0);
		assert_int_equal(reply.header->n_segments, 2);
		assert_memory_equal(session_memory(&peer.session, PS_REGION_SEGMENT, 0, 4, false),
		                    "copy", 4);
		assert_memory_equal(session_memory(&peer.session, PS_REGION_SEGMENT + 1, 0, 4,
		                                   false),
		                    "more", 4);
		memory_heap_lose(mirror->memory, NULL);
		mirror_restart(mirror);
	}
}

/* The owner lost its connection and resyncs: claim, rebuild, the data path, finish. A token opens
 * what the rebuild made. */
TEST(the_session_that_claimed_rebuilds_and_writes, struct mirror *mirror)
{
	Perseas__RebuildReply reply;

	store_session_ended(&holder.session);
	assert_int_equal(mirror_claim(mirror, &rival, "bank", BANK_EPOCH, BANK_OWNER, NULL), 0);
	assert_int_equal(rebuild(mirror, &rival, 1, BANK_EPOCH, BANK_OWNER, BANK_SIZE, &reply), 0);
	assert_ptr_equal(stores_find_session(mirror->stores, reply.grant->token.data),
	                 &rival.session);
	fill(&rival, "copy");
	assert_memory_equal(memory_heap_piece(mirror->memory, "bank", "segment-0.1", NULL), "made",
	                    4);
	assert_int_equal(finish(mirror, &rival), 0);
	assert_memory_equal(session_memory(&rival.session, 16, 0, 4, false), "copy", 4);
}

/* Making anew and finishing fail at each piece and header in turn. */
TEST_WITH(a_rebuild_that_fails_leaves_nothing_half_there, setup, teardown, struct mirror *mirror)
{
	unsigned failed = 0;

	for (unsigned skip = 0;; skip++) {
		struct peer peer;
		Perseas__RebuildReply reply;
		int ret;

		assert_in_range(skip, 0, 20);
		peer_init(&peer);
		memory_heap_fail(mirror->memory, skip, 1);
		ret = rebuild(mirror, &peer, 1, 9 + skip, 3, 4096, &reply);
		if (ret == 0) {
			fill(&peer, "copy");
			ret = finish(mirror, &peer);
		}
		memory_heap_fail(mirror->memory, 0, 0);
		if (ret == 0)
			break;
		failed++;
		if (!peer.session.store)
			assert_int_equal(memory_heap_pieces(mirror->memory), 0);
		else
			assert_int_equal(mirror_header(mirror, "bank")->state, STATE(JOINING));
		memory_heap_lose(mirror->memory, NULL);
		mirror_restart(mirror);
	}
	/* three pieces, the header, the header again */
	assert_int_equal(failed, 5);
}
