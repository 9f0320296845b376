/*
 * make_corpus.c - writes seeds of the fuzz targets, with the real encoders, below the folder that
 * it is given: in a folder for each target.
 *
 *     make_corpus tests/fuzz/corpus
 */
#include "../../proto/control/archive.h"
#include "../../proto/control/envelope.h"
#include "../../proto/data/frame.h"
#include "../../proto/image/image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RING = 4096 };

static const char *folder;

struct buffer {
	_Alignas(8) uint8_t bytes[8192];
	size_t len;
};

static void append(struct buffer *buffer, const void *bytes, size_t len)
{
	memcpy(buffer->bytes + buffer->len, bytes, len);
	buffer->len += len;
}

/* Writes folder/target/name. */
static void save(const char *target, const char *name, const void *bytes, size_t len)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder, target);
	if (mkdir(path, 0777) != 0 && errno != EEXIST) {
		perror(path);
		exit(1);
	}
	snprintf(path, sizeof path, "%s/%s/%s", folder, target, name);
	file = fopen(path, "wb");
	if (!file || fwrite(bytes, 1, len, file) != len || fclose(file) != 0) {
		perror(path);
		exit(1);
	}
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

static void save_request(const char *name, int body_case, void *body)
{
	Perseas__Request request = PERSEAS__REQUEST__INIT, *back;
	const char *why;
	uint8_t *bytes;
	size_t len;

	request.body_case = (Perseas__Request__BodyCase)body_case;
	request.list = body; /* of a union of pointers */
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
	Perseas__ListRequest list = PERSEAS__LIST_REQUEST__INIT;
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__CreateRequest create = PERSEAS__CREATE_REQUEST__INIT;
	Perseas__SettleRequest settle = PERSEAS__SETTLE_REQUEST__INIT;
	Perseas__AbandonRequest abandon = PERSEAS__ABANDON_REQUEST__INIT;
	Perseas__ClaimRequest claim = PERSEAS__CLAIM_REQUEST__INIT;
	Perseas__DigestRequest digest = PERSEAS__DIGEST_REQUEST__INIT;

	status.store = create.store = settle.store = abandon.store = bank;
	claim.store = digest.store = bank;
	create.store_id = settle.store_id = abandon.store_id = id(2);
	create.image_id = id(0);
	create.log_size = 1 << 20;
	create.roster = &roster;
	claim.epoch = 6;
	claim.owner = id(3);
	claim.takeover = claim.shared = 1;
	digest.region = PS_REGION_SEGMENT;
	digest.length = 4096;
	save_request("list", PERSEAS__REQUEST__BODY_LIST, &list);
	save_request("status", PERSEAS__REQUEST__BODY_STATUS, &status);
	save_request("create", PERSEAS__REQUEST__BODY_CREATE, &create);
	save_request("settle", PERSEAS__REQUEST__BODY_SETTLE, &settle);
	save_request("abandon", PERSEAS__REQUEST__BODY_ABANDON, &abandon);
	save_request("claim", PERSEAS__REQUEST__BODY_CLAIM, &claim);
	save_request("digest", PERSEAS__REQUEST__BODY_DIGEST, &digest);
}

static void save_session_requests(void)
{
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__AddSegmentsRequest add = PERSEAS__ADD_SEGMENTS_REQUEST__INIT;
	Perseas__DropSegmentsRequest drop = PERSEAS__DROP_SEGMENTS_REQUEST__INIT;
	Perseas__PublishRequest publish = PERSEAS__PUBLISH_REQUEST__INIT;
	Perseas__DestroyRequest destroy = PERSEAS__DESTROY_REQUEST__INIT;
	Perseas__RebuildRequest rebuild = PERSEAS__REBUILD_REQUEST__INIT;
	Perseas__FinishRequest finish = PERSEAS__FINISH_REQUEST__INIT;
	Perseas__JoiningRequest joining = PERSEAS__JOINING_REQUEST__INIT;
	Perseas__RosterRequest change = PERSEAS__ROSTER_REQUEST__INIT;
	Perseas__ReleaseRequest release = PERSEAS__RELEASE_REQUEST__INIT;
	uint32_t ids[2] = { 1, 2 };

	add.n_segments = 1;
	add.segments = segments;
	drop.n_ids = publish.n_ids = destroy.n_ids = 2;
	drop.ids = publish.ids = destroy.ids = ids;
	publish.seq = destroy.seq = 9;
	rebuild.header = &header;
	rebuild.epoch = 6;
	rebuild.owner = id(3);
	joining.harmless = 1;
	change.roster = &roster;
	save_request("confirm", PERSEAS__REQUEST__BODY_CONFIRM, &confirm);
	save_request("add", PERSEAS__REQUEST__BODY_ADD_SEGMENTS, &add);
	save_request("drop", PERSEAS__REQUEST__BODY_DROP_SEGMENTS, &drop);
	save_request("publish", PERSEAS__REQUEST__BODY_PUBLISH, &publish);
	save_request("destroy", PERSEAS__REQUEST__BODY_DESTROY, &destroy);
	save_request("rebuild", PERSEAS__REQUEST__BODY_REBUILD, &rebuild);
	save_request("finish", PERSEAS__REQUEST__BODY_FINISH, &finish);
	save_request("joining", PERSEAS__REQUEST__BODY_JOINING, &joining);
	save_request("roster", PERSEAS__REQUEST__BODY_ROSTER, &change);
	save_request("release", PERSEAS__REQUEST__BODY_RELEASE, &release);
}

