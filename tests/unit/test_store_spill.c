/*
 * test_store_spill.c - images that are written when a daemon ends and loaded when it starts: what
 * was acknowledged is there again, and no spill ever comes back as new.
 */
#include "spill_rig.h"

struct unit_fixture unit_fixture = { setup, teardown };

static void image_id(struct rig *rig, uint8_t id[PS_ID_SIZE])
{
	memcpy(id, bank(rig)->image_id.data, PS_ID_SIZE);
}

/* The host is shut down and comes back. */
TEST(a_spilled_image_comes_back_under_a_new_id, struct rig *rig)
{
	uint8_t id[PS_ID_SIZE];
	struct spill_sum sum;
	const Perseas__Header *header;

	mirror_bank(&rig->mirror, &rig->owner, false);
	image_id(rig, id);
	sum = end(rig);
	assert_int_equal(sum.stores, 1);
	assert_int_equal(sum.failed, 0);
	assert_int_equal(rig->owner.cuts, 1);
	lose_memory_and_load(rig, 1);
	assert_int_equal(rig->complaints, 0);
	header = bank(rig);
	assert_true(ps_id_equal(header->parent_id, id));
	assert_false(ps_id_equal(header->image_id, id));
	assert_int_equal(header->promised_epoch, BANK_EPOCH);
	assert_int_equal(header->state, STATE(CONSISTENT));
	assert_int_equal(spill_heap_count(rig->spill), 0);
	assert_bank(rig, 1, "made");
	lose_memory(rig);
	assert_null(bank(rig));
}

/* The daemon is only restarted: the image in memory is as new as the spill, or newer. It gets an id
 * of its own all the same, or else a copy of the spill, loaded elsewhere, would count as the member
 * whenever this mirror is away. */
TEST(what_is_in_memory_wins, struct rig *rig)
{
	uint8_t id[PS_ID_SIZE], child[PS_ID_SIZE];
	uint64_t rewrites;

	mirror_bank(&rig->mirror, &rig->owner, false);
	image_id(rig, id);
	end(rig);
	restart(rig);
	assert_int_equal(rig->loaded, 0);
	assert_true(ps_id_equal(bank(rig)->parent_id, id));
	assert_false(ps_id_equal(bank(rig)->image_id, id));
	image_id(rig, child);
	rewrites = bank(rig)->rewrites;
	/* No owner has recorded the new id, so rosters may list either. */
	end(rig);
	restart(rig);
	assert_true(ps_id_equal(bank(rig)->parent_id, id));
	assert_true(ps_id_equal(bank(rig)->image_id, child));
	assert_true(bank(rig)->rewrites > rewrites);
	assert_int_equal(spill_heap_count(rig->spill), 0);
	assert_bank(rig, 1, "made");
}

/* The power fails twice and no owner came in between: the roster lists the first image still. */
TEST(a_parent_is_what_the_roster_lists, struct rig *rig)
{
	Perseas__RosterRequest request = PERSEAS__ROSTER_REQUEST__INIT;
	uint8_t first[PS_ID_SIZE], second[PS_ID_SIZE], again[PS_ID_SIZE];
	struct peer peer;

	mirror_bank(&rig->mirror, &rig->owner, false);
	memset(first, 0, sizeof(first));
	memcpy(first, (uint8_t[]){ 9, 1 }, 2);
	for (int i = 0; i < 2; i++) {
		end(rig);
		lose_memory(rig);
		assert_true(ps_id_equal(bank(rig)->parent_id, first));
		if (i == 0)
			image_id(rig, second);
	}
	/* An owner may have recorded it on some: it is kept. */
	image_id(rig, again);
	assert_memory_equal(second, again, PS_ID_SIZE);
	peer_init(&peer);
	assert_int_equal(mirror_claim(&rig->mirror, &peer, "bank", 9, 9, NULL), 0);
	request.settled = true;
	request.roster = ps_roster_copy(bank(rig)->roster);
	memcpy(request.roster->members[0]->image_id.data, second, PS_ID_SIZE);
	request.roster->version++;
	assert_int_equal(store_roster(&peer.session, &request, &rig->mirror.why), 0);
	perseas__roster__free_unpacked(request.roster, NULL);
	end(rig);
	lose_memory(rig);
	assert_true(ps_id_equal(bank(rig)->parent_id, second));
}

