/*
 * test_store_names.c - files of images that go under the running daemon: what is in memory is
 * copied to new ones, nothing that was acknowledged is lost, and no header is ever left alone.
 */
#include "spill_rig.h"

#include "../../server/host/jobs.h"
#include "../../server/store/store_private.h"

struct unit_fixture unit_fixture = { setup, teardown };

static bool has_header(struct rig *rig)
{
	return memory_heap_piece(rig->mirror.memory, "bank", "header", NULL) != NULL;
}

/* The daemon looks, and does what there is to do. */
static void look(struct rig *rig)
{
	bool again;

	if (stores_check_names(rig->mirror.stores, &again))
		stores_repair_names(rig->mirror.stores);
}

static const struct store_view *view(struct rig *rig)
{
	const struct store_view *views;
	size_t count;

	assert_int_equal(stores_view(rig->mirror.stores, &views, &count), 0);
	assert_int_equal(count, 1);
	return views;
}

/* The files were missed, and are there again. */
static void assert_mended(struct rig *rig)
{
	assert_string_equal(view(rig)->restart_loss, "");
	assert_int_equal(view(rig)->events[STORE_FILES_MISSING], 1);
	assert_int_equal(view(rig)->events[STORE_FILES_RESTORED], 1);
}

static void restart_well(struct rig *rig)
{
	restart(rig);
	assert_int_equal(rig->complaints, 0);
}

/* An owner that acknowledged transaction 2, and is in the middle of the next. */
static void begin_bank(struct rig *rig, bool shared)
{
	struct writer writer;

	mirror_bank(&rig->mirror, &rig->owner, shared);
	writer_init(&writer, &rig->owner.session);
	writer_write(&writer, 0, 0, "done", 4, WRITE_ALL);
	writer_write(&writer, 0, 0, "half", 4, WRITE_RECORD | WRITE_DATA);
}

/* Somebody removes every file. The image is in files again: with the last transaction that was
 * acknowledged, and without its owner, who takes its session up again with the same epoch. */
TEST(an_image_is_made_again_in_new_files, struct rig *rig)
{
	struct peer again;
	uint64_t rewrites;

	begin_bank(rig, false);
	rewrites = bank(rig)->rewrites;
	memory_heap_lose(rig->mirror.memory, "bank");
	look(rig);
	assert_true(bank(rig)->rewrites > rewrites);
	assert_mended(rig);
	assert_int_equal(rig->owner.cuts, 1);
	assert_null(session_store(&rig->owner.session));
	restart_well(rig);
	assert_int_equal(bank(rig)->generation, 2);
	peer_init(&again);
	assert_int_equal(mirror_claim(&rig->mirror, &again, "bank", BANK_EPOCH, BANK_OWNER, NULL),
	                 0);
	store_session_ended(&again.session);
	assert_bank(rig, 2, "done");
}

/* Writes as the owner of an image does until the promise page names another owner. */
struct racer {
	struct writer writer;
	const uint8_t *promise;
	unsigned looks;
};

static bool sees_its_promise(const struct racer *racer)
{
	struct ps_promise page;

	memcpy(&page, racer->promise, sizeof(page));
	return page.epoch == BANK_EPOCH;
}

static void on_fence(void *arg)
{
	struct racer *racer = arg;

	assert_false(sees_its_promise(racer));
	if (racer->looks++ == 0)
		writer_write(&racer->writer, 0, 0, "last", 4, WRITE_ALL);
}

/* The owner has the memory itself. A transaction whose slot it wrote before it saw that its promise
 * is gone is in the copy; what it writes later is in no image. */
TEST(an_owner_with_the_memory_is_fenced_before_the_copy, struct rig *rig)
{
	struct racer racer = { .looks = 0 };

	begin_bank(rig, true);
	memory_heap_keep_removed(rig->mirror.memory, true);
	racer.promise = session_memory(&rig->owner.session, PS_REGION_PROMISE, 0,
	                               sizeof(struct ps_promise), false);
	writer_init(&racer.writer, &rig->owner.session);
	writer_write(&racer.writer, 0, 0, "next", 4, WRITE_ALL);
	memory_heap_lose(rig->mirror.memory, "bank");
	memory_heap_on_fence(rig->mirror.memory, on_fence, &racer);
	look(rig);
	memory_heap_on_fence(rig->mirror.memory, NULL, NULL);
	assert_true(racer.looks > 0);
	assert_false(bank(rig)->shared);
	assert_string_equal(bank(rig)->sharer, "");
	writer_write(&racer.writer, 0, 0, "late", 4, WRITE_ALL);
	assert_bank(rig, 4, "last");
}

