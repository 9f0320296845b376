/*
 * test_reach.c - what a mirror answers to who fetches missing memory: taken when it is whole and in
 * order, however it arrives, and given up when it is anything else.
 */
#include "../../client/demand/reach.h"
#include "../../proto/control/envelope.h"
#include "../../proto/data/frame.h"
#include "../support/messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { LENGTH = 5000, ROUNDS = 3000 };

struct fixture {
	struct ps_reach reach;
	int mirror; /* the other end */
	uint8_t sent[64 << 10];
	size_t length;
};

static int setup(void **state)
{
	const struct ps_missing missing = { "bank", PS_REGION_SEGMENT, LENGTH, 0 };
	struct fixture *f = calloc(1, sizeof(*f));
	int ends[2];

	assert_non_null(f);
	assert_true(ps_reach_init(&f->reach));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	f->mirror = ends[1];
	f->reach.leads = true;
	f->reach.way.count = 1;
	f->reach.fd = ends[0];
	assert_true(ps_reach_ask(&f->reach, &missing));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	ps_reach_drop(&f->reach);
	ps_reach_free(&f->reach);
	close(f->mirror);
	free(f);
	return 0;
}

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

static void add_bytes(struct fixture *f, uint64_t id)
{
	static uint8_t bytes[LENGTH];
	Perseas__ReadReply read = PERSEAS__READ_REPLY__INIT;
	Perseas__Reply reply = PERSEAS__REPLY__INIT;

	memset(bytes, 7, sizeof(bytes));
	read.bytes = (ProtobufCBinaryData){ sizeof(bytes), bytes };
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

/* Sends what was added; what the owner's end says then. */
static int send_all(struct fixture *f, struct ps_fetched *fetched)
{
	assert_int_equal(write(f->mirror, f->sent, f->length), f->length);
	f->length = 0;
	return ps_reach_answer(&f->reach, fetched);
}

static void test_an_answer_in_pieces(void **state)
{
	struct fixture *f = *state;
	struct ps_fetched fetched;

	add_hello(f);
	add_status(f, 1);
	add_working(f, 2);
	add_bytes(f, 2);
	add_status(f, 3);
	for (size_t i = 0; i + 1 < f->length; i++) {
		assert_int_equal(write(f->mirror, f->sent + i, 1), 1);
		assert_int_equal(ps_reach_answer(&f->reach, &fetched), 0);
	}
	assert_int_equal(write(f->mirror, f->sent + f->length - 1, 1), 1);
	assert_int_equal(ps_reach_answer(&f->reach, &fetched), 1);
	assert_int_equal(fetched.bytes.len, LENGTH);
	assert_int_equal(fetched.bytes.data[LENGTH - 1], 7);
	assert_ptr_not_equal(fetched.before, fetched.after);
}

static void test_a_refusal(void **state)
{
	struct fixture *f = *state;
	struct ps_fetched fetched;

	add_hello(f);
	add_status(f, 1);
	add_refusal(f, 2);
	assert_int_equal(send_all(f, &fetched), -1);
}

static void test_another_order(void **state)
{
	struct fixture *f = *state;
	struct ps_fetched fetched;

	add_hello(f);
	add_bytes(f, 1);
	assert_int_equal(send_all(f, &fetched), -1);
}

static void test_an_answer_to_another_request(void **state)
{
	struct fixture *f = *state;
	struct ps_fetched fetched;

	add_hello(f);
	add_status(f, 2);
	assert_int_equal(send_all(f, &fetched), -1);
}

static void test_the_connection_ends(void **state)
{
	struct fixture *f = *state;
	struct ps_fetched fetched;

	add_hello(f);
	add_status(f, 1);
	assert_int_equal(send_all(f, &fetched), 0);
	shutdown(f->mirror, SHUT_RDWR);
	assert_int_equal(ps_reach_answer(&f->reach, &fetched), -1);
}

static void test_another_version(void **state)
{
	const struct ps_control_hello hello = { PS_CONTROL_MAGIC, PS_PROTOCOL_VERSION + 1 };
	struct fixture *f = *state;
	struct ps_fetched fetched;

	add(f, &hello, sizeof(hello));
	assert_int_equal(send_all(f, &fetched), -1);
}

static void test_lengths_that_cannot_be(void **state)
{
	const uint32_t lengths[] = { 0, PS_MESSAGE_MAX + 1, UINT32_MAX };

	for (unsigned i = 0; i < 3; i++) {
		struct ps_fetched fetched;
		struct fixture *f = *state;

		add_hello(f);
		add(f, &lengths[i], sizeof(lengths[i]));
		assert_int_equal(send_all(f, &fetched), -1);
		teardown(state);
		setup(state);
	}
}

/* Bytes of a good answer are changed at random: it is taken, waited for or given up. */
static void test_anything(void **state)
{
	srand(1);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct ps_fetched fetched;
		struct fixture *f = *state;
		int rc;

		add_hello(f);
		add_status(f, 1);
		add_bytes(f, 2);
		add_status(f, 3);
		for (int i = rand() % 4; i >= 0; i--)
			f->sent[(size_t)rand() % (rand() % 2 ? f->length : 64)] ^=
				(uint8_t)(1 << rand() % 8);
		rc = send_all(f, &fetched);
		assert_true(rc >= -1 && rc <= 1);
		teardown(state);
		setup(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_an_answer_in_pieces),    TEST(test_a_refusal),
		TEST(test_another_order),          TEST(test_an_answer_to_another_request),
		TEST(test_the_connection_ends),    TEST(test_another_version),
		TEST(test_lengths_that_cannot_be), TEST(test_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
