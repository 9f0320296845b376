/*
 * test_srv.c - mirror lists from the DNS, asked of a server of the test's own on loopback.
 */
#include "../../client/host/srv.h"
#include "../support/unit.h"

#include <arpa/inet.h>

enum { PACKET = 4096, PATIENCE_SECONDS = 30, NXDOMAIN = 3 };

/* An answer as it is written, and what is written to it next. */
struct packet {
	uint8_t bytes[PACKET];
	size_t len;
};

static void put_number(struct packet *to, unsigned number, unsigned bytes)
{
	while (bytes-- > 0)
		to->bytes[to->len++] = (uint8_t)(number >> 8 * bytes);
}

static void put_name(struct packet *to, const char *name)
{
	while (*name) {
		const size_t len = strcspn(name, ".");

		put_number(to, (unsigned)len, 1);
		memcpy(to->bytes + to->len, name, len);
		to->len += len;
		name += len + (name[len] == '.');
	}
	put_number(to, 0, 1);
}

/* The head of an answer to a question, and the question. */
static void put_head(struct packet *to, unsigned id, unsigned flags, unsigned records,
                     const char *name)
{
	to->len = 0;
	put_number(to, id, 2);
	put_number(to, 0x8180 | flags, 2);
	put_number(to, 1, 2);
	put_number(to, records, 2);
	put_number(to, 0, 4);
	put_name(to, name);
	put_number(to, 33, 2); /* SRV */
	put_number(to, 1, 2);
}

/* Writes one record, whose name points to the question's. */
static void put_record(struct packet *to, unsigned priority, unsigned weight, unsigned port,
                       const char *target)
{
	size_t length_at;

	put_number(to, 0xc00c, 2);
	put_number(to, 33, 2);
	put_number(to, 1, 2);
	put_number(to, 60, 4);
	length_at = to->len;
	put_number(to, 0, 2);
	put_number(to, priority, 2);
	put_number(to, weight, 2);
	put_number(to, port, 2);
	put_name(to, target);
	to->bytes[length_at] = (uint8_t)((to->len - length_at - 2) >> 8);
	to->bytes[length_at + 1] = (uint8_t)(to->len - length_at - 2);
}

#define QUESTION "_perseas._tcp.mirrors.example"

static struct packet begin_answer(unsigned records)
{
	struct packet packet;

	put_head(&packet, 7, 0, records, QUESTION);
	return packet;
}

/* The list made from the last answer. */
static char list[PS_LIST_TEXT];
static struct ps_error error;

static int read_packet(const struct packet *packet)
{
	error.code = 0;
	return ps_srv_parse(packet->bytes, packet->len, "mirrors.example", list, &error);
}

TEST(records_are_a_list_in_the_order_of_their_priorities)
{
	struct packet packet = begin_answer(5);

	put_record(&packet, 20, 1, 7170, "m3.example");
	put_record(&packet, 10, 1, 7171, "m2.example");
	put_record(&packet, 10, 5, 7170, "m1.example");
	put_record(&packet, 10, 1, 7170, "m2.example");
	put_record(&packet, 30, 9, 7170, "M1.example");
	assert_int_equal(read_packet(&packet), 0);
	assert_string_equal(list,
	                    "m1.example:7170,m2.example:7170,m2.example:7171,m3.example:7170");
}

static void expect_refused(const struct packet *packet, int code, const char *words)
{
	strcpy(list, "before");
	assert_int_equal(read_packet(packet), code);
	assert_int_equal(error.code, code);
	assert_non_null(strstr(error.text, words));
	assert_string_equal(list, "");
}

TEST(a_service_that_is_not_there_is_named)
{
	struct packet packet = begin_answer(0);

	expect_refused(&packet, PERSEAS_EINVAL, "there are none");
	packet = begin_answer(1);
	put_record(&packet, 0, 0, 0, "");
	expect_refused(&packet, PERSEAS_EINVAL, "on purpose");
}

/* More than a store has; exactly as many are taken. */
TEST(too_many_mirrors_are_refused)
{
	char target[64];

	for (unsigned count = PS_MIRRORS_MAX; count <= PS_MIRRORS_MAX + 1; count++) {
		struct packet packet = begin_answer(count);

		for (unsigned i = 0; i < count; i++) {
			snprintf(target, sizeof(target), "m%u.example", i);
			put_record(&packet, 1, 1, 7170, target);
		}
		if (count == PS_MIRRORS_MAX)
			assert_int_equal(read_packet(&packet), 0);
		else
			expect_refused(&packet, PERSEAS_ELIMIT, "more than 16");
	}
}

