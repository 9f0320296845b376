/*
 * test_reach.c - what a mirror answers to who fetches missing memory: taken when it is whole and in
 * order, however it arrives, and given up when it is anything else. And which of its addresses is
 * tried when.
 */
#include "../../client/demand/fetch_connection.h"
#include "../../proto/control/envelope.h"
#include "../../proto/data/frame.h"
#include "../support/messages.h"
#include "../support/unit.h"

#include <netinet/in.h>
#include <sys/un.h>

enum {
	LENGTH = 5000,
	ROUNDS = 3000,
	LONG = 2 * PS_REACH_BULK + 77,
	TOO_LONG = PS_MESSAGE_MAX - 100
};

struct fixture {
	struct ps_fetch_connection reach;
	int mirror; /* the other end */
	uint8_t sent[2 << 20];
	size_t length;
	struct ps_fetch_answer fetched; /* the last answer */
	int bound[2];                   /* addresses of the test; 0: none */
	unsigned bound_count;
};

static const struct ps_fetch_request missing = { .store = "bank",
	                                         .region = PS_REGION_SEGMENT,
	                                         .length = LENGTH };

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int ends[2];

	assert_non_null(f);
	assert_true(ps_fetch_connection_init(&f->reach));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	f->mirror = ends[1];
	f->reach.has_addresses = true;
	f->reach.way.count = 1;
	f->reach.fd = ends[0];
	assert_true(ps_fetch_connection_ask(&f->reach, &missing));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	ps_fetch_connection_cancel(&f->reach);
	ps_fetch_connection_free(&f->reach);
	close(f->mirror);
	while (f->bound_count)
		close(f->bound[--f->bound_count]);
	free(f);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static void add(struct fixture *f, const void *bytes, size_t length)
{
	assert_true(f->length + length <= sizeof(f->sent));
	memcpy(f->sent + f->length, bytes, length);
	f->length += length;
}

static void add_hello(struct fixture *f)
{
	const struct ps_control_hello hello = { PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION };

	add(f, &hello, sizeof(hello));
}

static void add_reply(struct fixture *f, Perseas__Reply *reply)
{
	uint8_t *bytes;
	size_t length;

	assert_int_equal(ps_reply_pack(reply, &bytes, &length), 0);
	add(f, bytes, length);
	free(bytes);
}

static void add_refusal(struct fixture *f, uint64_t id)
{
	Perseas__Reply reply = PERSEAS__REPLY__INIT;

	reply.id = id;
	reply.status = PERSEAS__STATUS__STATUS_NO_STORE;
	reply.message = (char *)(uintptr_t) "no";
	add_reply(f, &reply);
}

static void add_piece(struct fixture *f, uint64_t id, size_t length, uint8_t value)
{
	static uint8_t bytes[TOO_LONG];
	Perseas__ReadReply read = PERSEAS__READ_REPLY__INIT;
	Perseas__Reply reply = PERSEAS__REPLY__INIT;

	memset(bytes, value, length);
	read.bytes = (ProtobufCBinaryData){ length, bytes };
	reply.id = id;
	reply.body_case = PERSEAS__REPLY__BODY_READ;
	reply.read = &read;
	add_reply(f, &reply);
}

static void add_working(struct fixture *f, uint64_t id)
{
	Perseas__WorkingReply working = PERSEAS__WORKING_REPLY__INIT;
	Perseas__Reply reply = PERSEAS__REPLY__INIT;

	working.done = 1;
	reply.id = id;
	reply.body_case = PERSEAS__REPLY__BODY_WORKING;
	reply.working = &working;
	add_reply(f, &reply);
}

static void add_status(struct fixture *f, uint64_t id)
{
	Perseas__StoreStatus status = PERSEAS__STORE_STATUS__INIT;
	Perseas__StatusReply body = PERSEAS__STATUS_REPLY__INIT;
	Perseas__Reply reply = PERSEAS__REPLY__INIT;
	struct message_header *header = message_header_new();

	status.header = &header->header;
	body.status = &status;
	reply.id = id;
	reply.body_case = PERSEAS__REPLY__BODY_STORE;
	reply.store = &body;
	add_reply(f, &reply);
	free(header);
}