/* A claim comes before the daemon has looked. */
TEST(a_claim_copies_an_image_without_files, struct rig *rig)
{
	Perseas__ClaimReply reply;
	struct peer next;

	begin_bank(rig, false);
	memory_heap_lose(rig->mirror.memory, "bank");
	peer_init(&next);
	assert_int_equal(mirror_takeover(&rig->mirror, &next, "bank", 9, 2, &reply), 0);
	assert_true(reply.copied);
	assert_true(reply.undone);
	assert_int_equal(reply.slot->seq, 2);
	assert_int_equal(reply.header->generation, 2);
	assert_string_equal(view(rig)->restart_loss, "");
	assert_int_equal(view(rig)->events[STORE_FILES_RESTORED], 1);
	restart_well(rig);
	assert_int_equal(bank(rig)->promised_epoch, 9);
}

static void leave_no_memory(struct rig *rig)
{
	struct memory *memory = rig->mirror.memory;

	memory_heap_set_limit(memory, memory->ops->used(memory));
}

/* There is no memory for the image twice: the claim is granted on what there is, and no header is
 * left without its pieces, which the next daemon would call damaged. With more memory the image is
 * made again, with the promise that was given meanwhile. */
TEST(a_claim_leaves_no_header_alone, struct rig *rig)
{
	Perseas__ClaimReply reply;
	struct peer next;

	begin_bank(rig, false);
	leave_no_memory(rig);
	memory_heap_lose(rig->mirror.memory, "bank");
	peer_init(&next);
	assert_int_equal(mirror_takeover(&rig->mirror, &next, "bank", 9, 2, &reply), 0);
	assert_false(reply.copied);
	assert_int_equal(reply.slot->seq, 2);
	assert_false(has_header(rig));
	look(rig);
	assert_non_null(strstr(view(rig)->restart_loss, "no memory for the image twice"));
	assert_int_equal(next.cuts, 0);
	memory_heap_set_limit(rig->mirror.memory, 0);
	look(rig);
	assert_string_equal(view(rig)->restart_loss, "");
	restart_well(rig);
	assert_int_equal(bank(rig)->promised_epoch, 9);
}

/* Only the header went: it is written again, and nobody's session ends. */
TEST(a_header_alone_is_written_again, struct rig *rig)
{
	begin_bank(rig, false);
	assert_true(memory_heap_lose_piece(rig->mirror.memory, "bank", "header"));
	look(rig);
	assert_true(has_header(rig));
	assert_mended(rig);
	assert_int_equal(rig->owner.cuts, 0);
	assert_int_equal(bank(rig)->generation, 1);
}

/* One piece was removed: for the next daemon the image is as lost as without all of them. */
TEST(one_piece_is_enough, struct rig *rig)
{
	begin_bank(rig, false);
	assert_true(memory_heap_lose_piece(rig->mirror.memory, "bank", "segment-0.1"));
	look(rig);
	restart_well(rig);
	assert_bank(rig, 2, "done");
}

/* The new header would name pieces of the second image, which are gone. */
TEST(a_rebuild_without_files_is_not_finished, struct rig *rig)
{
	Perseas__RebuildRequest request = PERSEAS__REBUILD_REQUEST__INIT;
	Perseas__RebuildReply reply = PERSEAS__REBUILD_REPLY__INIT;
	Perseas__FinishReply finished = PERSEAS__FINISH_REPLY__INIT;
	struct mirror *mirror = &rig->mirror;

	begin_bank(rig, false);
	request.epoch = BANK_EPOCH;
	request.owner = OWNER(BANK_OWNER);
	request.header = ps_header_copy(bank(rig));
	assert_int_equal(store_rebuild(mirror->stores, &rig->owner.session, &request, &reply,
	                               &mirror->why),
	                 0);
	perseas__header__free_unpacked(request.header, NULL);
	ps_image_init_slots(
		session_memory(&rig->owner.session, PS_REGION_LOG, 0, PS_RING_OFFSET, true));
	assert_true(memory_heap_lose_piece(mirror->memory, "bank", "segment-0.2"));
	assert_int_equal(store_finish(&rig->owner.session, &finished, &mirror->why), -STATUS(IO));
	assert_int_equal(bank(rig)->generation, 1);
	look(rig);
	restart_well(rig);
	assert_bank(rig, 2, "done");
}

/* Somebody moved the folder. It may come back, with the header that it has: until then no other is
 * written, nothing is made in its place, and the owner commits as before. */
TEST(what_was_moved_is_waited_for, struct rig *rig)
{
	struct mirror *mirror = &rig->mirror;
	struct peer next;

	begin_bank(rig, false);
	memory_heap_move(mirror->memory, "bank", ".away");
	look(rig);
	assert_non_null(strstr(view(rig)->restart_loss, "they were moved"));
	assert_int_equal(rig->owner.cuts, 0);
	peer_init(&next);
	assert_int_equal(mirror_takeover(mirror, &next, "bank", 9, 2, NULL), -STATUS(IO));
	assert_non_null(strstr(mirror->why.text, "until they are moved back"));
	assert_int_equal(rig->owner.cuts, 0);
	assert_false(has_header(rig));
	assert_int_equal(bank(rig)->promised_epoch, BANK_EPOCH);
	memory_heap_move(mirror->memory, ".away", "bank");
	look(rig);
	assert_string_equal(view(rig)->restart_loss, "");
	assert_int_equal(mirror_takeover(mirror, &next, "bank", 9, 2, NULL), 0);
	store_session_ended(&next.session);
}

