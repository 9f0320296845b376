/*
 * make_corpus.c - writes seeds of the fuzz targets, with the real encoders, below the folder that
 * it is given: in a folder for each target.
 *
 *     make_corpus tests/fuzz/corpus
 */
#include "../../proto/control/archive.h"
#include "../../proto/data/frame.h"
#include "../../proto/image/image.h"
#include "../support/messages.h"
#include "seed_file.h"

#include <string.h>

enum { RING = 4096 };

struct buffer {
	_Alignas(8) uint8_t bytes[8192];
	size_t len;
};

static void append(struct buffer *buffer, const void *bytes, size_t len)
{
	memcpy(buffer->bytes + buffer->len, bytes, len);
	buffer->len += len;
}

static void save(const char *target, const char *name, const void *bytes, size_t len)
{
	FILE *file = seed_open(target, name);

	seed_add(file, bytes, len);
	seed_close(file);
}

/* --- records and images ------------------------------------------------------------ */

static void add_range(struct ps_record *record, uint32_t segment, uint64_t offset, uint32_t length)
{
	struct ps_range range = { .segment = segment, .length = length, .offset = offset };
	uint8_t *at = (uint8_t *)record + record->length;

	memcpy(at, &range, sizeof range);
	record->length += sizeof range;
	record->ranges++;
	if (record->kind == PS_RECORD_TRANSACTION) {
		memset(at + sizeof range, 0, ps_align8(length));
		memset(at + sizeof range, 0x5a, length);
		record->length += (uint32_t)ps_align8(length);
	}
}

/* A record with `ranges` entries, all inside what the image target has. */
static struct ps_record *make_record(struct buffer *buffer, enum ps_record_kind kind,
                                     unsigned ranges, uint64_t position)
{
	struct ps_record *record = (struct ps_record *)buffer->bytes;

	memset(record, 0, sizeof *record);
	record->kind = (uint16_t)kind;
	record->length = sizeof *record;
	for (unsigned i = 0; i < ranges; i++)
		add_range(record, i % 2 * 5, 20 * i % 200, 1 + 5 * i % 17);
	ps_record_seal(record, 3, 8, position, 0, 1700000000000000000);
	buffer->len = record->length;
	return record;
}

static void save_record(const char *name, enum ps_record_kind kind, unsigned ranges, uint8_t flags)
{
	struct buffer record, seed = { .len = 0 };

	make_record(&record, kind, ranges, 64);
	append(&seed, &flags, 1);
	append(&seed, record.bytes, record.len);
	save("record", name, seed.bytes, seed.len);
}

/* A log that stands at (3, seq), and a record of (3, 8) in it. */
static void save_log(const char *target, const char *name, unsigned ranges, uint64_t seq,
                     uint64_t next, uint64_t last, uint64_t position, uint8_t flags)
{
	struct buffer record, seed = { .len = 0 };
	struct ps_slot slots[2];

	ps_slot_encode(&slots[0], 3, seq - 1, 64, 0);
	ps_slot_encode(&slots[1], 3, seq, next, last);
	make_record(&record, PS_RECORD_TRANSACTION, ranges, position);
	append(&seed, &flags, 1);
	append(&seed, slots, sizeof slots);
	append(&seed, record.bytes, record.len);
	save(target, name, seed.bytes, seed.len);
}

static void save_records_and_images(void)
{
	save_record("none", PS_RECORD_TRANSACTION, 0, 0);
	save_record("three", PS_RECORD_TRANSACTION, 3, 1);
	save_record("many", PS_RECORD_TRANSACTION, 20, 1);
	save_record("publish", PS_RECORD_PUBLISH, 2, 1);
	save_record("destroy", PS_RECORD_DESTROY, 2, 1);
	save_log("image", "unfinished", 3, 7, 128, 0, 128, 3);
	save_log("image", "many", 20, 7, 128, 0, 128, 3);
	save_log("image", "next-lap", 3, 7, 2 * RING - 64, 0, 2 * RING, 7);
	save_log("image", "other-lap", 3, 7, 128, 0, 128 + RING, 3);
	save_log("log", "followed", 3, 7, 128, 64, 128, 3);
	save_log("log", "past", 3, 8, 320, 128, 128, 7);
}

/* --- frames ------------------------------------------------------------------------ */

