/*
 * make_control.c - writes the seeds of fuzz_control, with the real encoders, into the folder
 * control/ below the one that it is given.
 *
 *     make_control tests/fuzz/corpus
 */
#include "../../proto/control/envelope.h"
#include "../../proto/data/frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { REQUEST = 0, WRITE = 1, END = 2, DIE = 3, FAIL = 4, RESTART = 5, LOSE = 6 };

struct seed {
	uint8_t bytes[8192];
	size_t len;
};

static uint8_t store_id[PS_ID_SIZE] = { 1 }, image_id[PS_ID_SIZE] = { 2 };
static uint8_t owners[2][PS_ID_SIZE] = { { 3 }, { 4 } };
static Perseas__Member member = PERSEAS__MEMBER__INIT, *members[] = { &member };
static Perseas__Roster roster = PERSEAS__ROSTER__INIT;

static ProtobufCBinaryData id(uint8_t *bytes)
{
	return (ProtobufCBinaryData){ PS_ID_SIZE, bytes };
}

static void append(struct seed *seed, const void *bytes, size_t len)
{
	if (seed->len + len > sizeof(seed->bytes))
		abort();
	memcpy(seed->bytes + seed->len, bytes, len);
	seed->len += len;
}

static void event(struct seed *seed, int what, int peer)
{
	uint8_t byte = (uint8_t)(what << 2 | peer);

	append(seed, &byte, 1);
}

/* Appends a request, with the length that fuzz_control wants before it. */
static void ask(struct seed *seed, int peer, Perseas__Request__BodyCase body, void *message)
{
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	uint16_t short_len;
	uint8_t *bytes;
	size_t len;

	request.body_case = body;
	request.list = message;
	if (ps_request_pack(&request, &bytes, &len) < 0)
		abort();
	event(seed, REQUEST, peer);
	short_len = (uint16_t)(len - 4);
	append(seed, &short_len, sizeof(short_len));
	append(seed, bytes + 4, len - 4);
	free(bytes);
}

static void create(struct seed *seed)
{
	Perseas__CreateRequest request = PERSEAS__CREATE_REQUEST__INIT;
	Perseas__SettleRequest settle = PERSEAS__SETTLE_REQUEST__INIT;

	request.store = settle.store = (char *)"bank";
	request.store_id = settle.store_id = id(store_id);
	request.image_id = id(image_id);
	request.log_size = PS_LOG_MIN;
	request.roster = &roster;
	ask(seed, 0, PERSEAS__REQUEST__BODY_CREATE, &request);
	ask(seed, 0, PERSEAS__REQUEST__BODY_SETTLE, &settle);
}

static void claim(struct seed *seed, int peer, uint64_t epoch, bool shared)
{
	Perseas__ClaimRequest request = PERSEAS__CLAIM_REQUEST__INIT;

	request.store = (char *)"bank";
	request.epoch = epoch;
	request.owner = id(owners[epoch & 1]);
	request.takeover = true;
	request.shared = shared;
	ask(seed, peer, PERSEAS__REQUEST__BODY_CLAIM, &request);
}

static void add_segment(struct seed *seed, int peer)
{
	Perseas__AddSegmentsRequest add = PERSEAS__ADD_SEGMENTS_REQUEST__INIT;
	Perseas__PublishRequest publish = PERSEAS__PUBLISH_REQUEST__INIT;
	Perseas__Segment segment = PERSEAS__SEGMENT__INIT, *segments[] = { &segment };
	uint32_t none = 0;

	segment.name = (char *)"accounts";
	segment.size = 100;
	segment.address = (uint64_t)1 << 40;
	add.n_segments = 1;
	add.segments = segments;
	publish.n_ids = 1;
	publish.ids = &none;
	publish.seq = 1;
	ask(seed, peer, PERSEAS__REQUEST__BODY_ADD_SEGMENTS, &add);
	ask(seed, peer, PERSEAS__REQUEST__BODY_PUBLISH, &publish);
}

/* One that is said to end, and another owner's claim, which finds no slot of it. */
static void destroy_segment(struct seed *seed, int peer)
{
	Perseas__DestroyRequest destroy = PERSEAS__DESTROY_REQUEST__INIT;
	Perseas__DropSegmentsRequest drop = PERSEAS__DROP_SEGMENTS_REQUEST__INIT;
	uint32_t none = 0;

	destroy.n_ids = drop.n_ids = 1;
	destroy.ids = drop.ids = &none;
	destroy.seq = 2;
	ask(seed, peer, PERSEAS__REQUEST__BODY_DESTROY, &destroy);
	ask(seed, peer, PERSEAS__REQUEST__BODY_DROP_SEGMENTS, &drop);
	claim(seed, peer + 1, 6, false);
}

static void write_bytes(struct seed *seed, int peer, uint32_t region, uint16_t offset,
                        const char *text)
{
	uint8_t len = (uint8_t)strlen(text);

	event(seed, WRITE, peer);
	append(seed, &region, sizeof(region));
	append(seed, &offset, sizeof(offset));
	append(seed, &len, sizeof(len));
	append(seed, text, len);
}

