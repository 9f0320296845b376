/*
 * daemon_peers.c - runs a sequence of events against a daemon and checks what comes back. The
 * fuzz targets `connection` and `tls` call it. It must find every byte string to be a sequence,
 * or a fuzzer would be held up.
 */
#include "daemon_peers.h"

#include "../../proto/control/envelope.h"
#include "../../proto/control/version.h"
#include "../../proto/data/frame.h"
#include "../../server/loop/connection.h"
#include "memory_heap.h"
#include "spill_heap.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	PEERS = 4,
	EVENTS_MAX = 128,
	HANDSHAKES_MAX = 6, /* of TLS: each takes milliseconds */
	MEMORY = 1 << 20,
	IDLE = 2, /* turns of the loop in which nothing comes: nothing will */
	TURNS_MAX = 1000,
	ENDING_MS = 600000,
};

enum happening { EVENT_BYTES, EVENT_TCP, EVENT_PLAIN, EVENT_UNIX, EVENT_DATA, EVENT_END, EVENTS };

/* What the peer expects next from the daemon. */
enum expected { EXPECT_MAGIC, EXPECT_HELLO_REST, EXPECT_MESSAGE, EXPECT_ANSWER, EXPECT_ANYTHING };

struct peer {
	struct ps_stream stream; /* fd -1: no connection */
	int far;                 /* the daemon's end, while it keeps it */
	enum expected next;
	uint8_t *bytes; /* the bytes received of it */
	size_t have;
	uint64_t skip; /* bytes of a read, before the next answer */
};

struct run {
	struct memory *memory;
	struct spill *spill;
	struct stores *stores;
	struct daemon *node;
	const struct daemon_peers_tls *tls;
	struct peer peers[PEERS];
	unsigned handshakes;
	const uint8_t *at;
	size_t left;
};

static void require(bool holds)
{
	if (!holds)
		abort();
}

static size_t take(struct run *run, void *to, size_t len)
{
	size_t part = len < run->left ? len : run->left;

	memset(to, 0, len);
	memcpy(to, run->at, part);
	run->at += part;
	run->left -= part;
	return part;
}

/* --- what the daemon says --- */

static size_t wanted(const struct peer *peer)
{
	uint32_t length;

	if (peer->next == EXPECT_HELLO_REST)
		return sizeof(struct ps_control_hello);
	if (peer->next == EXPECT_ANSWER)
		return sizeof(struct ps_answer);
	if (peer->next == EXPECT_MAGIC || peer->have < sizeof(length))
		return sizeof(length);
	memcpy(&length, peer->bytes, sizeof(length));
	require(length > 0 && length <= PS_MESSAGE_MAX);
	return sizeof(length) + length;
}

static void check_message(const struct peer *peer)
{
	const char *why = NULL;
	Perseas__Reply *reply = ps_reply_unpack(peer->bytes + 4, peer->have - 4, &why);

	require(reply);
	perseas__reply__free_unpacked(reply, NULL);
}

/* Returns true if the peer received an empty message, a sign of progress. */
static bool is_sign(const struct peer *peer)
{
	uint32_t length;

	memcpy(&length, peer->bytes, sizeof(length));
	return length == 0;
}

/* Reads what has arrived in full. */
static void understand(struct peer *peer)
{
	struct ps_control_hello hello;
	struct ps_answer answer;
	uint32_t magic;

	switch (peer->next) {
	case EXPECT_MAGIC:
		memcpy(&magic, peer->bytes, sizeof(magic));
		peer->next = magic == PS_CONTROL_MAGIC        ? EXPECT_HELLO_REST
		             : peer->bytes[0] == PS_TLS_ALERT ? EXPECT_ANYTHING
		                                              : EXPECT_ANSWER;
		return;
	case EXPECT_HELLO_REST:
		memcpy(&hello, peer->bytes, sizeof(hello));
		require(hello.version == ps_version_greeting() ||
		        (hello.version >= PS_PROTOCOL_LEAST &&
		         hello.version <= PS_PROTOCOL_VERSION));
		peer->next = EXPECT_MESSAGE;
		break;
	case EXPECT_MESSAGE:
		if (peer->have == sizeof(uint32_t) && !is_sign(peer))
			return; /* the message itself */
		if (peer->have > sizeof(uint32_t))
			check_message(peer);
		break;
	case EXPECT_ANSWER:
		memcpy(&answer, peer->bytes, sizeof(answer));
		require(ps_answer_valid(&answer));
		peer->skip = answer.length;
		break;
	case EXPECT_ANYTHING:
		break;
	}
	peer->have = 0;
}