static void fill_order(Perseas__Order *order, Perseas__OrderResult *result,
                       Perseas__MirrorReport *report)
{
	perseas__order__init(order);
	order->id = id(1);
	order->kind = PERSEAS__ORDER_KIND__ORDER_REPLACE;
	order->address = address[0];
	order->with = address[1];
	order->acks = 2;
	perseas__order_result__init(result);
	result->id = id(1);
	result->done = 1;
	result->code = -5;
	result->text = sentence;
	perseas__mirror_report__init(report);
	report->address = address[0];
	report->state = bank;
	report->done = report->total = 1000;
	report->trouble = sentence;
	report->image_id = id(2);
}

static void fill_figures(Perseas__OwnerFigures *figures, Perseas__Latencies *commit)
{
	static uint64_t counts[3] = { 3, 0, 128 };

	perseas__latencies__init(commit);
	commit->first = 16;
	commit->n_counts = 3;
	commit->counts = counts;
	commit->sum_ns = 2300;
	commit->max_ns = 18;
	perseas__owner_figures__init(figures);
	figures->commits = 130;
	figures->aborts = 7;
	figures->range_bytes = 3120;
	figures->in_doubt = 1;
	figures->missing = 24 << 20;
	figures->commit = commit;
}

static void save_live_requests(void)
{
	Perseas__ReadRequest read = PERSEAS__READ_REQUEST__INIT;
	Perseas__OrderRequest ask = PERSEAS__ORDER_REQUEST__INIT;
	Perseas__DropRequest drop = PERSEAS__DROP_REQUEST__INIT;
	Perseas__SpillRequest spill = PERSEAS__SPILL_REQUEST__INIT;
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__RosterRequest change = PERSEAS__ROSTER_REQUEST__INIT;
	Perseas__MirrorReport report, *reports[1] = { &report };
	Perseas__Roster next = roster;
	Perseas__Order order;
	Perseas__OrderResult result;
	Perseas__OwnerFigures figures;
	Perseas__Latencies commit;

	fill_order(&order, &result, &report);
	fill_figures(&figures, &commit);
	read.store = ask.store = drop.store = bank;
	read.region = PS_REGION_SEGMENT;
	read.length = 4096;
	ask.order = &order;
	drop.store_id = id(2);
	drop.image_id = id(0);
	confirm.n_mirrors = 1;
	confirm.mirrors = reports;
	confirm.result = &result;
	confirm.figures = &figures;
	next.epoch = 6;
	change.roster = &roster;
	change.settled = 1;
	change.next = &next;
	save_request("read", PERSEAS__REQUEST__BODY_READ, &read);
	save_request("order", PERSEAS__REQUEST__BODY_ORDER, &ask);
	save_request("drop_image", PERSEAS__REQUEST__BODY_DROP, &drop);
	save_request("spill", PERSEAS__REQUEST__BODY_SPILL, &spill);
	save_request("report", PERSEAS__REQUEST__BODY_CONFIRM, &confirm);
	save_request("joint", PERSEAS__REQUEST__BODY_ROSTER, &change);
}

