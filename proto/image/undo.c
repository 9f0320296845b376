/*
 * undo.c - restores before-images, last entry first, clipped to a window.
 */
#include "undo.h"

#include <assert.h>
#include <string.h>

bool ps_window_overlaps(const struct ps_window *window, const struct ps_range *range,
                        struct ps_overlap *overlap)
{
	uint64_t room;

	/* Computes differences only, because offset + length may overflow 64 bits. */
	overlap->offset_in_window = range->offset > window->offset ? range->offset - window->offset
	                                                           : 0;
	overlap->offset_in_range = window->offset > range->offset ? window->offset - range->offset
	                                                          : 0;
	if (range->segment != window->segment || overlap->offset_in_window >= window->length ||
	    overlap->offset_in_range >= range->length)
		return false;
	room = window->length - overlap->offset_in_window;
	overlap->length = range->length - overlap->offset_in_range;
	if (overlap->length > room)
		overlap->length = room;
	return true;
}

void ps_window_restore(const void *where, const struct ps_range *range, const void *before)
{
	const struct ps_window *window = where;
	struct ps_overlap overlap;

	if (ps_window_overlaps(window, range, &overlap))
		memcpy(window->bytes + overlap.offset_in_window,
		       (const uint8_t *)before + overlap.offset_in_range, overlap.length);
}

/* Reads and checks the entry a second time: a process that shares the memory may have changed it
 * since the walk. */
static void restore_entry(struct ps_cursor cursor, ps_undo_restore *put, const void *where)
{
	struct ps_range range;
	const void *before;

	if (ps_record_next_copied(&cursor, &range, &before))
		put(where, &range, before);
}

/* Calls `put` for `count` entries from the cursor on, in reverse order. Entries can only be walked
 * forward: one walk marks the beginning of at most MARKS runs, and then each run is handled in
 * turn, last one first. This needs no memory, whatever the length of the record. Each entry is
 * walked log(count) / log(MARKS) times, at most three, which also bounds the recursion. */
static void restore_entries(struct ps_cursor cursor, uint32_t count, ps_undo_restore *put,
                            const void *where)
{
	enum { MARKS = 1024 };
	uint32_t marks[MARKS]; /* offsets from `base` */
	const uint8_t *base = cursor.at;
	const uint32_t run = count / MARKS + (count % MARKS > 0);
	const struct ps_cursor whole = cursor;
	struct ps_range range;
	const void *before;
	uint32_t runs = 0;

	assert(count <= cursor.left);
	marks[0] = 0;
	for (uint32_t i = 0; i < count; runs++) {
		marks[runs] = (uint32_t)(cursor.at - base);
		for (uint32_t end = count - i < run ? count : i + run; i < end; i++)
			if (!ps_record_next_copied(&cursor, &range, &before))
				return;
	}
	while (runs-- > 0) {
		uint32_t left = count - runs * run;

		cursor = whole;
		cursor.at = base + marks[runs];
		cursor.left -= runs * run;
		if (run == 1)
			restore_entry(cursor, put, where);
		else
			restore_entries(cursor, left < run ? left : run, put, where);
	}
}

void ps_undo_entries(struct ps_cursor cursor, ps_undo_restore *put, const void *where)
{
	restore_entries(cursor, cursor.left, put, where);
}

void ps_undo_record(const struct ps_record *record, ps_undo_restore *put, const void *where)
{
	struct ps_cursor cursor;

	if (record->kind != PS_RECORD_TRANSACTION)
		return;
	ps_record_begin_walk(record, &cursor);
	ps_undo_entries(cursor, put, where);
}
