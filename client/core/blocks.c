/*
 * blocks.c - see blocks.h. A directory lists the blocks in order, each with the end of its last
 * span; behind the used blocks it lists the free ones. A full block is split in two. If no block is
 * free, all spans are redistributed evenly, which happens only after a fixed share of all spans was
 * inserted. So an insertion costs a search, and moves part of a block and of the directory.
 */
#include "blocks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	EVEN_FILL = 96, /* spans in a block after they are distributed evenly */
	HALF = PS_BLOCK / 2,
	STRIDE = 2 * PS_BLOCK, /* distance between the places of the first spans of two blocks */
	TOUCHED_MAX = 3,       /* a range that touches this many spans is PS_FIT_OVERLAPS */
};

struct block {
	uint64_t end;    /* end of its last span */
	uint32_t number; /* index of its spans in ps_blocks.spans */
	uint32_t count;  /* number of its spans; used blocks are never empty */
};

struct ps_blocks {
	struct ps_span (*spans)[PS_BLOCK];
	unsigned block_capacity;
	struct block directory[];
};

static void copy_blocks(struct ps_blocks *to, const struct ps_blocks *from)
{
	memcpy(to->directory, from->directory, from->block_capacity * sizeof(*from->directory));
	memcpy(to->spans, from->spans, from->block_capacity * sizeof(*from->spans));
	for (unsigned i = from->block_capacity; i < to->block_capacity; i++)
		to->directory[i].number = i;
}

struct ps_blocks *ps_blocks_new_from_cover(const struct ps_cover *cover, unsigned span_capacity)
{
	/* `block_capacity` leaves a third of the blocks free after `span_capacity` spans are
	 * distributed evenly. */
	const unsigned block_capacity = span_capacity / HALF + 2;
	const size_t head = sizeof(struct ps_blocks) + block_capacity * sizeof(struct block);
	struct ps_blocks *blocks = malloc(head + block_capacity * sizeof(*blocks->spans));

	if (!blocks)
		return NULL;
	blocks->spans = (struct ps_span(*)[PS_BLOCK])((uint8_t *)blocks + head);
	blocks->block_capacity = block_capacity;
	if (cover->block_count)
		copy_blocks(blocks, cover->blocks);
	return blocks;
}

/* Ends the last element of the array at UINT64_MAX, so that ps_cover_is_behind_all_spans returns
 * false while blocks are in use (ps_blocks_from_array). */
static void end_array_with_sentinel(struct ps_cover *cover)
{
	assert(cover->span_count > 0 && cover->span_count <= cover->allocated_spans);
	cover->spans[cover->span_count - 1].end = UINT64_MAX;
}

void ps_blocks_from_array(struct ps_cover *cover)
{
	struct ps_blocks *blocks = cover->blocks;

	assert(!cover->block_count && cover->span_count > 0);
	for (unsigned from = 0; from < cover->span_count; from += EVEN_FILL, cover->block_count++) {
		const unsigned left = cover->span_count - from,
			       count = left < EVEN_FILL ? left : EVEN_FILL;

		assert(cover->block_count < blocks->block_capacity);
		memcpy(blocks->spans[cover->block_count], &cover->spans[from],
		       count * sizeof(*cover->spans));
		blocks->directory[cover->block_count] = (struct block){
			cover->spans[from + count - 1].end, cover->block_count, count
		};
	}
	for (unsigned i = cover->block_count; i < blocks->block_capacity; i++)
		blocks->directory[i].number = i;
	end_array_with_sentinel(cover);
}

void ps_blocks_to_array(struct ps_cover *cover)
{
	const struct ps_blocks *blocks = cover->blocks;
	struct ps_span *to = cover->spans;

	assert(blocks && blocks->spans);
	for (unsigned i = 0; i < cover->block_count; i++) {
		const struct block *block = &blocks->directory[i];

		memcpy(to, blocks->spans[block->number], block->count * sizeof(*to));
		to += block->count;
	}
	assert(to == cover->spans + cover->span_count);
	cover->block_count = 0;
}

/* --- places: the index of a block in the directory, and of a span in the block --- */

static inline unsigned place_in_block(unsigned block, unsigned at)
{
	return block * STRIDE + at;
}

static struct block *block_at(const struct ps_cover *cover, unsigned place)
{
	return &cover->blocks->directory[place / STRIDE];
}

/* Returns the span at the place; NULL past the last one. */
static struct ps_span *span_at(const struct ps_cover *cover, unsigned place)
{
	return place / STRIDE < cover->block_count
	               ? &cover->blocks->spans[block_at(cover, place)->number][place % STRIDE]
	               : NULL;
}

static unsigned next_place(const struct ps_cover *cover, unsigned place)
{
	return place % STRIDE + 1 < block_at(cover, place)->count
	               ? place + 1
	               : place_in_block(place / STRIDE + 1, 0);
}

/* Returns the place of the first span that ends at or after the address. */
static unsigned find_span_place(const struct ps_cover *cover, uint64_t address)
{
	const struct block *directory = cover->blocks->directory;
	struct ps_cover inside = { 0 };
	unsigned block = 0;

	for (unsigned left = cover->block_count; left > 0;) {
		const unsigned half = (left + 1) / 2;

		block += directory[block + half - 1].end < address ? half : 0;
		left -= half;
	}
	if (block == cover->block_count)
		return place_in_block(block, 0);
	inside.spans = cover->blocks->spans[directory[block].number];
	inside.span_count = directory[block].count;
	return place_in_block(block, ps_cover_find_index(&inside, address));
}

