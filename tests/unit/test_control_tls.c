/*
 * test_control_tls.c - a daemon that takes TLS connections only, from owners in the same thread.
 */
#include "../support/authority_tls.h"
#include "../support/daemon_fixture.h"
#include "../support/messages.h"

#include "../../proto/data/frame.h"
#include "../../proto/image/sigbus_guard.h"
#include "../../server/loop/connection.h"
#include "../support/unit.h"

#include <event2/event.h>
#include <netinet/tcp.h>

enum {
	STEPS_MAX = 10000, /* of a millisecond each at most */
	LEAVES = 3,
};

static struct ps_tls *alice, *bob;

static int load(struct fixture *fixture, const char *stem, const char *ca)
{
	char paths[3][128];
	struct ps_tls_files files = { paths[0], paths[1], paths[2], NULL };

	snprintf(paths[0], sizeof(paths[0]), "%s/%s.pem", fixture->directory, stem);
	snprintf(paths[1], sizeof(paths[1]), "%s/%s.key", fixture->directory, stem);
	snprintf(paths[2], sizeof(paths[2]), "%s/%s.pem", fixture->directory, ca);
	return daemon_load_tls(fixture->daemon, &files, fixture->why, sizeof(fixture->why));
}

static int setup(void **state)
{
	const struct leaf leaves[LEAVES] = {
		{ "mirror", "IP:127.0.0.1", NULL, 0, 0 },
		{ "alice", "DNS:alice", NULL, 0, 0 },
		{ "bob", "DNS:bob", NULL, 0, 0 },
	};
	struct authority *authority;
	struct fixture *fixture;

	assert_int_equal(fixture_setup(state), 0);
	fixture = *state;
	authority = authority_new(fixture->directory, "ca");
	for (int i = 0; i < LEAVES; i++)
		authority_issue(authority, &leaves[i]);
	authority_free(authority);
	assert_int_equal(load(fixture, "mirror", "ca"), 0);
	alice = authority_tls(fixture->directory, "alice", "ca", NULL);
	bob = authority_tls(fixture->directory, "bob", "ca", NULL);
	fixture_bank(fixture);
	return 0;
}

static int teardown(void **state)
{
	ps_tls_free(alice);
	ps_tls_free(bob);
	return fixture_teardown(state);
}

struct unit_fixture unit_fixture = { setup, teardown };

/* --- an owner's end --- */

static void step(struct fixture *fixture)
{
	event_base_loop(fixture->daemon->base, EVLOOP_NONBLOCK);
}

/* Steps, and leaves the processor to the daemon's threads while nothing arrives. */
static void step_and_wait(struct fixture *fixture, const struct ps_stream *peer)
{
	struct pollfd ready = { .fd = peer->fd, .events = POLLIN };

	step(fixture);
	poll(&ready, 1, 1);
}

/* Returns the result of the handshake, or 0 if it does not end. */
static int shake(struct fixture *fixture, struct ps_stream *peer)
{
	int shaken;

	for (int i = 0; (shaken = ps_stream_handshake(peer)) == 0 && i < STEPS_MAX; i++)
		step_and_wait(fixture, peer);
	return shaken;
}

static struct ps_stream begin(struct fixture *fixture, struct ps_tls *tls)
{
	struct ps_stream peer = { .fd = fixture_tcp(fixture) };
	const int on = 1;

	fcntl(peer.fd, F_SETFL, O_NONBLOCK);
	setsockopt(peer.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	assert_int_equal(ps_stream_begin_tls(&peer, tls, "127.0.0.1"), 0);
	return peer;
}

static struct ps_stream dial(struct fixture *fixture, struct ps_tls *tls)
{
	struct ps_stream peer = begin(fixture, tls);

