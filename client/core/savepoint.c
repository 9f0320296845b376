/*
 * savepoint.c - savepoints of a transaction, and partial roll-back. All of it is local: the undo
 * record keeps each byte's value from before the transaction, and only this value is sent.
 *
 * What a range holds when it is declared after a savepoint is saved for that savepoint. For bytes
 * that the record does not cover yet, the record's own new entry saves it; no entry extends across
 * a savepoint. For bytes that it covers already, and that the transaction may have changed, a
 * journal next to the record saves it. A roll-back restores the journal, newest piece first, then
 * the new entries of the record, and truncates both. `cover` has the bytes saved since the newest
 * savepoint.
 */
#include "tx.h"

#include "deferred_stores.h"
#include "../../proto/image/undo.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Saved contents of bytes that were declared again. */
struct piece {
	uint64_t start, length; /* address and length in bytes */
	uint64_t at;            /* offset in the journal */
};

/* A savepoint: how long the record and the journal were. */
struct mark {
	uint64_t name;
	uint64_t length; /* bytes of the record */
	uint32_t ranges; /* entries of the record */
	unsigned pieces;
};

struct ps_saved {
	struct mark *marks;
	unsigned mark_count;
	uint64_t mark_capacity;
	struct piece *pieces;
	unsigned piece_count;
	uint64_t piece_capacity;
	unsigned piece_mark; /* piece_count when the present set_range began */
	uint8_t *journal;
	uint64_t journal_length, journal_capacity;
	struct ps_cover cover;
	/* PERSEAS_CHECK_WRITES: what was declared at the newest savepoint, and its contents
	 * then. */
	struct ps_cover declared;
	uint8_t *old_contents;
	uint64_t old_capacity;
};

/* Makes room for `count` elements of `size` bytes. Returns false if out of memory, and nothing has
 * changed. */
static bool grow_array(struct perseas_tx *tx, void **memory, uint64_t *capacity, uint64_t count,
                       size_t size)
{
	uint64_t more = *capacity ? *capacity : 64;
	void *grown;

	if (count <= *capacity)
		return true;
	while (more < count)
		more *= 2;
	grown = realloc(*memory, more * size);
	if (!grown)
		return false;
	*memory = grown;
	*capacity = more;
	__atomic_fetch_add(&tx->p->commit.stat.allocations, 1, __ATOMIC_RELAXED);
	return true;
}

/* --- saving while ranges are declared --- */

static bool append_to_journal(struct perseas_tx *tx, uint64_t start, uint64_t end)
{
	struct ps_saved *saved = tx->savepoints;
	const uint64_t length = end - start;

	if (!grow_array(tx, (void **)&saved->pieces, &saved->piece_capacity,
	                (uint64_t)saved->piece_count + 1, sizeof(*saved->pieces)) ||
	    !grow_array(tx, (void **)&saved->journal, &saved->journal_capacity,
	                saved->journal_length + length, 1))
		return false;
	memcpy(saved->journal + saved->journal_length, (const void *)start, length);
	saved->pieces[saved->piece_count++] = (struct piece){ start, length,
		                                              saved->journal_length };
	saved->journal_length += length;
	return true;
}

/* Saves, of these bytes, which are not saved yet, those that the record covers already. */
static bool journal_covered_bytes(struct perseas_tx *tx, uint64_t start, uint64_t end)
{
	uint64_t gap_start, gap_end;

	while (start < end) {
		if (!ps_cover_find_gap(&tx->cover, start, end, &gap_start, &gap_end))
			gap_start = gap_end = end;
		if (gap_start > start && !append_to_journal(tx, start, gap_start))
			return false;
		start = gap_end;
	}
	return true;
}

static void truncate_journal(struct ps_saved *saved, unsigned count)
{
	if (count < saved->piece_count)
		saved->journal_length = saved->pieces[count].at;
	saved->piece_count = count;
}

int ps_savepoint_before_range(struct perseas_tx *tx, uint64_t start, uint64_t end, unsigned spans)
{
	struct ps_saved *saved = tx->savepoints;
	uint64_t gap_start, gap_end;
	bool room = ps_cover_reserve_spans(&saved->cover, spans) >= 0;

	saved->piece_mark = saved->piece_count;
	for (uint64_t from = start;
	     room && ps_cover_find_gap(&saved->cover, from, end, &gap_start, &gap_end);
	     from = gap_end)
		room = journal_covered_bytes(tx, gap_start, gap_end);
	return room ? 0
	            : ps_fail(tx->p, PERSEAS_ENOMEM, "no memory to keep %llu bytes for a savepoint",
	                      (unsigned long long)(end - start));
}

