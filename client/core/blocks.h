/*
 * blocks.h - the spans of a large cover, in blocks of bounded size, so that an insertion moves part
 * of one block rather than part of all spans. cover.c decides when blocks are used, and it and
 * cover.h are the only callers. Memory is allocated in advance: only ps_blocks_new_from_cover can
 * fail.
 */
#ifndef PERSEAS_CLIENT_BLOCKS_H
#define PERSEAS_CLIENT_BLOCKS_H

#include "cover.h"

enum {
	PS_BLOCK = 128,               /* maximum number of spans in a block */
	PS_BLOCKS_MIN_CAPACITY = 512, /* covers with a larger capacity have blocks */
	/* An insertion that moves more spans than this makes the cover use its blocks. */
	PS_BLOCKS_MIN_MOVED = 256,
};

/* Allocates blocks for `spans` spans and copies the cover's blocks, so that places stay valid. Free
 * the result with free(). Returns NULL if out of memory. */
struct ps_blocks *ps_blocks_new_from_cover(const struct ps_cover *cover, unsigned span_capacity);

/* Moves the cover's spans into its blocks. The array `spans` is invalid until ps_blocks_to_array,
 * except for a last element that ends at UINT64_MAX: it makes ps_cover_is_behind_all_spans return
 * false. */
void ps_blocks_from_array(struct ps_cover *cover);

/* Do for a cover that uses blocks what ps_cover_span_from, ps_cover_insert_span and
 * ps_cover_add_and_merge_span (cover.h) do. ps_blocks_insert_span takes only a span that overlaps
 * and touches no other. A place that ps_blocks_fit found is valid only until the next insertion. */
const struct ps_span *ps_blocks_span_from(const struct ps_cover *cover, uint64_t address);
void ps_blocks_insert_span(struct ps_cover *cover, const struct ps_span *span);
void ps_blocks_add_and_merge_span(struct ps_cover *cover, const struct ps_span *span);

/* Returns true if `first` ends where `next` begins, and the two are in different segments, so that
 * they must not be merged. */
static inline bool ps_span_abuts_other_segment(const struct ps_span *first,
                                               const struct ps_span *next)
{
	return first->end == next->start && first->base != next->base;
}

/* Returns true if `next` begins before `range` ends, or right at its end in the same segment. */
bool ps_span_is_reached_by(const struct ps_span *next, const struct ps_span *range);

#endif
