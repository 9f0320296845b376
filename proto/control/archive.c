/*
 * archive.c - writes and reads archives (see archive.h).
 */
#include "archive.h"

#include "../image/crc32c.h"
#include "envelope.h"
#include "../image/image.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint8_t archive_magic[8] = "PERSARC";

#define HEADER_FILE_MAX (sizeof(struct ps_header_file) + PS_MESSAGE_MAX)

/* Extends the checksum over all heads by one head without its own checksum: a CRC over bytes and
 * their CRC is constant, whatever the bytes are. */
static uint32_t extend_heads_crc(uint32_t crc, const struct ps_archive_piece_head *head)
{
	return ps_crc32c(crc, head, offsetof(struct ps_archive_piece_head, crc));
}

/* --- writing --- */

static int put_bytes(struct ps_archive_writer *writer, const void *bytes, size_t len)
{
	return writer->sink->write(writer->sink, bytes, len) == 0 ? 0 : -1;
}

static int put_head(struct ps_archive_writer *writer, const uint8_t *header, size_t len,
                    const struct ps_slot *slot)
{
	struct ps_archive_head head = { .format = PS_ARCHIVE_FORMAT };

	memcpy(head.magic, archive_magic, sizeof head.magic);
	head.length = (uint32_t)len;
	if (slot)
		head.slot = *slot;
	head.header_crc = ps_crc32c(0, header, len);
	head.crc = ps_crc32c(0, &head, offsetof(struct ps_archive_head, crc));
	writer->heads_crc = head.crc;
	return put_bytes(writer, &head, sizeof head) || put_bytes(writer, header, len) ? -1 : 0;
}

int ps_archive_begin(struct ps_archive_writer *writer, struct ps_archive_sink *sink,
                     const Perseas__Header *header, const struct ps_slot *slot)
{
	uint8_t *bytes;
	size_t len;
	int ret;

	memset(writer, 0, sizeof *writer);
	writer->sink = sink;
	writer->piece = malloc(PS_ARCHIVE_PIECE_MAX);
	if (!writer->piece || ps_header_pack(header, &bytes, &len) != 0)
		return -1;
	ret = put_head(writer, bytes, len, slot);
	free(bytes);
	return ret;
}

static bool all_zero(const uint8_t *bytes, size_t len)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0;
}

/* Writes one piece, whose bytes are in writer->piece. */
static int put_piece(struct ps_archive_writer *writer, uint32_t region, uint64_t offset,
                     uint32_t length)
{
	struct ps_archive_piece_head head = {
		.magic = PS_ARCHIVE_PIECE_MAGIC,
		.region = region,
		.offset = offset,
		.length = length,
		.bytes_crc = ps_crc32c(0, writer->piece, length),
	};

	assert(length >= 1 && length <= PS_ARCHIVE_PIECE_MAX);
	head.crc = ps_crc32c(0, &head, offsetof(struct ps_archive_piece_head, crc));
	writer->heads_crc = extend_heads_crc(writer->heads_crc, &head);
	writer->pieces++;
	writer->bytes += length;
	return put_bytes(writer, &head, sizeof head) || put_bytes(writer, writer->piece, length)
	               ? -1
	               : 0;
}

int ps_archive_add(struct ps_archive_writer *writer, uint32_t region, uint64_t offset,
                   const void *bytes, uint64_t length)
{
	const uint8_t *from = bytes;

	while (length > 0) {
		uint32_t part = length < PS_ARCHIVE_PIECE_MAX ? (uint32_t)length
		                                              : PS_ARCHIVE_PIECE_MAX;

		memcpy(writer->piece, from, part);
		if (!all_zero(writer->piece, part) && put_piece(writer, region, offset, part) != 0)
			return -1;
		from += part;
		offset += part;
		length -= part;
	}
	return 0;
}

