/*
 * undo.h - restores before-images, into an image or into a few bytes of it.
 *
 * The roll-back at a mirror, repairs in the library and all readers of a running store undo
 * transactions by these functions. Ranges come from a peer: whatever they say, nothing outside of
 * the window is written, and nothing beyond the end of the record is read.
 */
#ifndef PERSEAS_PROTO_UNDO_H
#define PERSEAS_PROTO_UNDO_H

#include "image.h"

/* Bytes of a segment, in memory. */
struct ps_window {
	uint8_t *bytes;
	uint64_t offset;  /* of the first byte, within the segment */
	uint64_t length;  /* bytes of the window */
	uint32_t segment; /* id of the segment */
};

/* The bytes that a window and a range share, at least one. */
struct ps_overlap {
	uint64_t offset_in_window; /* offset of the first shared byte in the window */
	uint64_t offset_in_range;  /* offset of the first shared byte in the range */
	uint64_t length;
};

/* Computes the overlap. Returns false if window and range share no byte. */
bool ps_window_overlaps(const struct ps_window *window, const struct ps_range *range,
                        struct ps_overlap *overlap);

/* Restores one before-image, of range->length bytes. */
typedef void ps_undo_restore(const void *where, const struct ps_range *range, const void *before);

/* A ps_undo_restore that restores the bytes within `window`, a struct ps_window. */
void ps_window_restore(const void *window, const struct ps_range *range, const void *before);

/* Calls `put` for each entry that the cursor has not passed, last one first. The record must be a
 * transaction. */
void ps_undo_entries(struct ps_cursor cursor, ps_undo_restore *put, const void *where);

/* Calls `put` for each entry of a whole checked record, last one first. Publish and destroy records
 * have nothing to restore. */
void ps_undo_record(const struct ps_record *record, ps_undo_restore *put, const void *where);

#endif
