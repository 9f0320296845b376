/*
 * layout.h - the binary layout of a mirror's image: commit slots and undo records. PROTOCOL.md has
 * the same as tables of offsets.
 *
 * All fields are little-endian. Perseas runs only on little-endian hosts, so fields are used in
 * place.
 */
#ifndef PERSEAS_PROTO_LAYOUT_H
#define PERSEAS_PROTO_LAYOUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian hosts only");

/* Limits that both sides enforce. */
enum {
	PS_NAME_MAX = 63,      /* bytes in the name of a store or segment */
	PS_SEGMENTS_MAX = 128, /* segments of a store */
	PS_MIRRORS_MAX = 16,   /* mirrors of a store */
	PS_ID_SIZE = 16,       /* bytes of a random id (store, image, owner, token) */
	/* Leading bytes of an owner's id that other clients may see. A client that knew the whole
	 * id could claim as that owner. */
	PS_OWNER_SHOWN_SIZE = 8,
	PS_ALIGN = 64,      /* alignment of every log position */
	PS_TERMINATOR = 64, /* zero bytes that are written after each record */
	PS_PAGE = 4096,
};

#define PS_LOG_MIN ((uint64_t)4096) /* bytes of the smallest ring */
#define PS_LOG_MAX ((uint64_t)1 << 36)
#define PS_SEGMENT_MAX ((uint64_t)1 << 40) /* bytes of the largest segment */

/* A daemon's default port and socket. */
#define PS_PORT "7170"
#define PS_SOCKET "/run/perseas/socket"

/* Regions of an image, by number, as the data path names them.
 *
 * The log region is one page with the two commit slots (at 0 and at PS_SLOT_STRIDE), followed by
 * the ring of undo records. */
enum {
	PS_REGION_LOG = 0,
	PS_REGION_PROMISE = 1,  /* struct ps_promise; owners may only read it */
	PS_REGION_SEGMENT = 16, /* first segment region: add the segment's id */
	PS_REGIONS_MAX = PS_REGION_SEGMENT + PS_SEGMENTS_MAX,
	PS_SLOT_STRIDE = 128,
	PS_RING_OFFSET = PS_PAGE, /* offset of the ring within the log region */
};

/* A commit slot. Of the two, the valid one with the highest (epoch, seq) is current; the next write
 * goes to the other one. */
struct ps_slot {
	uint64_t epoch; /* the owner's term */
	uint64_t seq;   /* last complete transaction */
	uint64_t next;  /* log position where the next record may begin */
	uint64_t last;  /* log position of the record of `seq`; 0: none */
	uint32_t crc;   /* CRC-32C of the 32 bytes before */
	uint32_t zero;
};
static_assert(sizeof(struct ps_slot) == 40, "slot layout");
static_assert(offsetof(struct ps_slot, crc) == 32, "slot layout");

enum ps_record_kind {
	PS_RECORD_TRANSACTION = 1, /* entries with before-images */
	PS_RECORD_PUBLISH = 2,     /* entries name segments created by this seq; no before-images */
	PS_RECORD_DESTROY = 3,     /* entries name segments deleted by this seq; no before-images */
};

#define PS_RECORD_MAGIC 0x52535031u /* "1PSR" in memory */

/* The head of an undo record. `ranges` entries follow, each a struct ps_range and its before-image,
 * padded with zeros to 8 bytes. A record begins at a multiple of PS_ALIGN and never wraps: if it
 * does not fit into the rest of the ring, it begins at the start of the ring, in the next lap. The
 * previous slot's `next` is then the position where it did not fit.
 *
 * The write of a record ends with zeros, up to PS_TERMINATOR bytes beyond the next slot's `next`.
 * Without them, a reader that looks there for the following record could find before-images from an
 * earlier lap of the ring, which may look like a record. */
