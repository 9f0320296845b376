/*
 * archive.h - an image in one file, the format of spills and snapshots. PROTOCOL.md defines it.
 *
 * The file begins with a head, which has the image's header and commit slot. Pieces follow, each
 * some bytes of one region: first the segments in the order of their numbers, then the log, with
 * rising offsets within a region. Bytes that are in no piece are zero. An end record follows, and
 * nothing after it. Checksums cover every byte. The promise page is not stored, because the header
 * has the same fields.
 *
 * A running store must be read in the order slot, data, log, which is also the order of the file.
 */
#ifndef PERSEAS_PROTO_ARCHIVE_H
#define PERSEAS_PROTO_ARCHIVE_H

#include "control.pb-c.h"
#include "../image/layout.h"

#include <stdbool.h>

enum { PS_ARCHIVE_FORMAT = 1 };

#define PS_ARCHIVE_PIECE_MAX ((uint32_t)1 << 20) /* maximum bytes of one piece */

/* The first bytes of the file. The image's header follows, in the form of a header file
 * (envelope.h). */
struct ps_archive_head {
	uint8_t magic[8];    /* "PERSARC" and a zero */
	uint32_t format;     /* PS_ARCHIVE_FORMAT */
	uint32_t length;     /* bytes of the header file */
	struct ps_slot slot; /* the image's commit slot; all zero if it has none */
	uint32_t header_crc; /* CRC-32C of the header file */
	uint32_t crc;        /* CRC-32C of the bytes before */
};
static_assert(sizeof(struct ps_archive_head) == 64, "archive head layout");

#define PS_ARCHIVE_PIECE_MAGIC 0x43505350u /* "PSPC" in memory */

/* Precedes the bytes of a piece. */
struct ps_archive_piece_head {
	uint32_t magic;
	uint32_t region; /* PS_REGION_LOG, or PS_REGION_SEGMENT + segment id */
	uint64_t offset; /* of the first byte, within the region */
	uint32_t length; /* 1 to PS_ARCHIVE_PIECE_MAX */
	uint32_t zero;
	uint32_t bytes_crc; /* CRC-32C of the piece's bytes */
	uint32_t crc;       /* CRC-32C of the fields before */
};
static_assert(sizeof(struct ps_archive_piece_head) == 32, "archive piece layout");

#define PS_ARCHIVE_END_MAGIC 0x45505350u /* "PSPE" in memory */

struct ps_archive_end {
	uint32_t magic;
	uint32_t zero;
	uint64_t pieces; /* number of pieces in the file */
	uint64_t bytes;  /* total bytes of all pieces */
	/* CRC-32C of the file's head and every piece's head, each without its own crc */
	uint32_t heads_crc;
	uint32_t crc; /* CRC-32C of the fields before */
};
static_assert(sizeof(struct ps_archive_end) == 32, "archive end layout");

/* --- writing --- */

/* Destination of an archive. The caller's struct begins with it. */
struct ps_archive_sink {
	/* Writes all bytes. Returns 0, or -1 if the archive is incomplete. */
	int (*write)(struct ps_archive_sink *sink, const void *bytes, size_t len);
};

/* Private to archive.c. */
struct ps_archive_writer {
	struct ps_archive_sink *sink;
	uint8_t *piece; /* copy of the bytes of the piece being written */
	uint64_t pieces, bytes;
	uint32_t heads_crc;
};

/* Begins an archive. `slot` is the image's commit slot, or NULL if it has none. Returns 0, or -1 if
 * the sink failed, memory is out or the header is too long. Call ps_archive_close() in either
 * case. */
int ps_archive_begin(struct ps_archive_writer *writer, struct ps_archive_sink *sink,
                     const Perseas__Header *header, const struct ps_slot *slot);

/* Adds `length` bytes of a region as pieces, and skips pieces that are all zero. Copies the bytes
 * first, so that the checksum is that of the written bytes even if another thread changes the
 * region. The caller must add regions in the order of the format. Returns 0 or -1. */
int ps_archive_add(struct ps_archive_writer *writer, uint32_t region, uint64_t offset,
                   const void *bytes, uint64_t length);

/* Writes the end record. Returns 0 or -1. Without it, the output is not a valid archive. */
int ps_archive_end(struct ps_archive_writer *writer);

void ps_archive_close(struct ps_archive_writer *writer);

/* Returns an upper bound of the size of this image's archive, in bytes. */
uint64_t ps_archive_bound(const Perseas__Header *header);

/* --- reading --- */

/* Source of an archive. The caller's struct begins with it. */
struct ps_archive_source {
	/* Reads like read(2): returns the number of bytes, 0 at the end of the file, or -1 on
	 * failure. */
	long (*read)(struct ps_archive_source *source, void *bytes, size_t len);
};

/* A source that reads from the current position of a file descriptor. */
struct ps_archive_file {
	struct ps_archive_source source;
	int fd;
};
void ps_archive_file_init(struct ps_archive_file *file, int fd);

struct ps_archive_reader {
	struct ps_archive_source *source;
	Perseas__Header *header; /* checked; owned by the reader */
	struct ps_slot slot;     /* the image's commit slot; all zero if it has none */
	/* The following members are private to archive.c. */
	uint8_t *piece;
	uint64_t pieces, bytes;
	uint32_t heads_crc;
	uint32_t region; /* region of the last piece */
	uint64_t end;    /* offset in that region at which the last piece ended */
};

struct ps_archive_piece {
	uint32_t region;
	uint64_t offset;
	uint32_t length;
	const uint8_t *bytes; /* valid until the next call */
};

/* Reads and checks the head. Returns 0, or -1 with a sentence in *why, as all functions here do.
 * Call ps_archive_free() in either case. */
int ps_archive_open(struct ps_archive_reader *reader, struct ps_archive_source *source,
                    const char **why);

/* Reads the next piece and checks all of it: it lies within a region of the header and follows the
 * piece before. Returns 1 for a piece, 0 if the archive is complete, or -1. The data is trustworthy
 * only once 0 was returned. */
int ps_archive_next(struct ps_archive_reader *reader, struct ps_archive_piece *piece,
                    const char **why);

void ps_archive_free(struct ps_archive_reader *reader);

#endif
