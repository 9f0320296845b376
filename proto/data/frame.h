/*
 * frame.h - the framing of the tcp data path: chains of writes, reads, and their answers, on a
 * stream. Has a decoder that accepts bytes as they arrive.
 *
 * A data connection begins with a struct ps_hello from the owner, answered by a struct ps_answer
 * with op PS_OP_HELLO. Frames follow: a struct ps_frame, `count` struct ps_extent, and for
 * PS_OP_WRITE the bytes of every extent in order. An rdma connection uses only the hello and its
 * answer, as the private data of its request and reply.
 */
#ifndef PERSEAS_PROTO_FRAME_H
#define PERSEAS_PROTO_FRAME_H

#include "../image/layout.h"

#include <stdbool.h>

#define PS_DATA_MAGIC 0x44535350u    /* "PSSD" in memory: first bytes of a data connection */
#define PS_CONTROL_MAGIC 0x43535350u /* "PSSC": first bytes of a control connection */

enum {
	PS_PROTOCOL_VERSION = 9, /* newest version of control messages (version.h) */
	PS_PROTOCOL_LEAST = 8,   /* oldest version of control messages that is still supported */
	/* Version of frames: the protocol version that last changed them. */
	PS_DATA_VERSION = 7,
	/* Extents of one frame; longer chains are sent as several frames. */
	PS_FRAME_EXTENTS_MAX = 256,
};

#define PS_READ_MAX ((uint32_t)4 << 20) /* bytes that one read frame may request */

enum ps_op {
	PS_OP_HELLO = 1,
	PS_OP_WRITE = 2, /* write extents; their bytes follow */
	PS_OP_READ = 3,  /* read one extent; the answer carries its bytes */
};

enum { PS_FRAME_SIGNALLED = 1 }; /* flag: answer with the cookie when the write is applied */

struct ps_hello {
	uint32_t magic;            /* PS_DATA_MAGIC */
	uint32_t version;          /* PS_DATA_VERSION */
	uint8_t token[PS_ID_SIZE]; /* from the grant of the claim */
	uint64_t zero;
};
static_assert(sizeof(struct ps_hello) == 32, "hello layout");

struct ps_frame {
	uint8_t op;     /* enum ps_op */
	uint8_t flags;  /* PS_FRAME_SIGNALLED, or 0 */
	uint16_t count; /* number of extents, 1 to PS_FRAME_EXTENTS_MAX */
	uint32_t zero;
	uint64_t cookie; /* chosen by the owner; the answer returns it */
};
static_assert(sizeof(struct ps_frame) == 16, "frame layout");

struct ps_extent {
	uint32_t region; /* PS_REGION_* */
	uint32_t length; /* bytes, at least 1 */
	uint64_t offset;
};
static_assert(sizeof(struct ps_extent) == 16, "extent layout");

enum ps_answer_status {
	PS_ANSWER_OK = 0,
	PS_ANSWER_BAD_TOKEN = 1, /* no such session: it was fenced or never existed */
	PS_ANSWER_BAD_VERSION = 2,
	PS_ANSWER_BAD_FRAME = 3,      /* malformed, or outside a region */
	PS_ANSWER_USED_TOKEN = 4,     /* rdma: the session's data path was opened before */
	PS_ANSWER_OTHER_DEVICE = 5,   /* rdma: the memory is registered with another device */
	PS_ANSWER_NO_RESOURCES = 6,   /* rdma: no memory or no queue pair; see the mirror's log */
	PS_ANSWER_OTHER_IDENTITY = 7, /* the session belongs to another certificate */
};

struct ps_answer {
	uint8_t op;     /* op of the frame that it answers */
	uint8_t status; /* enum ps_answer_status */
	uint16_t zero;
	uint32_t length; /* bytes that follow, for PS_OP_READ; else 0 */
	uint64_t cookie;
};
static_assert(sizeof(struct ps_answer) == 16, "answer layout");

/* A mirror's decoder. It applies writes in order, as their bytes arrive, and stores at most the
 * extents of one frame. `where` returns the memory of an extent, or NULL to refuse it. `answer` is
 * called when a signaled write is applied, and for a read with the memory to send. */
struct ps_decoder_ops {
	uint8_t *(*where)(void *ctx, const struct ps_extent *extent, bool write);
	void (*answer)(void *ctx, const struct ps_answer *answer, const uint8_t *bytes);
};

struct ps_decoder {
	const struct ps_decoder_ops *ops;
	void *ctx; /* first argument of the ops */
	struct ps_frame frame;
	struct ps_extent extents[PS_FRAME_EXTENTS_MAX];
	uint32_t have;   /* bytes of the head and the extents received so far */
	uint32_t extent; /* index of the extent being filled */
	uint32_t filled; /* bytes written into that extent */
	bool payload;    /* head and extents are complete and checked */
};

void ps_decoder_init(struct ps_decoder *decoder, const struct ps_decoder_ops *ops, void *ctx);

/* Decodes and applies `len` bytes of the stream. Returns 0, or -1 if the peer broke the protocol:
 * earlier frames are applied, nothing of the faulty frame is, PS_ANSWER_BAD_FRAME has been sent,
 * and the caller must close the stream. */
int ps_decoder_feed(struct ps_decoder *decoder, const void *bytes, size_t len);

/* Returns true if all fields of the answer have valid values. */
bool ps_answer_valid(const struct ps_answer *answer);

#endif