static void append_frame(struct buffer *buffer, uint8_t op, unsigned extents, uint32_t length)
{
	struct ps_frame frame = {
		.op = op,
		.flags = PS_FRAME_SIGNALLED,
		.count = (uint16_t)extents,
		.cookie = 1 + buffer->len,
	};

	append(buffer, &frame, sizeof frame);
	for (unsigned i = 0; i < extents; i++) {
		struct ps_extent extent = {
			.region = op == PS_OP_READ ? PS_REGION_SEGMENT : PS_REGION_LOG,
			.length = length,
			.offset = 8 * i,
		};

		append(buffer, &extent, sizeof extent);
	}
	if (op == PS_OP_WRITE)
		buffer->len += (size_t)extents * length;
}

static void save_frames(void)
{
	struct buffer write = { .bytes = { 255 }, .len = 1 };
	struct buffer read = { .bytes = { 7 }, .len = 1 };
	struct buffer mixed = { .bytes = { 1 }, .len = 1 };

	append_frame(&write, PS_OP_WRITE, 3, 40);
	append_frame(&read, PS_OP_READ, 1, 100);
	append_frame(&mixed, PS_OP_WRITE, 1, 1);
	append_frame(&mixed, PS_OP_READ, 1, 512);
	append_frame(&mixed, PS_OP_WRITE, 20, 13);
	save("frame", "write", write.bytes, write.len);
	save("frame", "read", read.bytes, read.len);
	save("frame", "mixed", mixed.bytes, mixed.len);
}

/* --- hellos of RDMA connections, xor the right one ----------------------------------- */

static void save_hello(const char *name, uint8_t flags, struct ps_hello hello, size_t length)
{
	uint8_t bytes[1 + sizeof hello];

	bytes[0] = flags;
	memcpy(bytes + 1, &hello, sizeof hello);
	save("verbs_hello", name, bytes, 1 + length);
}

static void save_hellos(void)
{
	const struct ps_hello right = { 0 };

	save_hello("right", 0, right, sizeof right);
	save_hello("right_exact", 1, right, sizeof right);
	save_hello("padded", 0, right, 0);
	save_hello("short", 1, right, sizeof right - 1);
	save_hello("empty", 1, right, 0);
	save_hello("magic", 0, (struct ps_hello){ .magic = 1 }, sizeof right);
	save_hello("version", 0, (struct ps_hello){ .version = 1 }, sizeof right);
	save_hello("token", 0, (struct ps_hello){ .token = { 1 } }, sizeof right);
	save_hello("zero", 0, (struct ps_hello){ .zero = 1 }, sizeof right);
}

/* --- messages ---------------------------------------------------------------------- */

static uint8_t id_bytes[4][PS_ID_SIZE] = { { 1 }, { 2 }, { 3 }, { 4 } };
static char bank[] = "bank", accounts[] = "accounts", sentence[] = "the store has a live owner";
static char address[2][20] = { "127.0.0.1:7170", "127.0.0.1:7171" };

static Perseas__Member member[2] = { PERSEAS__MEMBER__INIT, PERSEAS__MEMBER__INIT };
static Perseas__Member *members[2] = { &member[0], &member[1] };
static Perseas__Roster roster = PERSEAS__ROSTER__INIT;
static Perseas__Segment segment = PERSEAS__SEGMENT__INIT;
static Perseas__Segment *segments[1] = { &segment };
static Perseas__Header header = PERSEAS__HEADER__INIT;
static Perseas__Slot slot = PERSEAS__SLOT__INIT;
static Perseas__Region region[2] = { PERSEAS__REGION__INIT, PERSEAS__REGION__INIT };
static Perseas__Region *regions[2] = { &region[0], &region[1] };
static Perseas__Grant grant = PERSEAS__GRANT__INIT;

static ProtobufCBinaryData id(int i)
{
	return (ProtobufCBinaryData){ PS_ID_SIZE, id_bytes[i] };
}

static void fill_header(void)
{
	for (int i = 0; i < 2; i++) {
		member[i].address = address[i];
		member[i].image_id = id(i);
	}
	roster.version = 1;
	roster.acks = roster.n_members = 2;
	roster.members = members;
	segment.id = 1;
	segment.name = accounts;
	segment.size = 1000;
	segment.address = (uint64_t)1 << 44;
	header.store = bank;
	header.creator = bank;
	header.store_id = id(2);
	header.image_id = id(0);
	header.promised_epoch = 5;
	header.promised_owner = id(3);
	header.state = PERSEAS__STATE__STATE_CONSISTENT;
	header.log_size = 1 << 20;
	header.roster = &roster;
	header.next_roster = &roster;
	header.n_segments = 1;
	header.segments = segments;
	slot.epoch = 5;
	slot.next = 64;
	region[0].length = PS_RING_OFFSET + (1 << 20);
	region[1].id = PS_REGION_SEGMENT + 1;
	region[1].length = 1000;
	grant.token = id(1);
	grant.n_regions = grant.descriptors = 2;
	grant.regions = regions;
}

