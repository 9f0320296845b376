/*
 * make_control.c - writes the seeds of fuzz_control, with the real encoders, into the folder
 * control/ below the one that it is given.
 *
 *     make_control tests/fuzz/corpus
 */
#include "../../proto/data/frame.h"
#include "../support/messages.h"
#include "seed_file.h"

#include <string.h>

enum { REQUEST = 0, WRITE = 1, END = 2, DIE = 3, FAIL = 4, RESTART = 5, LOSE = 6 };

struct seed {
	uint8_t bytes[8192];
	size_t len;
};

static char bank[] = "bank";
static uint8_t store_id[PS_ID_SIZE] = { 1 }, image_id[PS_ID_SIZE] = { 2 };
static uint8_t owners[2][PS_ID_SIZE] = { { 3 }, { 4 } };
static uint32_t segment_id[] = { 0 };
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

/* Appends a request with these members, and before it the length that fuzz_control wants. */
#define ASK(seed, peer, Type, type, ...) \
	ask(seed, peer, &MESSAGE_OF(Type##Request, type##_request, ##__VA_ARGS__))

static void ask(struct seed *seed, int peer, const void *body)
{
	const Perseas__Request request = message_request(body);
	uint16_t short_len;
	uint8_t *bytes;
	size_t len;

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
	ASK(seed, 0, Create, create, .store = bank, .store_id = id(store_id),
	    .image_id = id(image_id), .log_size = PS_LOG_MIN, .roster = &roster);
	ASK(seed, 0, Settle, settle, .store = bank, .store_id = id(store_id));
}

static void claim(struct seed *seed, int peer, uint64_t epoch, bool shared)
{
	ASK(seed, peer, Claim, claim, .store = bank, .epoch = epoch, .owner = id(owners[epoch & 1]),
	    .takeover = true, .shared = shared);
}

static void add_segment(struct seed *seed, int peer)
{
	Perseas__Segment segment = MESSAGE_OF(Segment, segment, .name = (char *)"accounts",
	                                      .size = 100, .address = (uint64_t)1 << 40);
	Perseas__Segment *segments[] = { &segment };

	ASK(seed, peer, AddSegments, add_segments, .n_segments = 1, .segments = segments);
	ASK(seed, peer, Publish, publish, .n_ids = 1, .ids = segment_id, .seq = 1);
}

/* Announces the end of a segment; then another owner claims the store and finds no slot of that
 * transaction. */
static void destroy_segment(struct seed *seed, int peer)
{
	ASK(seed, peer, Destroy, destroy, .n_ids = 1, .ids = segment_id, .seq = 2);
	ASK(seed, peer, DropSegments, drop_segments, .n_ids = 1, .ids = segment_id);
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
	Perseas__Header header = MESSAGE_OF(Header, header, .store = bank, .store_id = id(store_id),
	                                    .image_id = id(image_id), .log_size = PS_LOG_MIN,
	                                    .roster = &roster);

	ASK(seed, peer, Rebuild, rebuild, .header = &header, .epoch = epoch,
	    .owner = id(owners[epoch & 1]));
	ASK(seed, peer, Finish, finish);
}

static void others(struct seed *seed, int peer)
{
	ASK(seed, peer, List, list);
	ASK(seed, peer, Status, status, .store = bank);
	ASK(seed, peer, Confirm, confirm);
	ASK(seed, peer, Joining, joining, .harmless = true);
	ASK(seed, peer, Roster, roster, .roster = &roster);
	ASK(seed, peer, Digest, digest, .store = bank, .length = 4096);
	ASK(seed, peer, Digest, digest, .store = bank, .length = 4096, .key = id(store_id));
	ASK(seed, peer, Release, release);
}

/* Adds requests to a store that has an owner, and to one that has none any more. */
static void ask_live(struct seed *seed, int peer)
{
	const ProtobufCBinaryData order_id = id(owners[0]);
	Perseas__Order add = MESSAGE_OF(Order, order, .id = order_id, .with = (char *)"b:1",
	                                .kind = PERSEAS__ORDER_KIND__ORDER_ADD);
	Perseas__Order repair = MESSAGE_OF(Order, order, .id = id(owners[1]),
	                                   .kind = PERSEAS__ORDER_KIND__ORDER_REPAIR);
	Perseas__OrderResult result = MESSAGE_OF(OrderResult, order_result, .id = order_id);
	Perseas__OwnerFigures figures = MESSAGE_OF(OwnerFigures, owner_figures, .commits = 9,
	                                           .missing = 24 << 20);

	ASK(seed, peer, Read, read, .store = bank, .length = 4096);
	ASK(seed, peer, Order, order, .store = bank, .order = &add);
	ASK(seed, peer, Confirm, confirm, .result = &result, .figures = &figures);
	ASK(seed, peer, Status, status, .store = bank);
	result.done = true;
	ASK(seed, peer, Confirm, confirm, .result = &result, .figures = &figures);
	ASK(seed, peer, Order, order, .store = bank, .order = &repair);
	ASK(seed, peer, Confirm, confirm);
	ASK(seed, peer, Joining, joining, .whole = true);
	ASK(seed, peer + 1, Watch, watch, .store = bank, .epoch = 5, .live = true);
	event(seed, END, peer);
	ASK(seed, peer + 1, Watch, watch, .store = bank, .epoch = 5, .live = true);
	ASK(seed, peer, Order, order, .store = bank, .order = &add);
	ASK(seed, peer, Drop, drop, .store = bank, .store_id = id(store_id),
	    .image_id = id(image_id));
}

/* An owner is asked to let go, and does; one that is asked is taken back. */
static void hand_over(struct seed *seed)
{
	uint8_t bytes[PS_OWNER_MARK] = { 5 };
	const ProtobufCBinaryData mark = { sizeof(bytes), bytes };
	Perseas__Standby standby = MESSAGE_OF(Standby, standby, .memory = 8192, .warm = 4096,
	                                      .name = (char *)"beta", .mark = mark);
	Perseas__MoveRequest move = MESSAGE_OF(MoveRequest, move_request, .store = bank, .epoch = 5,
	                                       .name = standby.name, .to = mark,
	                                       .id = id(owners[1]), .within_ms = 30000);
	Perseas__WatchRequest watch = MESSAGE_OF(WatchRequest, watch_request, .store = bank,
	                                         .epoch = 5, .live = true, .standby = &standby,
	                                         .within_ms = 5000);

	ask(seed, 1, &watch);
	ask(seed, 2, &move);
	watch.handover = move.id;
	ask(seed, 1, &watch);
	ASK(seed, 0, Confirm, confirm);
	ASK(seed, 0, Release, release);
	ASK(seed, 2, Status, status, .store = bank);
	claim(seed, 1, 6, false);
	ASK(seed, 1, Confirm, confirm);
	ASK(seed, 2, Status, status, .store = bank);
	move.withdraw = true;
	ask(seed, 2, &move);
}

static void save(const char *name, const struct seed *seed)
{
	FILE *file = seed_open("control", name);

	seed_add(file, seed->bytes, seed->len);
	seed_close(file);
}

/* Connections that show what is no token, before there is a session and afterwards, and one that
 * holds a claim. */
static void save_held(void)
{
	struct seed held = { .len = 0 };

	create(&held);
	ASK(&held, 1, Lifeline, lifeline, .token = id(owners[1]));
	claim(&held, 0, 5, false);
	ASK(&held, 0, Lifeline, lifeline, .token = id(owners[1]));
	ASK(&held, 1, Lifeline, lifeline, .token = id(owners[1]));
	event(&held, END, 1);
	save("held", &held);
}

/* Two stores whose copies come one after the other: the first ends its turn with its connection. */
static void save_turns(void)
{
	struct seed turns = { .len = 0 };

	create(&turns);
	ASK(&turns, 0, CopyTurn, copy_turn, .store = bank);
	ASK(&turns, 1, CopyTurn, copy_turn, .store = (char *)"other");
	claim(&turns, 0, 5, false);
	event(&turns, END, 0);
	ASK(&turns, 1, CopyTurn, copy_turn, .store = (char *)"other", .urgent = true);
	save("turns", &turns);
}

int main(int argc, char **argv)
{
	struct seed life = { .len = 0 }, shared = { .len = 0 }, anew = { .len = 0 };
	struct seed live = { .len = 0 }, spilled = { .len = 0 }, moved = { .len = 0 };
	struct seed ended = { .len = 0 };

	corpus_take(argc, argv);
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
	save("life", &life);

	create(&shared);
	claim(&shared, 0, 5, true);
	add_segment(&shared, 0);
	claim(&shared, 1, 6, true);
	event(&shared, END, 1);
	event(&shared, DIE, 1);
	claim(&shared, 2, 7, false);
	save("shared", &shared);

	rebuild(&anew, 0, 5);
	event(&anew, FAIL, 0);
	append(&anew, "\x81", 1);
	rebuild(&anew, 0, 5);
	others(&anew, 0);
	save("anew", &anew);

	create(&live);
	claim(&live, 0, 5, false);
	ask_live(&live, 0);
	save("live", &live);

	create(&moved);
	claim(&moved, 0, 5, false);
	add_segment(&moved, 0);
	hand_over(&moved);
	save("moved", &moved);
	save_held();
	save_turns();

	create(&ended);
	claim(&ended, 0, 5, false);
	add_segment(&ended, 0);
	destroy_segment(&ended, 0);
	save("ended", &ended);

	create(&spilled);
	claim(&spilled, 0, 5, true);
	add_segment(&spilled, 0);
	write_bytes(&spilled, 0, PS_REGION_SEGMENT, 8, "account");
	ASK(&spilled, 1, Spill, spill);
	claim(&spilled, 1, 6, false);
	event(&spilled, LOSE, 0);
	claim(&spilled, 1, 6, false);
	others(&spilled, 1);
	save("spilled", &spilled);
	return 0;
}