static void rebuild(struct seed *seed, int peer, uint64_t epoch)
{
	Perseas__RebuildRequest request = PERSEAS__REBUILD_REQUEST__INIT;
	Perseas__Header header = PERSEAS__HEADER__INIT;
	Perseas__FinishRequest finish = PERSEAS__FINISH_REQUEST__INIT;

	header.store = (char *)"bank";
	header.store_id = id(store_id);
	header.image_id = id(image_id);
	header.log_size = PS_LOG_MIN;
	header.roster = &roster;
	request.header = &header;
	request.epoch = epoch;
	request.owner = id(owners[epoch & 1]);
	ask(seed, peer, PERSEAS__REQUEST__BODY_REBUILD, &request);
	ask(seed, peer, PERSEAS__REQUEST__BODY_FINISH, &finish);
}

static void others(struct seed *seed, int peer)
{
	Perseas__ListRequest list = PERSEAS__LIST_REQUEST__INIT;
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__JoiningRequest joining = PERSEAS__JOINING_REQUEST__INIT;
	Perseas__RosterRequest change = PERSEAS__ROSTER_REQUEST__INIT;
	Perseas__DigestRequest digest = PERSEAS__DIGEST_REQUEST__INIT;
	Perseas__ReleaseRequest release = PERSEAS__RELEASE_REQUEST__INIT;

	status.store = digest.store = (char *)"bank";
	joining.harmless = true;
	change.roster = &roster;
	digest.length = 4096;
	ask(seed, peer, PERSEAS__REQUEST__BODY_LIST, &list);
	ask(seed, peer, PERSEAS__REQUEST__BODY_STATUS, &status);
	ask(seed, peer, PERSEAS__REQUEST__BODY_CONFIRM, &confirm);
	ask(seed, peer, PERSEAS__REQUEST__BODY_JOINING, &joining);
	ask(seed, peer, PERSEAS__REQUEST__BODY_ROSTER, &change);
	ask(seed, peer, PERSEAS__REQUEST__BODY_DIGEST, &digest);
	ask(seed, peer, PERSEAS__REQUEST__BODY_RELEASE, &release);
}

/* What is asked of a store that runs, and of one that does not any more. */
static void ask_live(struct seed *seed, int peer)
{
	Perseas__ReadRequest read = PERSEAS__READ_REQUEST__INIT;
	Perseas__OrderRequest order = PERSEAS__ORDER_REQUEST__INIT;
	Perseas__Order add = PERSEAS__ORDER__INIT;
	Perseas__OrderResult result = PERSEAS__ORDER_RESULT__INIT;
	Perseas__OwnerFigures figures = PERSEAS__OWNER_FIGURES__INIT;
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;
	Perseas__DropRequest drop = PERSEAS__DROP_REQUEST__INIT;
	Perseas__JoiningRequest joining = PERSEAS__JOINING_REQUEST__INIT;
	Perseas__WatchRequest watch = PERSEAS__WATCH_REQUEST__INIT;

	read.store = order.store = drop.store = status.store = watch.store = (char *)"bank";
	watch.epoch = 5;
	watch.live = true;
	read.length = 4096;
	add.id = result.id = id(owners[0]);
	add.kind = PERSEAS__ORDER_KIND__ORDER_ADD;
	add.with = (char *)"b:1";
	order.order = &add;
	figures.commits = 9;
	figures.missing = 24 << 20;
	confirm.result = &result;
	confirm.figures = &figures;
	joining.whole = true;
	drop.store_id = id(store_id);
	drop.image_id = id(image_id);
	ask(seed, peer, PERSEAS__REQUEST__BODY_READ, &read);
	ask(seed, peer, PERSEAS__REQUEST__BODY_ORDER, &order);
	ask(seed, peer, PERSEAS__REQUEST__BODY_CONFIRM, &confirm);
	ask(seed, peer, PERSEAS__REQUEST__BODY_STATUS, &status);
	ask(seed, peer, PERSEAS__REQUEST__BODY_JOINING, &joining);
	ask(seed, peer + 1, PERSEAS__REQUEST__BODY_WATCH, &watch);
	event(seed, END, peer);
	ask(seed, peer + 1, PERSEAS__REQUEST__BODY_WATCH, &watch);
	ask(seed, peer, PERSEAS__REQUEST__BODY_ORDER, &order);
	ask(seed, peer, PERSEAS__REQUEST__BODY_DROP, &drop);
}