static void save_header(const char *name, uint32_t level)
{
	struct buffer seed = { .bytes = { 1 }, .len = 1 };
	uint8_t *bytes;
	size_t len;

	header.roster->level = level;
	if (ps_header_pack(&header, &bytes, &len) != 0)
		exit(1);
	append(&seed, bytes, len);
	save("header", name, seed.bytes, seed.len);
	free(bytes);
}

struct archive {
	struct ps_archive_sink sink;
	struct buffer buffer;
};

static int add_to_archive(struct ps_archive_sink *sink, const void *bytes, size_t len)
{
	append(&((struct archive *)sink)->buffer, bytes, len);
	return 0;
}

static void save_archive(const char *name, uint8_t flags, unsigned pieces)
{
	struct archive archive = { .sink.write = add_to_archive, .buffer.len = 0 };
	struct ps_archive_writer writer;
	struct ps_slot stands;

	append(&archive.buffer, &flags, 1);
	ps_slot_encode(&stands, 5, 7, 128, 64);
	if (ps_archive_begin(&writer, &archive.sink, &header, pieces ? &stands : NULL) != 0)
		exit(1);
	for (unsigned i = 0; i < pieces; i++)
		if (ps_archive_add(&writer, PS_REGION_SEGMENT + 1, 100 * i, accounts, 8) != 0)
			exit(1);
	if ((pieces && ps_archive_add(&writer, PS_REGION_LOG, 0, &stands, sizeof stands) != 0) ||
	    ps_archive_end(&writer) != 0)
		exit(1);
	ps_archive_close(&writer);
	save("archive", name, archive.buffer.bytes, archive.buffer.len);
}

static void save_archives(void)
{
	save_archive("empty", 1, 0);
	save_archive("pieces", 3, 3);
	save_archive("slowly", 1 + 4 * 6, 1);
}

