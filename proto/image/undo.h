/*
 * undo.h - before-images are put back: into an image, or into a few bytes of it.
 *
 * The roll-back at a mirror, repairs in the library and everything that reads a running store
 * undo transactions by these functions. Ranges are a peer's word: nothing outside of a window is
 * written, whatever they say, and no entry is read beyond the end of its record.
 */
#ifndef PERSEAS_PROTO_UNDO_H
#define PERSEAS_PROTO_UNDO_H

#include "image.h"

/* Bytes of a segment, in memory. */
struct ps_window {
	uint8_t *bytes;
	uint64_t offset; /* of the first of them, within the segment */
	uint64_t length;
	uint32_t segment; /* id */
};

/* What a window and a range have in common: one byte or more. */
struct ps_overlap {
	uint64_t in_window; /* where it begins in the window */
	uint64_t in_range;  /* where it begins in the range */
	uint64_t length;
};

/* False: they have no byte in common. */
bool ps_window_meets(const struct ps_window *window, const struct ps_range *range,
                     struct ps_overlap *overlap);

/* Takes one before-image, of range->length bytes. */
typedef void ps_undo_put(const void *where, const struct ps_range *range, const void *before);

/* Puts back what lies in the window, a struct ps_window. */
void ps_window_put(const void *window, const struct ps_range *range, const void *before);

/* Hands over each entry that the cursor has not passed, the last one first. The cursor is that of
 * a transaction's entries. */
void ps_undo(struct ps_cursor cursor, ps_undo_put *put, const void *where);

/* The same for a checked record. A publish has nothing to put back. */
void ps_undo_record(const struct ps_record *record, ps_undo_put *put, const void *where);

#endif
