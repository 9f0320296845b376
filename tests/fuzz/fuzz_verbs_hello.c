/*
 * fuzz_verbs_hello.c - any private data in the request of an RDMA connection: the daemon accepts
 * the hello of its session, once, and answers all else with a refusal that owners understand.
 *
 * Input: flags (1: the length is known, as with iWARP; else padded with zeros), then the private
 * data, xor the right hello: zeros are the right one.
 */
#include "../support/memory_heap.h"
#include "../support/verbs_peer.h"

#include "../../proto/control/envelope.h"
#include "../../proto/data/frame.h"
#include "../../server/loop/daemon.h"
#include "target.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <unistd.h>

enum { EXACT = 1, MOST = 56 };

static struct stores *stores;
static struct daemon *node;
static struct verbs_fake_device *device;
static int control = -1;
static uint64_t epoch = 1;
static struct ps_hello hello;
static unsigned port;

static void turn(void)
{
	for (int i = 0; i < 4; i++)
		event_base_loop(node->base, EVLOOP_NONBLOCK);
}

static void take(void *bytes, size_t len)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = recv(control, (uint8_t *)bytes + have, len - have, MSG_DONTWAIT);

		turn();
		require(n != 0);
		have += n > 0 ? (size_t)n : 0;
	}
}

/* Signs of progress before it are passed over. */
static Perseas__Reply *take_reply(void)
{
	Perseas__Reply *reply = NULL;

	do {
		const char *why;
		uint32_t length;
		uint8_t *bytes;

		perseas__reply__free_unpacked(reply, NULL);
		take(&length, sizeof(length));
		bytes = malloc(length);
		take(bytes, length);
		reply = ps_reply_unpack(bytes, length, &why);
		require(reply != NULL);
		free(bytes);
	} while (reply->body_case == PERSEAS__REPLY__BODY_WORKING);
	return reply;
}

/* A claim brings a new token. */
static void claim(void)
{
	Perseas__ClaimRequest body = PERSEAS__CLAIM_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;
	uint8_t owner[PS_ID_SIZE] = { 1 }, *bytes;
	Perseas__Reply *reply;
	size_t len;

	body.store = (char *)"bank";
	body.epoch = ++epoch;
	body.owner = (ProtobufCBinaryData){ PS_ID_SIZE, owner };
	body.takeover = true;
	body.rdma = true;
	request.body_case = PERSEAS__REQUEST__BODY_CLAIM;
	request.claim = &body;
	require(ps_request_pack(&request, &bytes, &len) == 0);
	require(send(control, bytes, len, MSG_NOSIGNAL) == (ssize_t)len);
	free(bytes);
	reply = take_reply();
	require(reply->claim && reply->claim->grant->rdma_port > 0);
	memcpy(hello.token, reply->claim->grant->token.data, PS_ID_SIZE);
	port = reply->claim->grant->rdma_port;
	perseas__reply__free_unpacked(reply, NULL);
}

static void make_store(void)
{
	uint8_t id[PS_ID_SIZE] = { 1 };
	Perseas__CreateRequest create = PERSEAS__CREATE_REQUEST__INIT;
	Perseas__SettleRequest settle = PERSEAS__SETTLE_REQUEST__INIT;
	Perseas__Roster roster = PERSEAS__ROSTER__INIT;
	Perseas__Member member = PERSEAS__MEMBER__INIT, *members[] = { &member };
	struct why why;

	member.address = (char *)"127.0.0.1:1";
	member.image_id = (ProtobufCBinaryData){ PS_ID_SIZE, id };
	roster.version = roster.acks = 1;
	roster.n_members = 1;
	roster.members = members;
	create.store = settle.store = (char *)"bank";
	create.store_id = create.image_id = settle.store_id = member.image_id;
	create.log_size = PS_LOG_MIN;
	create.roster = &roster;
	require(store_create(stores, NULL, &create, &why) == 0);
	require(store_settle(stores, &settle, &why) == 0);
}

/* A control connection over the loopback interface: its address is the device's. */
static void begin(void)
{
	const struct rdma_options options = { .enabled = true };
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct ps_control_hello greeting = { PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	log_init(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	verbs_fake_begin();
	device = verbs_fake_device("rxe0", "127.0.0.1");
	stores = stores_new(memory_heap_new(0, 1));
	node = daemon_new(stores, 0);
	require(node && rdma_start(node, &verbs_fake_table, &options) == 0);
	make_store();
	require(bind(listener, (struct sockaddr *)&at, len) == 0 && listen(listener, 1) == 0);
	require(getsockname(listener, (struct sockaddr *)&at, &len) == 0);
	control = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	require(connect(control, (struct sockaddr *)&at, len) == 0);
	fd = accept4(listener, (struct sockaddr *)&at, &len, SOCK_CLOEXEC);
	close(listener);
	connection_accept(node, fd, (struct sockaddr *)&at, false);
	require(send(control, &greeting, sizeof(greeting), MSG_NOSIGNAL) == sizeof(greeting));
	take(&greeting, sizeof(greeting));
	hello.magic = PS_DATA_MAGIC;
	hello.version = PS_DATA_VERSION;
	claim();
}

/* Returns true if the daemon must accept these bytes. */
static bool is_right(const uint8_t *bytes, size_t size, bool exact)
{
	return (size >= sizeof(hello) || !exact) && memcmp(bytes, &hello, sizeof(hello)) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[MOST] = { 0 };
	struct verbs_peer peer;
	struct ps_answer answer;
	bool right;
	int event;

	if (size < 1 || size - 1 > MOST)
		return 0;
	if (control < 0)
		begin();
	device->exact = data[0] & EXACT;
	memcpy(bytes, data + 1, size - 1);
	for (size_t i = 0; i < size - 1 && i < sizeof(hello); i++)
		bytes[i] ^= ((const uint8_t *)&hello)[i];
	right = is_right(bytes, size - 1, device->exact);
	peer_open(&peer, "127.0.0.1", port);
	require(peer_connect(&peer, bytes, (unsigned)size - 1) == 0);
	turn();
	event = peer_event(&peer, NULL);
	require(event == (right ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_REJECTED));
	memcpy(&answer, peer.given, sizeof(answer));
	require(answer.op == PS_OP_HELLO && ps_answer_valid(&answer));
	require((answer.status == PS_ANSWER_OK) == right);
	peer_close(&peer);
	turn();
	require(verbs_fake_alive().qps == 0 && verbs_fake_wrong() == 0);
	if (right)
		claim();
	return 0;
}