/* Names that would have another meaning in a list, or print control characters. */
TEST(a_target_that_is_no_hosts_name_is_refused)
{
	static const char *const targets[] = { "a,b", "a/b", "a b", "a\x1b[2J", "@a", "[a", "-a" };
	struct packet packet;

	for (unsigned i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		packet = begin_answer(1);
		put_record(&packet, 1, 1, 7170, targets[i]);
		expect_refused(&packet, PERSEAS_EPROTOCOL, "no host's name");
	}
	packet = begin_answer(1);
	put_record(&packet, 1, 1, 0, "m1.example");
	expect_refused(&packet, PERSEAS_EPROTOCOL, "port 0");
	/* 208 bytes are a name in the DNS, and more than an address has. */
	packet = begin_answer(1);
	put_record(&packet, 1, 1, 7170,
	           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
	           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
	           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa."
	           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	expect_refused(&packet, PERSEAS_EPROTOCOL, "no host's name");
}

/* Each length of a good answer but the whole, and each target that points astray. */
TEST(an_answer_that_is_cut_or_points_astray_is_refused)
{
	struct packet packet = begin_answer(1);
	size_t whole;

	put_record(&packet, 1, 1, 7170, "m1.example");
	whole = packet.len;
	assert_int_equal(read_packet(&packet), 0);
	for (packet.len = 0; packet.len < whole; packet.len++)
		expect_refused(&packet, PERSEAS_EPROTOCOL, "broken");
	/* The target is a pointer to itself. */
	packet = begin_answer(1);
	put_record(&packet, 1, 1, 7170, "x");
	packet.bytes[packet.len - 3] = (uint8_t)(0xc0 | (packet.len - 3) >> 8);
	packet.bytes[packet.len - 2] = (uint8_t)(packet.len - 3);
	expect_refused(&packet, PERSEAS_EPROTOCOL, "broken");
	/* Data that ends with the port; the name of the next record would be a target. */
	packet = begin_answer(2);
	put_record(&packet, 1, 1, 7170, "");
	packet.len--;
	packet.bytes[packet.len - 7] = 6;
	put_record(&packet, 1, 1, 7170, "m1.example");
	expect_refused(&packet, PERSEAS_EPROTOCOL, "broken");
}

/* Records of another type stand on the way there. */
TEST(other_records_are_passed_over)
{
	struct packet packet = begin_answer(2);

	put_number(&packet, 0xc00c, 2);
	put_number(&packet, 5, 2); /* CNAME */
	put_number(&packet, 1, 2);
	put_number(&packet, 60, 4);
	put_number(&packet, 2, 2);
	put_number(&packet, 0xc00c, 2);
	put_record(&packet, 1, 1, 7170, "m1.example");
	assert_int_equal(read_packet(&packet), 0);
	assert_string_equal(list, "m1.example:7170");
}

/* --- asked of a server --- */

struct server {
	pthread_t thread;
	struct ps_srv_server at;
	int udp, tcp;
	unsigned code;  /* of its answers */
	bool cut;       /* over UDP it says that it did not fit */
	unsigned asked; /* how often */
};

/* Writes the answer to a question. Returns false if it is not the expected question. */
static bool make_answer(const struct server *server, const uint8_t *question, size_t len,
                        bool whole, struct packet *answer)
{
	struct packet wanted;

	if (len < 12)
		return false;
	put_head(&wanted, 0, 0, 0, QUESTION);
	if (len < wanted.len || memcmp(question + 12, wanted.bytes + 12, wanted.len - 12) != 0)
		return false;
	put_head(answer, (unsigned)question[0] << 8 | question[1],
	         server->code | (whole ? 0 : 0x200), whole && !server->code ? 2 : 0, QUESTION);
	if (whole && !server->code) {
		put_record(answer, 2, 1, 7172, "m2.example");
		put_record(answer, 1, 1, 7171, "m1.example");
	}
	return true;
}

static void serve_tcp(struct server *server)
{
	uint8_t question[PACKET], length[2];
	int peer = accept(server->tcp, NULL, NULL);
	struct packet answer;

	if (peer >= 0 && recv(peer, length, 2, MSG_WAITALL) == 2) {
		const size_t len = (size_t)length[0] << 8 | length[1];

		if (len <= sizeof(question) &&
		    recv(peer, question, len, MSG_WAITALL) == (ssize_t)len &&
		    make_answer(server, question, len, true, &answer)) {
			length[0] = (uint8_t)(answer.len >> 8);
			length[1] = (uint8_t)answer.len;
			send(peer, length, 2, MSG_NOSIGNAL);
			send(peer, answer.bytes, answer.len, MSG_NOSIGNAL);
		}
	}
	close(peer);
}

/* Until a packet of one byte comes. */
static void *serve(void *arg)
{
	struct server *server = arg;
	uint8_t question[PACKET];
	struct packet answer;

	for (;;) {
		struct sockaddr_in from;
		socklen_t size = sizeof(from);
		ssize_t len = recvfrom(server->udp, question, sizeof(question), 0,
		                       (struct sockaddr *)&from, &size);

		if (len <= 1)
			return NULL;
		server->asked++;
		if (!make_answer(server, question, (size_t)len, !server->cut, &answer))
			continue;
		sendto(server->udp, answer.bytes, answer.len, 0, (struct sockaddr *)&from, size);
		if (server->cut)
			serve_tcp(server);
	}
}

/* Both protocols at one port, which the system chooses. */
static void open_server(struct server *server)
{
	socklen_t size = sizeof(server->at.address);

	do {
		memset(&server->at, 0, sizeof(server->at));
		server->at.seconds = PATIENCE_SECONDS;
		server->at.address.sin_family = AF_INET;
		server->at.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		server->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		server->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(server->tcp, (struct sockaddr *)&server->at.address, size),
		                 0);
		assert_int_equal(listen(server->tcp, 4), 0);
		getsockname(server->tcp, (struct sockaddr *)&server->at.address, &size);
		if (!bind(server->udp, (struct sockaddr *)&server->at.address, size))
			return;
		close(server->tcp);
		close(server->udp);
	} while (true);
}