	assert_int_equal(shake(fixture, &peer), 1);
	return peer;
}

/* Sends as much of the bytes as the daemon takes. */
static size_t push(struct fixture *fixture, struct ps_stream *peer, const void *bytes, size_t len)
{
	struct iovec rest = { (void *)(uintptr_t)bytes, len };
	struct pollfd ready = { .fd = peer->fd, .events = POLLOUT };

	for (int idle = 0; rest.iov_len > 0 && idle < STEPS_MAX; idle++) {
		ssize_t n = ps_stream_send(peer, &rest, 1);

		step(fixture);
		if (n <= 0) {
			poll(&ready, 1, 1);
			continue;
		}
		rest.iov_base = (uint8_t *)rest.iov_base + n;
		rest.iov_len -= (size_t)n;
		idle = 0;
	}
	return len - rest.iov_len;
}

/* At most so many bytes; 0: it has ended, -1: none have come. */
static ssize_t sip(struct fixture *fixture, struct ps_stream *peer, void *bytes, size_t len)
{
	ssize_t n = ps_stream_recv(peer, bytes, len);

	if (n < 0 && errno != EAGAIN)
		return 0;
	if (n < 0)
		step_and_wait(fixture, peer);
	else
		step(fixture);
	return n;
}

/* Exactly so many bytes; false: it ended before. */
static bool take(struct fixture *fixture, struct ps_stream *peer, void *bytes, size_t len)
{
	size_t have = 0;

	for (int i = 0; i < STEPS_MAX && have < len; i++) {
		ssize_t n = sip(fixture, peer, (uint8_t *)bytes + have, len - have);

		if (n == 0)
			return false;
		if (n > 0)
			i = 0;
		have += n > 0 ? (size_t)n : 0;
	}
	assert_int_equal(have, len);
	return true;
}

static bool ended(struct fixture *fixture, struct ps_stream *peer)
{
	uint8_t byte;

	return !take(fixture, peer, &byte, 1);
}

/* A request as it is sent; the caller frees it. */
static uint8_t *packed(void *body, size_t *len)
{
	const Perseas__Request request = message_request(body);
	uint8_t *bytes;

	assert_int_equal(ps_request_pack(&request, &bytes, len), 0);
	return bytes;
}

static Perseas__Reply *message_of(struct fixture *fixture, struct ps_stream *peer)
{
	const char *why = NULL;
	Perseas__Reply *reply;
	uint8_t *bytes;
	uint32_t len;

	assert_true(take(fixture, peer, &len, sizeof(len)));
	bytes = malloc(len);
	assert_true(take(fixture, peer, bytes, len));
	reply = ps_reply_unpack(bytes, len, &why);
	assert_non_null(reply);
	free(bytes);
	return reply;
}

/* Signs of progress before it are passed over. */
static Perseas__Reply *reply_of(struct fixture *fixture, struct ps_stream *peer)
{
	Perseas__Reply *reply = message_of(fixture, peer);

	while (reply->body_case == PERSEAS__REPLY__BODY_WORKING) {
		fixture_done(reply);
		reply = message_of(fixture, peer);
	}
	return reply;
}

static void greet(struct fixture *fixture, struct ps_stream *peer)
{
	struct ps_control_hello hello = { PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION };

	assert_int_equal(push(fixture, peer, &hello, sizeof(hello)), sizeof(hello));
	assert_true(take(fixture, peer, &hello, sizeof(hello)));
	assert_int_equal(hello.version, PS_PROTOCOL_VERSION);
}

/* Claims "bank"; the token is of the session. */
static struct ps_stream claim(struct fixture *fixture, struct ps_tls *tls, uint64_t epoch,
                              uint8_t token[PS_ID_SIZE])
{
	struct ps_stream peer = dial(fixture, tls);
	Perseas__ClaimRequest message = MESSAGE_OF(ClaimRequest, claim_request,
	                                           .store = message_bank, .epoch = epoch,
	                                           .owner = message_id((int)epoch),
	                                           .takeover = true);
	size_t len;
	uint8_t *bytes = packed(&message, &len);
	Perseas__Reply *reply;

	greet(fixture, &peer);
	assert_int_equal(push(fixture, &peer, bytes, len), len);
	free(bytes);
	reply = reply_of(fixture, &peer);
	assert_int_equal(reply->status, STATUS(OK));
	memcpy(token, reply->claim->grant->token.data, PS_ID_SIZE);
	fixture_done(reply);
	return peer;
}

static struct ps_hello hello_with(const uint8_t *token)
{
	struct ps_hello hello = { .magic = PS_DATA_MAGIC, .version = PS_DATA_VERSION };