/* What comes before the bytes. */
static void add_beginning(struct fixture *f)
{
	add_hello(f);
	add_status(f, 1);
}

/* The bytes, and what comes after them. */
static void add_end(struct fixture *f)
{
	add_piece(f, 2, LENGTH, 7);
	add_status(f, 3);
}

static int take(struct fixture *f)
{
	return ps_fetch_connection_poll(&f->reach, &f->fetched);
}

/* Sends what was added. Returns what the owner's end says then. */
static int send_all(struct fixture *f)
{
	assert_int_equal(write(f->mirror, f->sent, f->length), f->length);
	f->length = 0;
	return take(f);
}

TEST(test_an_answer_in_pieces, struct fixture *f)
{
	add_beginning(f);
	add_working(f, 2);
	add_end(f);
	for (size_t i = 0; i + 1 < f->length; i++) {
		assert_int_equal(write(f->mirror, f->sent + i, 1), 1);
		assert_int_equal(take(f), 0);
	}
	assert_int_equal(write(f->mirror, f->sent + f->length - 1, 1), 1);
	assert_int_equal(take(f), 1);
	assert_int_equal(f->fetched.bytes.len, LENGTH);
	assert_int_equal(f->fetched.bytes.data[LENGTH - 1], 7);
	assert_ptr_not_equal(f->fetched.before, f->fetched.after);
}

/* Who waits for one piece does not wait until the kernel has cleared a large page for it. */
TEST(test_one_piece_takes_no_large_page, struct fixture *f)
{
	unsigned char is_there[PS_REACH_BLOCK / PS_PAGE];

	add_beginning(f);
	add_end(f);
	assert_int_equal(send_all(f), 1);
	assert_int_equal(mincore(f->reach.block, PS_REACH_BLOCK, is_there), 0);
	for (unsigned i = 0; i < sizeof(is_there); i++)
		assert_false(is_there[i] & 1);
}

/* Signs of progress are no part of the answer, which is taken in one call. */
TEST(test_a_mirror_that_works_for_long, struct fixture *f)
{
	add_beginning(f);
	for (int i = 0; i < 3; i++)
		add_working(f, 2);
	add_end(f);
	assert_int_equal(send_all(f), 1);
	assert_int_equal(f->fetched.bytes.len, LENGTH);
}

/* Asks again, for more than one piece; the greeting and the first status have come. */
static void ask_for(struct fixture *f, uint32_t bytes)
{
	const struct ps_fetch_request more = { .store = "bank",
		                               .region = PS_REGION_SEGMENT,
		                               .length = bytes };

	f->reach.is_greeted = true;
	f->reach.last_request_id = 0;
	assert_true(ps_fetch_connection_ask(&f->reach, &more));
	add_status(f, 1);
}

/* What is said after its first piece; or nothing. */
static int give(struct fixture *f)
{
	uint64_t sent = 0;
	ssize_t n;
	int rc = 0;

	for (; sent < f->length && rc == 0; sent += (uint64_t)n) {
		n = send(f->mirror, f->sent + sent, f->length - sent, MSG_DONTWAIT);
		assert_true(n > 0 || errno == EAGAIN);
		n = n < 0 ? 0 : n;
		rc = take(f);
	}
	if (rc == 0)
		rc = take(f);
	f->length = 0;
	if (rc > 0) {
		assert_int_equal(f->fetched.bytes.len, LONG);
		assert_ptr_equal(f->fetched.bytes.data, f->reach.block);
		for (unsigned i = 0; i < LONG; i++)
			assert_int_equal(f->fetched.bytes.data[i], 1 + i / PS_REACH_BULK);
	}
	return rc;
}