static void hear(struct peer *peer, const uint8_t *bytes, size_t len)
{
	while (len > 0 && peer->next != EXPECT_ANYTHING) {
		size_t want = wanted(peer);
		size_t part = peer->skip ? peer->skip : want - peer->have;

		if (part > len)
			part = len;
		if (peer->skip) {
			peer->skip -= part;
		} else {
			peer->bytes = realloc(peer->bytes, want);
			require(peer->bytes);
			memcpy(peer->bytes + peer->have, bytes, part);
			peer->have += part;
			if (peer->have == want)
				understand(peer);
		}
		bytes += part;
		len -= part;
	}
}

/* --- turns --- */

static bool listen_to(struct peer *peer)
{
	static uint8_t bytes[64 << 10];
	bool heard = false;
	ssize_t n;

	while (peer->stream.fd >= 0 &&
	       (n = ps_stream_recv(&peer->stream, bytes, sizeof(bytes))) > 0) {
		hear(peer, bytes, (size_t)n);
		heard = true;
	}
	return heard;
}

/* Runs the daemon until nothing more arrives. */
static void settle(struct run *run)
{
	for (int idle = 0, turns = 0; idle < IDLE && turns < TURNS_MAX; idle++, turns++) {
		event_base_loop(run->node->base, EVLOOP_NONBLOCK);
		for (int i = 0; i < PEERS; i++)
			if (listen_to(&run->peers[i]))
				idle = 0;
	}
}

/* --- what peers do --- */

static void hang_up(struct peer *peer)
{
	ps_stream_close(&peer->stream);
	free(peer->bytes);
	*peer = (struct peer){ .stream.fd = -1, .far = -1 };
}

static void dial(struct run *run, struct peer *peer, bool local)
{
	const struct sockaddr_in from = {
		.sin_family = AF_INET,
		.sin_port = htons(7),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int ends[2];

	hang_up(peer);
	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
	/* The buffer is so small that some answers wait for room. */
	setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &(int){ 1 }, sizeof(int));
	peer->stream.fd = ends[0];
	peer->far = ends[1];
	if (run->tls && !local)
		peer->next = EXPECT_ANYTHING; /* records of TLS */
	connection_accept(run->node, ends[1], (const struct sockaddr *)&from, local);
}

static void shake(struct run *run, struct peer *peer)
{
	int shaken = 0;

	if (!run->tls)
		return;
	peer->next = EXPECT_MAGIC;
	require(ps_stream_begin_tls(&peer->stream, run->tls->client, "127.0.0.1") == 0);
	for (int turns = 0; shaken == 0 && turns < TURNS_MAX; turns++) {
		shaken = ps_stream_handshake(&peer->stream);
		event_base_loop(run->node->base, EVLOOP_NONBLOCK);
	}
	require(shaken == 1);
	run->handshakes++;
}

static void say(struct run *run, struct peer *peer, const void *bytes, size_t len)
{
	struct iovec rest = { (void *)(uintptr_t)bytes, len };

	for (int idle = 0; rest.iov_len > 0 && idle < IDLE; idle++) {
		ssize_t n = ps_stream_send(&peer->stream, &rest, 1);

		if (n > 0) {
			rest.iov_base = (uint8_t *)rest.iov_base + n;
			rest.iov_len -= (size_t)n;
			idle = 0;
		}
		settle(run);
	}
}

/* The bytes that follow their length. */
static const uint8_t *take_bytes(struct run *run, uint16_t *len)
{
	const uint8_t *bytes;

	take(run, len, sizeof(*len));
	if (*len > run->left)
		*len = (uint16_t)run->left;
	bytes = run->at;
	run->at += *len;
	run->left -= *len;
	return bytes;
}

