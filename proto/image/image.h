/*
 * image.h - reads, checks and rolls back an image: its commit slots and undo records.
 *
 * Pure functions over memory. The memory comes from a peer: everything is checked before it is
 * used, and shared memory is read only once.
 */
#ifndef PERSEAS_PROTO_IMAGE_H
#define PERSEAS_PROTO_IMAGE_H

#include "layout.h"

#include <stdbool.h>

/* Fills in a slot with its checksum. Does not check the values. */
void ps_slot_encode(struct ps_slot *slot, uint64_t epoch, uint64_t seq, uint64_t next,
                    uint64_t last);

bool ps_slot_valid(const struct ps_slot *slot);

/* Returns true if (epoch, seq) of a is greater than that of b. */
bool ps_slot_later(const struct ps_slot *a, const struct ps_slot *b);

/* Chooses the valid commit slot with the highest (epoch, seq) in `page` (at least PS_RING_OFFSET
 * bytes), and copies it to *slot. Returns its index, 0 or 1, or -1 if neither is valid. */
int ps_slot_choose(const void *page, struct ps_slot *slot);

/* Returns the offset of slot `index` in the log region. */
static inline uint64_t ps_slot_offset(int index)
{
	return (uint64_t)index * PS_SLOT_STRIDE;
}

/* The fault that a check of a record found. */
enum ps_record_fault {
	PS_RECORD_OK,
	PS_RECORD_BAD_MAGIC,
	PS_RECORD_BAD_LENGTH, /* head, entries and length disagree, or exceed the ring */
	PS_RECORD_BAD_CRC,
	PS_RECORD_BAD_FIELD, /* kind, flags, position or padding has an invalid value */
};

const char *ps_record_fault_text(enum ps_record_fault fault);

/* Checks the record at `bytes`, of which `available` bytes may be read. If the result is
 * PS_RECORD_OK, ps_record_next() can walk its entries without checking lengths. Segments and
 * offsets are still unchecked. */
enum ps_record_fault ps_record_check(const void *bytes, uint64_t available);

/* A position in the entries of a checked record. */
struct ps_cursor {
	const uint8_t *at;  /* the next entry */
	const uint8_t *end; /* end of the record; never crossed, whatever the entries say */
	uint32_t left;      /* entries left to walk */
	bool has_images;    /* entries carry before-images */
};

void ps_record_begin_walk(const struct ps_record *record, struct ps_cursor *cursor);

/* Returns the next entry, or false after the last one. *image is its before-image of range->length
 * bytes, or NULL if the record has none. */
bool ps_record_next(struct ps_cursor *cursor, const struct ps_range **range, const void **image);

/* Copies shared memory. The barrier keeps the compiler from reading it a second time. */
static inline void ps_read_once(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	__asm__ volatile("" ::: "memory");
}

/* Returns the size of an entry: its range, and its padded before-image if it has one. */
static inline uint64_t ps_entry_size(const struct ps_range *range, bool images)
{
	return sizeof(*range) + (images ? ps_align8(range->length) : 0);
}

/* Walks like ps_record_next(), but copies the range. For memory that another process may write
 * to. */
static inline bool ps_record_next_copied(struct ps_cursor *cursor, struct ps_range *range,
                                         const void **image)
{
	uint64_t room = (uint64_t)(cursor->end - cursor->at), size;

	if (cursor->left == 0 || room < sizeof(*range))
		return false;
	ps_read_once(range, cursor->at, sizeof(*range));
	size = ps_entry_size(range, cursor->has_images);
	if (size > room)
		return false;
	*image = cursor->has_images ? cursor->at + sizeof(*range) : NULL;
	cursor->at += size;
	cursor->left--;
	return true;
}

/* Returns true if the range lies within a segment of `size` bytes. */
bool ps_range_inside(const struct ps_range *range, uint64_t size);

/* Completes a record whose entries, length, ranges and kind are in place: sets magic, flags, epoch
 * to time, and the checksum. */
void ps_record_seal(struct ps_record *record, uint64_t epoch, uint64_t seq, uint64_t position,
                    uint64_t previous, uint64_t time);

/* An image in memory. */
struct ps_image {
	uint8_t *log;       /* the log region: the page of slots, then the ring */
	uint64_t ring_size; /* bytes; a multiple of PS_ALIGN */
	struct {
		uint8_t *base; /* NULL: no segment has this id */
		uint64_t size;
	} segments[PS_SEGMENTS_MAX];
};

/* Returns a checksum of a record's entries that is never 0. Records of level 1 carry it in `sum`
 * when they are sealed.
 *
 * The CRC-32C alone is not enough: appending bytes with their own CRC-32C does not change it, so
 * entries from an earlier lap of the ring could pass behind the head of a record that was cut
 * short. This sum has no such property. It is Fletcher's (An arithmetic checksum for serial
 * transmissions, 1982), over words of 64 bits. */
uint32_t ps_record_sum(const struct ps_record *record);

/* Finds the record of (epoch, seq), which must begin at `next` of the slot before it or at the
 * start of the ring's next lap. Returns a pointer into the ring to a checked record, or NULL if it
 * is missing, incomplete, or has another epoch, seq or position. */
const struct ps_record *ps_image_find_record(const struct ps_image *image, uint64_t epoch,
                                             uint64_t seq, uint64_t next);

/* Returns the checked record that begins exactly at `position`, or NULL. */
const struct ps_record *ps_image_record_at(const struct ps_image *image, uint64_t position);

enum ps_recovery {
	PS_RECOVERY_CLEAN = 0,    /* no transaction was in flight */
	PS_RECOVERY_UNDONE = 1,   /* the transaction in flight was rolled back */
	PS_RECOVERY_NO_SLOT = -1, /* neither slot is valid: the image is damaged */
	/* A valid record names bytes outside the image; nothing was changed. */
	PS_RECOVERY_BAD_RANGE = -2
};

/* Rolls back the transaction in flight, if there is one (PERSEAS, section 3), and returns the valid
 * slot. Idempotent. */
enum ps_recovery ps_image_recover(const struct ps_image *image, struct ps_slot *slot);

/* Restores the before-images of a checked record, last entry first. Returns false and changes
 * nothing if it names bytes outside the image. */
bool ps_image_undo_record(const struct ps_image *image, const struct ps_record *record);

/* Writes the slots of a new image. */
void ps_image_init_slots(uint8_t *log);

#endif