static void save_reply(const char *name, int body_case, void *body)
{
	Perseas__Reply reply = PERSEAS__REPLY__INIT, *back;
	const char *why;
	uint8_t *bytes;
	size_t len;

	reply.body_case = (Perseas__Reply__BodyCase)body_case;
	reply.list = body; /* of a union of pointers */
	if (!body) {
		reply.status = PERSEAS__STATUS__STATUS_BUSY;
		reply.message = sentence;
	}
	if (ps_reply_pack(&reply, &bytes, &len) != 0)
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

static void save_replies(void)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT, *stores[1] = { &status };
	Perseas__ListReply list = PERSEAS__LIST_REPLY__INIT;
	Perseas__StatusReply store = PERSEAS__STATUS_REPLY__INIT;
	Perseas__ClaimReply claim = PERSEAS__CLAIM_REPLY__INIT;
	Perseas__ConfirmReply confirm = PERSEAS__CONFIRM_REPLY__INIT;
	Perseas__AddSegmentsReply add = PERSEAS__ADD_SEGMENTS_REPLY__INIT;
	Perseas__RebuildReply rebuild = PERSEAS__REBUILD_REPLY__INIT;
	Perseas__FinishReply finish = PERSEAS__FINISH_REPLY__INIT;
	Perseas__DigestReply digest = PERSEAS__DIGEST_REPLY__INIT;

	status.header = claim.header = rebuild.header = finish.header = &header;
	status.slot = claim.slot = confirm.slot = digest.slot = &slot;
	claim.grant = add.grant = rebuild.grant = &grant;
	status.owner_address = address[0];
	list.n_stores = 1;
	list.stores = stores;
	store.status = &status;
	digest.crc = 7;
	save_reply("refused", PERSEAS__REPLY__BODY__NOT_SET, NULL);
	save_reply("list", PERSEAS__REPLY__BODY_LIST, &list);
	save_reply("status", PERSEAS__REPLY__BODY_STORE, &store);
	save_reply("claim", PERSEAS__REPLY__BODY_CLAIM, &claim);
	save_reply("confirm", PERSEAS__REPLY__BODY_CONFIRM, &confirm);
	save_reply("add", PERSEAS__REPLY__BODY_ADD_SEGMENTS, &add);
	save_reply("rebuild", PERSEAS__REPLY__BODY_REBUILD, &rebuild);
	save_reply("finish", PERSEAS__REPLY__BODY_FINISH, &finish);
	save_reply("digest", PERSEAS__REPLY__BODY_DIGEST, &digest);
}

static void save_live_replies(void)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	Perseas__StatusReply store = PERSEAS__STATUS_REPLY__INIT;
	Perseas__ConfirmReply confirm = PERSEAS__CONFIRM_REPLY__INIT;
	Perseas__ReadReply read = PERSEAS__READ_REPLY__INIT;
	Perseas__SpillReply spill = PERSEAS__SPILL_REPLY__INIT;
	Perseas__MirrorReport report, *reports[1] = { &report };
	Perseas__OrderResult result;
	Perseas__Order order;
	Perseas__OwnerFigures figures;
	Perseas__Latencies commit;

	fill_order(&order, &result, &report);
	fill_figures(&figures, &commit);
	status.header = &header;
	status.live = status.n_mirrors = 1;
	status.silent_ms = 400;
	status.mirrors = reports;
	status.order = confirm.order = &order;
	status.result = &result;
	status.figures = &figures;
	store.status = &status;
	read.bytes = (ProtobufCBinaryData){ sizeof id_bytes, id_bytes[0] };
	spill.stores = 2;
	spill.bytes = 1 << 20;
	spill.directory = bank;
	save_reply("live", PERSEAS__REPLY__BODY_STORE, &store);
	save_reply("ordered", PERSEAS__REPLY__BODY_CONFIRM, &confirm);
	save_reply("read", PERSEAS__REPLY__BODY_READ, &read);
	save_reply("spill", PERSEAS__REPLY__BODY_SPILL, &spill);
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
	if (argc != 2) {
		fprintf(stderr, "usage: make_corpus FOLDER\n");
		return 2;
	}
	folder = argv[1];
	if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
		perror(folder);
		return 1;
	}
	fill_header();
	save_records_and_images();
	save_frames();
	save_hellos();
	save_header("later", 1);
	save_header("whole", 0);
	save_archives();
	save_store_requests();
	save_session_requests();
	save_live_requests();
	save_replies();
	save_live_replies();
	save_rules();
	return 0;
}
