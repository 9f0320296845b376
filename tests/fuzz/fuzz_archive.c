/*
 * fuzz_archive.c - any bytes as an archive. What is handed out lies inside the regions of the
 * header, in order, and what is accepted can be written again and is accepted again.
 *
 * The first byte says whether checksums are made right, and how many bytes come at once.
 */
#include "../../proto/control/archive.h"
#include "../../proto/image/crc32c.h"
#include "../../proto/control/envelope.h"
#include "target.h"

struct bytes {
	struct ps_archive_source source;
	struct ps_archive_sink sink;
	uint8_t *at;
	size_t len, read, most;
};

static long give(struct ps_archive_source *source, void *to, size_t len)
{
	struct bytes *bytes = (struct bytes *)((char *)source - offsetof(struct bytes, source));
	size_t part = bytes->len - bytes->read;

	part = part < len ? part : len;
	part = part < bytes->most ? part : bytes->most;
	memcpy(to, bytes->at + bytes->read, part);
	bytes->read += part;
	return (long)part;
}

static int take(struct ps_archive_sink *sink, const void *from, size_t len)
{
	struct bytes *bytes = (struct bytes *)((char *)sink - offsetof(struct bytes, sink));

	bytes->at = realloc(bytes->at, bytes->len + len + 1);
	assert(bytes->at);
	memcpy(bytes->at + bytes->len, from, len);
	bytes->len += len;
	return 0;
}

/* Makes the checksums of the file's head right. False: it is too short. */
static bool mend_head(uint8_t *at, size_t size, size_t *pieces, uint32_t *sum)
{
	struct ps_archive_head head;
	struct ps_header_file file;
	size_t end;

	if (size < sizeof head + sizeof file)
		return false;
	memcpy(&head, at, sizeof head);
	end = sizeof head + head.length;
	if (head.length < sizeof file || end > size)
		return false;
	memcpy(&file, at + sizeof head, sizeof file);
	file.crc = ps_crc32c(0, at + sizeof head + sizeof file, head.length - sizeof file);
	memcpy(at + sizeof head, &file, sizeof file);
	head.header_crc = ps_crc32c(0, at + sizeof head, head.length);
	head.slot.crc = ps_crc32c(0, &head.slot, offsetof(struct ps_slot, crc));
	head.crc = ps_crc32c(0, &head, offsetof(struct ps_archive_head, crc));
	memcpy(at, &head, sizeof head);
	*pieces = end;
	*sum = head.crc;
	return true;
}

/* Puts right the checksums of pieces and end, as far as they can be found. */
static void mend(uint8_t *at, size_t size)
{
	struct ps_archive_piece_head head;
	struct ps_archive_end end;
	uint64_t pieces = 0, bytes = 0;
	uint32_t sum;
	size_t from;

	if (!mend_head(at, size, &from, &sum))
		return;
	while (size - from >= sizeof head) {
		memcpy(&head, at + from, sizeof head);
		if (head.magic != PS_ARCHIVE_PIECE_MAGIC || head.length > size - from - sizeof head)
			break;
		head.bytes_crc = ps_crc32c(0, at + from + sizeof head, head.length);
		head.crc = ps_crc32c(0, &head, offsetof(struct ps_archive_piece_head, crc));
		memcpy(at + from, &head, sizeof head);
		sum = ps_crc32c(sum, &head, offsetof(struct ps_archive_piece_head, crc));
		pieces++;
		bytes += head.length;
		from += sizeof head + head.length;
	}
	if (size - from < sizeof end)
		return;
	end = (struct ps_archive_end){
		.magic = PS_ARCHIVE_END_MAGIC, .pieces = pieces, .bytes = bytes, .heads_crc = sum
	};
	end.crc = ps_crc32c(0, &end, offsetof(struct ps_archive_end, crc));
	memcpy(at + from, &end, sizeof end);
}

static uint64_t size_of(const Perseas__Header *header, uint32_t region)
{
	if (region == PS_REGION_LOG)
		return ps_log_region_size(header);
	for (size_t i = 0; i < header->n_segments; i++)
		if (header->segments[i]->id + PS_REGION_SEGMENT == region)
			return header->segments[i]->size;
	return 0;
}

/* Reads it all; with `to`, writes it again. 0: it is whole. */
static int copy(struct bytes *from, struct bytes *to)
{
	struct ps_archive_reader reader;
	struct ps_archive_writer writer = { .piece = NULL };
	struct ps_archive_piece piece;
	const char *why = NULL;
	int ret = ps_archive_open(&reader, &from->source, &why);

	assert((ret != 0) == (why != NULL));
	if (ret == 0 && to)
		assert(ps_archive_begin(&writer, &to->sink, reader.header, &reader.slot) == 0);
	while (ret == 0 && (ret = ps_archive_next(&reader, &piece, &why)) > 0) {
		uint64_t size = size_of(reader.header, piece.region);

		assert(piece.length >= 1 && piece.offset <= size &&
		       piece.length <= size - piece.offset);
		if (to)
			assert(ps_archive_add(&writer, piece.region, piece.offset, piece.bytes,
			                      piece.length) == 0);
		ret = 0;
	}
	assert((ret != 0) == (why != NULL));
	if (ret == 0 && to)
		assert(ps_archive_end(&writer) == 0);
	ps_archive_close(&writer);
	ps_archive_free(&reader);
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes from = { .source.read = give },
		     to = { .source.read = give, .sink.write = take };

	if (size < 1)
		return 0;
	from.most = to.most = data[0] & 2 ? SIZE_MAX : 1u + (data[0] >> 2);
	from.len = size - 1;
	from.at = malloc(size);
	memcpy(from.at, data + 1, from.len);
	if (data[0] & 1)
		mend(from.at, from.len);
	if (copy(&from, &to) == 0)
		assert(copy(&to, NULL) == 0);
	free(from.at);
	free(to.at);
	return 0;
}
