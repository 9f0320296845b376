/*
 * test_later_version.c - what a later version of Perseas wrote: this one refuses it by name, says
 * what to do, and leaves it as it is.
 */
#include "spill_rig.h"

#include "../support/messages.h"

#include "../../client/host/control_errors.h"
#include "../../client/perseas.h"
#include "../../proto/control/archive.h"
#include "../../proto/control/version.h"
#include "../../proto/data/frame.h"
#include "../../proto/image/crc32c.h"
#include "../../server/store/control.h"

struct unit_fixture unit_fixture = { setup, teardown };

/* The lowest level that this version does not read. */
enum { ABOVE = PS_LEVEL_MAX + 1 };

enum later { LEVEL, HIGHEST, NEXT, VALUE, FIELD, FORMAT, LATER };

/* Field 99, a number. */
static const uint8_t unknown[] = { 0x98, 0x06, 1 };

/* The header file of this header as a later version might write it; with free(). */
static uint8_t *later_file(const Perseas__Header *header, enum later what, size_t *len)
{
	Perseas__Header edited = *header;
	Perseas__Roster roster = *header->roster;
	struct ps_header_file head;
	uint8_t *bytes;

	edited.roster = what == NEXT ? header->roster : &roster;
	if (what == NEXT)
		edited.next_roster = &roster;
	roster.level = what == HIGHEST ? UINT32_MAX : what == FIELD || what == FORMAT ? 0 : ABOVE;
	/* A value that only that level knows. */
	if (what == VALUE)
		edited.state = (Perseas__State)99;
	assert_int_equal(ps_header_pack(&edited, &bytes, len), 0);
	bytes = realloc(bytes, *len + sizeof(unknown));
	assert_non_null(bytes);
	memcpy(&head, bytes, sizeof(head));
	if (what == FIELD) {
		memcpy(bytes + *len, unknown, sizeof(unknown));
		*len += sizeof(unknown);
		head.length += sizeof(unknown);
		head.crc = ps_crc32c(0, bytes + sizeof(head), head.length);
	}
	head.format += what == FORMAT;
	memcpy(bytes, &head, sizeof(head));
	return bytes;
}

/* The header files of later versions, whatever they change; a damaged file is never taken for
 * one. */
TEST_WITH(a_header_file_of_a_later_version_is_told_from_a_damaged_one, NULL, NULL)
{
	struct message_header *h = message_header_new();
	struct ps_header_file head;
	const char *why;

	for (enum later what = LEVEL; what < LATER; what++) {
		size_t len;
		uint8_t *bytes = later_file(&h->header, what, &len);

		assert_null(ps_header_unpack(bytes, len, &why));
		assert_true(ps_is_later_version(why));
		assert_non_null(strstr(why, "a later version of Perseas wrote it"));
		if (what != FORMAT) {
			bytes[len - 1] ^= 1;
			assert_null(ps_header_unpack(bytes, len, &why));
			assert_false(ps_is_later_version(why));
		}
		memcpy(&head, bytes, sizeof(head));
		head.format = 0;
		memcpy(bytes, &head, sizeof(head));
		assert_null(ps_header_unpack(bytes, len, &why));
		assert_false(ps_is_later_version(why));
		free(bytes);
	}
	free(h);
}

/* A roster of a level above ours is refused as of a later version; level 0 is taken. */
static void assert_level_refused(const ProtobufCMessage *message, Perseas__Roster *roster)
{
	const bool request = message->descriptor == &perseas__request__descriptor;

	for (roster->level = 0; roster->level <= ABOVE; roster->level += ABOVE) {
		const char *why;
		ProtobufCMessage *back;
		uint8_t *bytes;
		size_t len;

		if (request)
			assert_int_equal(ps_request_pack((const void *)message, &bytes, &len), 0);
		else
			assert_int_equal(ps_reply_pack((const void *)message, &bytes, &len), 0);
		back = request ? (void *)ps_request_unpack(bytes + 4, len - 4, &why)
		               : (void *)ps_reply_unpack(bytes + 4, len - 4, &why);
		free(bytes);
		assert_int_equal(back == NULL, roster->level == ABOVE);
		if (back)
			protobuf_c_message_free_unpacked(back, NULL);
		else
			assert_true(ps_is_later_version(why));
	}
	roster->level = 0;
}

