/*
 * fuzz_control.c - a mirror under any sequence of events: requests over three connections,
 * writes over their data paths, connections that end, processes that die, pieces that cannot
 * be made, daemons that crash and start again, and hosts that lose their memory but not their
 * spills.
 *
 * The input is a sequence of events: one byte each, with the connection in its two low bits
 * and the event above them, and what the event needs. A request has a 2-byte length before it.
 */
#include "../../server/store/control.h"
#include "../support/mirror.h"
#include "../support/spill_heap.h"
#include "target.h"

enum { PEERS = 3, EVENTS_MAX = 64, LIMIT = 1 << 20 };

enum event {
	EVENT_REQUEST,
	EVENT_WRITE,
	EVENT_END,
	EVENT_DIE,
	EVENT_FAIL,
	EVENT_RESTART,
	EVENT_LOSE,
	EVENTS
};

struct input {
	const uint8_t *at;
	size_t left;
};

static size_t take(struct input *input, void *to, size_t len)
{
	size_t part = len < input->left ? len : input->left;

	memset(to, 0, len);
	memcpy(to, input->at, part);
	input->at += part;
	input->left -= part;
	return part;
}

static void request(struct mirror *mirror, struct peer *peer, struct input *input)
{
	struct control_reply control;
	Perseas__Reply *reply;
	const char *why = NULL;
	uint64_t ms;
	uint16_t len;
	uint8_t *bytes;

	take(input, &len, sizeof(len));
	if (len > input->left)
		len = (uint16_t)input->left;
	bytes = malloc(len ? len : 1); /* of its exact size, so that reading beyond shows */
	assert(bytes);
	take(input, bytes, len);
	(void)control_must_wait(mirror->stores, &peer->session, bytes, len, &ms);
	assert(control_handle(mirror->stores, &peer->session, "0", bytes, len, &control) == 0);
	assert(control_copy_read(mirror->stores, &control, 0) == 0);
	free(bytes);
	reply = ps_reply_unpack(control.bytes + 4, control.len - 4, &why);
	assert(reply && why == NULL);
	perseas__reply__free_unpacked(reply, NULL);
	free(control.bytes);
}

/* Writes what an owner's data path may write: anything, inside the regions. */
static void write_memory(struct peer *peer, struct input *input)
{
	struct {
		uint32_t region;
		uint16_t offset;
		uint8_t len;
	} __attribute__((packed)) head;
	uint8_t *to;

	take(input, &head, sizeof(head));
	to = session_memory(&peer->session, head.region % (PS_REGION_SEGMENT + 4), head.offset,
	                    head.len, true);
	if (to)
		take(input, to, head.len);
}

static void complain(void *arg, const char *text)
{
	(void)text;
	((struct mirror *)arg)->complaints++;
}

/* Restarts the mirror. Its memory and its spills are sound, so nothing is complained about, and no
 * spill is left. */
static void restart(struct mirror *mirror, struct spill *spill, struct peer peers[PEERS])
{
	mirror_restart(mirror);
	stores_set_spill(mirror->stores, spill);
	stores_load_spills(mirror->stores, complain, mirror);
	assert(mirror->complaints == 0);
	assert(spill_heap_count(spill) == 0);
	memory_heap_set_limit(mirror->memory, LIMIT);
	for (int i = 0; i < PEERS; i++)
		peer_init(&peers[i]);
}

static void happen(struct mirror *mirror, struct spill *spill, struct peer peers[PEERS],
                   struct input *input)
{
	uint8_t what, count;
	struct peer *peer;

	take(input, &what, 1);
	peer = &peers[(what & 3) % PEERS];
	switch ((enum event)((what >> 2) % EVENTS)) {
	case EVENT_REQUEST:
		request(mirror, peer, input);
		break;
	case EVENT_WRITE:
		write_memory(peer, input);
		break;
	case EVENT_END:
		store_session_ended(&peer->session);
		break;
	case EVENT_DIE:
		peer->alive = !peer->alive;
		break;
	case EVENT_FAIL:
		take(input, &count, 1);
		memory_heap_fail(mirror->memory, count & 7, count >> 7);
		break;
	case EVENT_LOSE:
		memory_heap_lose(mirror->memory, NULL);
		restart(mirror, spill, peers);
		break;
	case EVENT_RESTART:
	case EVENTS:
		restart(mirror, spill, peers);
		break;
	}
}

/* A session that holds a store is found by its token, and no other is; and it is nobody's
 * lifeline. */
static void check(struct mirror *mirror, struct peer peers[PEERS])
{
	for (int i = 0; i < PEERS; i++) {
		struct session *session = &peers[i].session;
		struct session *found = stores_find_session(mirror->stores, session->token);

		assert(session->store ? found == session : found == NULL);
		assert(session->store || !session_memory(session, PS_REGION_LOG, 0, 1, false));
		assert(!session->store || !stores_find_lifeline_session(mirror->stores, session));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	struct mirror mirror;
	struct peer peers[PEERS];
	struct spill *spill = spill_heap_new();

	mirror_open(&mirror);
	stores_set_spill(mirror.stores, spill);
	memory_heap_set_limit(mirror.memory, LIMIT);
	for (int i = 0; i < PEERS; i++)
		peer_init(&peers[i]);
	for (int i = 0; i < EVENTS_MAX && input.left > 0; i++) {
		happen(&mirror, spill, peers, &input);
		check(&mirror, peers);
	}
	mirror_close(&mirror);
	spill_heap_free(spill);
	return 0;
}