static void say_bytes(struct run *run, struct peer *peer)
{
	uint16_t len;
	const uint8_t *bytes = take_bytes(run, &len);

	if (peer->stream.fd < 0) {
		dial(run, peer, false);
		shake(run, peer);
	}
	say(run, peer, bytes, len);
}

/* The hello of the data path of the session at that descriptor. */
static struct ps_hello hello_of(const struct run *run, int far)
{
	struct ps_hello hello = { .magic = PS_DATA_MAGIC, .version = PS_DATA_VERSION };

	for (const struct connection *each = run->node->connections; each; each = each->next)
		if (each->stream.fd == far)
			memcpy(hello.token, each->session.token, sizeof(hello.token));
	return hello;
}

static void open_data(struct run *run, struct peer *peer)
{
	static uint8_t bytes[UINT16_MAX];
	const uint8_t *from;
	struct ps_hello hello;
	uint8_t whose;
	uint16_t len;

	take(run, &whose, 1);
	from = take_bytes(run, &len);
	memcpy(bytes, from, len);
	hello = hello_of(run, run->peers[whose % PEERS].far);
	for (size_t i = 0; i < sizeof(hello) && i < len; i++)
		bytes[i] ^= ((const uint8_t *)&hello)[i];
	dial(run, peer, false);
	shake(run, peer);
	say(run, peer, bytes, len);
}

static void happen(struct run *run)
{
	struct peer *peer;
	uint8_t what;

	take(run, &what, 1);
	peer = &run->peers[what % PEERS];
	switch ((enum happening)(what / PEERS % EVENTS)) {
	case EVENT_BYTES:
		say_bytes(run, peer);
		break;
	case EVENT_TCP:
		dial(run, peer, false);
		shake(run, peer);
		break;
	case EVENT_PLAIN:
	case EVENT_UNIX:
		dial(run, peer, what / PEERS % EVENTS == EVENT_UNIX);
		break;
	case EVENT_DATA:
		open_data(run, peer);
		break;
	case EVENT_END:
	case EVENTS:
		hang_up(peer);
		break;
	}
	settle(run);
}

/* --- from start to end --- */

static void begin(struct run *run)
{
	static int null = -1;

	if (null < 0) {
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		log_init(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	}
	run->memory = memory_heap_new(MEMORY, 1);
	memory_heap_set_descriptor(run->memory, null);
	run->spill = spill_heap_new();
	run->stores = stores_new(run->memory);
	stores_set_spill(run->stores, run->spill);
	run->node = daemon_new(run->stores, 0);
	require(run->node);
	run->node->tls = run->tls ? run->tls->server : NULL;
	for (int i = 0; i < PEERS; i++)
		run->peers[i] = (struct peer){ .stream.fd = -1, .far = -1 };
}

static void end(struct run *run)
{
	for (int i = 0; i < PEERS; i++)
		hang_up(&run->peers[i]);
	/* A connection whose request another thread carries out ends after that, however busy the
	 * host is. */
	for (int turns = 0;
	     turns < ENDING_MS && (run->node->connections || run->node->loop_lane.links); turns++) {
		event_base_loop(run->node->base, EVLOOP_NONBLOCK);
		if (turns >= TURNS_MAX)
			poll(NULL, 0, 1);
	}
	require(!run->node->connections && !run->node->loop_lane.links);
	require(run->node->large_bytes == 0 && run->node->admission.connection_count == 0);
	run->node->tls = NULL; /* the caller's */
	daemon_free(run->node);
	stores_free(run->stores);
	spill_heap_free(run->spill);
	memory_heap_free(run->memory);
}

void daemon_peers_run(const uint8_t *data, size_t size, const struct daemon_peers_tls *tls)
{
	struct run run = { .tls = tls, .at = data, .left = size };

	begin(&run);
	for (int i = 0; i < EVENTS_MAX && run.left > 0 && !run.node->is_stopping &&
	                run.handshakes < HANDSHAKES_MAX;
	     i++)
		happen(&run);
	end(&run);
}