struct ps_record {
	uint32_t magic; /* PS_RECORD_MAGIC */
	uint16_t kind;  /* enum ps_record_kind */
	uint16_t flags; /* reserved: 0 */
	uint64_t epoch;
	uint64_t seq;
	/* Log position of this record; position % ring size is its offset in the ring. */
	uint64_t position;
	uint64_t previous; /* log position of the record of seq - 1; 0: none */
	uint32_t length;   /* bytes of the whole record, with this head */
	uint32_t ranges;   /* number of entries */
	uint64_t time;     /* time of the commit, in nanoseconds since 1970, UTC */
	uint32_t crc;      /* CRC-32C of the whole record with this field 0 */
	uint32_t sum;      /* checksum of the entries (ps_record_sum()); 0: none (level 0) */
};
static_assert(sizeof(struct ps_record) == 64, "record layout");
static_assert(offsetof(struct ps_record, crc) == 56, "record layout");

struct ps_range {
	uint32_t segment; /* id of the segment */
	uint32_t length;  /* bytes */
	uint64_t offset;  /* of the first byte, within the segment */
};
static_assert(sizeof(struct ps_range) == 16, "range layout");

/* Epochs of owners are 1 to PS_EPOCH_MAX. A mirror grants an epoch at most PS_EPOCH_STEP above its
 * promise, so that no client can use the numbers up. An owner that needs a higher epoch claims in
 * several steps, which together raise the epoch by at most PS_EPOCH_REACH (I5). */
#define PS_EPOCH_MAX (UINT64_MAX / 2)
#define PS_EPOCH_STEP ((uint64_t)1 << 20)
#define PS_EPOCH_REACH ((uint64_t)1 << 26)

/* The promise page, which owners on the same host read after each slot (I5). */
#define PS_PROMISE_RETIRED UINT64_MAX /* epoch in the page of a mirror that serves no owner */
struct ps_promise {
	uint64_t epoch; /* the promised epoch; stored last, in one write */
	uint8_t owner[PS_ID_SIZE];
};
static_assert(sizeof(struct ps_promise) == 24, "promise layout");

#define PS_FIRST_POSITION \
	((uint64_t)PS_ALIGN) /* first position of a new log; position 0 means "none" */

/* Stores two adjacent 32-bit fields as one 64-bit word. A sealed record is read back at once in
 * 64-bit words, to checksum and copy it. The processor can forward a store to a later load only if
 * the store covers the load; otherwise the load waits for all earlier stores. */
static inline void ps_put_pair(void *at, uint32_t low, uint32_t high)
{
	uint64_t word = low | (uint64_t)high << 32;

	memcpy(at, &word, sizeof(word));
}

static inline uint64_t ps_align8(uint64_t n)
{
	return (n + 7) & ~(uint64_t)7;
}
static inline uint64_t ps_align64(uint64_t n)
{
	return (n + 63) & ~(uint64_t)63;
}

#define PS_RECORD_MAX ((uint64_t)1 << 30) /* bytes; a record's lengths have 32 bits */

/* Returns the size of the largest record that fits into a ring of this size. */
static inline uint64_t ps_record_limit(uint64_t ring_size)
{
	return ring_size / 2 < PS_RECORD_MAX ? ring_size / 2 : PS_RECORD_MAX;
}

/* Bytes of memory that must follow a record to be sent, for its padding and terminator. */
enum { PS_RECORD_SLACK = PS_ALIGN + PS_TERMINATOR };

/* Returns the size of the terminator at `next`: 0 at the end of the ring, where the next lap
 * begins. */
static inline uint64_t ps_terminator_size(uint64_t next, uint64_t ring_size)
{
	return next % ring_size ? PS_TERMINATOR : 0;
}

/* Returns the position of a record of `length` bytes that follows a slot with this `next`. */
static inline uint64_t ps_record_position(uint64_t next, uint64_t length, uint64_t ring_size)
{
	uint64_t rest = ring_size - next % ring_size;

	return length <= rest ? next : next + rest;
}

/* Returns the lowest position of a record that is certainly not overwritten, given a slot with this
 * `next`. The record after the slot may be in flight or torn, may be as long as a record can be,
 * and may lie at the start of the next lap. */
static inline uint64_t ps_lowest_intact_position(uint64_t next, uint64_t ring_size)
{
	const uint64_t limit = ps_record_limit(ring_size);
	const uint64_t end = ps_record_position(next, limit, ring_size) + limit + PS_TERMINATOR;

	return end > ring_size ? end - ring_size : 0;
}

#endif