/* Saves a request with these members. */
#define REQUEST(name, Type, type, ...) \
	save_request(name, &MESSAGE_OF(Type##Request, type##_request, ##__VA_ARGS__))

static void save_request(const char *name, const void *body)
{
	const Perseas__Request request = message_request(body);
	Perseas__Request *back;
	const char *why;
	uint8_t *bytes;
	size_t len;

	if (ps_request_pack(&request, &bytes, &len) != 0)
		exit(1);
	back = ps_request_unpack(bytes + 4, len - 4, &why);
	if (!back) {
		fprintf(stderr, "request %s: %s\n", name, why);
		exit(1);
	}
	perseas__request__free_unpacked(back, NULL);
	save("request", name, bytes + 4, len - 4);
	free(bytes);
}

static void save_store_requests(void)
{
	REQUEST("list", List, list);
	REQUEST("status", Status, status, .store = bank);
	REQUEST("create", Create, create, .store = bank, .store_id = id(2), .image_id = id(0),
	        .log_size = 1 << 20, .roster = &roster);
	REQUEST("settle", Settle, settle, .store = bank, .store_id = id(2));
	REQUEST("abandon", Abandon, abandon, .store = bank, .store_id = id(2));
	REQUEST("claim", Claim, claim, .store = bank, .epoch = 6, .owner = id(3), .takeover = 1,
	        .shared = 1);
	REQUEST("digest", Digest, digest, .store = bank, .region = PS_REGION_SEGMENT,
	        .length = 4096);
	REQUEST("digest-key", Digest, digest, .store = bank, .region = PS_REGION_SEGMENT,
	        .length = 4096, .offset = PS_GRANULE, .key = id(3));
}

static void save_session_requests(void)
{
	uint32_t ids[2] = { 1, 2 };

	REQUEST("confirm", Confirm, confirm);
	REQUEST("add", AddSegments, add_segments, .n_segments = 1, .segments = segments);
	REQUEST("drop", DropSegments, drop_segments, .n_ids = 2, .ids = ids);
	REQUEST("publish", Publish, publish, .n_ids = 2, .ids = ids, .seq = 9);
	REQUEST("destroy", Destroy, destroy, .n_ids = 2, .ids = ids, .seq = 9);
	REQUEST("rebuild", Rebuild, rebuild, .header = &header, .epoch = 6, .owner = id(3));
	REQUEST("finish", Finish, finish);
	REQUEST("joining", Joining, joining, .harmless = 1);
	REQUEST("roster", Roster, roster, .roster = &roster);
	REQUEST("release", Release, release);
}

/* Saves messages with random ids, which only stores of level 1 have. */
static void save_random_ids(void)
{
	segment.random_id = id(3);
	REQUEST("add_random_id", AddSegments, add_segments, .n_segments = 1, .segments = segments);
	save_header("random_id", 1);
	segment.random_id.len = 0;
	roster.level = 0;
}

/* What a live owner reports, and what mirrors tell it. */
struct live {
	Perseas__Order order;
	Perseas__OrderResult result;
	Perseas__MirrorReport report, *reports[1];
	Perseas__OwnerFigures figures;
	Perseas__Latencies commit;
};

static Perseas__Location location = PERSEAS__LOCATION__INIT;

static void fill_live(struct live *live)
{
	static uint64_t counts[3] = { 3, 0, 128 };

	live->order = MESSAGE_OF(Order, order, .id = id(1),
	                         .kind = PERSEAS__ORDER_KIND__ORDER_REPLACE, .address = address[0],
	                         .with = address[1], .acks = 2);
	live->result = MESSAGE_OF(OrderResult, order_result, .id = id(1), .done = 1, .code = -5,
	                          .text = sentence);
	live->report = MESSAGE_OF(MirrorReport, mirror_report, .address = address[0], .state = bank,
	                          .done = 1000, .total = 1000, .trouble = sentence,
	                          .image_id = id(2));
	location.host = location.rack = bank;
	location.boot = id(3);
	live->report.location = &location;
	live->reports[0] = &live->report;
	live->commit = MESSAGE_OF(Latencies, latencies, .first = 16, .n_counts = 3,
	                          .counts = counts, .sum_ns = 2300, .max_ns = 18);
	live->figures = MESSAGE_OF(OwnerFigures, owner_figures, .commits = 130, .aborts = 7,
	                           .range_bytes = 3120, .in_doubt = 1, .missing = 24 << 20,
	                           .commit = &live->commit);
}

static void save_live_requests(struct live *live)
{
	Perseas__Roster next = roster;

	next.epoch = 6;
	REQUEST("read", Read, read, .store = bank, .region = PS_REGION_SEGMENT, .length = 4096);
	REQUEST("order", Order, order, .store = bank, .order = &live->order);
	REQUEST("drop_image", Drop, drop, .store = bank, .store_id = id(2), .image_id = id(0));
	REQUEST("spill", Spill, spill);
	REQUEST("report", Confirm, confirm, .n_mirrors = 1, .mirrors = live->reports,
	        .result = &live->result, .figures = &live->figures);
	REQUEST("joint", Roster, roster, .roster = &roster, .settled = 1, .next = &next);
}

static void save_reply(const char *name, const Perseas__Reply *reply)
{
	Perseas__Reply *back;
	const char *why;
	uint8_t *bytes;
	size_t len;

	if (ps_reply_pack(reply, &bytes, &len) != 0)
		exit(1);
	back = ps_reply_unpack(bytes + 4, len - 4, &why);
	if (!back) {
		fprintf(stderr, "reply %s: %s\n", name, why);
		exit(1);
	}
	perseas__reply__free_unpacked(back, NULL);
	save("reply", name, bytes + 4, len - 4);
	free(bytes);
}

/* Saves a reply with these members. */
#define REPLY(name, Type, type, ...) \
	save_reply_of(name, &MESSAGE_OF(Type##Reply, type##_reply, ##__VA_ARGS__))

static void save_reply_of(const char *name, const void *body)
{
	const Perseas__Reply reply = message_reply(body);

	save_reply(name, &reply);
}

static void save_replies(void)
{
	const Perseas__Reply busy = MESSAGE_OF(Reply, reply, .status = PERSEAS__STATUS__STATUS_BUSY,
	                                       .message = sentence);
	Perseas__StoreStatus status = MESSAGE_OF(StoreStatus, store_status, .header = &header,
	                                         .slot = &slot, .owner_address = address[0]);
	Perseas__StoreStatus *stores[1] = { &status };

	save_reply("refused", &busy);
	REPLY("list", List, list, .n_stores = 1, .stores = stores);
	REPLY("status", Status, status, .status = &status);
	REPLY("claim", Claim, claim, .header = &header, .slot = &slot, .grant = &grant);
	REPLY("confirm", Confirm, confirm, .slot = &slot);
	REPLY("add", AddSegments, add_segments, .grant = &grant);
	REPLY("rebuild", Rebuild, rebuild, .header = &header, .grant = &grant);
	REPLY("finish", Finish, finish, .header = &header);
	REPLY("digest", Digest, digest, .slot = &slot, .crc = 7);
	REPLY("digest-key", Digest, digest, .slot = &slot, .digests = id(3));
}

static void save_live_replies(struct live *live)
{
	const ProtobufCBinaryData bytes = { sizeof(id_bytes), id_bytes[0] };
	Perseas__StoreStatus status = MESSAGE_OF(StoreStatus, store_status, .header = &header,
	                                         .live = 1, .n_mirrors = 1, .silent_ms = 400,
	                                         .mirrors = live->reports, .order = &live->order,
	                                         .result = &live->result,
	                                         .figures = &live->figures);

	REPLY("live", Status, status, .status = &status);
	REPLY("ordered", Confirm, confirm, .order = &live->order, .location = &location);
	REPLY("read", Read, read, .bytes = bytes);
	REPLY("spill", Spill, spill, .stores = 2, .bytes = 1 << 20, .directory = bank);
}

/* Appends a reply with this id; its id comes before its body if `id_first`. */
static void append_reply(struct buffer *buffer, uint64_t number, bool id_first, const void *body)
{
	Perseas__Reply reply = message_reply(body), id = PERSEAS__REPLY__INIT;
	uint32_t length;

	*(id_first ? &id.id : &reply.id) = number;
	length = (uint32_t)(perseas__reply__get_packed_size(&id) +
	                    perseas__reply__get_packed_size(&reply));
	append(buffer, &length, sizeof length);
	buffer->len += perseas__reply__pack(&id, buffer->bytes + buffer->len);
	buffer->len += perseas__reply__pack(&reply, buffer->bytes + buffer->len);
}

/* An answer to a lane that asked for 64 bytes, with a sign of progress. */
static void save_fetch(const char *name, bool id_first)
{
	const struct ps_control_hello hello = { PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION };
	Perseas__StoreStatus status = MESSAGE_OF(StoreStatus, store_status, .header = &header);
	Perseas__StatusReply around = MESSAGE_OF(StatusReply, status_reply, .status = &status);
	Perseas__WorkingReply working = MESSAGE_OF(WorkingReply, working_reply, .done = 1);
	Perseas__ReadReply read = MESSAGE_OF(ReadReply, read_reply,
	                                     .bytes = { sizeof id_bytes, id_bytes[0] });
	struct buffer seed = { .bytes = { 0, 0, sizeof id_bytes - 1, 15 }, .len = 4 };

	append(&seed, &hello, sizeof hello);
	append_reply(&seed, 1, false, &around);
	append_reply(&seed, 2, false, &working);
	append_reply(&seed, 2, id_first, &read);
	append_reply(&seed, 3, false, &around);
	save("fetch", name, seed.bytes, seed.len);
}

static void save_rules(void)
{
	static const char *const rules[][2] = {
		{ "allow", "allow cert:bank-* create,own,read,recover store bank-*\n" },
		{ "limit", "limit cert:bank-* memory 8G stores 4 sessions 8 connections 9 "
		           "requests 1000/s\n" },
		{ "users", "# who\nallow user:bank own # a word\r\nallow group:ops all\n"
		           "allow uid:3 read\nallow gid:* admin store *\n" },
		{ "all", "\n\t allow * all\nlimit anonymous stores 0 memory 1\nlimit uid:* "
		         "stores 3" },
		{ "wrong", "allow uid:01 read\nallow * write\nlimit * requests 0/s\n" },
	};

	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
		save("access", rules[i][0], (const uint8_t *)rules[i][1], strlen(rules[i][1]));
}

int main(int argc, char **argv)
{
	struct live live;

	corpus_take(argc, argv);
	fill_header();
	fill_live(&live);
	save_records_and_images();
	save_frames();
	save_hellos();
	save_header("later", PS_LEVEL_MAX + 1);
	save_header("whole", 0);
	save_archives();
	save_store_requests();
	save_session_requests();
	save_random_ids();
	save_live_requests(&live);
	save_replies();
	save_live_replies(&live);
	save_fetch("progress", false);
	save_fetch("id_first", true);
	save_rules();
	return 0;
}