void ps_savepoint_after_range(struct perseas_tx *tx, const struct ps_span *span, int rc)
{
	if (rc)
		truncate_journal(tx->savepoints, tx->savepoints->piece_mark);
	else
		ps_cover_add_and_merge_span(&tx->savepoints->cover, span);
}

/* --- PERSEAS_CHECK_WRITES: changes without another set_range --- */

/* Copies what the transaction has declared by now, for PERSEAS_CHECK_WRITES: its spans, and their
 * contents one behind another. Returns false if out of memory. */
static bool copy_declared(struct perseas_tx *tx)
{
	struct ps_saved *saved = tx->savepoints;
	const struct ps_span *span;
	uint64_t at = 0;

	ps_cover_clear(&saved->declared);
	if (!(tx->p->options.flags & PERSEAS_CHECK_WRITES))
		return true;
	if (!grow_array(tx, (void **)&saved->old_contents, &saved->old_capacity,
	                tx->cover.covered_bytes, 1))
		return false;
	/* Other threads may read the cover meanwhile, so it must not be settled. */
	for (uint64_t from = 0; (span = ps_cover_span_from(&tx->cover, from));
	     from = span->end + 1) {
		if (ps_cover_reserve_span(&saved->declared) < 0)
			return false;
		memcpy(saved->old_contents + at, (const void *)span->start,
		       span->end - span->start);
		at += span->end - span->start;
		ps_cover_append_span(&saved->declared, span);
	}
	return true;
}

/* Returns the address of the first byte of the span that changed since the newest savepoint without
 * being declared again; 0 if none did. */
static uint64_t find_undeclared_change(const struct ps_saved *saved, const struct ps_span *span,
                                       const uint8_t *old_contents)
{
	uint64_t start, end;

	for (uint64_t from = span->start;
	     ps_cover_find_gap(&saved->cover, from, span->end, &start, &end); from = end)
		for (; start < end; start++)
			if (*(const uint8_t *)start != old_contents[start - span->start])
				return start;
	return 0;
}

static int check_undeclared(struct perseas_tx *tx)
{
	const struct ps_saved *saved = tx->savepoints;
	const uint8_t *old_contents = saved->old_contents;

	for (unsigned i = 0; i < saved->declared.span_count; i++) {
		const struct ps_span *span = &saved->declared.spans[i];
		const uint64_t at = find_undeclared_change(saved, span, old_contents);

		if (at)
			return ps_fail(tx->p, PERSEAS_EUNDECLARED,
			               "%p was changed since the newest savepoint, and not "
			               "declared since: call perseas_set_range before the store",
			               (const void *)at);
		old_contents += span->end - span->start;
	}
	return 0;
}

/* --- savepoints --- */

static int fail_savepoint_memory(struct perseas_tx *tx)
{
	return ps_fail(tx->p, PERSEAS_ENOMEM, "no memory for a savepoint");
}

int perseas_savepoint(perseas_tx_t *tx, uint64_t *savepoint)
{
	struct ps_saved *saved;

	if (savepoint)
		*savepoint = 0;
	if (!tx || !savepoint)
		return ps_fail(tx ? tx->p : NULL, PERSEAS_EINVAL,
		               tx ? "a savepoint needs a place for its number" : "tx is NULL");
	if (!tx->is_open)
		return ps_fail(tx->p, PERSEAS_EENDED,
		               "the transaction has been committed or aborted: begin another");
	if (tx->traits & PS_TX_TRACKED)
		return ps_fail(
			tx->p, PERSEAS_EINVAL,
			"a transaction with PERSEAS_TRACK has no savepoints: what it changed "
			"is found when it commits");
	if (!tx->savepoints && !(tx->savepoints = calloc(1, sizeof(*tx->savepoints))))
		return fail_savepoint_memory(tx);
	saved = tx->savepoints;
	if (!grow_array(tx, (void **)&saved->marks, &saved->mark_capacity,
	                (uint64_t)saved->mark_count + 1, sizeof(*saved->marks)) ||
	    !copy_declared(tx))
		return fail_savepoint_memory(tx);
	*savepoint = atomic_fetch_add_explicit(&tx->p->savepoint_count, 1, memory_order_relaxed) +
	             1;
	if (ps_deferred_savepoint(tx, *savepoint)) {
		*savepoint = 0;
		return fail_savepoint_memory(tx);
	}
	saved->marks[saved->mark_count++] = (struct mark){ *savepoint, tx->record_length,
		                                           tx->range_count, saved->piece_count };
	ps_cover_clear(&saved->cover);
	/* No entry extends across a savepoint. */
	tx->last_entry_offset = 0;
	/* Other threads may read the transaction meanwhile. */
	pthread_mutex_lock(&tx->p->lock);
	tx->traits |= PS_TX_SAVEPOINTS;
	pthread_mutex_unlock(&tx->p->lock);
	return 0;
}

