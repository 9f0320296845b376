/*
 * cover.h - the bytes that a transaction has declared: disjoint intervals of addresses, in
 * order, adjacent ones merged.
 */
#ifndef PERSEAS_CLIENT_COVER_H
#define PERSEAS_CLIENT_COVER_H

#include <stdbool.h>
#include <stdint.h>

struct ps_span {
	uint64_t start, end;       /* addresses, end excluded */
	uint64_t base;             /* of the segment */
	uint32_t segment;          /* id */
};

struct ps_cover {
	struct ps_span *spans;
	unsigned count, capacity;
	uint64_t bytes;            /* covered */
};

/* The bytes of [start, end) that are not covered, as up to *count pieces, in order: called
 * again with `from` set to the end of the piece before. False: no more. */
bool ps_cover_gap(const struct ps_cover *cover, uint64_t from, uint64_t end, uint64_t *gap_start,
                  uint64_t *gap_end);

/* Room for one span more: 0, 1 when memory was allocated for it, or -1 when there is none. */
int ps_cover_reserve(struct ps_cover *cover);

/* Covers the span; room was reserved. */
void ps_cover_add(struct ps_cover *cover, const struct ps_span *span);

/* Where a span that neither overlaps nor touches another belongs; -1: it does one of both. */
int ps_cover_place(const struct ps_cover *cover, uint64_t start, uint64_t end);

/* Covers such a span, at its place; room was reserved. */
void ps_cover_insert(struct ps_cover *cover, int place, const struct ps_span *span);

/* Does a span from `start` on lie behind all that is there, and touch none? Many applications go
 * upwards. */
static inline bool ps_cover_behind(const struct ps_cover *cover, uint64_t start)
{
	return !cover->count || cover->spans[cover->count - 1].end < start;
}

/* Covers such a span; room was reserved. */
static inline void ps_cover_append(struct ps_cover *cover, uint64_t start, uint64_t end,
                                   uint64_t base, uint32_t segment)
{
	cover->spans[cover->count++] = (struct ps_span){ start, end, base, segment };
	cover->bytes += end - start;
}

/* Does any byte of [start, end) lie in it? */
bool ps_cover_overlaps(const struct ps_cover *cover, uint64_t start, uint64_t end);

void ps_cover_clear(struct ps_cover *cover);
void ps_cover_free(struct ps_cover *cover);

#endif