/* A resync in a second image keeps the parent; one that makes the image anew does not. */
TEST(an_image_that_is_rebuilt_keeps_its_parent_with_its_id, struct rig *rig)
{
	for (int anew = 0; anew < 2; anew++) {
		Perseas__RebuildRequest request = PERSEAS__REBUILD_REQUEST__INIT;
		Perseas__RebuildReply reply = PERSEAS__REBUILD_REPLY__INIT;
		struct peer peer;

		mirror_bank(&rig->mirror, &rig->owner, false);
		end(rig);
		lose_memory(rig);
		peer_init(&peer);
		assert_int_equal(mirror_claim(&rig->mirror, &peer, "bank", 9, 9, NULL), 0);
		request.header = ps_header_copy(bank(rig));
		request.header->image_id.data[0] ^= (uint8_t)anew;
		request.epoch = 9;
		request.owner = OWNER(9);
		assert_int_equal(store_rebuild(rig->mirror.stores, &peer.session, &request, &reply,
		                               &rig->mirror.why),
		                 0);
		assert_int_equal(reply.header->parent_id.len, anew ? 0 : PS_ID_SIZE);
		if (!anew)
			assert_true(ps_id_equal(reply.header->parent_id,
			                        request.header->parent_id.data));
		perseas__header__free_unpacked(request.header, NULL);
		store_session_ended(&peer.session);
		lose_memory(rig);
	}
}

/* --- crashes --- */

static void note_crash(void *arg)
{
	struct rig *rig = arg;

	assert_in_range(rig->crashes, 0, 127);
	rig->memories[rig->crashes] = memory_heap_copy(rig->mirror.memory);
	rig->spills[rig->crashes++] = spill_heap_copy(rig->spill);
}

static void watch(struct rig *rig, bool on)
{
	memory_heap_on_change(rig->mirror.memory, on ? note_crash : NULL, rig);
	spill_heap_on_change(rig->spill, on ? note_crash : NULL, rig);
}

/*
 * Starts a daemon on what a crash left. If only the daemon crashed, the image is there as
 * acknowledged, and its spill is not; if memory was lost, it stays lost.
 */
static void look_at(struct rig *from, unsigned crash, bool lost)
{
	struct rig rig = { .loaded = 0 };
	struct memory *memory = memory_heap_copy(from->memories[crash]);

	if (lost)
		memory_heap_lose(memory, NULL);
	start(&rig, memory, spill_heap_copy(from->spills[crash]));
	assert_int_equal(spill_heap_count(rig.spill), 0);
	if (mirror_header(&rig.mirror, "bank"))
		assert_bank(&rig, 1, "made");
	else
		assert_int_equal(spill_heap_count(from->spills[crash]), 0);
	lose_memory(&rig);
	assert_null(mirror_header(&rig.mirror, "bank"));
	stop(&rig);
	memory_heap_free(memory);
	spill_heap_free(rig.spill);
}

/* The daemon, or its host, crashes at each step of a spill. */
TEST(a_crash_in_a_spill_loses_nothing_that_memory_kept, struct rig *rig)
{
	mirror_bank(&rig->mirror, &rig->owner, true);
	watch(rig, true);
	end(rig);
	watch(rig, false);
	note_crash(rig);
	assert_in_range(rig->crashes, 8, 128);
	for (unsigned i = 0; i < rig->crashes; i++) {
		look_at(rig, i, false);
		look_at(rig, i, true);
	}
}

/* A crash at each step of a load. Until the spill is removed, it can be loaded again. */
TEST(a_crash_in_a_load_serves_one_image_at_most, struct rig *rig)
{
	unsigned spilled = 0;

	spill_bank(rig);
	stop(rig);
	memory_heap_lose(rig->mirror.memory, NULL);
	watch(rig, true);
	start(rig, rig->mirror.memory, rig->spill);
	watch(rig, false);
	note_crash(rig);
	assert_in_range(rig->crashes, 6, 128);
	for (unsigned i = 0; i < rig->crashes; i++) {
		spilled += spill_heap_count(rig->spills[i]);
		look_at(rig, i, false);
		look_at(rig, i, true);
	}
	assert_in_range(spilled, 4, rig->crashes - 2);
}

/* --- what goes wrong --- */