int ps_archive_end(struct ps_archive_writer *writer)
{
	struct ps_archive_end end = {
		.magic = PS_ARCHIVE_END_MAGIC,
		.pieces = writer->pieces,
		.bytes = writer->bytes,
		.heads_crc = writer->heads_crc,
	};

	end.crc = ps_crc32c(0, &end, offsetof(struct ps_archive_end, crc));
	return put_bytes(writer, &end, sizeof end);
}

void ps_archive_close(struct ps_archive_writer *writer)
{
	free(writer->piece);
	writer->piece = NULL;
}

uint64_t ps_archive_bound(const Perseas__Header *header)
{
	uint64_t bytes = ps_image_size(header);
	/* The last piece of each region may be short. The regions are the segments and the log,
	 * whose page of slots is a piece of its own. */
	uint64_t pieces = bytes / PS_ARCHIVE_PIECE_MAX + header->n_segments + 2;

	return sizeof(struct ps_archive_head) + sizeof(struct ps_header_file) +
	       perseas__header__get_packed_size(header) + bytes +
	       pieces * sizeof(struct ps_archive_piece_head) + sizeof(struct ps_archive_end);
}

/* --- reading --- */

static long file_read(struct ps_archive_source *source, void *bytes, size_t len)
{
	const struct ps_archive_file *file = (const struct ps_archive_file *)source;
	ssize_t n;

	do
		n = read(file->fd, bytes, len);
	while (n < 0 && errno == EINTR);
	return n;
}

void ps_archive_file_init(struct ps_archive_file *file, int fd)
{
	file->source.read = file_read;
	file->fd = fd;
}

/* Reads exactly `len` bytes. Returns 0, or -1 with *why set if the source fails or ends. */
static int get_bytes(struct ps_archive_reader *reader, void *bytes, size_t len, const char **why)
{
	uint8_t *to = bytes;

	while (len > 0) {
		long n = reader->source->read(reader->source, to, len);

		if (n < 0 || (size_t)n > len) {
			*why = "it cannot be read";
			return -1;
		}
		if (n == 0) {
			*why = "it is cut off";
			return -1;
		}
		to += n;
		len -= (size_t)n;
	}
	return 0;
}

static bool is_slot_or_zero(const struct ps_slot *slot)
{
	static const struct ps_slot none;

	return ps_slot_valid(slot) || memcmp(slot, &none, sizeof none) == 0;
}

static const char *head_fault(const struct ps_archive_head *head)
{
	if (memcmp(head->magic, archive_magic, sizeof head->magic) != 0)
		return "it is not an image's archive";
	if (head->format > PS_ARCHIVE_FORMAT)
		return ps_later_version_text;
	if (head->format != PS_ARCHIVE_FORMAT)
		return "it is an archive of another format version";
	if (head->crc != ps_crc32c(0, head, offsetof(struct ps_archive_head, crc)))
		return "the checksum of its head is wrong";
	if (head->length > HEADER_FILE_MAX || !is_slot_or_zero(&head->slot))
		return "a field of its head has a value that it cannot have";
	return NULL;
}

static int get_header(struct ps_archive_reader *reader, const struct ps_archive_head *head,
                      const char **why)
{
	uint8_t *bytes = malloc(head->length ? head->length : 1);
	int ret = -1;

	if (!bytes) {
		*why = "there is no memory to read it";
		return -1;
	}
	if (get_bytes(reader, bytes, head->length, why) == 0) {
		if (head->header_crc != ps_crc32c(0, bytes, head->length))
			*why = "the checksum of its header is wrong";
		else
			reader->header = ps_header_unpack(bytes, head->length, why);
		ret = reader->header ? 0 : -1;
	}
	free(bytes);
	return ret;
}

int ps_archive_open(struct ps_archive_reader *reader, struct ps_archive_source *source,
                    const char **why)
{
	struct ps_archive_head head;

	memset(reader, 0, sizeof *reader);
	reader->source = source;
	if (get_bytes(reader, &head, sizeof head, why) != 0)
		return -1;
	*why = head_fault(&head);
	if (*why || get_header(reader, &head, why) != 0)
		return -1;
	reader->slot = head.slot;
	reader->heads_crc = head.crc;
	reader->piece = malloc(PS_ARCHIVE_PIECE_MAX);
	if (reader->piece)
		return 0;
	*why = "there is no memory to read it";
	return -1;
}