static void fill_create(Perseas__CreateRequest *create, struct message_header *h)
{
	create->store = message_bank;
	create->store_id = message_id(3);
	create->image_id = message_id(0);
	create->log_size = PS_LOG_MIN;
	create->roster = &h->roster;
}

/* An older mirror cannot join such a store, and nobody creates one. */
TEST_WITH(a_mirror_takes_no_roster_of_a_later_level, NULL, NULL)
{
	struct message_header *h = message_header_new();
	Perseas__CreateRequest create = PERSEAS__CREATE_REQUEST__INIT;
	Perseas__RebuildRequest rebuild = PERSEAS__REBUILD_REQUEST__INIT;
	Perseas__RosterRequest change = PERSEAS__ROSTER_REQUEST__INIT;
	Perseas__Request creates = MESSAGE_REQUEST(create, CREATE, &create);
	Perseas__Request rebuilds = MESSAGE_REQUEST(rebuild, REBUILD, &rebuild);
	Perseas__Request changes = MESSAGE_REQUEST(roster, ROSTER, &change);

	fill_create(&create, h);
	change.roster = &h->roster;
	assert_level_refused(&creates.base, &h->roster);
	assert_level_refused(&changes.base, &h->roster);
	change.next = &h->next;
	h->next.version++;
	change.settled = true;
	assert_level_refused(&changes.base, &h->next);
	rebuild.header = &h->header;
	rebuild.epoch = 9;
	rebuild.owner = message_id(1);
	assert_level_refused(&rebuilds.base, &h->roster);
	free(h);
}

/* In the answer to an owner that is of a later version than the mirror. */
TEST(a_mirror_says_that_a_roster_is_of_a_later_version, struct rig *rig)
{
	struct message_header *h = message_header_new();
	Perseas__CreateRequest create = PERSEAS__CREATE_REQUEST__INIT;
	Perseas__Request request = MESSAGE_REQUEST(create, CREATE, &create);
	struct control_reply answer;
	Perseas__Reply *reply;
	struct peer peer;
	const char *why;
	uint8_t *bytes;
	size_t len;

	fill_create(&create, h);
	assert_int_equal(ps_version_needed_by(&request.base), PS_PROTOCOL_LEAST);
	h->roster.level = ABOVE;
	assert_true(ps_version_needed_by(&request.base) > PS_PROTOCOL_LEAST);
	peer_init(&peer);
	assert_int_equal(ps_request_pack(&request, &bytes, &len), 0);
	assert_int_equal(control_handle(rig->mirror.stores, &peer.session, "1.2.3", bytes + 4,
	                                len - 4, &answer),
	                 0);
	reply = ps_reply_unpack(answer.bytes + 4, answer.len - 4, &why);
	assert_non_null(reply);
	assert_int_equal(reply->status, STATUS(BAD_VERSION));
	assert_string_equal(reply->message, ps_later_version_text);
	perseas__reply__free_unpacked(reply, NULL);
	free(answer.bytes);
	free(bytes);
	free(h);
}

TEST_WITH(who_is_told_of_a_later_level_is_told_what_to_do, NULL, NULL)
{
	Perseas__StoreStatus status, *listed = &status;
	Perseas__Slot slot;
	struct message_header *h = message_status(&status, &slot, 0, 9);
	Perseas__StatusReply body = PERSEAS__STATUS_REPLY__INIT;
	Perseas__ListReply list = PERSEAS__LIST_REPLY__INIT;
	Perseas__Reply reply = MESSAGE_REPLY(store, STORE, &body);
	Perseas__Reply lists = MESSAGE_REPLY(list, LIST, &list);
	struct ps_error error;
	const char *why;
	uint8_t *bytes;
	size_t len;

	body.status = &status;
	list.stores = &listed;
	list.n_stores = 1;
	assert_level_refused(&reply.base, &h->roster);
	assert_level_refused(&lists.base, &h->roster);
	h->roster.level = ABOVE;
	assert_int_equal(ps_reply_pack(&reply, &bytes, &len), 0);
	assert_null(ps_reply_unpack(bytes + 4, len - 4, &why));
	free(bytes);
	assert_int_equal(ps_control_error_bad_reply(&error, "m1:7170", why), PERSEAS_EVERSION);
	assert_non_null(strstr(error.text, "m1:7170 told of a store: a later version of Perseas"));
	assert_int_equal(ps_control_error_bad_reply(&error, "m1:7170", "it is wrong"),
	                 PERSEAS_EPROTOCOL);
	free(h);
}

