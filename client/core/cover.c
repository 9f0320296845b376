/*
 * cover.c - a sorted array of disjoint intervals. Transactions call it for every range, so it
 * must not allocate in the common case, and does so only in ps_cover_reserve_more.
 */
#include "cover.h"

#include <stdlib.h>
#include <string.h>

bool ps_cover_gap(const struct ps_cover *cover, uint64_t from, uint64_t end, uint64_t *gap_start,
                  uint64_t *gap_end)
{
	unsigned i = ps_cover_find(cover, from + 1);

	for (; i < cover->count && cover->spans[i].start <= from; i++)
		from = cover->spans[i].end;
	if (from >= end)
		return false;
	*gap_start = from;
	*gap_end = i < cover->count && cover->spans[i].start < end ? cover->spans[i].start : end;
	return true;
}

/* Memory for so many spans: 0 if there was enough, 1, or -1. */
static int grow(struct ps_cover *cover, unsigned spans)
{
	const unsigned more = spans > 2 * cover->allocated ? spans : 2 * cover->allocated;
	struct ps_span *grown;

	if (spans <= cover->allocated)
		return 0;
	grown = realloc(cover->spans, more * sizeof(*grown));
	if (!grown)
		return -1;
	cover->spans = grown;
	cover->allocated = more;
	return 1;
}

int ps_cover_reserve_more(struct ps_cover *cover, unsigned spans)
{
	unsigned capacity = cover->capacity ? 2 * cover->capacity : 64;
	int rc;

	if (cover->count + spans <= cover->capacity)
		return 0;
	while (capacity < cover->count + spans)
		capacity *= 2;
	rc = grow(cover, capacity + cover->kept);
	if (rc >= 0)
		cover->capacity = capacity;
	return rc;
}

int ps_cover_keep(struct ps_cover *cover, unsigned spans)
{
	const int rc = grow(cover, cover->capacity + cover->kept + spans);

	if (rc >= 0)
		cover->kept += spans;
	return rc;
}

/* Does the span end where the range begins, and in another segment? */
static bool ends_apart(const struct ps_span *span, const struct ps_span *range)
{
	return span->end == range->start && span->base != range->base;
}

/* Does it begin where the range ends or before, and not there in another segment? */
static bool is_reached(const struct ps_span *span, const struct ps_span *range)
{
	return span->start < range->end || (span->start == range->end && span->base == range->base);
}

enum ps_fit ps_cover_touch(const struct ps_cover *cover, unsigned at, const struct ps_span *range,
                           unsigned *place)
{
	const struct ps_span *spans = cover->spans;
	bool behind, reaches;

	at += ends_apart(&spans[at], range);
	*place = at;
	behind = at < cover->count && spans[at].end == range->start;
	at += behind;
	reaches = at < cover->count && is_reached(&spans[at], range);
	if (!reaches)
		return behind ? PS_FIT_BEHIND : PS_FIT_ALONE;
	return !behind && spans[at].start <= range->start && range->end <= spans[at].end
	               ? PS_FIT_INSIDE
	               : PS_FIT_ACROSS;
}

void ps_cover_add(struct ps_cover *cover, const struct ps_span *span)
{
	unsigned first = ps_cover_find(cover, span->start);
	struct ps_span merged = *span;
	unsigned after;

	first += first < cover->count && ends_apart(&cover->spans[first], span);
	/* Every span from `first` that begins at or before the new one's end melts into it. */
	for (after = first; after < cover->count && is_reached(&cover->spans[after], span);
	     after++) {
		const struct ps_span *old = &cover->spans[after];

		cover->bytes -= old->end - old->start;
		if (old->start < merged.start)
			merged.start = old->start;
		if (old->end > merged.end)
			merged.end = old->end;
	}
	if (after != first + 1)
		memmove(&cover->spans[first + 1], &cover->spans[after],
		        (cover->count - after) * sizeof(*cover->spans));
	cover->count += first + 1 - after;
	cover->spans[first] = merged;
	cover->bytes += merged.end - merged.start;
}

void ps_cover_insert(struct ps_cover *cover, unsigned place, const struct ps_span *span)
{
	struct ps_span *at = &cover->spans[place];

	if (place < cover->count)
		memmove(at + 1, at, (cover->count - place) * sizeof(*at));
	*at = *span;
	cover->count++;
	cover->bytes += span->end - span->start;
}

bool ps_cover_overlaps(const struct ps_cover *cover, uint64_t start, uint64_t end)
{
	unsigned i = ps_cover_find(cover, start + 1);

	return i < cover->count && cover->spans[i].start < end;
}

void ps_cover_clear(struct ps_cover *cover)
{
	cover->count = 0;
	cover->bytes = 0;
}

void ps_cover_free(struct ps_cover *cover)
{
	free(cover->spans);
	memset(cover, 0, sizeof(*cover));
}
