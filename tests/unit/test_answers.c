/*
 * test_answers.c - the stream of answers that a mirror sends over TCP, by itself.
 */
#include "../../client/fabric/answers.h"
#include "../../client/core/fabric.h"
#include "../support/unit.h"

/* Two writes and a read of 20 bytes are under way. */
static void expect_answers(struct ps_answers *answers, uint8_t *bytes)
{
	memset(answers, 0, sizeof(*answers));
	answers->last = 10;
	answers->writes = 2;
	answers->reads = 1;
	answers->into = bytes;
	answers->left = 20;
}

static size_t make_stream(uint8_t *stream)
{
	const struct ps_answer heads[] = {
		{ .op = PS_OP_WRITE, .cookie = 11 },
		{ .op = PS_OP_WRITE, .cookie = 12 },
		{ .op = PS_OP_READ, .cookie = 13, .length = 20 },
	};

	memcpy(stream, heads, sizeof(heads));
	memcpy(stream + sizeof(heads), "twenty bytes of data", 20);
	return sizeof(heads) + 20;
}

/* The stream arrives cut in two, at each place in turn. */
TEST(answers_may_arrive_in_any_pieces)
{
	uint8_t stream[128], bytes[20];
	size_t len = make_stream(stream), cut;
	struct ps_answers answers;

	for (cut = 0; cut <= len; cut++) {
		memset(bytes, 0, sizeof(bytes));
		expect_answers(&answers, bytes);
		assert_int_equal(ps_answers_feed(&answers, stream, cut), PS_LINK_OK);
		assert_int_equal(answers.completed, cut < 16 ? 0 : cut < 32 ? 1 : 2);
		assert_int_equal(ps_answers_feed(&answers, stream + cut, len - cut), PS_LINK_OK);
		assert_int_equal(answers.completed, 2);
		assert_int_equal(answers.left + answers.reads + answers.writes, 0);
		assert_memory_equal(bytes, "twenty bytes of data", 20);
	}
}

/* Changes each byte of the heads in turn: none may pass for the right answer. */
TEST(a_changed_answer_is_never_taken)
{
	uint8_t stream[128], bytes[20];
	size_t len = make_stream(stream), at;
	struct ps_answers answers;
	int code;

	for (at = 0; at < 48; at++) {
		make_stream(stream);
		stream[at] ^= 0x41;
		expect_answers(&answers, bytes);
		code = ps_answers_feed(&answers, stream, len);
		assert_int_equal(code, PS_LINK_BROKEN);
	}
}

/* The mirror says that the session is over, or that it did not understand, or says too much. */
TEST(bad_news_and_surplus_answers_end_the_link)
{
	struct ps_answer head = { .op = PS_OP_WRITE, .status = PS_ANSWER_BAD_TOKEN, .cookie = 11 };
	uint8_t stream[128], bytes[20];
	size_t len = make_stream(stream);
	struct ps_answers answers;

	expect_answers(&answers, bytes);
	assert_int_equal(ps_answers_feed(&answers, &head, sizeof(head)), PS_LINK_FENCED);
	head.status = PS_ANSWER_BAD_FRAME;
	expect_answers(&answers, bytes);
	assert_int_equal(ps_answers_feed(&answers, &head, sizeof(head)), PS_LINK_BROKEN);
	expect_answers(&answers, bytes);
	assert_int_equal(ps_answers_feed(&answers, stream, len), PS_LINK_OK);
	head.status = PS_ANSWER_OK;
	head.cookie = 14;
	assert_int_equal(ps_answers_feed(&answers, &head, sizeof(head)), PS_LINK_BROKEN);
}