TEST(test_pieces_lie_side_by_side, struct fixture *f)
{
	const uint8_t *end;

	ask_for(f, LONG);
	assert_int_equal(ps_fetch_connection_received_bytes(&f->reach), 0);
	add_piece(f, 2, PS_REACH_BULK, 1);
	add_working(f, 3);
	add_piece(f, 3, PS_REACH_BULK, 2);
	end = f->sent + (f->length -= 9);
	assert_int_equal(give(f), 0);
	assert_in_range(ps_fetch_connection_received_bytes(&f->reach), 2 * PS_REACH_BULK - 9,
	                2 * PS_REACH_BULK + 50);
	add(f, end, 9);
	add_piece(f, 4, LONG - 2 * PS_REACH_BULK, 3);
	assert_int_equal(give(f), 0);
	add_status(f, 5);
	assert_int_equal(give(f), 1);
}

/* Bytes are in their place before the message is complete. */
TEST(test_bytes_go_straight_into_their_place, struct fixture *f)
{
	ask_for(f, LONG);
	add_piece(f, 2, PS_REACH_BULK, 1);
	f->length -= 9;
	assert_int_equal(give(f), 0);
	assert_int_equal(f->reach.block[0], 1);
	assert_int_equal(f->reach.block[PS_REACH_BULK - 9], 1);
	assert_int_equal(f->reach.block[PS_REACH_BULK - 1], 0);
}

/* The connection is lost within a piece. The next one brings all of it. */
TEST(test_a_piece_comes_again_over_another_connection, struct fixture *f)
{
	int ends[2];

	ask_for(f, LONG);
	add_piece(f, 2, PS_REACH_BULK, 1);
	f->length /= 2;
	assert_int_equal(give(f), 0);
	ps_fetch_connection_cancel(&f->reach);
	close(f->mirror);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	f->mirror = ends[1];
	f->reach.fd = ends[0];
	ask_for(f, LONG);
	assert_int_equal(ps_fetch_connection_received_bytes(&f->reach), 0);
	for (unsigned i = 0; i < 3; i++)
		add_piece(f, 2 + i, i < 2 ? PS_REACH_BULK : LONG % PS_REACH_BULK, 1 + (uint8_t)i);
	add_status(f, 5);
	assert_int_equal(give(f), 1);
}

/* Adds a reply made of two, one after the other: protobuf takes that for one message. */
static void add_joined(struct fixture *f, const Perseas__Reply *first, const Perseas__Reply *second)
{
	const size_t lengths[] = { perseas__reply__get_packed_size(first),
		                   perseas__reply__get_packed_size(second) };
	const uint32_t length = (uint32_t)(lengths[0] + lengths[1]);

	add(f, &length, sizeof(length));
	assert_true(f->length + length <= sizeof(f->sent));
	perseas__reply__pack(first, f->sent + f->length);
	perseas__reply__pack(second, f->sent + f->length + lengths[0]);
	f->length += length;
}

/* Fields in another order are the same reply. Behind the bytes there may be nothing but the id that
 * is due and the mirror's identity: no other body, no other id, no status, and no field that is
 * unknown. */
TEST(test_what_is_around_the_bytes, struct fixture *f)
{
	static uint8_t bytes[LENGTH];
	uint8_t mirror[PS_ID_SIZE] = { 1 };
	Perseas__ReadReply read = PERSEAS__READ_REPLY__INIT;
	Perseas__WorkingReply working = PERSEAS__WORKING_REPLY__INIT;
	Perseas__Reply body = PERSEAS__REPLY__INIT, other = PERSEAS__REPLY__INIT;

	memset(bytes, 7, LENGTH);
	read.bytes = (ProtobufCBinaryData){ LENGTH, bytes };
	body.body_case = PERSEAS__REPLY__BODY_READ;
	body.read = &read;
	for (int i = 0; i < 6; i++) {
		perseas__reply__init(&other);
		other.id = i == 2 ? 3 : 2;
		if (i == 1)
			other.daemon = (ProtobufCBinaryData){ PS_ID_SIZE, mirror };
		if (i == 3)
			other.status = PERSEAS__STATUS__STATUS_BUSY;
		if (i == 4) {
			other.body_case = PERSEAS__REPLY__BODY_WORKING;
			other.working = &working;
		}
		if (i == 5)
			other.daemon = (ProtobufCBinaryData){ 3, mirror };
		add_beginning(f);
		add_joined(f, i == 0 ? &other : &body, i == 0 ? &body : &other);
		add_status(f, 3);
		assert_int_equal(send_all(f), i < 2 ? 1 : -1);
		if (i < 2)
			assert_memory_equal(f->fetched.bytes.data, bytes, LENGTH);
		f = unit_begin_again();
	}
}