static void close_server(struct server *server)
{
	close(server->udp);
	close(server->tcp);
}

static int ask_server(struct server *server)
{
	int stop = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	memset(&error, 0, sizeof(error));
	open_server(server);
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
	rc = ps_srv_lookup("srv://mirrors.example", &server->at, list, &error);
	sendto(stop, "", 1, 0, (struct sockaddr *)&server->at.address, sizeof(server->at.address));
	close(stop);
	pthread_join(server->thread, NULL);
	close_server(server);
	return rc;
}

TEST(a_server_is_asked_for_the_service)
{
	struct server server = { 0 };

	assert_int_equal(ask_server(&server), 0);
	assert_string_equal(list, "m1.example:7171,m2.example:7172");
	assert_true(server.asked > 0);
}

/* A list that does not fit into a datagram. */
TEST(an_answer_that_is_too_long_for_udp_comes_over_tcp)
{
	struct server server = { .cut = true };

	assert_int_equal(ask_server(&server), 0);
	assert_string_equal(list, "m1.example:7171,m2.example:7172");
}

TEST(a_domain_that_is_not_there_is_refused)
{
	struct server server = { .code = NXDOMAIN };

	assert_int_equal(ask_server(&server), PERSEAS_EINVAL);
	assert_non_null(strstr(error.text, "srv://mirrors.example"));
	assert_non_null(strstr(error.text, "there are none"));
}

/* Nobody listens at the server's port, which may pass. */
TEST(no_server_is_no_answer)
{
	struct server server = { 0 };

	open_server(&server);
	close(server.udp);
	assert_int_equal(ps_srv_lookup("srv://mirrors.example", &server.at, list, &error),
	                 PERSEAS_EUNREACHABLE);
	assert_non_null(strstr(error.text, "no server gave an answer"));
	close(server.tcp);
}

TEST(what_is_no_domain_is_not_asked_for)
{
	static const char *const bad[] = { "srv://",    "srv://.a",   "srv://a..b", "srv://-a",
		                           "srv://a,b", "srv://a:53", "srv://a b",  "srv://@a" };

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_true(ps_srv_is_name(bad[i]));
		assert_int_equal(ps_srv_lookup(bad[i], NULL, list, &error), PERSEAS_EINVAL);
		assert_non_null(strstr(error.text, "must be a domain"));
	}
}
