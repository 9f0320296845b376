/*
 * undo.c - before-images are put back, the last one first, and clipped to what is held.
 */
#include "undo.h"

#include <string.h>

bool ps_window_meets(const struct ps_window *window, const struct ps_range *range,
                     struct ps_overlap *overlap)
{
	uint64_t room;

	/* Differences alone: an offset near the end of 64 bits must not wrap. */
	overlap->in_window = range->offset > window->offset ? range->offset - window->offset : 0;
	overlap->in_range = window->offset > range->offset ? window->offset - range->offset : 0;
	if (range->segment != window->segment || overlap->in_window >= window->length ||
	    overlap->in_range >= range->length)
		return false;
	room = window->length - overlap->in_window;
	overlap->length = range->length - overlap->in_range;
	if (overlap->length > room)
		overlap->length = room;
	return true;
}

void ps_window_put(const void *where, const struct ps_range *range, const void *before)
{
	const struct ps_window *window = where;
	struct ps_overlap overlap;

	if (ps_window_meets(window, range, &overlap))
		memcpy(window->bytes + overlap.in_window,
		       (const uint8_t *)before + overlap.in_range, overlap.length);
}

/* The entry is read, and held against the record's end, once more: who shares the memory may have
 * changed it since the walk. */
static void put_one(struct ps_cursor cursor, ps_undo_put *put, const void *where)
{
	struct ps_range range;
	const void *before;

	if (ps_record_take(&cursor, &range, &before))
		put(where, &range, before);
}

/*
 * Hands over `count` entries from the cursor on, the last one first. Entries can only be walked
 * forwards: one walk marks where each of at most MARKS runs begins, and then the runs are handed
 * over, the last one first. No memory is needed for a record of any length. An entry is walked over
 * log(count) / log(MARKS) times, three at most, and so deep is the recursion.
 */
static void put_back(struct ps_cursor cursor, uint32_t count, ps_undo_put *put, const void *where)
{
	enum { MARKS = 1024 };
	uint32_t marks[MARKS]; /* bytes from `base` */
	const uint8_t *base = cursor.at;
	const uint32_t run = count / MARKS + (count % MARKS > 0);
	const struct ps_cursor whole = cursor;
	struct ps_range range;
	const void *before;
	uint32_t runs = 0;

	marks[0] = 0;
	for (uint32_t i = 0; i < count; runs++) {
		marks[runs] = (uint32_t)(cursor.at - base);
		for (uint32_t end = count - i < run ? count : i + run; i < end; i++)
			if (!ps_record_take(&cursor, &range, &before))
				return;
	}
	while (runs-- > 0) {
		uint32_t left = count - runs * run;

		cursor = whole;
		cursor.at = base + marks[runs];
		cursor.left -= runs * run;
		if (run == 1)
			put_one(cursor, put, where);
		else
			put_back(cursor, left < run ? left : run, put, where);
	}
}

void ps_undo(struct ps_cursor cursor, ps_undo_put *put, const void *where)
{
	put_back(cursor, cursor.left, put, where);
}

void ps_undo_record(const struct ps_record *record, ps_undo_put *put, const void *where)
{
	struct ps_cursor cursor;

	if (record->kind != PS_RECORD_TRANSACTION)
		return;
	ps_record_walk(record, &cursor);
	ps_undo(cursor, put, where);
}