/* The request that drops the bank. */
static void name_bank(struct rig *rig, Perseas__DropRequest *drop)
{
	perseas__drop_request__init(drop);
	drop->store = (char *)(uintptr_t) "bank";
	drop->store_id = bank(rig)->store_id;
	drop->image_id = bank(rig)->image_id;
}

/* A store that is deleted must not come back with a folder that comes back. */
TEST(what_was_moved_is_not_dropped, struct rig *rig)
{
	Perseas__DropRequest drop;
	struct mirror *mirror = &rig->mirror;

	begin_bank(rig, false);
	store_session_ended(&rig->owner.session);
	name_bank(rig, &drop);
	memory_heap_move(mirror->memory, "bank", ".away");
	assert_int_equal(store_drop(mirror->stores, NULL, &drop, &mirror->why), -STATUS(IO));
	memory_heap_move(mirror->memory, ".away", "bank");
	assert_int_equal(store_drop(mirror->stores, NULL, &drop, &mirror->why), 0);
}

/* Nor is a segment made in a folder that was moved, which a new folder would keep from coming back.
 */
TEST(no_segment_is_made_where_the_folder_was, struct rig *rig)
{
	const unsigned pieces = memory_heap_pieces(rig->mirror.memory);

	begin_bank(rig, false);
	memory_heap_move(rig->mirror.memory, "bank", ".away");
	assert_int_equal(peer_add(&rig->owner, &rig->mirror.why, 1, "more", 4096), -STATUS(IO));
	memory_heap_move(rig->mirror.memory, ".away", "bank");
	assert_true(memory_heap_pieces(rig->mirror.memory) > pieces);
	assert_int_equal(peer_add(&rig->owner, &rig->mirror.why, 1, "more", 4096), 0);
}

/* The daemon's own removals raise no alarm. */
TEST(its_own_removals_raise_no_alarm, struct rig *rig)
{
	Perseas__DropRequest drop;
	struct mirror *mirror = &rig->mirror;
	struct peer next;
	bool again;

	begin_bank(rig, true);
	look(rig);
	peer_init(&next);
	assert_int_equal(mirror_takeover(mirror, &next, "bank", 9, 2, NULL), 0);
	assert_false(stores_check_names(mirror->stores, &again));
	assert_false(again);
	assert_int_equal(view(rig)->events[STORE_FILES_MISSING], 0);
	store_session_ended(&next.session);
	name_bank(rig, &drop);
	assert_int_equal(store_drop(mirror->stores, NULL, &drop, &mirror->why), 0);
	assert_false(stores_check_names(mirror->stores, &again));
}

/* A job may remove files of its store at any time: the check comes back when the job is over. */
TEST(a_job_s_removals_raise_no_alarm, struct rig *rig)
{
	struct store *store;
	struct job job = { 0 };
	bool again;

	begin_bank(rig, false);
	store = store_find(rig->mirror.stores, "bank");
	store->job = &job;
	assert_true(memory_heap_lose_piece(rig->mirror.memory, "bank", "log.1"));
	assert_false(stores_check_names(rig->mirror.stores, &again));
	assert_true(again);
	assert_int_equal(view(rig)->events[STORE_FILES_MISSING], 0);
	store->job = NULL;
	look(rig);
	assert_mended(rig);
}

/* The daemon ends in order, and there is no memory for the image twice: it is in a spill, and what
 * is left of its files is not in the way of that. */
TEST(a_spill_saves_an_image_without_files, struct rig *rig)
{
	begin_bank(rig, false);
	leave_no_memory(rig);
	assert_true(memory_heap_lose_piece(rig->mirror.memory, "bank", "segment-0.1"));
	look(rig);
	assert_int_equal(end(rig).stores, 1);
	memory_heap_set_limit(rig->mirror.memory, 0);
	restart_well(rig);
	assert_int_equal(rig->loaded, 1);
	assert_bank(rig, 2, "done");
}

/* A spill that could not be written removes nothing, and the loss is told. */
TEST(what_is_lost_at_the_end_is_told, struct rig *rig)
{
	begin_bank(rig, false);
	leave_no_memory(rig);
	assert_true(memory_heap_lose_piece(rig->mirror.memory, "bank", "segment-0.1"));
	look(rig);
	spill_heap_set_room(rig->spill, 1000);
	assert_int_equal(end(rig).failed, 1);
	assert_non_null(strstr(rig->complaint, "the next one will not have the image"));
	assert_true(has_header(rig));
}
