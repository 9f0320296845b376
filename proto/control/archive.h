/*
 * archive.h - an image in one file: what a spill and a snapshot are. PROTOCOL.md has the format.
 *
 * A head with the header and the slot that the image stands at, then pieces: bytes of one
 * region each, first the segments by rising number, then the log; offsets rise within a region.
 * What no piece holds is zero. An end record follows, and nothing after it. Checksums cover every
 * byte. The promise page is not kept: it has nothing that the header has not.
 *
 * The order of the pieces is that in which a running store is to be read (data, then log), with
 * the slot read before both.
 */
#ifndef PERSEAS_PROTO_ARCHIVE_H
#define PERSEAS_PROTO_ARCHIVE_H

#include "control.pb-c.h"
#include "../image/layout.h"

#include <stdbool.h>

enum { PS_ARCHIVE_FORMAT = 1 };

#define PS_ARCHIVE_PIECE_MAX ((uint32_t)1 << 20) /* bytes of one piece */

/* The first bytes of the file; the image's header follows, as its file (envelope.h). */
struct ps_archive_head {
	uint8_t magic[8];    /* "PERSARC" and a zero */
	uint32_t format;     /* PS_ARCHIVE_FORMAT */
	uint32_t length;     /* bytes of the header's file */
	struct ps_slot slot; /* valid, or all zero: the image has none */
	uint32_t header_crc; /* crc32c of the header's file */
	uint32_t crc;        /* crc32c of the bytes before */
};
static_assert(sizeof(struct ps_archive_head) == 64, "archive head layout");

#define PS_ARCHIVE_PIECE_MAGIC 0x43505350u /* "PSPC" in memory */

/* Before the bytes of a piece. */
struct ps_archive_piece_head {
	uint32_t magic;
	uint32_t region; /* PS_REGION_LOG, or PS_REGION_SEGMENT + id */
	uint64_t offset; /* of the first byte within the region */
	uint32_t length; /* 1 to PS_ARCHIVE_PIECE_MAX */
	uint32_t zero;
	uint32_t bytes_crc; /* crc32c of the bytes */
	uint32_t crc;       /* crc32c of the fields before */
};
static_assert(sizeof(struct ps_archive_piece_head) == 32, "archive piece layout");

#define PS_ARCHIVE_END_MAGIC 0x45505350u /* "PSPE" in memory */

struct ps_archive_end {
	uint32_t magic;
	uint32_t zero;
	uint64_t pieces;    /* in the file */
	uint64_t bytes;     /* in all pieces together */
	uint32_t heads_crc; /* crc32c of the file's head and then every piece's, each
	                            * without the crc that ends it */
	uint32_t crc;       /* crc32c of the fields before */
};
static_assert(sizeof(struct ps_archive_end) == 32, "archive end layout");

/* --- writing --- */

/* Where the bytes go; the caller's struct begins with it. */
struct ps_archive_sink {
	/* Takes all of them: 0; or -1, and the archive is of no use. */
	int (*write)(struct ps_archive_sink *sink, const void *bytes, size_t len);
};

/* The fields are archive.c's. */
struct ps_archive_writer {
	struct ps_archive_sink *sink;
	uint8_t *piece; /* a piece's bytes as they are written */
	uint64_t pieces, bytes;
	uint32_t heads_crc;
};

/*
 * Begins an archive. slot: what the image stands at, NULL: it has none. Returns 0, or -1: the
 * sink refused, there is no memory, or the header is too long. ps_archive_close() is due either
 * way.
 */
int ps_archive_begin(struct ps_archive_writer *writer, struct ps_archive_sink *sink,
                     const Perseas__Header *header, const struct ps_slot *slot);

/*
 * Adds `length` bytes of a region, as pieces; those that are all zero are left out. What is
 * written is what is summed, also when somebody changes `bytes` meanwhile. The caller adds
 * in the order of the format. 0 or -1.
 */
int ps_archive_add(struct ps_archive_writer *writer, uint32_t region, uint64_t offset,
                   const void *bytes, uint64_t length);

/* Writes the end record: 0 or -1. What the sink got is an archive only then. */
int ps_archive_end(struct ps_archive_writer *writer);

void ps_archive_close(struct ps_archive_writer *writer);

/* An upper bound of the bytes of an archive of this image. */
uint64_t ps_archive_bound(const Perseas__Header *header);

/* --- reading --- */

/* Where the bytes come from; the caller's struct begins with it. */
struct ps_archive_source {
	/* As read(2) of a file: how many were read, 0: the file ends here, -1: it cannot be. */
	long (*read)(struct ps_archive_source *source, void *bytes, size_t len);
};

/* A source that reads a descriptor from where it stands. */
struct ps_archive_file {
	struct ps_archive_source source;
	int fd;
};
void ps_archive_file_init(struct ps_archive_file *file, int fd);

struct ps_archive_reader {
	struct ps_archive_source *source;
	Perseas__Header *header; /* passes the checks of a header; the reader's */
	struct ps_slot slot;     /* valid, or all zero */
	/* The rest is archive.c's. */
	uint8_t *piece;
	uint64_t pieces, bytes;
	uint32_t heads_crc;
	uint32_t region; /* of the last piece */
	uint64_t end;    /* offset behind it */
};

struct ps_archive_piece {
	uint32_t region;
	uint64_t offset;
	uint32_t length;
	const uint8_t *bytes; /* until the next call */
};

/* Reads and checks the head. 0; or -1, and *why says what is wrong, as with every function here.
 * ps_archive_free() is due either way. */
int ps_archive_open(struct ps_archive_reader *reader, struct ps_archive_source *source,
                    const char **why);

/*
 * The next piece, all of it checked: inside its region, which the header has, and behind those
 * before it. 1: a piece; 0: the archive is whole and ends here; -1: it is not. What was read
 * counts only once 0 was returned.
 */
int ps_archive_next(struct ps_archive_reader *reader, struct ps_archive_piece *piece,
                    const char **why);

void ps_archive_free(struct ps_archive_reader *reader);

#endif