/* The length of the message is that of less or of more than the bytes and what is around them. */
TEST(test_a_length_that_lies, struct fixture *f)
{
	const int wrong[] = { -LENGTH, -3, -1, 1, 5 };
	uint32_t length;
	size_t at;

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		add_beginning(f);
		at = f->length;
		add_end(f);
		memcpy(&length, f->sent + at, sizeof(length));
		length += (uint32_t)wrong[i];
		memcpy(f->sent + at, &length, sizeof(length));
		assert_int_equal(send_all(f), -1);
		f = unit_begin_again();
	}
}

/* One is too long, one too short, one is missing. */
TEST(test_pieces_that_are_not_whole, struct fixture *f)
{
	const size_t seconds[] = { PS_REACH_BULK + 1, PS_REACH_BULK - 1, 0 };

	for (unsigned i = 0; i < 3; i++) {
		ask_for(f, LONG);
		add_piece(f, 2, PS_REACH_BULK, 1);
		if (seconds[i])
			add_piece(f, 3, seconds[i], 2);
		else
			add_status(f, 3);
		assert_int_equal(give(f), -1);
		f = unit_begin_again();
	}
}

/* As much as fits into a message, for the last piece of the block. */
TEST(test_nothing_is_put_behind_the_block, struct fixture *f)
{
	const uint8_t *behind = f->reach.block + PS_REACH_BLOCK;

	ask_for(f, PS_REACH_BLOCK);
	for (unsigned i = 0; i < 3; i++) {
		add_piece(f, 2 + i, PS_REACH_BULK, 1);
		assert_int_equal(give(f), 0);
	}
	add_piece(f, 5, TOO_LONG, 1);
	assert_int_equal(give(f), -1);
	for (; behind < f->reach.room + 2 * PS_REACH_BLOCK; behind++)
		assert_int_equal(*behind, 0);
}

/* A refusal, bytes before the first status, and an answer to another request. */
TEST(test_answers_that_end_it, struct fixture *f)
{
	for (unsigned i = 0; i < 3; i++) {
		if (i == 0)
			add_beginning(f);
		else
			add_hello(f);
		if (i == 0)
			add_refusal(f, 2);
		else if (i == 1)
			add_piece(f, 1, LENGTH, 7);
		else
			add_status(f, 2);
		assert_int_equal(send_all(f), -1);
		f = unit_begin_again();
	}
}

TEST(test_the_connection_ends, struct fixture *f)
{
	add_beginning(f);
	assert_int_equal(send_all(f), 0);
	shutdown(f->mirror, SHUT_RDWR);
	assert_int_equal(take(f), -1);
}

TEST(test_another_version, struct fixture *f)
{
	const struct ps_control_hello hello = { PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION + 1 };

	add(f, &hello, sizeof(hello));
	assert_int_equal(send_all(f), -1);
}

TEST(test_lengths_that_cannot_be, struct fixture *f)
{
	const uint32_t lengths[] = { 0, PS_MESSAGE_MAX + 1, UINT32_MAX };

	for (unsigned i = 0; i < 3; i++) {
		add_hello(f);
		add(f, &lengths[i], sizeof(lengths[i]));
		assert_int_equal(send_all(f), -1);
		f = unit_begin_again();
	}
}

/* Bytes of a good answer are changed at random: it is taken, waited for or given up. */
TEST(test_anything, struct fixture *f)
{
	srand(1);
	for (unsigned round = 0; round < ROUNDS; round++) {
		int rc;

		add_beginning(f);
		add_end(f);
		for (int i = rand() % 4; i >= 0; i--)
			f->sent[(size_t)rand() % (rand() % 2 ? f->length : 64)] ^=
				(uint8_t)(1 << rand() % 8);
		rc = send_all(f);
		assert_true(rc >= -1 && rc <= 1);
		f = unit_begin_again();
	}
}