/* An owner is asked to let go, and does; one that is asked is taken back. */
static void hand_over(struct seed *seed)
{
	uint8_t mark[PS_OWNER_MARK] = { 5 };
	Perseas__MoveRequest move = PERSEAS__MOVE_REQUEST__INIT;
	Perseas__WatchRequest watch = PERSEAS__WATCH_REQUEST__INIT;
	Perseas__Standby standby = PERSEAS__STANDBY__INIT;
	Perseas__ConfirmRequest confirm = PERSEAS__CONFIRM_REQUEST__INIT;
	Perseas__ReleaseRequest release = PERSEAS__RELEASE_REQUEST__INIT;
	Perseas__StatusRequest status = PERSEAS__STATUS_REQUEST__INIT;

	move.store = watch.store = status.store = (char *)"bank";
	watch.epoch = move.epoch = 5;
	watch.live = true;
	watch.standby = &standby;
	watch.within_ms = 5000;
	standby.memory = 8192;
	standby.warm = 4096;
	move.name = standby.name = (char *)"beta";
	move.to = standby.mark = (ProtobufCBinaryData){ sizeof(mark), mark };
	move.id = id(owners[1]);
	move.within_ms = 30000;
	ask(seed, 1, PERSEAS__REQUEST__BODY_WATCH, &watch);
	ask(seed, 2, PERSEAS__REQUEST__BODY_MOVE, &move);
	watch.handover = move.id;
	ask(seed, 1, PERSEAS__REQUEST__BODY_WATCH, &watch);
	ask(seed, 0, PERSEAS__REQUEST__BODY_CONFIRM, &confirm);
	ask(seed, 0, PERSEAS__REQUEST__BODY_RELEASE, &release);
	ask(seed, 2, PERSEAS__REQUEST__BODY_STATUS, &status);
	claim(seed, 1, 6, false);
	ask(seed, 1, PERSEAS__REQUEST__BODY_CONFIRM, &confirm);
	ask(seed, 2, PERSEAS__REQUEST__BODY_STATUS, &status);
	move.withdraw = true;
	ask(seed, 2, PERSEAS__REQUEST__BODY_MOVE, &move);
}

static void save(const char *folder, const char *name, const struct seed *seed)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/control", folder);
	if (mkdir(path, 0777) < 0 && errno != EEXIST) {
		perror(path);
		exit(1);
	}
	snprintf(path, sizeof(path), "%s/control/%s", folder, name);
	file = fopen(path, "wb");
	if (!file || fwrite(seed->bytes, 1, seed->len, file) != seed->len || fclose(file) != 0) {
		perror(path);
		exit(1);
	}
}

/* Connections that show what is no token, before there is a session and afterwards, and one that
 * holds a claim. */
static void save_held(const char *folder)
{
	struct seed held = { .len = 0 };
	Perseas__LifelineRequest lifeline = PERSEAS__LIFELINE_REQUEST__INIT;

	lifeline.token = id(owners[1]);
	create(&held);
	ask(&held, 1, PERSEAS__REQUEST__BODY_LIFELINE, &lifeline);
	claim(&held, 0, 5, false);
	ask(&held, 0, PERSEAS__REQUEST__BODY_LIFELINE, &lifeline);
	ask(&held, 1, PERSEAS__REQUEST__BODY_LIFELINE, &lifeline);
	event(&held, END, 1);
	save(folder, "held", &held);
}

int main(int argc, char **argv)
{
	struct seed life = { .len = 0 }, shared = { .len = 0 }, anew = { .len = 0 };
	struct seed live = { .len = 0 }, spilled = { .len = 0 }, moved = { .len = 0 };
	struct seed ended = { .len = 0 };
	Perseas__SpillRequest spill = PERSEAS__SPILL_REQUEST__INIT;

	if (argc != 2) {
		fprintf(stderr, "usage: make_control FOLDER\n");
		return 2;
	}
	member.address = (char *)"a:1";
	member.image_id = id(image_id);
	roster.version = roster.acks = 1;
	roster.n_members = 1;
	roster.members = members;

	create(&life);
	claim(&life, 0, 5, false);
	add_segment(&life, 0);
	write_bytes(&life, 0, PS_REGION_SEGMENT, 8, "account");
	event(&life, RESTART, 0);
	claim(&life, 1, 6, false);
	others(&life, 1);
	save(argv[1], "life", &life);

	create(&shared);
	claim(&shared, 0, 5, true);
	add_segment(&shared, 0);
	claim(&shared, 1, 6, true);
	event(&shared, END, 1);
	event(&shared, DIE, 1);
	claim(&shared, 2, 7, false);
	save(argv[1], "shared", &shared);

	rebuild(&anew, 0, 5);
	event(&anew, FAIL, 0);
	append(&anew, "\x81", 1);
	rebuild(&anew, 0, 5);
	others(&anew, 0);
	save(argv[1], "anew", &anew);

	create(&live);
	claim(&live, 0, 5, false);
	ask_live(&live, 0);
	save(argv[1], "live", &live);

	create(&moved);
	claim(&moved, 0, 5, false);
	add_segment(&moved, 0);
	hand_over(&moved);
	save(argv[1], "moved", &moved);
	save_held(argv[1]);

	create(&ended);
	claim(&ended, 0, 5, false);
	add_segment(&ended, 0);
	destroy_segment(&ended, 0);
	save(argv[1], "ended", &ended);

	create(&spilled);
	claim(&spilled, 0, 5, true);
	add_segment(&spilled, 0);
	write_bytes(&spilled, 0, PS_REGION_SEGMENT, 8, "account");
	ask(&spilled, 1, PERSEAS__REQUEST__BODY_SPILL, &spill);
	claim(&spilled, 1, 6, false);
	event(&spilled, LOSE, 0);
	claim(&spilled, 1, 6, false);
	others(&spilled, 1);
	save(argv[1], "spilled", &spilled);
	return 0;
}
