/*
 * test_archive.c - an image in one file comes back as it was, or not at all.
 */
#include "../support/messages.h"

#include "../../proto/control/archive.h"
#include "../../proto/image/crc32c.h"
#include "../../proto/image/image.h"
#include "../support/unit.h"

enum { SMALL = 300, LOG = 4096, ROOM = 1 << 16 };

struct buffer {
	struct ps_archive_sink sink;
	struct ps_archive_source source;
	uint8_t *bytes;
	size_t len, room, at;
	size_t most; /* bytes that the source gives at once */
};

static int take(struct ps_archive_sink *sink, const void *bytes, size_t len)
{
	struct buffer *buffer = (struct buffer *)sink;

	if (len > buffer->room - buffer->len)
		return -1;
	memcpy(buffer->bytes + buffer->len, bytes, len);
	buffer->len += len;
	return 0;
}

static long give(struct ps_archive_source *source, void *bytes, size_t len)
{
	struct buffer *buffer = (struct buffer *)((char *)source - offsetof(struct buffer, source));
	size_t part = buffer->len - buffer->at;

	part = part < len ? part : len;
	part = part < buffer->most ? part : buffer->most;
	memcpy(bytes, buffer->bytes + buffer->at, part);
	buffer->at += part;
	return (long)part;
}

static void buffer_init(struct buffer *buffer, size_t room)
{
	*buffer = (struct buffer){ .room = room, .most = SIZE_MAX };
	buffer->bytes = malloc(room);
	assert_non_null(buffer->bytes);
	buffer->sink.write = take;
	buffer->source.read = give;
}

/* The contents read from an archive. */
struct copy {
	uint8_t data[2][SMALL];
	uint8_t log[PS_RING_OFFSET + LOG];
};

/* A small image: two segments of 300 bytes, the second of zeros, and a ring of one page. */
struct sample {
	struct message_header *message;
	struct ps_slot slot;
	uint8_t data[SMALL];
	uint8_t log[PS_RING_OFFSET + LOG];
	struct buffer buffer;
	struct copy copy; /* of the last that was read */
	const char *why;  /* it was refused, or NULL */
};

static int setup(void **state)
{
	struct sample *sample = calloc(1, sizeof(*sample));

	sample->message = message_header_new();
	sample->message->header.log_size = LOG;
	sample->message->segments[0].size = SMALL;
	sample->message->segments[1].size = SMALL;
	ps_slot_encode(&sample->slot, 3, 7, 128, 64);
	memcpy(sample->log, &sample->slot, sizeof(sample->slot));
	for (int i = 0; i < SMALL; i++)
		sample->data[i] = (uint8_t)(i * 7 + 1);
	buffer_init(&sample->buffer, ROOM);
	*state = sample;
	return 0;
}