/* Returns the size of the region, or 0 if archives of this image have no such region. */
static uint64_t region_size(const Perseas__Header *header, uint32_t region)
{
	if (region == PS_REGION_LOG)
		return ps_log_region_size(header);
	for (size_t i = 0; i < header->n_segments; i++)
		if (PS_REGION_SEGMENT + header->segments[i]->id == region)
			return header->segments[i]->size;
	return 0;
}

/* Returns the place of a region in the order of the format: the log is last. */
static uint32_t region_rank(uint32_t region)
{
	return region == PS_REGION_LOG ? PS_REGIONS_MAX : region;
}

static const char *piece_fault(const struct ps_archive_reader *reader,
                               const struct ps_archive_piece_head *head)
{
	uint64_t size;

	if (head->crc != ps_crc32c(0, head, offsetof(struct ps_archive_piece_head, crc)))
		return "the checksum of a piece's head is wrong";
	size = region_size(reader->header, head->region);
	if (head->zero != 0 || head->length < 1 || head->length > PS_ARCHIVE_PIECE_MAX ||
	    head->offset > size || head->length > size - head->offset)
		return "a piece lies outside its region";
	if (reader->pieces > 0 && (region_rank(head->region) < region_rank(reader->region) ||
	                           (head->region == reader->region && head->offset < reader->end)))
		return "its pieces are out of order";
	return NULL;
}

static const char *end_fault(const struct ps_archive_reader *reader,
                             const struct ps_archive_end *end)
{
	if (end->crc != ps_crc32c(0, end, offsetof(struct ps_archive_end, crc)))
		return "the checksum of its end is wrong";
	if (end->zero != 0 || end->pieces != reader->pieces || end->bytes != reader->bytes ||
	    end->heads_crc != reader->heads_crc)
		return "its pieces are not those that were written";
	return NULL;
}

static int check_end(struct ps_archive_reader *reader, const struct ps_archive_end *end,
                     const char **why)
{
	uint8_t more;
	long n;

	*why = end_fault(reader, end);
	if (*why)
		return -1;
	n = reader->source->read(reader->source, &more, 1);
	if (n == 0)
		return 0;
	*why = n < 0 ? "it cannot be read" : "there are bytes behind its end";
	return -1;
}

int ps_archive_next(struct ps_archive_reader *reader, struct ps_archive_piece *piece,
                    const char **why)
{
	union {
		struct ps_archive_piece_head piece;
		struct ps_archive_end end;
	} head;

	if (get_bytes(reader, &head, sizeof head, why) != 0)
		return -1;
	if (head.end.magic == PS_ARCHIVE_END_MAGIC)
		return check_end(reader, &head.end, why);
	*why = head.piece.magic == PS_ARCHIVE_PIECE_MAGIC
	               ? piece_fault(reader, &head.piece)
	               : "there is no piece where one was expected";
	if (*why || get_bytes(reader, reader->piece, head.piece.length, why) != 0)
		return -1;
	if (head.piece.bytes_crc != ps_crc32c(0, reader->piece, head.piece.length)) {
		*why = "the checksum of a piece is wrong";
		return -1;
	}
	reader->heads_crc = extend_heads_crc(reader->heads_crc, &head.piece);
	assert(head.piece.length >= 1 && head.piece.length <= PS_ARCHIVE_PIECE_MAX);
	reader->pieces++;
	reader->bytes += head.piece.length;
	reader->region = head.piece.region;
	reader->end = head.piece.offset + head.piece.length;
	*piece = (struct ps_archive_piece){ head.piece.region, head.piece.offset, head.piece.length,
		                            reader->piece };
	return 1;
}

void ps_archive_free(struct ps_archive_reader *reader)
{
	if (reader->header)
		perseas__header__free_unpacked(reader->header, NULL);
	free(reader->piece);
	reader->header = NULL;
	reader->piece = NULL;
}