/* Every byte in turn: never loaded, never removed, and named. */
TEST(a_damaged_spill_is_kept_and_refused, struct rig *rig)
{
	uint8_t *bytes;
	size_t len;

	spill_bank(rig);
	bytes = spill_heap_bytes(rig->spill, "bank", &len);
	for (size_t i = 0; i < len; i++) {
		bytes[i] ^= (uint8_t)(1 << i % 8);
		lose_memory_and_load(rig, 0);
		assert_null(bank(rig));
		assert_int_equal(memory_heap_pieces(rig->mirror.memory), 0);
		assert_ptr_equal(spill_heap_bytes(rig->spill, "bank", NULL), bytes);
		assert_int_equal(rig->complaints, 1);
		assert_non_null(strstr(rig->complaint, "store bank: it is kept, not loaded"));
		bytes[i] ^= (uint8_t)(1 << i % 8);
	}
	lose_memory(rig);
	assert_bank(rig, 1, "made");
}

/* Somebody renamed a spill. */
TEST(a_spill_of_another_store_is_refused, struct rig *rig)
{
	uint8_t *bytes;
	size_t len;

	spill_bank(rig);
	bytes = spill_heap_bytes(rig->spill, "bank", &len);
	spill_heap_put(rig->spill, "other", bytes, len);
	lose_memory_and_load(rig, 1);
	assert_null(mirror_header(&rig->mirror, "other"));
	assert_non_null(strstr(rig->complaint, "it is of another store"));
	assert_int_equal(spill_heap_count(rig->spill), 1);
}

/* Checksums are right, and what they cover does not fit together. */
TEST(a_spill_whose_slot_is_not_its_logs_is_refused, struct rig *rig)
{
	struct ps_archive_reader reader;
	struct ps_archive_writer writer;
	struct ps_archive_piece piece;
	struct ps_slot slot;
	const char *why;

	spill_bank(rig);
	ps_slot_encode(&slot, BANK_EPOCH, 2, 256, 128);
	assert_int_equal(rig->spill->ops->open(rig->spill, "bank"), 0);
	assert_int_equal(rig->spill->ops->begin(rig->spill, "bank"), 0);
	assert_int_equal(ps_archive_open(&reader, &rig->spill->source, &why), 0);
	assert_int_equal(ps_archive_begin(&writer, &rig->spill->sink, reader.header, &slot), 0);
	while (ps_archive_next(&reader, &piece, &why) > 0)
		assert_int_equal(ps_archive_add(&writer, piece.region, piece.offset, piece.bytes,
		                                piece.length),
		                 0);
	assert_int_equal(ps_archive_end(&writer), 0);
	ps_archive_close(&writer);
	ps_archive_free(&reader);
	rig->spill->ops->close(rig->spill);
	assert_int_equal(rig->spill->ops->commit(rig->spill), 0);
	lose_memory_and_load(rig, 0);
	assert_non_null(strstr(rig->complaint, "its slot is not that of its log"));
	assert_int_equal(spill_heap_count(rig->spill), 1);
}

/* The store was lost, and made again under its name, before the spill was found. */
TEST(the_spill_of_another_making_is_set_aside, struct rig *rig)
{
	spill_bank(rig);
	stop(rig);
	memory_heap_lose(rig->mirror.memory, NULL);
	rig->mirror.stores = stores_new(rig->mirror.memory);
	assert_int_equal(mirror_create(&rig->mirror, "bank", 2), 0);
	restart(rig);
	assert_int_equal(rig->loaded, 0);
	assert_int_equal(spill_heap_count(rig->spill), 0);
	assert_int_equal(spill_heap_aside(rig->spill), 1);
	assert_int_equal(bank(rig)->store_id.data[0], 2);
}

/* Files were mixed up: the spill is another mirror's, and may be newer than what memory has. */
TEST(the_spill_of_another_image_is_set_aside, struct rig *rig)
{
	struct memory *memory;

	spill_bank(rig);
	memory = memory_heap_copy(rig->mirror.memory);
	lose_memory(rig);
	end(rig);
	stop(rig);
	memory_heap_free(rig->mirror.memory);
	start(rig, memory, rig->spill);
	assert_int_equal(rig->loaded, 0);
	assert_non_null(strstr(rig->complaint, "it is set aside, not loaded: it is of another "
	                                       "image"));
	assert_int_equal(spill_heap_count(rig->spill), 0);
	assert_int_equal(spill_heap_aside(rig->spill), 1);
	assert_non_null(bank(rig));
}