/* Restores memory from the record's entries after the mark. */
static void restore_before_images(struct perseas_tx *tx, const struct mark *mark)
{
	struct ps_cursor cursor = { tx->record + mark->length, tx->record + tx->record_length,
		                    tx->range_count - mark->ranges, true };
	const struct ps_range *range;
	const void *image;

	while (ps_record_next(&cursor, &range, &image))
		memcpy(ps_segment_by_id(tx->p, range->segment)->base + range->offset, image,
		       range->length);
}

/* Rebuilds the cover from the record. There is room, since the cover had at least these spans
 * before. */
static void rebuild_cover(struct perseas_tx *tx)
{
	struct ps_cursor cursor = { tx->record + sizeof(struct ps_record),
		                    tx->record + tx->record_length, tx->range_count, true };
	uint64_t touched[PS_SEGMENTS_MAX / 64] = { 0 };
	const struct ps_range *range;
	const void *image;

	ps_cover_clear(&tx->cover);
	while (ps_record_next(&cursor, &range, &image)) {
		const struct ps_segment *segment = ps_segment_by_id(tx->p, range->segment);
		const uint64_t base = (uint64_t)(uintptr_t)segment->base;
		const uint64_t start = base + range->offset;

		ps_cover_add_and_merge_span(&tx->cover,
		                            &(struct ps_span){ start, start + range->length, base,
		                                               range->segment });
		touched[range->segment / 64] |= (uint64_t)1 << range->segment % 64;
	}
	for (unsigned i = 0; i < PS_SEGMENTS_MAX / 64; i++)
		atomic_store_explicit(&tx->touched_segments[i], touched[i], memory_order_relaxed);
}

static void roll_back_to_mark(struct perseas_tx *tx, const struct mark *mark)
{
	struct ps_saved *saved = tx->savepoints;

	for (unsigned i = saved->piece_count; i > mark->pieces; i--) {
		const struct piece *piece = &saved->pieces[i - 1];

		memcpy((void *)piece->start, saved->journal + piece->at, piece->length);
	}
	truncate_journal(saved, mark->pieces);
	restore_before_images(tx, mark);
	tx->record_length = mark->length;
	tx->range_count = mark->ranges;
	tx->last_entry_offset = 0;
	rebuild_cover(tx);
	ps_cover_clear(&saved->cover);
	saved->mark_count = (unsigned)(mark - saved->marks) + 1;
}

static const struct mark *find_savepoint_mark(const struct perseas_tx *tx, uint64_t savepoint)
{
	unsigned i = tx->traits & PS_TX_SAVEPOINTS ? tx->savepoints->mark_count : 0;

	while (i > 0 && tx->savepoints->marks[i - 1].name != savepoint)
		i--;
	return i ? &tx->savepoints->marks[i - 1] : NULL;
}

int perseas_rollback_to(perseas_tx_t *tx, uint64_t savepoint)
{
	const struct mark *mark;
	struct perseas *p;
	int rc;

	if (!tx)
		return ps_fail(NULL, PERSEAS_EINVAL, "tx is NULL");
	p = tx->p;
	if (!tx->is_open)
		return ps_fail(p, PERSEAS_EENDED, "the transaction has ended already");
	mark = find_savepoint_mark(tx, savepoint);
	if (!mark)
		return ps_fail(p, PERSEAS_EINVAL,
		               "the transaction has no savepoint %llu: it belongs to another "
		               "transaction, or a roll-back to an earlier one discarded it",
		               (unsigned long long)savepoint);
	rc = check_undeclared(tx);
	if (rc)
		return rc;
	/* Takes the lock so that no thread reads the transaction or copies its changes
	 * meanwhile. */
	pthread_mutex_lock(&p->lock);
	roll_back_to_mark(tx, mark);
	ps_deferred_roll_back(tx, savepoint);
	pthread_mutex_unlock(&p->lock);
	/* This cannot fail: the buffers are large enough, since the copy at the savepoint was no
	 * smaller. */
	copy_declared(tx);
	return 0;
}

void ps_savepoints_end(struct perseas_tx *tx)
{
	struct ps_saved *saved = tx->savepoints;

	saved->mark_count = saved->piece_count = 0;
	saved->journal_length = 0;
	tx->traits &= (uint8_t)~PS_TX_SAVEPOINTS;
}

void ps_savepoints_free(struct perseas_tx *tx)
{
	if (!tx->savepoints)
		return;
	ps_cover_free(&tx->savepoints->cover);
	ps_cover_free(&tx->savepoints->declared);
	free(tx->savepoints->marks);
	free(tx->savepoints->pieces);
	free(tx->savepoints->journal);
	free(tx->savepoints->old_contents);
	free(tx->savepoints);
}