	memcpy(hello.token, token, PS_ID_SIZE);
	return hello;
}

/* Opens a data connection with the token; returns the status of the answer. */
static int open_data(struct fixture *fixture, struct ps_stream *data, const uint8_t *token)
{
	const struct ps_hello hello = hello_with(token);
	struct ps_answer answer;

	assert_int_equal(push(fixture, data, &hello, sizeof(hello)), sizeof(hello));
	assert_true(take(fixture, data, &answer, sizeof(answer)));
	return answer.status;
}

struct write_frame {
	struct ps_frame frame;
	struct ps_extent extent;
	uint8_t bytes[1024];
};

static struct write_frame write_of(uint64_t number)
{
	struct write_frame frame = {
		.frame = { .op = PS_OP_WRITE, .count = 1, .cookie = number },
		.extent = { .region = PS_REGION_LOG,
		            .length = sizeof(frame.bytes),
		            .offset = PS_RING_OFFSET + number * sizeof(frame.bytes) },
	};

	memset(frame.bytes, 0xee, sizeof(frame.bytes));
	return frame;
}

/* --- tests --- */

/* More than one connection gets at a time, in one record: no poll tells of the rest. */
TEST(requests_that_came_in_one_record_are_all_answered, struct fixture *fixture)
{
	enum { REQUESTS = 100 };
	struct ps_stream peer = dial(fixture, alice);
	Perseas__ListRequest list = PERSEAS__LIST_REQUEST__INIT;
	size_t len;
	uint8_t *one = packed(&list, &len);
	uint8_t *all = malloc(REQUESTS * len);

	for (int i = 0; i < REQUESTS; i++)
		memcpy(all + (size_t)i * len, one, len);
	greet(fixture, &peer);
	assert_int_equal(push(fixture, &peer, all, REQUESTS * len), REQUESTS * len);
	for (int i = 0; i < REQUESTS; i++) {
		Perseas__Reply *reply = reply_of(fixture, &peer);

		assert_int_equal(reply->body_case, PERSEAS__REPLY__BODY_LIST);
		fixture_done(reply);
	}
	free(one);
	free(all);
	ps_stream_close(&peer);
}

/* Hello and first frame come with the end of the handshake, before the daemon knows what it is. */
TEST(a_data_connection_may_begin_in_one_record, struct fixture *fixture)
{
	uint8_t token[PS_ID_SIZE];
	struct ps_stream control = claim(fixture, alice, 5, token), data = begin(fixture, alice);
	struct write_frame write = write_of(0);
	struct ps_hello hello = hello_with(token);
	struct iovec parts[] = { { &hello, sizeof(hello) }, { &write, sizeof(write) } };
	struct ps_answer answers[2];

	write.frame.flags = PS_FRAME_SIGNALLED;
	write.frame.cookie = 7;
	assert_int_equal(shake(fixture, &data), 1);
	assert_int_equal(ps_stream_send(&data, parts, 2), sizeof(hello) + sizeof(write));
	assert_true(take(fixture, &data, answers, sizeof(answers)));
	assert_int_equal(answers[0].op, PS_OP_HELLO);
	assert_int_equal(answers[0].status, PS_ANSWER_OK);
	assert_int_equal(answers[1].cookie, 7);
	ps_stream_close(&data);
	ps_stream_close(&control);
}

/* A thief of a token has no certificate of the session's owner. */
TEST(the_token_of_another_identity_opens_nothing, struct fixture *fixture)
{
	uint8_t token[PS_ID_SIZE];
	struct ps_stream control = claim(fixture, alice, 5, token), data = dial(fixture, bob);
	struct session *session = stores_find_session(fixture->stores, token);

	assert_string_equal(session->identity.name, "cert:alice");
	assert_int_equal(open_data(fixture, &data, token), PS_ANSWER_OTHER_IDENTITY);
	assert_true(ended(fixture, &data));
	ps_stream_close(&data);
	data = dial(fixture, alice);
	assert_int_equal(open_data(fixture, &data, token), PS_ANSWER_OK);
	ps_stream_close(&data);
	ps_stream_close(&control);
}

/* Until the handshake is over a connection is nobody's: it counts neither for the anonymous nor for
 * a certificate. Then it is the certificate's. */
TEST(rules_are_for_the_name_in_the_certificate, struct fixture *fixture)
{
	struct ps_stream half[3], first, second;

	fixture_rules(fixture, "allow cert:alice read\nlimit anonymous connections 1\n"
	                       "limit cert:alice connections 1");
	for (int i = 0; i < 3; i++)
		half[i] = begin(fixture, alice);
	while (fixture->daemon->admission.connection_count < 3)
		step(fixture);
	for (struct connection *at = fixture->daemon->connections; at; at = at->next)
		assert_string_equal(at->session.identity.name, "");
	first = dial(fixture, alice);
	greet(fixture, &first);
	assert_string_equal(fixture->daemon->connections->session.identity.name, "cert:alice");
	assert_string_equal(fixture->daemon->connections->admitted.origin->name, "cert:alice");
	second = dial(fixture, alice);
	assert_true(ended(fixture, &second));
	ps_stream_close(&second);
	second = dial(fixture, bob);
	greet(fixture, &second);
	assert_string_equal(fixture->daemon->connections->session.identity.name, "cert:bob");
	for (int i = 0; i < 3; i++)
		ps_stream_close(&half[i]);
	ps_stream_close(&first);
	ps_stream_close(&second);
}

/* Asks for more than it takes, so that the daemon reads no further, and sends writes behind that:
 * they lie in the daemon's TLS and in the kernel. */
static struct ps_stream stuff(struct fixture *fixture, const uint8_t *token, unsigned writes)
{
	enum { READS = 2048 };
	struct ps_stream data = dial(fixture, alice);
	static struct {
		struct ps_frame frame;
		struct ps_extent extent;
	} reads[READS];
	struct write_frame *all = malloc(writes * sizeof(*all));

