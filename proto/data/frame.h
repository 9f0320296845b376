/*
 * frame.h - the tcp data path: how chains of writes, reads and their answers are
 * framed on a stream. Encoding, and a decoder that takes bytes as they come.
 *
 * A data connection begins with a struct ps_hello from the owner, answered by a
 * struct ps_answer with op PS_OP_HELLO. Both are also the private data of an rdma connection's
 * request and of its answer, which is all that rdma uses of this file. Then frames: a struct
 * ps_frame, `count` struct ps_extent, and for PS_OP_WRITE the bytes of every extent in order.
 */
#ifndef PERSEAS_PROTO_FRAME_H
#define PERSEAS_PROTO_FRAME_H

#include "../image/layout.h"

#include <stdbool.h>

#define PS_DATA_MAGIC 0x44535350u    /* "PSSD" in memory: begins a data connection */
#define PS_CONTROL_MAGIC 0x43535350u /* "PSSC": begins a control connection */

enum {
	PS_PROTOCOL_VERSION = 9,    /* of control messages (version.h) */
	PS_PROTOCOL_LEAST = 8,      /* the oldest that is spoken, too */
	PS_DATA_VERSION = 7,        /* of frames: the last version that changed them */
	PS_FRAME_EXTENTS_MAX = 256, /* extents of one frame; longer chains are several frames */
};

#define PS_READ_MAX ((uint32_t)4 << 20) /* bytes that one read frame may ask for */

enum ps_op {
	PS_OP_HELLO = 1,
	PS_OP_WRITE = 2, /* extents with their bytes */
	PS_OP_READ = 3,  /* one extent; the answer carries its bytes */
};

enum { PS_FRAME_SIGNALLED = 1 }; /* answer when it is applied, with its cookie */

struct ps_hello {
	uint32_t magic;            /* PS_DATA_MAGIC */
	uint32_t version;          /* PS_DATA_VERSION */
	uint8_t token[PS_ID_SIZE]; /* from the claim's grant */
	uint64_t zero;
};
static_assert(sizeof(struct ps_hello) == 32, "hello layout");

struct ps_frame {
	uint8_t op; /* enum ps_op */
	uint8_t flags;
	uint16_t count; /* extents, 1 .. PS_FRAME_EXTENTS_MAX */
	uint32_t zero;
	uint64_t cookie; /* given back by the answer */
};
static_assert(sizeof(struct ps_frame) == 16, "frame layout");

struct ps_extent {
	uint32_t region; /* PS_REGION_… */
	uint32_t length; /* bytes, 1 or more */
	uint64_t offset;
};
static_assert(sizeof(struct ps_extent) == 16, "extent layout");

enum ps_answer_status {
	PS_ANSWER_OK = 0,
	PS_ANSWER_BAD_TOKEN = 1, /* no such session: it was fenced, or never was */
	PS_ANSWER_BAD_VERSION = 2,
	PS_ANSWER_BAD_FRAME = 3,      /* not understood, or outside a region */
	PS_ANSWER_USED_TOKEN = 4,     /* rdma: the session's data path was opened before */
	PS_ANSWER_ELSEWHERE = 5,      /* rdma: the memory is registered with another device */
	PS_ANSWER_NO_RESOURCES = 6,   /* rdma: no room, or no queue pair; see the mirror's log */
	PS_ANSWER_OTHER_IDENTITY = 7, /* the session is another's, by its certificate */
};

struct ps_answer {
	uint8_t op;     /* of the frame that it answers */
	uint8_t status; /* enum ps_answer_status */
	uint16_t zero;
	uint32_t length; /* bytes that follow (PS_OP_READ), else 0 */
	uint64_t cookie;
};
static_assert(sizeof(struct ps_answer) == 16, "answer layout");

/*
 * The decoder of a mirror: it applies writes as their bytes arrive, in order, and
 * keeps no more than one frame's extents. `where` gives the memory of an extent, or
 * NULL to refuse it; `answer` is called for a signalled write when it is applied, and
 * for a read with the memory to send.
 */
struct ps_decoder_ops {
	uint8_t *(*where)(void *ctx, const struct ps_extent *extent, bool write);
	void (*answer)(void *ctx, const struct ps_answer *answer, const uint8_t *bytes);
};

struct ps_decoder {
	const struct ps_decoder_ops *ops;
	void *ctx;
	struct ps_frame frame;
	struct ps_extent extents[PS_FRAME_EXTENTS_MAX];
	uint32_t have;   /* bytes of frame and extents that have arrived */
	uint32_t extent; /* that is being filled */
	uint32_t filled; /* bytes of it */
	bool payload;    /* frame and extents are whole and checked */
};

void ps_decoder_init(struct ps_decoder *decoder, const struct ps_decoder_ops *ops, void *ctx);

/*
 * Takes `len` bytes off the stream. Returns 0, or -1 when the peer broke the protocol:
 * an answer with PS_ANSWER_BAD_FRAME has then been given, what came before it in the
 * stream is applied, nothing of the frame itself is, and the stream must be closed.
 */
int ps_decoder_feed(struct ps_decoder *decoder, const void *bytes, size_t len);

/* Checks an answer's fields. */
bool ps_answer_valid(const struct ps_answer *answer);

#endif
