/*
 * track.c - see track.h. tx.c and commit.c call it. It reads shadows and never writes them: a
 * shadow changes only with what is sent (shadow.c), so a tracked transaction can be tried again or
 * rolled back, whatever happened to its commit.
 */
#include "track.h"

#include "shadow.h"
#include "tx.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

/* Differences with fewer than NEAR bytes between them become one range: the head of another range
 * would take as much of the record. */
enum { NEAR = 32, WORD = 8 };

/* --- being the only transaction --- */

void ps_track_touch_all_segments(struct perseas_tx *tx)
{
	for (unsigned i = 0; i < PS_SEGMENTS_MAX / 64; i++)
		atomic_store_explicit(&tx->touched_segments[i], UINT64_MAX, memory_order_relaxed);
}

int ps_track_begin(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;

	ps_assert_locked(p);
	if (p->commit.open_list != tx || tx->next)
		return ps_fail(p, PERSEAS_ECONFLICT,
		               "another transaction is open: one with PERSEAS_TRACK must be alone, "
		               "since a page does not say whose store it was");
	assert(!p->commit.tracked_tx);
	tx->traits |= PS_TX_TRACKED;
	ps_track_touch_all_segments(tx);
	p->commit.tracked_tx = tx;
	return 0;
}

void ps_track_end(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;

	ps_assert_locked(p);
	assert(p->commit.tracked_tx == tx);
	tx->traits &= (uint8_t)~PS_TX_TRACKED;
	p->commit.tracked_tx = NULL;
}

int ps_fail_tracked_tx_is_open(const struct perseas *p)
{
	return ps_fail(p, PERSEAS_ECONFLICT,
	               "a transaction with PERSEAS_TRACK is open, and must be alone: begin when it "
	               "has ended");
}

/* --- finding changes --- */

static bool is_segment_tracked(const struct ps_segment *segment)
{
	return segment->base && segment->born && segment->shadow;
}

static uint64_t read_word(const uint8_t *bytes, uint64_t at, uint64_t end)
{
	uint64_t word = 0;

	memcpy(&word, bytes + at, end - at < WORD ? end - at : WORD);
	return word;
}

static bool is_word_unchanged(const struct ps_segment *segment, uint64_t at, uint64_t end)
{
	return read_word(segment->base, at, end) == read_word(segment->shadow, at, end);
}

/* Finds the next run of words from *at on that differ, over gaps of fewer than NEAR bytes. Returns
 * false if all words up to `end` are equal. */
static bool find_difference_from_shadow(const struct ps_segment *segment, uint64_t *at,
                                        uint64_t end, uint64_t *length)
{
	uint64_t behind;

	while (*at < end && is_word_unchanged(segment, *at, end))
		*at += WORD;
	if (*at >= end)
		return false;
	behind = *at + WORD;
	for (uint64_t next = behind; next < end && next - behind < NEAR; next += WORD)
		if (!is_word_unchanged(segment, next, end))
			behind = next + WORD;
	*length = (behind < end ? behind : end) - *at;
	return true;
}

static int add_changes_in_page(struct perseas_tx *tx, const struct ps_segment *segment, uint64_t at,
                               uint64_t end)
{
	uint64_t length;

	for (; find_difference_from_shadow(segment, &at, end, &length); at += length) {
		const int rc = ps_tx_add_found_range(tx, segment, at, length);

		if (rc)
			return rc;
	}
	return 0;
}

static int add_changes_in_segment(struct perseas_tx *tx, struct ps_segment *segment)
{
	uint64_t offset = 0, length;

	ps_shadow_collect_written(tx->p, segment);
	for (; ps_shadow_next_difference(tx->p, segment, &offset, &length); offset += length) {
		const int rc = add_changes_in_page(tx, segment, offset, offset + length);

		if (rc)
			return rc;
	}
	return 0;
}

void ps_track_drop_ranges(struct perseas_tx *tx)
{
	tx->record_length = sizeof(struct ps_record);
	tx->range_count = 0;
	tx->last_entry_offset = 0;
	ps_cover_clear(&tx->cover);
}

int ps_track_find_changes(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;
	int rc = 0;

	ps_assert_locked(p);
	assert(p->commit.tracked_tx == tx && !tx->range_count && !tx->deferred_store_count);
	for (unsigned i = 0; i < p->segment_count && !rc; i++)
		if (is_segment_tracked(&p->segments[i]))
			rc = add_changes_in_segment(tx, &p->segments[i]);
	if (rc)
		ps_track_drop_ranges(tx);
	return rc;
}

void ps_track_restore_memory(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;

	ps_assert_locked(p);
	for (unsigned i = 0; i < p->segment_count; i++) {
		struct ps_segment *segment = &p->segments[i];
		uint64_t offset = 0, length;

		if (!is_segment_tracked(segment))
			continue;
		ps_shadow_collect_written(p, segment);
		for (; ps_shadow_next_difference(p, segment, &offset, &length); offset += length)
			memcpy(segment->base + offset, segment->shadow + offset, length);
	}
}