	for (int i = 0; i < READS; i++) {
		reads[i].frame = (struct ps_frame){ .op = PS_OP_READ, .count = 1 };
		reads[i].extent = (struct ps_extent){ .region = PS_REGION_LOG,
			                              .length = 32 << 10,
			                              .offset = PS_RING_OFFSET + (512 << 10) };
	}
	for (unsigned i = 0; i < writes; i++)
		all[i] = write_of(i);
	assert_int_equal(open_data(fixture, &data, token), PS_ANSWER_OK);
	assert_int_equal(push(fixture, &data, reads, sizeof(reads)), sizeof(reads));
	assert_int_equal(push(fixture, &data, all, writes * sizeof(*all)), writes * sizeof(*all));
	free(all);
	return data;
}

/* Returns how many of the writes are in the image. */
static unsigned applied(struct fixture *fixture, const uint8_t *token, unsigned writes)
{
	struct session *session = stores_find_session(fixture->stores, token);
	const uint8_t *ring = session_memory(session, PS_REGION_LOG, PS_RING_OFFSET, writes * 1024,
	                                     false);
	unsigned count = 0;

	daemon_lock(fixture->daemon);
	for (unsigned i = 0; i < writes; i++)
		count += ring[(uint64_t)i * 1024] == 0xee;
	daemon_unlock(fixture->daemon);
	return count;
}

/* Takes what comes until so many writes are applied; false: the connection ended before. The last
 * answers may be here before the writes behind them are applied. */
static bool take_until_applied(struct fixture *fixture, struct ps_stream *data,
                               const uint8_t *token, unsigned writes)
{
	static uint8_t bytes[1 << 16];

	for (int i = 0; i < STEPS_MAX && applied(fixture, token, writes) < writes; i++) {
		ssize_t n = sip(fixture, data, bytes, sizeof(bytes));

		if (n == 0)
			return false;
		if (n > 0)
			i = 0;
	}
	return true;
}

/* I5: the daemon has taken in, and not yet decrypted, writes of an owner that is then fenced. */
TEST(what_lies_in_tls_at_a_fence_is_not_applied, struct fixture *fixture)
{
	enum { WRITES = 200 };
	uint8_t token[PS_ID_SIZE], next[PS_ID_SIZE];

	for (int fenced = 0; fenced < 2; fenced++) {
		struct ps_stream control = claim(fixture, alice, 5 + 2 * (unsigned)fenced, token);
		struct ps_stream data = stuff(fixture, token, WRITES), successor = { .fd = -1 };
		const uint8_t *owner = fenced ? next : token;

		assert_int_equal(applied(fixture, token, WRITES), 0);
		if (fenced)
			successor = claim(fixture, bob, 8, next);
		assert_int_equal(take_until_applied(fixture, &data, owner, WRITES), !fenced);
		assert_int_equal(applied(fixture, owner, WRITES), fenced ? 0 : WRITES);
		memset(session_memory(stores_find_session(fixture->stores, owner), PS_REGION_LOG,
		                      PS_RING_OFFSET, WRITES * 1024, true),
		       0, WRITES * 1024);
		ps_stream_close(&data);
		ps_stream_close(&control);
		ps_stream_close(&successor);
	}
}

/* All that was asked for comes, and nothing once the host's administrator has cut the log short. */
TEST(what_is_read_comes_whole_or_not_at_all, struct fixture *fixture)
{
	Perseas__ReadRequest read = MESSAGE_OF(ReadRequest, read_request, .store = message_bank,
	                                       .region = PS_REGION_LOG, .offset = PS_RING_OFFSET,
	                                       .length = PS_READ_REQUEST_MAX);
	struct ps_stream peer = dial(fixture, alice);
	uint8_t *bytes, *text = malloc(PS_READ_REQUEST_MAX);
	Perseas__Reply *reply;
	char path[128];
	size_t len;
	int log;

	ps_guard_reinstall_handler();
	snprintf(path, sizeof(path), "%s/memory/bank/log.1", fixture->directory);
	memset(text, 'a', PS_READ_REQUEST_MAX);
	log = open(path, O_RDWR);
	assert_int_equal(pwrite(log, text, PS_READ_REQUEST_MAX, PS_RING_OFFSET),
	                 PS_READ_REQUEST_MAX);
	bytes = packed(&read, &len);
	greet(fixture, &peer);
	assert_int_equal(push(fixture, &peer, bytes, len), len);
	reply = reply_of(fixture, &peer);
	assert_int_equal(reply->read->bytes.len, PS_READ_REQUEST_MAX);
	assert_memory_equal(reply->read->bytes.data, text, PS_READ_REQUEST_MAX);
	assert_int_equal(ftruncate(log, PS_RING_OFFSET), 0);
	assert_int_equal(push(fixture, &peer, bytes, len), len);
	assert_true(ended(fixture, &peer));
	fixture_done(reply);
	ps_stream_close(&peer);
	close(log);
	free(bytes);
	free(text);
}

/* The files are read again: a bad one changes nothing, good ones count for later connections. */
TEST(new_files_are_for_new_connections, struct fixture *fixture)
{
	uint8_t token[PS_ID_SIZE];
	struct ps_stream old = claim(fixture, alice, 5, token), peer;
	struct authority *other = authority_new(fixture->directory, "other");
	const struct leaf leaf = { "second", "IP:127.0.0.1", NULL, 0, 0 };
	char byte;

	authority_issue(other, &leaf);
	assert_int_equal(load(fixture, "none", "ca"), -1);
	assert_non_null(strstr(fixture->why, "none.pem"));
	peer = dial(fixture, alice);
	ps_stream_close(&peer);
	assert_int_equal(load(fixture, "second", "other"), 0);
	peer = begin(fixture, alice);
	shake(fixture, &peer);
	assert_int_equal(ps_stream_fault(&peer), PS_TLS_FAULT_PEER_CERT);
	ps_stream_close(&peer);
	assert_int_equal(ps_stream_recv(&old, &byte, 1), -1);
	assert_int_equal(errno, EAGAIN);
	ps_stream_close(&old);
	authority_free(other);
}

/* Other connections use more than their share of the loop's time, next to threads that carry data;
 * a handshake gets its time all the same. */
TEST(a_handshake_waits_for_its_turn, struct fixture *fixture)
{
	const uint64_t hour_ns = 3600 * 1000000000ull;
	struct daemon *daemon = fixture->daemon;
	struct ps_stream peer;

	if (!lanes_are_running(daemon))
		return;
	daemon_get_lane(daemon, 1)->last_data_ns = UINT64_MAX / 2;
	daemon->unprioritized_wait_until_ns = daemon_now_ns() + hour_ns;
	peer = begin(fixture, alice);
	while (!daemon->connections || daemon->connections->due != DUE_RESUME) {
		assert_int_equal(ps_stream_handshake(&peer), 0);
		step(fixture);
	}
	assert_true(daemon->connections->hello_until_ns > daemon_now_ns() + hour_ns);
	ps_stream_close(&peer);

	daemon->unprioritized_wait_until_ns = daemon_now_ns() + hour_ns / 100000;
	peer = begin(fixture, alice);
	while (ps_stream_handshake(&peer) == 0)
		step(fixture);
	assert_int_equal(daemon->connections->due, DUE_HELLO);
	greet(fixture, &peer);
	assert_int_equal(daemon->connections->due, DUE_NOTHING);
	ps_stream_close(&peer);
}

/* Plain text leaves the host only when that was asked for. */
TEST(without_tls_others_cannot_connect, struct fixture *fixture)
{
	static const char *const hosts[] = { "0.0.0.0", "::", "::ffff:192.0.2.1", "192.0.2.1" };
	struct endpoint at = { .port = "0" }, loopback = { .host = "127.0.0.9", .port = "0" };
	struct ps_tls *tls = fixture->daemon->tls;

	fixture->daemon->tls = NULL;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		strcpy(at.host, hosts[i]);
		assert_int_equal(fixture_listen(fixture, &at), -1);
		assert_non_null(strstr(fixture->why, "--plaintext anywhere"));
		assert_non_null(strstr(fixture->why, hosts[i]));
	}
	assert_int_equal(fixture_listen(fixture, &loopback), 0);
	strcpy(at.host, "0.0.0.0");
	fixture->daemon->allows_exposed_plaintext = true;
	assert_int_equal(fixture_listen(fixture, &at), 0);
	fixture->daemon->allows_exposed_plaintext = false;
	fixture->daemon->tls = tls;
	assert_int_equal(fixture_listen(fixture, &at), 0);
}

/* Everybody, or a group that is not the daemon's, may read the key. */
TEST(a_key_that_others_may_read_is_named_in_the_log, struct fixture *fixture)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/mirror.key", fixture->directory);
	for (unsigned mode = 0600; mode <= 0644; mode += 4) {
		const bool others = mode & 0004;
		const uint64_t before = log_recent(0) ? log_recent(0)->number : 0;

		assert_int_equal(chmod(path, mode | 0600), 0);
		assert_int_equal(load(fixture, "mirror", "ca"), 0);
		assert_int_equal(log_recent(0) ? log_recent(0)->number : 0, before + others);
		if (others) {
			assert_string_equal(log_recent(0)->event, "tls-key-readable");
			assert_non_null(strstr(log_recent(0)->message, path));
		}
	}
}

int main(void)
{
	int failed = unit_run("by the loop");

	fixture_threads = 3;
	return failed + unit_run("by threads");
}