static int teardown(void **state)
{
	struct sample *sample = *state;

	free(sample->message);
	free(sample->buffer.bytes);
	free(sample);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static void add(struct ps_archive_writer *writer, uint32_t region, uint64_t offset,
                const void *bytes, size_t len)
{
	assert_int_equal(ps_archive_add(writer, region, offset, bytes, len), 0);
}

static void end(struct ps_archive_writer *writer)
{
	assert_int_equal(ps_archive_end(writer), 0);
	ps_archive_close(writer);
}

/* The sample as an archive, in pieces that are shorter than they may be. */
static void write_sample(struct sample *sample)
{
	const uint8_t zeros[SMALL] = { 0 };
	struct ps_archive_writer writer;
	struct ps_archive_sink *sink = &sample->buffer.sink;

	sample->buffer.len = 0;
	assert_int_equal(ps_archive_begin(&writer, sink, &sample->message->header, &sample->slot),
	                 0);
	add(&writer, 16, 0, sample->data, 100);
	add(&writer, 16, 100, sample->data + 100, SMALL - 100);
	add(&writer, 17, 0, zeros, SMALL);
	add(&writer, 0, 0, sample->log, PS_RING_OFFSET);
	add(&writer, 0, PS_RING_OFFSET, sample->log + PS_RING_OFFSET, LOG);
	end(&writer);
	assert_true(sample->buffer.len <= ps_archive_bound(&sample->message->header));
}

/* 0: the archive is whole, and sample->copy is what it holds. Whatever it is, what is handed out
 * lies inside the regions. */
static int read_back(struct sample *sample)
{
	struct copy *copy = &sample->copy;
	struct ps_archive_reader reader;
	struct ps_archive_piece piece;
	int ret;

	memset(copy, 0, sizeof(*copy));
	sample->why = NULL;
	sample->buffer.at = 0;
	ret = ps_archive_open(&reader, &sample->buffer.source, &sample->why);
	while (ret == 0 && (ret = ps_archive_next(&reader, &piece, &sample->why)) > 0) {
		uint8_t *to = piece.region == PS_REGION_LOG ? copy->log
		                                            : copy->data[piece.region - 16];
		size_t size = piece.region == PS_REGION_LOG ? sizeof(copy->log) : SMALL;

		assert_true(piece.offset <= size && piece.length <= size - piece.offset);
		memcpy(to + piece.offset, piece.bytes, piece.length);
		ret = 0;
	}
	ps_archive_free(&reader);
	return ret;
}

static void assert_refused(struct sample *sample, const char *why)
{
	assert_int_equal(read_back(sample), -1);
	assert_string_equal(sample->why, why);
}

TEST(an_archive_gives_back_what_was_written, struct sample *sample)
{
	const uint8_t zeros[SMALL] = { 0 };

	write_sample(sample);
	for (size_t most = 1; most <= 4096; most *= 16) {
		sample->buffer.most = most;
		assert_int_equal(read_back(sample), 0);
		assert_memory_equal(sample->copy.data[0], sample->data, SMALL);
		assert_memory_equal(sample->copy.data[1], zeros, SMALL);
		assert_memory_equal(sample->copy.log, sample->log, sizeof(sample->log));
	}
	/* Zeros take no room. */
	assert_true(sample->buffer.len < 6000);
}

/* Every bit of every byte, one at a time. */
TEST(an_archive_with_a_flipped_bit_is_refused, struct sample *sample)
{
	struct buffer *buffer = &sample->buffer;

	write_sample(sample);
	for (size_t i = 0; i < buffer->len; i++) {
		for (int bit = 0; bit < 8; bit += i < 1024 ? 1 : 7) {
			buffer->bytes[i] ^= (uint8_t)(1 << bit);
			assert_int_equal(read_back(sample), -1);
			assert_non_null(sample->why);
			buffer->bytes[i] ^= (uint8_t)(1 << bit);
		}
	}
}

TEST(an_archive_that_is_cut_off_is_refused, struct sample *sample)
{
	struct buffer *buffer = &sample->buffer;
	size_t whole;

	write_sample(sample);
	whole = buffer->len;
	for (buffer->len = 0; buffer->len < whole; buffer->len++)
		assert_refused(sample, "it is cut off");
}

TEST(bytes_behind_the_end_are_refused, struct sample *sample)
{
	write_sample(sample);
	sample->buffer.bytes[sample->buffer.len++] = 0;
	assert_refused(sample, "there are bytes behind its end");
}

/* Begins the sample; the pieces are the test's. */
static void begin_sample(struct sample *sample, struct ps_archive_writer *writer)
{
	sample->buffer.len = 0;
	assert_int_equal(ps_archive_begin(writer, &sample->buffer.sink, &sample->message->header,
	                                  NULL),
	                 0);
}

/* Checksums are right, and the pieces are not: a writer that is mistaken, or means harm. */
TEST(pieces_out_of_place_are_refused, struct sample *sample)
{
	static const struct {
		uint32_t first, second;
		uint64_t first_at, second_at;
		uint32_t length;
		const char *why;
	} cases[] = {
		{ 16, 16, 10, 0, 10, "its pieces are out of order" },
		{ 16, 16, 0, 9, 10, "its pieces are out of order" },
		{ 16, 16, 0, 0, 10, "its pieces are out of order" },
		{ 17, 16, 0, 0, 10, "its pieces are out of order" },
		{ 0, 16, 0, 0, 10, "its pieces are out of order" },
		{ 16, 18, 0, 0, 10, "a piece lies outside its region" },
		{ 16, 1, 0, 0, 10, "a piece lies outside its region" },
		{ 16, UINT32_MAX, 0, 0, 10, "a piece lies outside its region" },
		{ 16, 17, 0, SMALL, 10, "a piece lies outside its region" },
		{ 16, 17, 0, SMALL - 9, 10, "a piece lies outside its region" },
		{ 16, 17, 0, UINT64_MAX, 10, "a piece lies outside its region" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ps_archive_writer writer;
		uint32_t length = cases[i].length;

		begin_sample(sample, &writer);
		add(&writer, cases[i].first, cases[i].first_at, sample->data, length);
		add(&writer, cases[i].second, cases[i].second_at, sample->data, length);
		end(&writer);
		assert_refused(sample, cases[i].why);
	}
}

/* A piece is left out, or comes from another archive of the same image. */
TEST(pieces_that_were_not_written_so_are_refused, struct sample *sample)
{
	struct buffer *buffer = &sample->buffer;
	size_t first, second, whole;
	struct ps_archive_writer writer;
	uint8_t other[1000];

	begin_sample(sample, &writer);
	first = buffer->len;
	add(&writer, 16, 0, sample->data + 1, 100);
	memcpy(other, buffer->bytes + first, buffer->len - first);
	ps_archive_close(&writer);
	begin_sample(sample, &writer);
	add(&writer, 16, 0, sample->data, 100);
	second = buffer->len;
	add(&writer, 17, 0, sample->data, 100);
	whole = buffer->len;
	end(&writer);
	assert_int_equal(read_back(sample), 0);
	memcpy(buffer->bytes + first, other, second - first);
	assert_refused(sample, "its pieces are not those that were written");
	memmove(buffer->bytes + first, buffer->bytes + second, buffer->len - second);
	buffer->len -= whole - second;
	assert_refused(sample, "its pieces are not those that were written");
}

static int write_into(struct sample *sample, size_t room)
{
	struct ps_archive_writer writer;
	int ret;

	sample->buffer.len = 0;
	sample->buffer.room = room;
	ret = ps_archive_begin(&writer, &sample->buffer.sink, &sample->message->header, NULL);
	if (ret == 0)
		ret = ps_archive_add(&writer, 16, 0, sample->data, SMALL);
	if (ret == 0)
		ret = ps_archive_add(&writer, 0, 0, sample->log, sizeof(sample->log));
	if (ret == 0)
		ret = ps_archive_end(&writer);
	ps_archive_close(&writer);
	return ret;
}

/* The disk fills up, after so many bytes. */
TEST(a_sink_that_refuses_ends_the_writing, struct sample *sample)
{
	size_t whole;

	assert_int_equal(write_into(sample, ROOM), 0);
	whole = sample->buffer.len;
	for (size_t room = 0; room < whole; room++)
		assert_int_equal(write_into(sample, room), -1);
	assert_int_equal(write_into(sample, whole), 0);
}

/* More than a piece holds; through a file. */
TEST(long_regions_are_cut_into_pieces, struct sample *sample)
{
	const uint64_t size = 2 * (uint64_t)PS_ARCHIVE_PIECE_MAX + 5;
	uint8_t *bytes = calloc(1, size);
	struct ps_archive_writer writer;
	struct ps_archive_reader reader;
	struct ps_archive_piece piece;
	struct ps_archive_file file;
	const char *why = NULL;
	FILE *stream = tmpfile();

	sample->message->segments[0].size = size;
	bytes[0] = bytes[size - 1] = 1;
	free(sample->buffer.bytes);
	buffer_init(&sample->buffer, size);
	begin_sample(sample, &writer);
	add(&writer, 16, 0, bytes, size);
	end(&writer);
	fwrite(sample->buffer.bytes, 1, sample->buffer.len, stream);
	rewind(stream);
	ps_archive_file_init(&file, fileno(stream));
	assert_int_equal(ps_archive_open(&reader, &file.source, &why), 0);
	assert_string_equal(reader.header->store, "bank");
	assert_int_equal(reader.slot.next, 0);
	assert_int_equal(ps_archive_next(&reader, &piece, &why), 1);
	assert_int_equal(piece.length, PS_ARCHIVE_PIECE_MAX);
	assert_int_equal(ps_archive_next(&reader, &piece, &why), 1);
	assert_int_equal(piece.offset, size - 5);
	assert_int_equal(piece.length, 5);
	assert_int_equal(ps_archive_next(&reader, &piece, &why), 0);
	ps_archive_free(&reader);
	fclose(stream);
	free(bytes);
}
