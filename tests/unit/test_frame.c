/*
 * test_frame.c - the decoder applies what it is sent, in whatever pieces it comes, and
 * applies nothing of a frame that is wrong.
 */
#include "../../proto/data/frame.h"
#include "../support/unit.h"

enum { MEMORY = 4096, ANSWERS = 64 };

enum { LARGE = PS_REGION_SEGMENT + 5 };

static uint8_t large[PS_READ_MAX + 1];

/* A mirror with a log, a segment that may only be read, and one larger than a read. */
struct mirror {
	uint8_t log[MEMORY];
	uint8_t segment[MEMORY];
	struct ps_answer answers[ANSWERS];
	uint8_t read[ANSWERS][16]; /* the first bytes that went with each */
	unsigned count;
	bool gone; /* all memory is taken away */
	struct ps_decoder decoder;
};

static uint8_t *where(void *ctx, const struct ps_extent *extent, bool write)
{
	struct mirror *mirror = ctx;
	uint8_t *base = extent->region == PS_REGION_LOG ? mirror->log : mirror->segment;

	if (extent->region == LARGE)
		return extent->offset == 0 && extent->length <= sizeof large ? large : NULL;
	if (mirror->gone || extent->offset > MEMORY || extent->length > MEMORY - extent->offset)
		return NULL;
	if (extent->region != PS_REGION_LOG && (write || extent->region != PS_REGION_SEGMENT))
		return NULL;
	return base + extent->offset;
}

static void answer(void *ctx, const struct ps_answer *given, const uint8_t *bytes)
{
	struct mirror *mirror = ctx;

	assert_true(mirror->count < ANSWERS);
	assert_true(ps_answer_valid(given));
	assert_int_equal(bytes != NULL, given->length > 0);
	if (given->length)
		memcpy(mirror->read[mirror->count], bytes, given->length < 16 ? given->length : 16);
	mirror->answers[mirror->count++] = *given;
}

static const struct ps_decoder_ops ops = { where, answer };

static void begin_mirror(struct mirror *mirror)
{
	memset(mirror, 0, sizeof *mirror);
	memset(mirror->segment, 0x5e, sizeof mirror->segment);
	ps_decoder_init(&mirror->decoder, &ops, mirror);
}

/* A mirror, and a stream that is written for it. */
struct rig {
	struct mirror mirror;
	struct stream {
		uint8_t bytes[65536];
		size_t len;
	} stream;
};

static int setup(void **state)
{
	static struct rig rig;

	begin_mirror(&rig.mirror);
	rig.stream.len = 0;
	*state = &rig;
	return 0;
}

struct unit_fixture unit_fixture = { setup, NULL };

static void append(struct stream *stream, const void *bytes, size_t len)
{
	assert_true(stream->len + len <= sizeof stream->bytes);
	memcpy(stream->bytes + stream->len, bytes, len);
	stream->len += len;
}

static void append_frame(struct stream *stream, uint8_t op, uint8_t flags, uint16_t count,
                         uint64_t cookie)
{
	struct ps_frame frame = { .op = op, .flags = flags, .count = count, .cookie = cookie };

	append(stream, &frame, sizeof frame);
}

static void append_extent(struct stream *stream, uint32_t region, uint64_t offset, uint32_t length)
{
	struct ps_extent extent = { .region = region, .length = length, .offset = offset };

	append(stream, &extent, sizeof extent);
}

static void append_payload(struct stream *stream, uint8_t byte, size_t len)
{
	while (len--)
		append(stream, &byte, 1);
}

