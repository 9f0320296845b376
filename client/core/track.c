/*
 * track.c - see track.h. tx.c and commit.c call it. A shadow is read here, and never written: it
 * changes only with what is sent (shadow.c), so that a transaction can be tried again, or put back,
 * whatever became of it.
 */
#include "track.h"

#include "shadow.h"
#include "tx.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

/* Differences with so few bytes between them become one range: another one would take as much. */
enum { NEAR = 32, WORD = 8 };

/* --- alone --- */

void ps_track_keep(struct perseas_tx *tx)
{
	/* Each set_range looks twice then (range.c), and no segment of its can be unmapped. */
	tx->room = 0;
	for (unsigned i = 0; i < PS_SEGMENTS_MAX / 64; i++)
		atomic_store_explicit(&tx->touched[i], UINT64_MAX, memory_order_relaxed);
}

static int begin_locked(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;

	if (p->commit.open_list != tx || tx->next)
		return ps_fail(p, PERSEAS_ECONFLICT,
		               "another transaction is open: one with PERSEAS_TRACK must be alone, "
		               "since a page does not say whose store it was");
	tx->more |= PS_MORE_TRACK;
	ps_track_keep(tx);
	/* Whoever begins finds no transaction to use again, and then why. */
	p->commit.tracking = tx;
	p->commit.resting = p->commit.free_list;
	p->commit.free_list = NULL;
	return 0;
}

int ps_track_begin(struct perseas_tx **tx)
{
	struct perseas *p = (*tx)->p;
	int rc;

	ps_lock(p);
	rc = begin_locked(*tx);
	if (rc) {
		ps_tx_end(*tx);
		*tx = NULL;
	}
	pthread_mutex_unlock(&p->lock);
	return rc;
}

void ps_track_end(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;

	ps_assert_locked(p);
	tx->more &= (uint8_t)~PS_MORE_TRACK;
	ps_range_room(tx);
	p->commit.tracking = NULL;
	p->commit.free_list = p->commit.resting;
	p->commit.resting = NULL;
}

int ps_track_conflict(const struct perseas *p)
{
	return ps_fail(p, PERSEAS_ECONFLICT,
	               "a transaction with PERSEAS_TRACK is open, and must be alone: begin when it "
	               "has ended");
}

/* --- what was changed --- */

static bool is_tracked(const struct ps_segment *segment)
{
	return segment->base && segment->born && segment->shadow;
}

static uint64_t word_at(const uint8_t *bytes, uint64_t at, uint64_t end)
{
	uint64_t word = 0;

	memcpy(&word, bytes + at, end - at < WORD ? end - at : WORD);
	return word;
}

static bool is_like(const struct ps_segment *segment, uint64_t at, uint64_t end)
{
	return word_at(segment->base, at, end) == word_at(segment->shadow, at, end);
}

/* The next words from *at on that differ, with those of few bytes between them. False: none do. */
static bool find_difference(const struct ps_segment *segment, uint64_t *at, uint64_t end,
                            uint64_t *length)
{
	uint64_t behind;

	while (*at < end && is_like(segment, *at, end))
		*at += WORD;
	if (*at >= end)
		return false;
	behind = *at + WORD;
	for (uint64_t next = behind; next < end && next - behind < NEAR; next += WORD)
		if (!is_like(segment, next, end))
			behind = next + WORD;
	*length = (behind < end ? behind : end) - *at;
	return true;
}

static int find_in_page(struct perseas_tx *tx, const struct ps_segment *segment, uint64_t at,
                        uint64_t end)
{
	uint64_t length;

	for (; find_difference(segment, &at, end, &length); at += length) {
		const int rc = ps_range_found(tx, segment, at, length);

		if (rc)
			return rc;
	}
	return 0;
}

static int find_in_segment(struct perseas_tx *tx, struct ps_segment *segment)
{
	uint64_t offset = 0, length;

	ps_shadow_look(tx->p, segment);
	for (; ps_shadow_next(tx->p, segment, &offset, &length); offset += length) {
		const int rc = find_in_page(tx, segment, offset, offset + length);

		if (rc)
			return rc;
	}
	return 0;
}

void ps_track_forget(struct perseas_tx *tx)
{
	tx->length = sizeof(struct ps_record);
	tx->ranges = 0;
	tx->tail = 0;
	tx->room = 0;
	ps_cover_clear(&tx->cover);
}

int ps_track_find(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;
	int rc = 0;

	assert(!tx->ranges);
	ps_range_room(tx);
	for (unsigned i = 0; i < p->segment_count && !rc; i++)
		if (is_tracked(&p->segments[i]))
			rc = find_in_segment(tx, &p->segments[i]);
	if (rc)
		ps_track_forget(tx);
	return rc;
}

void ps_track_undo(struct perseas_tx *tx)
{
	struct perseas *p = tx->p;

	for (unsigned i = 0; i < p->segment_count; i++) {
		struct ps_segment *segment = &p->segments[i];
		uint64_t offset = 0, length;

		if (!is_tracked(segment))
			continue;
		ps_shadow_look(p, segment);
		for (; ps_shadow_next(p, segment, &offset, &length); offset += length)
			memcpy(segment->base + offset, segment->shadow + offset, length);
	}
}