/* --- several addresses --- */

/* A Unix socket, at which somebody listens from listen() on. */
static int add_address(struct fixture *f, struct ps_known_addresses *way)
{
	struct sockaddr_un *to = (void *)way->to[way->count];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), length;

	to->sun_family = AF_UNIX;
	length = snprintf(to->sun_path + 1, sizeof(to->sun_path) - 1, "perseas-reach-%d-%u",
	                  (int)getpid(), way->count);
	way->lengths[way->count] = (uint32_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
	                                      (size_t)length);
	assert_int_equal(bind(fd, (void *)to, way->lengths[way->count]), 0);
	way->count++;
	return f->bound[f->bound_count++] = fd;
}

/* A port of this host that refuses, at once or in a while. */
static int add_port(struct fixture *f, struct ps_known_addresses *way)
{
	struct sockaddr_in *to = (void *)way->to[way->count];
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t length = sizeof(*to);

	to->sin_family = AF_INET;
	to->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (void *)to, length), 0);
	assert_int_equal(getsockname(fd, (void *)to, &length), 0);
	way->lengths[way->count++] = length;
	return f->bound[f->bound_count++] = fd;
}

/* Asks over a new connection, which is to come to this socket. */
static int ask_at(struct fixture *f, int listener)
{
	int fd;

	assert_true(ps_fetch_connection_ask(&f->reach, &missing));
	assert_int_equal(take(f), 0);
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	return fd;
}

/* It refuses at once, or its family is unknown here: the other one's turn, then its own again. */
TEST(test_an_address_that_refuses, struct fixture *f)
{
	struct ps_known_addresses way = { 0 };
	int listens;

	add_address(f, &way);
	listens = add_address(f, &way);
	assert_int_equal(listen(listens, 5), 0);
	for (unsigned round = 0; round < 2; round++) {
		ps_fetch_connection_set_addresses(&f->reach, &way);
		assert_false(ps_fetch_connection_ask(&f->reach, &missing));
		ps_fetch_connection_cancel(&f->reach);
		close(ask_at(f, listens));
		ps_fetch_connection_cancel(&f->reach);
		assert_false(ps_fetch_connection_ask(&f->reach, &missing));
		((struct sockaddr *)way.to[0])->sa_family = AF_MAX;
	}
}

TEST(test_a_port_that_refuses, struct fixture *f)
{
	struct ps_known_addresses way = { 0 };
	int listens;

	add_port(f, &way);
	listens = add_address(f, &way);
	assert_int_equal(listen(listens, 5), 0);
	ps_fetch_connection_set_addresses(&f->reach, &way);
	if (ps_fetch_connection_ask(&f->reach, &missing)) {
		struct pollfd fd;

		assert_true(ps_fetch_connection_fill_pollfd(&f->reach, &fd));
		assert_int_equal(poll(&fd, 1, -1), 1);
		assert_int_equal(take(f), -1);
	}
	ps_fetch_connection_cancel(&f->reach);
	close(ask_at(f, listens));
}

/* The first says nothing, and is given up. Where a mirror has spoken, that address is kept. */
TEST(test_an_address_that_never_answers, struct fixture *f)
{
	const struct ps_control_hello hello = { PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION };
	struct ps_known_addresses way = { 0 };
	int silent = add_address(f, &way), speaks = add_address(f, &way), fd;

	assert_int_equal(listen(silent, 5), 0);
	assert_int_equal(listen(speaks, 5), 0);
	ps_fetch_connection_set_addresses(&f->reach, &way);
	close(ask_at(f, silent));
	ps_fetch_connection_cancel(&f->reach);
	fd = ask_at(f, speaks);
	assert_int_equal(write(fd, &hello, sizeof(hello)), sizeof(hello));
	assert_int_equal(take(f), 0);
	ps_fetch_connection_cancel(&f->reach);
	close(fd);
	close(ask_at(f, speaks));
}