/* Two signalled writes, one that is not, and a read of what they wrote. */
static void make_stream(struct stream *stream)
{
	stream->len = 0;
	append_frame(stream, PS_OP_WRITE, PS_FRAME_SIGNALLED, 3, 1);
	append_extent(stream, PS_REGION_LOG, 0, 100);
	append_extent(stream, PS_REGION_LOG, 4095, 1);
	append_extent(stream, PS_REGION_LOG, 50, 100);
	append_payload(stream, 0x11, 100);
	append_payload(stream, 0x22, 1);
	append_payload(stream, 0x33, 100);
	append_frame(stream, PS_OP_WRITE, 0, 1, 2);
	append_extent(stream, PS_REGION_LOG, 200, 700);
	append_payload(stream, 0x44, 700);
	append_frame(stream, PS_OP_READ, 0, 1, 3);
	append_extent(stream, PS_REGION_LOG, 195, 10);
	append_frame(stream, PS_OP_WRITE, PS_FRAME_SIGNALLED, 1, 4);
	append_extent(stream, PS_REGION_LOG, 0, 4096);
	append_payload(stream, 0x55, 4096);
	append_frame(stream, PS_OP_READ, PS_FRAME_SIGNALLED, 1, 5);
	append_extent(stream, PS_REGION_SEGMENT, 0, 4096);
}

/* Feeds in pieces of the given size. */
static int feed(struct mirror *mirror, const struct stream *stream, size_t piece)
{
	for (size_t at = 0; at < stream->len; at += piece) {
		size_t len = piece < stream->len - at ? piece : stream->len - at;

		if (ps_decoder_feed(&mirror->decoder, stream->bytes + at, len) != 0)
			return -1;
	}
	return 0;
}

static bool same(const struct mirror *a, const struct mirror *b)
{
	return memcmp(a->log, b->log, MEMORY) == 0 && a->count == b->count &&
	       memcmp(a->answers, b->answers, sizeof a->answers) == 0 &&
	       memcmp(a->read, b->read, sizeof a->read) == 0;
}

/* Writes that overlap one another, and reads between them. */
TEST(frames_are_applied_in_order, struct rig *rig)
{
	struct mirror *mirror = &rig->mirror;
	struct stream *stream = &rig->stream;
	const uint8_t read[10] = { 0, 0, 0, 0, 0, 0x44, 0x44, 0x44, 0x44, 0x44 };

	make_stream(stream);
	stream->len -= 2 * 32 + 4096; /* without the last two frames */
	assert_int_equal(feed(mirror, stream, stream->len), 0);
	assert_int_equal(mirror->log[49], 0x11);
	assert_int_equal(mirror->log[50], 0x33);
	assert_int_equal(mirror->log[149], 0x33);
	assert_int_equal(mirror->log[150], 0);
	assert_int_equal(mirror->log[4095], 0x22);
	assert_int_equal(mirror->count, 2);
	assert_int_equal(mirror->answers[0].cookie, 1);
	assert_int_equal(mirror->answers[0].op, PS_OP_WRITE);
	assert_int_equal(mirror->answers[1].cookie, 3);
	assert_int_equal(mirror->answers[1].length, 10);
	assert_memory_equal(mirror->read[1], read, 10);
}

/* Feeds the same stream at once, byte by byte, and in pieces of many sizes. */
TEST(pieces_make_no_difference, struct rig *rig)
{
	static struct mirror whole;

	begin_mirror(&whole);
	make_stream(&rig->stream);
	assert_int_equal(feed(&whole, &rig->stream, rig->stream.len), 0);
	assert_int_equal(whole.count, 4);
	for (size_t piece = 1; piece < 400; piece++) {
		begin_mirror(&rig->mirror);
		assert_int_equal(feed(&rig->mirror, &rig->stream, piece), 0);
		assert_true(same(&rig->mirror, &whole));
	}
}

