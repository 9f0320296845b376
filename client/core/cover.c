/*
 * cover.c - a sorted array of disjoint intervals. A cover with thousands of them switches to blocks
 * (blocks.h) at the first insertion far before the end. Transactions call it for every range, so it
 * must not allocate in the common case: only the functions that reserve room allocate.
 */
#include "blocks.h"

#include <stdlib.h>
#include <string.h>

const struct ps_span *ps_cover_span_from(const struct ps_cover *cover, uint64_t address)
{
	unsigned i;

	if (cover->block_count)
		return ps_blocks_span_from(cover, address);
	i = ps_cover_find_index(cover, address);
	return i < cover->span_count ? &cover->spans[i] : NULL;
}

bool ps_cover_find_gap(const struct ps_cover *cover, uint64_t from, uint64_t end,
                       uint64_t *gap_start, uint64_t *gap_end)
{
	const struct ps_span *span;

	while ((span = ps_cover_span_from(cover, from + 1)) && span->start <= from)
		from = span->end;
	if (from >= end)
		return false;
	*gap_start = from;
	*gap_end = span && span->start < end ? span->start : end;
	return true;
}

/* Makes sure that there is memory for `spans` spans. Returns 0 if there was, 1 if it allocated
 * memory, or -1 if out of memory. */
static int ensure_span_memory(struct ps_cover *cover, unsigned spans)
{
	const unsigned more = spans > 2 * cover->allocated_spans ? spans
	                                                         : 2 * cover->allocated_spans;
	struct ps_blocks *blocks = NULL;
	struct ps_span *grown;

	if (spans <= cover->allocated_spans)
		return 0;
	if (more > PS_BLOCKS_MIN_CAPACITY && !(blocks = ps_blocks_new_from_cover(cover, more)))
		return -1;
	grown = realloc(cover->spans, more * sizeof(*grown));
	if (!grown) {
		free(blocks);
		return -1;
	}
	free(cover->blocks);
	cover->blocks = blocks;
	cover->spans = grown;
	cover->allocated_spans = more;
	return 1;
}

int ps_cover_reserve_spans(struct ps_cover *cover, unsigned spans)
{
	unsigned capacity = cover->span_capacity ? 2 * cover->span_capacity : 64;
	int rc;

	if (cover->span_count + spans <= cover->span_capacity)
		return 0;
	while (capacity < cover->span_count + spans)
		capacity *= 2;
	rc = ensure_span_memory(cover, capacity + cover->extra_capacity);
	if (rc >= 0)
		cover->span_capacity = capacity;
	return rc;
}

int ps_cover_reserve_extra_spans(struct ps_cover *cover, unsigned spans)
{
	const int rc = ensure_span_memory(cover,
	                                  cover->span_capacity + cover->extra_capacity + spans);

	if (rc >= 0)
		cover->extra_capacity += spans;
	return rc;
}

/* Returns true if an insertion at `place` would move so many spans that blocks are cheaper. A cover
 * whose spans come in ascending order stays an array, which is cheapest. */
static bool moves_many_spans(const struct ps_cover *cover, unsigned place)
{
	return cover->blocks && cover->span_count - place > PS_BLOCKS_MIN_MOVED;
}

void ps_cover_add_and_merge_span(struct ps_cover *cover, const struct ps_span *span)
{
	unsigned first = cover->block_count ? 0 : ps_cover_find_index(cover, span->start);
	struct ps_span merged = *span;
	unsigned after;

	if (!cover->block_count && moves_many_spans(cover, first))
		ps_blocks_from_array(cover);
	if (cover->block_count) {
		ps_blocks_add_and_merge_span(cover, span);
		return;
	}
	first += first < cover->span_count &&
	         ps_span_abuts_other_segment(&cover->spans[first], span);
	/* Merge the new span with every span that it touches. */
	for (after = first;
	     after < cover->span_count && ps_span_is_reached_by(&cover->spans[after], span);
	     after++) {
		const struct ps_span *old = &cover->spans[after];

		cover->covered_bytes -= old->end - old->start;
		if (old->start < merged.start)
			merged.start = old->start;
		if (old->end > merged.end)
			merged.end = old->end;
	}
	if (after != first + 1)
		memmove(&cover->spans[first + 1], &cover->spans[after],
		        (cover->span_count - after) * sizeof(*cover->spans));
	cover->span_count += first + 1 - after;
	cover->spans[first] = merged;
	cover->covered_bytes += merged.end - merged.start;
}

void ps_cover_insert_span(struct ps_cover *cover, unsigned place, const struct ps_span *span)
{
	struct ps_span *at = &cover->spans[place];

	if (!cover->block_count && moves_many_spans(cover, place))
		ps_blocks_from_array(cover);
	if (cover->block_count) {
		ps_blocks_insert_span(cover, span);
		return;
	}
	if (place < cover->span_count)
		memmove(at + 1, at, (cover->span_count - place) * sizeof(*at));
	*at = *span;
	cover->span_count++;
	cover->covered_bytes += span->end - span->start;
}

bool ps_cover_overlaps(const struct ps_cover *cover, uint64_t start, uint64_t end)
{
	const struct ps_span *span = ps_cover_span_from(cover, start + 1);

	return span && span->start < end;
}

void ps_cover_free(struct ps_cover *cover)
{
	free(cover->spans);
	free(cover->blocks);
	memset(cover, 0, sizeof(*cover));
}