const struct ps_span *ps_blocks_span_from(const struct ps_cover *cover, uint64_t address)
{
	return span_at(cover, find_span_place(cover, address));
}

enum ps_fit ps_blocks_fit(const struct ps_cover *cover, const struct ps_span *range,
                          unsigned *place)
{
	const unsigned first = find_span_place(cover, range->start);
	const struct ps_span *span = span_at(cover, first), *next;
	struct ps_span spans[TOUCHED_MAX];
	struct ps_cover near = { .spans = spans };
	enum ps_fit fit;
	unsigned at = first, ahead;

	/* Most ranges touch no span, are covered, or extend one. */
	*place = first;
	if (!span || range->end < span->start)
		return PS_FIT_DISJOINT;
	if (span->start <= range->start && range->end <= span->end)
		return PS_FIT_INSIDE;
	next = span_at(cover, next_place(cover, first));
	if (range->start == span->end && range->base == span->base &&
	    (!next || range->end < next->start))
		return PS_FIT_EXTENDS;
	while (near.span_count < TOUCHED_MAX && (span = span_at(cover, at))) {
		spans[near.span_count++] = *span;
		at = next_place(cover, at);
	}
	fit = ps_cover_fit(&near, range->base, range->start, range->end, &ahead);
	for (*place = first; ahead > 0; ahead--)
		*place = next_place(cover, *place);
	return fit;
}

/* --- changes --- */

/* Splits a full block in two. If no block is free, redistributes all spans. */
static void split_full_block(struct ps_cover *cover, unsigned block_index)
{
	struct ps_blocks *blocks = cover->blocks;
	struct block *block = &blocks->directory[block_index], added;

	assert(blocks->spans);
	if (cover->block_count == blocks->block_capacity) {
		ps_blocks_to_array(cover);
		ps_blocks_from_array(cover);
		return;
	}
	added = (struct block){ block->end, blocks->directory[cover->block_count].number, HALF };
	memcpy(blocks->spans[added.number], &blocks->spans[block->number][HALF],
	       HALF * sizeof(struct ps_span));
	block->count = HALF;
	block->end = blocks->spans[block->number][HALF - 1].end;
	memmove(block + 2, block + 1, (cover->block_count - block_index - 1) * sizeof(*block));
	block[1] = added;
	cover->block_count++;
}

/* Returns the place at which to insert a span that touches no other: before the first span that
 * ends after it, which also begins after it, because spans are disjoint. */
static unsigned find_insertion_place(const struct ps_cover *cover, const struct ps_span *span)
{
	const unsigned place = find_span_place(cover, span->end), last = cover->block_count - 1;

	return place / STRIDE < cover->block_count
	               ? place
	               : place_in_block(last, cover->blocks->directory[last].count);
}

void ps_blocks_insert_span(struct ps_cover *cover, const struct ps_span *span)
{
	unsigned place = find_insertion_place(cover, span), at;
	struct ps_span *spans;
	struct block *block;

	if (block_at(cover, place)->count == PS_BLOCK) {
		split_full_block(cover, place / STRIDE);
		place = find_insertion_place(cover, span);
	}
	block = block_at(cover, place);
	at = place % STRIDE;
	assert(block->count < PS_BLOCK && at <= block->count);
	spans = cover->blocks->spans[block->number];
	assert(spans);
	memmove(&spans[at + 1], &spans[at], (block->count - at) * sizeof(*spans));
	spans[at] = *span;
	if (at == block->count++)
		block->end = span->end;
	cover->span_count++;
	cover->covered_bytes += span->end - span->start;
	end_array_with_sentinel(cover);
}

void ps_blocks_extend_span(struct ps_cover *cover, unsigned place, uint64_t new_end)
{
	struct ps_span *span = span_at(cover, place);
	struct block *block = block_at(cover, place);

	cover->covered_bytes += new_end - span->end;
	span->end = new_end;
	if (place % STRIDE + 1 == block->count)
		block->end = new_end;
}

/* Removes a span and returns the place of the next one. A block that becomes empty moves behind the
 * blocks in use. */
static unsigned remove_span(struct ps_cover *cover, unsigned place)
{
	struct block *block = block_at(cover, place), emptied;
	struct ps_span *spans = cover->blocks->spans[block->number];
	const unsigned at = place % STRIDE;

	cover->covered_bytes -= spans[at].end - spans[at].start;
	cover->span_count--;
	block->count--;
	memmove(&spans[at], &spans[at + 1], (block->count - at) * sizeof(*spans));
	if (block->count) {
		block->end = spans[block->count - 1].end;
		return at < block->count ? place : place_in_block(place / STRIDE + 1, 0);
	}
	emptied = *block;
	cover->block_count--;
	memmove(block, block + 1, (cover->block_count - place / STRIDE) * sizeof(*block));
	cover->blocks->directory[cover->block_count] = emptied;
	return place;
}

void ps_blocks_add_and_merge_span(struct ps_cover *cover, const struct ps_span *span)
{
	unsigned place = find_span_place(cover, span->start);
	const struct ps_span *old = span_at(cover, place);
	struct ps_span merged = *span;

	if (old && ps_span_abuts_other_segment(old, span))
		place = next_place(cover, place);
	for (; (old = span_at(cover, place)) && ps_span_is_reached_by(old, span);
	     place = remove_span(cover, place)) {
		if (old->start < merged.start)
			merged.start = old->start;
		if (old->end > merged.end)
			merged.end = old->end;
	}
	/* Without a used block, the array `spans` is valid again, and empty. */
	if (cover->block_count)
		ps_blocks_insert_span(cover, &merged);
	else
		ps_cover_append_span(cover, &merged);
}