TEST(a_write_is_answered_only_when_it_is_whole, struct rig *rig)
{
	struct mirror *mirror = &rig->mirror;
	struct stream *stream = &rig->stream;

	append_frame(stream, PS_OP_WRITE, PS_FRAME_SIGNALLED, 2, 9);
	append_extent(stream, PS_REGION_LOG, 10, 8);
	append_extent(stream, PS_REGION_LOG, 30, 8);
	append_payload(stream, 0x77, 16);
	for (size_t i = 0; i < stream->len; i++) {
		assert_int_equal(mirror->count, 0);
		assert_int_equal(ps_decoder_feed(&mirror->decoder, stream->bytes + i, 1), 0);
	}
	assert_int_equal(mirror->count, 1);
	assert_int_equal(mirror->answers[0].status, PS_ANSWER_OK);
}

TEST(a_frame_may_have_256_extents, struct rig *rig)
{
	struct mirror *mirror = &rig->mirror;
	struct stream *stream = &rig->stream;

	append_frame(stream, PS_OP_WRITE, PS_FRAME_SIGNALLED, PS_FRAME_EXTENTS_MAX, 9);
	for (unsigned i = 0; i < PS_FRAME_EXTENTS_MAX; i++)
		append_extent(stream, PS_REGION_LOG, 16 * i, 3);
	append_payload(stream, 0x77, 3 * PS_FRAME_EXTENTS_MAX);
	assert_int_equal(feed(mirror, stream, 61), 0);
	assert_int_equal(mirror->count, 1);
	for (unsigned i = 0; i < MEMORY; i++)
		assert_int_equal(mirror->log[i], i % 16 < 3 ? 0x77 : 0);
}

struct wrong {
	uint8_t op, flags;
	uint16_t count;
	uint32_t zero;
	struct ps_extent last; /* comes after count - 1 good ones */
};

/* A good write, then one frame that is wrong, then another good write. */
static void refused_after_a_good_one(struct rig *rig, const struct wrong *wrong, size_t piece)
{
	struct mirror *mirror = &rig->mirror;
	struct stream *stream = &rig->stream;
	const struct ps_frame frame = { wrong->op, wrong->flags, wrong->count, wrong->zero, 2 };

	begin_mirror(mirror);
	stream->len = 0;
	append_frame(stream, PS_OP_WRITE, 0, 1, 1);
	append_extent(stream, PS_REGION_LOG, 0, 4);
	append_payload(stream, 0x11, 4);
	append(stream, &frame, sizeof frame);
	for (unsigned i = 1; i < wrong->count; i++)
		append_extent(stream, PS_REGION_LOG, 100, 4);
	append(stream, &wrong->last, sizeof wrong->last);
	append_payload(stream, 0x22, 64);
	assert_int_equal(feed(mirror, stream, piece), -1);
	assert_int_equal(mirror->count, 1);
	assert_int_equal(mirror->answers[0].status, PS_ANSWER_BAD_FRAME);
	assert_int_equal(mirror->answers[0].cookie, 2);
	assert_int_equal(mirror->answers[0].op, wrong->op);
	assert_int_equal(mirror->log[3], 0x11);
	for (unsigned i = 4; i < MEMORY; i++)
		assert_int_equal(mirror->log[i], 0);
	assert_int_equal(ps_decoder_feed(&mirror->decoder, stream->bytes, 36), -1);
	assert_int_equal(mirror->count, 1);
}

