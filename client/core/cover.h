/*
 * cover.h - the bytes that a transaction has declared: disjoint intervals of addresses, sorted,
 * with adjacent ones merged. An interval never extends over two segments, even if they are
 * adjacent.
 */
#ifndef PERSEAS_CLIENT_COVER_H
#define PERSEAS_CLIENT_COVER_H

#include <stdbool.h>
#include <stdint.h>

struct ps_span {
	uint64_t start, end; /* addresses, end excluded */
	uint64_t base;       /* address of the segment's first byte */
	uint32_t segment;    /* the segment's id */
};

struct ps_blocks;

struct ps_cover {
	struct ps_span *spans; /* sorted; invalid while blocks are in use */
	unsigned span_count;
	/* Blocks in use (blocks.h); 0: the spans are in `spans`. */
	unsigned block_count;
	uint64_t covered_bytes; /* total length of the spans */
	unsigned span_capacity;
	/* spans reserved in addition to span_capacity (ps_cover_reserve_extra_spans) */
	unsigned extra_capacity;
	/* spans that have memory: at least span_capacity + extra_capacity */
	unsigned allocated_spans;
	/* blocks for allocated_spans spans; NULL while these are few */
	struct ps_blocks *blocks;
};

/* Finds the first gap of [from, end) that no span covers. To iterate, call it again with `from` set
 * to *gap_end. Returns false if there is no gap. */
bool ps_cover_find_gap(const struct ps_cover *cover, uint64_t from, uint64_t end,
                       uint64_t *gap_start, uint64_t *gap_end);

/* Reserves room for `spans` more spans. Returns 0, 1 if it allocated memory, or -1 if out of
 * memory. */
int ps_cover_reserve_spans(struct ps_cover *cover, unsigned spans);

/* Reserves room for one more span. Returns 0, 1 or -1, like ps_cover_reserve_spans. */
static inline int ps_cover_reserve_span(struct ps_cover *cover)
{
	return ps_cover_reserve_spans(cover, 1);
}

/* Reserves room for `spans` more spans that ps_cover_reserve_span does not hand out. Keeps the
 * capacity, because a roll-back may bring back as many spans as there ever were. Returns 0, 1 or
 * -1, like ps_cover_reserve_spans. */
int ps_cover_reserve_extra_spans(struct ps_cover *cover, unsigned spans);

/* Returns true if ps_cover_reserve_extra_spans would not have to allocate. */
static inline bool ps_cover_has_extra_spans(const struct ps_cover *cover, unsigned spans)
{
	return cover->span_capacity + cover->extra_capacity + spans <= cover->allocated_spans;
}

/* Releases the room that ps_cover_reserve_extra_spans reserved, so that it can be used now. */
static inline void ps_cover_release_extra_spans(struct ps_cover *cover)
{
	cover->extra_capacity = 0;
}

/* Makes the array `spans` valid. Call ps_cover_to_array before reading it; the next change may
 * invalidate it again. */
void ps_blocks_to_array(struct ps_cover *cover);

static inline void ps_cover_to_array(struct ps_cover *cover)
{
	if (cover->block_count)
		ps_blocks_to_array(cover);
}

/* Returns the first span that ends at or after the address, or NULL. Does not change the cover. */
const struct ps_span *ps_cover_span_from(const struct ps_cover *cover, uint64_t address);

/* Adds a span and merges it with its neighbors. Room must be reserved. */
void ps_cover_add_and_merge_span(struct ps_cover *cover, const struct ps_span *span);

/* How a range of one segment relates to the spans of the cover. */
enum ps_fit {
	PS_FIT_DISJOINT, /* the range overlaps and touches no span: insert it at `place` */
	/* The range begins at the end of the span at `place` and touches no other: extend that
	 * span. */
	PS_FIT_EXTENDS,
	PS_FIT_INSIDE, /* the whole range is covered */
	/* the range is covered in part, or touches several spans: see ps_cover_find_gap */
	PS_FIT_OVERLAPS,
};

/* Returns the index of the first span that ends at or after `address`; cover->span_count if no span
 * does. The search has no unpredictable branch. Blocks must not be in use. */
static inline unsigned ps_cover_find_index(const struct ps_cover *cover, uint64_t address)
{
	unsigned at = 0, left = cover->span_count;

	while (left > 0) {
		unsigned half = (left + 1) / 2;

		at += cover->spans[at + half - 1].end < address ? half : 0;
		left -= half;
	}
	return at;
}

/* Slow paths of ps_cover_fit: for a range that touches the span at index `at`, or the next one; and
 * for a cover that uses blocks. */
enum ps_fit ps_cover_fit_touching(const struct ps_cover *cover, unsigned at,
                                  const struct ps_span *range, unsigned *place);
enum ps_fit ps_blocks_fit(const struct ps_cover *cover, const struct ps_span *range,
                          unsigned *place);

/* Finds out how the range [start, end) relates to the cover, and sets *place. `base` is the address
 * of the segment's first byte. */
static inline enum ps_fit ps_cover_fit(const struct ps_cover *cover, uint64_t base, uint64_t start,
                                       uint64_t end, unsigned *place)
{
	const struct ps_span *spans = cover->spans;
	unsigned at;

	if (cover->block_count)
		return ps_blocks_fit(cover, &(struct ps_span){ start, end, base, 0 }, place);
	at = ps_cover_find_index(cover, start);
	*place = at;
	if (at == cover->span_count || end < spans[at].start)
		return PS_FIT_DISJOINT;
	if (start == spans[at].end && base == spans[at].base &&
	    (at + 1 == cover->span_count || end < spans[at + 1].start))
		return PS_FIT_EXTENDS;
	if (start == spans[at].end || end == spans[at].start)
		return ps_cover_fit_touching(cover, at, &(struct ps_span){ start, end, base, 0 },
		                             place);
	return spans[at].start <= start && end <= spans[at].end ? PS_FIT_INSIDE : PS_FIT_OVERLAPS;
}

/* Inserts a range that is PS_FIT_DISJOINT at `place`. Room must be reserved. */
void ps_cover_insert_span(struct ps_cover *cover, unsigned place, const struct ps_span *span);

/* Extends the span at `place` to `new_end`, for a range that is PS_FIT_EXTENDS. */
void ps_blocks_extend_span(struct ps_cover *cover, unsigned place, uint64_t new_end);

static inline void ps_cover_extend_span(struct ps_cover *cover, unsigned place, uint64_t new_end)
{
	if (cover->block_count) {
		ps_blocks_extend_span(cover, place, new_end);
		return;
	}
	cover->covered_bytes += new_end - cover->spans[place].end;
	cover->spans[place].end = new_end;
}

/* Returns true if a span that begins at `start` lies behind all others and touches none. Many
 * applications write in ascending order. */
static inline bool ps_cover_is_behind_all_spans(const struct ps_cover *cover, uint64_t start)
{
	return !cover->span_count || cover->spans[cover->span_count - 1].end < start;
}

/* Appends a span for which ps_cover_is_behind_all_spans returned true. Room must be reserved. */
static inline void ps_cover_append_span(struct ps_cover *cover, const struct ps_span *span)
{
	cover->spans[cover->span_count++] = *span;
	cover->covered_bytes += span->end - span->start;
}

/* Returns true if any byte of [start, end) is covered. */
bool ps_cover_overlaps(const struct ps_cover *cover, uint64_t start, uint64_t end);

static inline void ps_cover_clear(struct ps_cover *cover)
{
	cover->span_count = 0;
	cover->block_count = 0;
	cover->covered_bytes = 0;
}

void ps_cover_free(struct ps_cover *cover);

#endif
