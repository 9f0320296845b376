/*
 * cover.h - the bytes that a transaction has declared: disjoint intervals of addresses, in
 * order, adjacent ones merged. No interval is in two segments, which may lie next to each other.
 */
#ifndef PERSEAS_CLIENT_COVER_H
#define PERSEAS_CLIENT_COVER_H

#include <stdbool.h>
#include <stdint.h>

struct ps_span {
	uint64_t start, end; /* addresses, end excluded */
	uint64_t base;       /* of the segment */
	uint32_t segment;    /* id */
};

struct ps_blocks;

struct ps_cover {
	struct ps_span *spans; /* in order, as long as no blocks are used */
	unsigned count;
	unsigned used;  /* blocks of spans (blocks.h): there are many, and not all came upwards */
	uint64_t bytes; /* covered */
	unsigned capacity;
	unsigned kept;            /* spans for which room is kept beyond the capacity */
	unsigned allocated;       /* spans for which there is memory: no fewer than both together */
	struct ps_blocks *blocks; /* for as many, or NULL: these are few */
};

/* The bytes of [start, end) that are not covered, as up to *count pieces, in order: called
 * again with `from` set to the end of the piece before. False: no more. */
bool ps_cover_gap(const struct ps_cover *cover, uint64_t from, uint64_t end, uint64_t *gap_start,
                  uint64_t *gap_end);

/* Room for so many spans more: 0, 1 when memory was allocated for it, or -1 when there is none. */
int ps_cover_reserve_more(struct ps_cover *cover, unsigned spans);

/* The same for one. */
static inline int ps_cover_reserve(struct ps_cover *cover)
{
	return ps_cover_reserve_more(cover, 1);
}

/* Keeps room for so many spans more, which ps_cover_reserve does not give away. The capacity stays:
 * a roll-back may bring back as many spans as there ever were. 0, 1 or -1, as above. */
int ps_cover_keep(struct ps_cover *cover, unsigned spans);

/* Is there memory for that already? */
static inline bool ps_cover_can_keep(const struct ps_cover *cover, unsigned spans)
{
	return cover->capacity + cover->kept + spans <= cover->allocated;
}

/* Nothing is kept any more: what is to be added in that room is added now. */
static inline void ps_cover_unkeep(struct ps_cover *cover)
{
	cover->kept = 0;
}

/* Whoever reads `spans` calls this first. The next change may put them into blocks again. */
void ps_blocks_collect(struct ps_cover *cover);

static inline void ps_cover_settle(struct ps_cover *cover)
{
	if (cover->used)
		ps_blocks_collect(cover);
}

/* The first span that ends at the address or behind it; NULL: none does. It changes nothing. */
const struct ps_span *ps_cover_from(const struct ps_cover *cover, uint64_t address);

/* Covers the span; room was reserved. */
void ps_cover_add(struct ps_cover *cover, const struct ps_span *span);

/* What a range of one segment is to the spans of it that are there. */
enum ps_fit {
	PS_FIT_ALONE,  /* it neither overlaps nor touches any: it belongs at `place` */
	PS_FIT_BEHIND, /* it begins where that at `place` ends, and touches no other */
	PS_FIT_INSIDE, /* all of it is covered */
	PS_FIT_ACROSS, /* any other: ps_cover_gap tells what is not covered */
};

/* The first span that ends at `address` or behind it, found without a branch that is hard to
 * foresee; cover->count: none does. No blocks are used. */
static inline unsigned ps_cover_find(const struct ps_cover *cover, uint64_t address)
{
	unsigned at = 0, left = cover->count;

	while (left > 0) {
		unsigned half = (left + 1) / 2;

		at += cover->spans[at + half - 1].end < address ? half : 0;
		left -= half;
	}
	return at;
}

/* The same as below, of a range that touches the span at `at`, or one behind it; and where blocks
 * are used. */
enum ps_fit ps_cover_touch(const struct ps_cover *cover, unsigned at, const struct ps_span *range,
                           unsigned *place);
enum ps_fit ps_blocks_fit(const struct ps_cover *cover, const struct ps_span *range,
                          unsigned *place);

/* `base` is that of the segment, as in spans. */
static inline enum ps_fit ps_cover_fit(const struct ps_cover *cover, uint64_t base, uint64_t start,
                                       uint64_t end, unsigned *place)
{
	const struct ps_span *spans = cover->spans;
	unsigned at;

	if (cover->used)
		return ps_blocks_fit(cover, &(struct ps_span){ start, end, base, 0 }, place);
	at = ps_cover_find(cover, start);
	*place = at;
	if (at == cover->count || end < spans[at].start)
		return PS_FIT_ALONE;
	if (start == spans[at].end && base == spans[at].base &&
	    (at + 1 == cover->count || end < spans[at + 1].start))
		return PS_FIT_BEHIND;
	if (start == spans[at].end || end == spans[at].start)
		return ps_cover_touch(cover, at, &(struct ps_span){ start, end, base, 0 }, place);
	return spans[at].start <= start && end <= spans[at].end ? PS_FIT_INSIDE : PS_FIT_ACROSS;
}

/* Covers a range that is alone; room was reserved. */
void ps_cover_insert(struct ps_cover *cover, unsigned place, const struct ps_span *span);

/* Covers a range that is behind a span. */
void ps_blocks_extend(struct ps_cover *cover, unsigned place, uint64_t end);

static inline void ps_cover_extend(struct ps_cover *cover, unsigned place, uint64_t end)
{
	if (cover->used) {
		ps_blocks_extend(cover, place, end);
		return;
	}
	cover->bytes += end - cover->spans[place].end;
	cover->spans[place].end = end;
}

/* Does a span from `start` on lie behind all that is there, and touch none? Many applications go
 * upwards. */
static inline bool ps_cover_behind(const struct ps_cover *cover, uint64_t start)
{
	return !cover->count || cover->spans[cover->count - 1].end < start;
}

/* Covers such a span; room was reserved. */
static inline void ps_cover_append(struct ps_cover *cover, const struct ps_span *span)
{
	cover->spans[cover->count++] = *span;
	cover->bytes += span->end - span->start;
}

/* Does any byte of [start, end) lie in it? */
bool ps_cover_overlaps(const struct ps_cover *cover, uint64_t start, uint64_t end);

static inline void ps_cover_clear(struct ps_cover *cover)
{
	cover->count = 0;
	cover->used = 0;
	cover->bytes = 0;
}

void ps_cover_free(struct ps_cover *cover);

#endif