TEST(a_damaged_image_in_memory_keeps_its_spill, struct rig *rig)
{
	Perseas__DropRequest drop = PERSEAS__DROP_REQUEST__INIT;

	spill_bank(rig);
	memory_heap_piece(rig->mirror.memory, "bank", "header", NULL)[30] ^= 1;
	restart(rig);
	assert_int_equal(rig->complaints, 2);
	assert_non_null(strstr(rig->complaint, "memory has a damaged image"));
	assert_null(bank(rig));
	assert_int_equal(spill_heap_count(rig->spill), 1);
	drop.store = (char *)"bank";
	assert_int_equal(store_drop(rig->mirror.stores, NULL, &drop, &rig->mirror.why), 0);
	restart(rig);
	assert_int_equal(rig->loaded, 1);
	assert_bank(rig, 1, "made");
}

/* Returns how many images have their headers in the list. */
static size_t list_all(struct rig *rig, Perseas__ListReply *list)
{
	perseas__list_reply__init(list);
	assert_int_equal(store_list(rig->mirror.stores, NULL, list, &rig->mirror.why), 0);
	assert_int_equal(store_list_refused(rig->mirror.stores, NULL, list, &rig->mirror.why), 0);
	return list->n_stores;
}

TEST(a_spill_that_finds_no_memory_is_kept, struct rig *rig)
{
	Perseas__ListReply list;
	struct peer peer;

	peer_init(&peer);
	spill_bank(rig);
	memory_heap_set_limit(rig->mirror.memory, 9000);
	lose_memory_and_load(rig, 0);
	assert_int_equal(memory_heap_pieces(rig->mirror.memory), 0);
	assert_non_null(strstr(rig->complaint, "no memory"));
	assert_int_equal(spill_heap_count(rig->spill), 1);
	assert_int_equal(mirror_create(&rig->mirror, "bank", 9), -STATUS(EXISTS));
	assert_int_equal(mirror_claim(&rig->mirror, &peer, "bank", 9, 9, NULL), -STATUS(NO_MEMORY));
	assert_int_equal(list_all(rig, &list), 0);
	assert_int_equal(list.n_refused, 1);
	assert_string_equal(list.refused[0]->store, "bank");
	assert_non_null(strstr(list.refused[0]->why, "no memory"));
	memory_heap_set_limit(rig->mirror.memory, 0);
	restart(rig);
	assert_bank(rig, 1, "made");
}

/* The spill directory has become read-only. */
TEST(nothing_is_served_whose_spill_cannot_be_removed, struct rig *rig)
{
	Perseas__ListReply list;
	struct peer peer;

	spill_bank(rig);
	spill_heap_freeze(rig->spill, true);
	for (int lost = 1; lost >= 0; lost--) {
		lost ? lose_memory(rig) : restart(rig);
		peer_init(&peer);
		assert_int_equal(mirror_claim(&rig->mirror, &peer, "bank", 9, 9, NULL),
		                 -STATUS(DAMAGED));
		assert_non_null(strstr(rig->mirror.why.text, "its spill cannot be removed"));
		assert_int_equal(list_all(rig, &list), 1);
		assert_null(list.stores[0]->slot);
	}
	spill_heap_freeze(rig->spill, false);
	restart(rig);
	assert_bank(rig, 1, "made");
}

/* The disk is full: what could be written is kept, and a restart finds the rest in memory. */
TEST(a_full_disk_costs_only_what_did_not_fit, struct rig *rig)
{
	struct spill_sum sum;

	mirror_bank(&rig->mirror, &rig->owner, false);
	assert_int_equal(mirror_create(&rig->mirror, "small", 2), 0);
	assert_int_equal(mirror_settle(&rig->mirror, "small", 2), 0);
	spill_heap_set_room(rig->spill, 9000);
	sum = end(rig);
	assert_int_equal(sum.stores, 1);
	assert_int_equal(sum.failed, 1);
	assert_non_null(strstr(rig->complaint, "bank"));
	assert_non_null(spill_heap_bytes(rig->spill, "small", NULL));
	assert_int_equal(spill_heap_count(rig->spill), 1);
	restart(rig);
	assert_bank(rig, 1, "made");
	assert_non_null(mirror_header(&rig->mirror, "small"));
}