/* --- a mirror that was a later version's --- */

struct file {
	uint8_t *bytes;
	uint64_t size;
};

/* A copy of the bank's header file as it is; with free(). */
static struct file header_file(struct rig *rig)
{
	struct file file;
	const uint8_t *bytes = memory_heap_piece(rig->mirror.memory, "bank", "header", &file.size);

	file.bytes = malloc(file.size);
	assert_non_null(file.bytes);
	memcpy(file.bytes, bytes, file.size);
	return file;
}

/* The mirror ends, the bank's header file becomes this, and the mirror starts again. */
static void start_with(struct rig *rig, const uint8_t *bytes, uint64_t size)
{
	struct memory *memory = rig->mirror.memory;

	stop(rig);
	assert_int_equal(memory->ops->replace(memory, "bank", "header", bytes, size), 0);
	start(rig, memory, rig->spill);
}

static void start_with_later(struct rig *rig, enum later what)
{
	size_t len;
	uint8_t *bytes = later_file(mirror_header(&rig->mirror, "bank"), what, &len);

	start_with(rig, bytes, len);
	free(bytes);
}

/* Asks for a rebuild, as an owner of this version does that lost sight of the store. */
static Perseas__Status ask_rebuild(struct rig *rig, struct peer *peer)
{
	struct message_header *h = message_header_new();
	Perseas__RebuildRequest rebuild = PERSEAS__REBUILD_REQUEST__INIT;
	Perseas__RebuildReply reply = PERSEAS__REBUILD_REPLY__INIT;
	int ret;

	rebuild.header = &h->header;
	rebuild.epoch = BANK_EPOCH + 1;
	rebuild.owner = message_id(1);
	ret = store_rebuild(rig->mirror.stores, &peer->session, &rebuild, &reply, &rig->mirror.why);
	free(h);
	return (Perseas__Status)-ret;
}

static Perseas__Status ask_drop(struct rig *rig)
{
	Perseas__DropRequest drop = PERSEAS__DROP_REQUEST__INIT;

	drop.store = (char *)"bank";
	return (Perseas__Status)-store_drop(rig->mirror.stores, NULL, &drop, &rig->mirror.why);
}

static void assert_all_refused(struct rig *rig)
{
	struct peer peer;

	peer_init(&peer);
	assert_int_equal(mirror_claim(&rig->mirror, &peer, "bank", 9, 2, NULL),
	                 -STATUS(BAD_VERSION));
	assert_non_null(strstr(rig->mirror.why.text, "a later version of Perseas wrote it"));
	assert_int_equal(ask_rebuild(rig, &peer), STATUS(BAD_VERSION));
	assert_int_equal(ask_drop(rig), STATUS(BAD_VERSION));
	assert_int_equal(mirror_settle(&rig->mirror, "bank", 1), -STATUS(BAD_VERSION));
	assert_int_equal(mirror_create(&rig->mirror, "bank", 1), -STATUS(EXISTS));
}

/* Whatever is asked, the later version finds everything unchanged. */
TEST(a_mirror_leaves_an_image_of_a_later_version_as_it_is, struct rig *rig)
{
	unsigned pieces;

	mirror_bank(&rig->mirror, &rig->owner, false);
	store_session_ended(&rig->owner.session);
	pieces = memory_heap_pieces(rig->mirror.memory);
	for (enum later what = LEVEL; what < LATER; what++) {
		struct file before = header_file(rig), later, after;

		start_with_later(rig, what);
		later = header_file(rig);
		assert_int_equal(rig->complaints, 1);
		assert_non_null(strstr(rig->complaint, "a later version of Perseas wrote it"));
		assert_all_refused(rig);
		after = header_file(rig);
		assert_int_equal(after.size, later.size);
		assert_memory_equal(after.bytes, later.bytes, later.size);
		assert_int_equal(memory_heap_pieces(rig->mirror.memory), pieces);
		/* In this test the present version is the one that understands the image. */
		start_with(rig, before.bytes, before.size);
		assert_int_equal(rig->complaints, 0);
		free(before.bytes);
		free(later.bytes);
		free(after.bytes);
	}
	assert_bank(rig, 1, "made");
}

