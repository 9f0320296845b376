/*
 * image.h - reading, checking and rolling back an image (slots, undo records).
 *
 * Pure functions over memory. What they read comes from a peer: all of it is
 * checked before it is used, and read once where it lies in shared memory.
 */
#ifndef PERSEAS_PROTO_IMAGE_H
#define PERSEAS_PROTO_IMAGE_H

#include "layout.h"

#include <stdbool.h>

/* Fills in everything but checks nothing; crc included. */
void ps_slot_encode(struct ps_slot *slot, uint64_t epoch, uint64_t seq, uint64_t next,
                    uint64_t last);

bool ps_slot_valid(const struct ps_slot *slot);

/* Is a later than b, by (epoch, seq)? */
bool ps_slot_later(const struct ps_slot *a, const struct ps_slot *b);

/*
 * The slot that counts of the two in `page` (PS_RING_OFFSET bytes or more), copied
 * to *slot. Returns its index, 0 or 1, or -1 when neither is valid.
 */
int ps_slot_choose(const void *page, struct ps_slot *slot);

/* Byte offset of slot `index` in the log region. */
static inline uint64_t ps_slot_offset(int index)
{
	return (uint64_t)index * PS_SLOT_STRIDE;
}

/* What is wrong with a record; PS_RECORD_OK is 0. */
enum ps_record_fault {
	PS_RECORD_OK,
	PS_RECORD_BAD_MAGIC,
	PS_RECORD_BAD_LENGTH, /* head, entries and length do not agree, or exceed the ring */
	PS_RECORD_BAD_CRC,
	PS_RECORD_BAD_FIELD, /* kind, flags, zero, position or padding */
};

const char *ps_record_fault_text(enum ps_record_fault fault);

/*
 * Checks the record at `bytes`, of which `available` bytes may be read. On
 * PS_RECORD_OK its entries can be walked with ps_record_next without further
 * checks of lengths; segments and offsets are still the peer's word.
 */
enum ps_record_fault ps_record_check(const void *bytes, uint64_t available);

/* Walks the entries of a checked record. */
struct ps_cursor {
	const uint8_t *at;
	const uint8_t *end; /* of the record; never left, whatever the entries say */
	uint32_t left;      /* entries not yet seen */
	bool images;        /* entries carry before-images */
};

void ps_record_walk(const struct ps_record *record, struct ps_cursor *cursor);

/* False at the end. *image is the before-image (range->length bytes), or NULL. */
bool ps_record_next(struct ps_cursor *cursor, const struct ps_range **range, const void **image);

/* Reads shared memory once; the compiler must not read it again behind our back. */
static inline void ps_take(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	__asm__ volatile("" ::: "memory");
}

/* Bytes of an entry: its range and, where it carries one, its padded before-image. */
static inline uint64_t ps_entry_size(const struct ps_range *range, bool images)
{
	return sizeof(*range) + (images ? ps_align8(range->length) : 0);
}

/* ps_record_next with a copy of the range: for memory that somebody else may write to meanwhile. */
static inline bool ps_record_take(struct ps_cursor *cursor, struct ps_range *range,
                                  const void **image)
{
	uint64_t room = (uint64_t)(cursor->end - cursor->at), size;

	if (cursor->left == 0 || room < sizeof(*range))
		return false;
	ps_take(range, cursor->at, sizeof(*range));
	size = ps_entry_size(range, cursor->images);
	if (size > room)
		return false;
	*image = cursor->images ? cursor->at + sizeof(*range) : NULL;
	cursor->at += size;
	cursor->left--;
	return true;
}

/* Do all bytes of the range lie in a segment of `size` bytes? */
bool ps_range_inside(const struct ps_range *range, uint64_t size);

/*
 * Sets the fields that commit knows (magic, flags, epoch .. time) and the crc of a
 * record whose entries, length, ranges and kind are in place.
 */
void ps_record_seal(struct ps_record *record, uint64_t epoch, uint64_t seq, uint64_t position,
                    uint64_t previous, uint64_t time);

/* An image in memory: what the functions below work on. */
struct ps_image {
	uint8_t *log;       /* the log region: slot page, then ring */
	uint64_t ring_size; /* bytes of the ring, a multiple of PS_ALIGN */
	struct {
		uint8_t *base; /* NULL: there is no such segment */
		uint64_t size;
	} segments[PS_SEGMENTS_MAX];
};

/*
 * Returns a sum of the entries of a record, which is not 0. A CRC-32C does not change with bytes
 * that their own CRC-32C follows, so entries of an earlier lap of the ring could pass with the head
 * of a record that was cut short; no such bytes leave this sum as it is. It is Fletcher's sum (An
 * arithmetic checksum for serial transmissions, 1982) over words of 64 bits. Records of level 1
 * have it in `sum` when they are sealed.
 */
uint32_t ps_record_sum(const struct ps_record *record);

/*
 * The record of (epoch, seq), which a slot with `next` says must begin at next or at
 * the ring's next lap. Returns a pointer into the ring to a checked record, or NULL:
 * it is not there, not whole, or of another epoch, seq or position.
 */
const struct ps_record *ps_image_find(const struct ps_image *image, uint64_t epoch, uint64_t seq,
                                      uint64_t next);

/* The checked record that lies at exactly `position`, or NULL. */
const struct ps_record *ps_image_at(const struct ps_image *image, uint64_t position);

enum ps_recovery {
	PS_RECOVERY_CLEAN = 0,     /* nothing was unfinished */
	PS_RECOVERY_UNDONE = 1,    /* an unfinished transaction was rolled back */
	PS_RECOVERY_NO_SLOT = -1,  /* neither slot is valid: the image is damaged */
	PS_RECOVERY_BAD_RANGE = -2 /* a whole record names bytes outside the image; nothing
	                              was changed */
};

/*
 * Rolls the unfinished transaction, if there is one, back (PERSEAS, section 3) and
 * gives the slot that counts. Doing it twice changes nothing.
 */
enum ps_recovery ps_image_recover(const struct ps_image *image, struct ps_slot *slot);

/* Puts the before-images of a checked record back, last entry first. False, and
 * nothing changed: it names bytes outside the image. */
bool ps_image_undo(const struct ps_image *image, const struct ps_record *record);

/* Writes the slot of an image that has just been made. */
void ps_image_format(uint8_t *log);

#endif
