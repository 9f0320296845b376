/*
 * blocks.h - the spans of a large cover, in blocks of bounded size, so that an insertion moves part
 * of one block rather than part of all spans. cover.c decides when blocks are used, and it and
 * cover.h are the only callers. Memory is allocated in advance: only ps_blocks_new can fail.
 */
#ifndef PERSEAS_CLIENT_BLOCKS_H
#define PERSEAS_CLIENT_BLOCKS_H

#include "cover.h"

enum {
	PS_BLOCK = 128,       /* maximum number of spans in a block */
	PS_BLOCKS_FROM = 512, /* covers with a larger capacity have blocks */
	/* An insertion that moves more spans than this makes the cover use its blocks. */
	PS_BLOCKS_FAR = 256,
};

/* Allocates blocks for `spans` spans and copies the cover's blocks, so that places stay valid. Free
 * the result with free(). Returns NULL if out of memory. */
struct ps_blocks *ps_blocks_new(const struct ps_cover *cover, unsigned spans);

/* Moves the cover's spans into its blocks. The array `spans` is invalid until ps_blocks_collect,
 * except for a last element that ends at UINT64_MAX: it makes ps_cover_is_past_end return false. */
void ps_blocks_spread(struct ps_cover *cover);

/* The functions of cover.h with the same names, for a cover that uses blocks. An inserted span must
 * be PS_FIT_DISJOINT. A place is valid only until the next of these calls. */
const struct ps_span *ps_blocks_from(const struct ps_cover *cover, uint64_t address);
void ps_blocks_insert(struct ps_cover *cover, const struct ps_span *span);
void ps_blocks_add(struct ps_cover *cover, const struct ps_span *span);

/* Returns true if `first` ends where `next` begins and they are in different segments. */
static inline bool ps_span_ends_apart(const struct ps_span *first, const struct ps_span *next)
{
	return first->end == next->start && first->base != next->base;
}

/* Returns true if `next` begins before `range` ends, or right at its end in the same segment. */
bool ps_span_is_reached(const struct ps_span *next, const struct ps_span *range);

#endif