/* Frames with one thing wrong each, in one piece and byte by byte. */
TEST(nothing_of_a_wrong_frame_is_applied, struct rig *rig)
{
	const struct ps_extent good = { PS_REGION_LOG, 4, 100 };
	const struct wrong cases[] = {
		{ 0, 0, 1, 0, good },
		{ PS_OP_HELLO, 0, 1, 0, good },
		{ 9, 0, 1, 0, good },
		{ PS_OP_WRITE, 2, 1, 0, good },
		{ PS_OP_WRITE, 0, 0, 0, good },
		{ PS_OP_WRITE, 0, PS_FRAME_EXTENTS_MAX + 1, 0, good },
		{ PS_OP_WRITE, 0, 4000, 0, good },
		{ PS_OP_WRITE, 0, 1, 1, good },
		{ PS_OP_READ, 0, 2, 0, good },
		{ PS_OP_READ, 0, 0, 0, good },
		{ PS_OP_WRITE, 0, 3, 0, { PS_REGION_LOG, 0, 100 } },
		{ PS_OP_WRITE, 0, 3, 0, { PS_REGION_LOG, 5, 4092 } },
		{ PS_OP_WRITE, 0, 3, 0, { PS_REGION_LOG, 5, UINT64_MAX } },
		{ PS_OP_WRITE, 0, 3, 0, { PS_REGION_LOG, UINT32_MAX, 0 } },
		{ PS_OP_WRITE, 0, 3, 0, { PS_REGION_SEGMENT, 4, 0 } },
		{ PS_OP_READ, 0, 1, 0, { PS_REGION_SEGMENT, 0, 0 } },
		{ PS_OP_READ, 0, 1, 0, { PS_REGION_SEGMENT + 1, 4, 0 } },
		{ PS_OP_READ, 0, 1, 0, { LARGE, PS_READ_MAX + 1, 0 } },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		refused_after_a_good_one(rig, &cases[i], 100000);
		refused_after_a_good_one(rig, &cases[i], 1);
	}
}

/* The session is cut off between two pieces of a write. */
TEST(memory_that_goes_away_is_not_written, struct rig *rig)
{
	struct mirror *mirror = &rig->mirror;
	struct stream *stream = &rig->stream;

	append_frame(stream, PS_OP_WRITE, PS_FRAME_SIGNALLED, 1, 1);
	append_extent(stream, PS_REGION_LOG, 0, 100);
	append_payload(stream, 0x11, 100);
	assert_int_equal(ps_decoder_feed(&mirror->decoder, stream->bytes, 32 + 50), 0);
	mirror->gone = true;
	assert_int_equal(ps_decoder_feed(&mirror->decoder, stream->bytes + 82, 50), -1);
	assert_int_equal(mirror->log[49], 0x11);
	assert_int_equal(mirror->log[50], 0);
	assert_int_equal(mirror->answers[0].status, PS_ANSWER_BAD_FRAME);
}

TEST(answers_that_no_mirror_gives_are_refused)
{
	const struct {
		struct ps_answer answer;
		bool valid;
	} cases[] = {
		{ { PS_OP_HELLO, PS_ANSWER_OK, 0, 0, 0 }, true },
		{ { PS_OP_HELLO, PS_ANSWER_BAD_TOKEN, 0, 0, 0 }, true },
		{ { PS_OP_WRITE, PS_ANSWER_OK, 0, 0, 7 }, true },
		{ { PS_OP_READ, PS_ANSWER_OK, 0, PS_READ_MAX, 7 }, true },
		{ { 200, PS_ANSWER_BAD_FRAME, 0, 0, 7 }, true },
		{ { 200, PS_ANSWER_OK, 0, 0, 7 }, false },
		{ { 0, PS_ANSWER_OK, 0, 0, 7 }, false },
		{ { PS_OP_WRITE, PS_ANSWER_OK, 0, 1, 7 }, false },
		{ { PS_OP_HELLO, PS_ANSWER_OK, 0, 1, 7 }, false },
		{ { PS_OP_WRITE, PS_ANSWER_OK, 1, 0, 7 }, false },
		{ { PS_OP_HELLO, PS_ANSWER_OTHER_IDENTITY, 0, 0, 0 }, true },
		{ { PS_OP_WRITE, PS_ANSWER_OTHER_IDENTITY + 1, 0, 0, 7 }, false },
		{ { PS_OP_READ, PS_ANSWER_OK, 0, 0, 7 }, false },
		{ { PS_OP_READ, PS_ANSWER_OK, 0, PS_READ_MAX + 1, 7 }, false },
		{ { PS_OP_READ, PS_ANSWER_BAD_FRAME, 0, 1, 7 }, false },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(ps_answer_valid(&cases[i].answer), cases[i].valid);
}