/* In memory and on disk, a readable spill does not replace the image of the later version. */
TEST(no_spill_replaces_an_image_of_a_later_version, struct rig *rig)
{
	uint8_t *bytes, *copy;
	size_t len;

	mirror_bank(&rig->mirror, &rig->owner, false);
	store_session_ended(&rig->owner.session);
	assert_int_equal(end(rig).stores, 1);
	bytes = spill_heap_bytes(rig->spill, "bank", &len);
	assert_non_null(bytes);
	copy = malloc(len);
	assert_non_null(copy);
	memcpy(copy, bytes, len);
	restart(rig);
	spill_heap_put(rig->spill, "bank", copy, len);
	start_with_later(rig, LEVEL);
	assert_int_equal(rig->loaded, 0);
	assert_int_equal(spill_heap_count(rig->spill), 1);
	assert_non_null(strstr(rig->complaint, "it is kept, not loaded"));
	assert_null(strstr(rig->complaint, "drop"));
	free(copy);
}

/* With the format of its archive. */
static void set_format(struct rig *rig, uint32_t by)
{
	struct ps_archive_head head;
	size_t len;
	uint8_t *bytes = spill_heap_bytes(rig->spill, "bank", &len);

	assert_non_null(bytes);
	memcpy(&head, bytes, sizeof(head));
	head.format += by;
	memcpy(bytes, &head, sizeof(head));
}

/* A spill is an archive, as a snapshot is. Where all mirrors found nothing, an owner would make an
 * empty store: so this one says what is there, and the later version finds it. */
TEST(an_archive_of_a_later_version_is_kept, struct rig *rig)
{
	mirror_bank(&rig->mirror, &rig->owner, false);
	store_session_ended(&rig->owner.session);
	assert_int_equal(end(rig).stores, 1);
	set_format(rig, 1);
	lose_memory(rig);
	assert_int_equal(rig->loaded, 0);
	assert_int_equal(spill_heap_count(rig->spill), 1);
	assert_non_null(strstr(rig->complaint, "a later version of Perseas wrote it"));
	assert_null(strstr(rig->complaint, "damaged"));
	assert_all_refused(rig);
	assert_int_equal(memory_heap_pieces(rig->mirror.memory), 0);
	assert_int_equal(end(rig).failed, 0);
	assert_int_equal(spill_heap_count(rig->spill), 1);
	set_format(rig, UINT32_MAX);
	restart(rig);
	assert_int_equal(rig->loaded, 1);
	assert_bank(rig, 1, "made");
}

/* Memory ends with its host: what this version cannot write must not be taken for spilled. */
TEST(no_spill_does_without_an_image_of_a_later_version, struct rig *rig)
{
	Perseas__SpillReply reply = PERSEAS__SPILL_REPLY__INIT;
	struct spill_sum sum;

	mirror_bank(&rig->mirror, &rig->owner, false);
	store_session_ended(&rig->owner.session);
	start_with_later(rig, LEVEL);
	assert_int_equal(mirror_create(&rig->mirror, "other", 3), 0);
	assert_int_equal(store_spill(rig->mirror.stores, &reply, &rig->mirror.why),
	                 -STATUS(BAD_VERSION));
	assert_non_null(strstr(rig->mirror.why.text, "nothing was ended"));
	assert_int_equal(spill_heap_count(rig->spill), 0);
	/* The operator is told about this image, and the others are spilled. */
	sum = end(rig);
	assert_int_equal(sum.stores, 1);
	assert_int_equal(sum.failed, 1);
	assert_non_null(strstr(rig->complaint, "store bank is not spilled: a later version"));
	assert_int_equal(spill_heap_count(rig->spill), 1);
}
