/*
 * blocks.h - the spans of a cover that has thousands, in blocks of a bounded size, so that one more
 * among them moves a block's rest and not that of all. cover.c calls it, and decides when; nobody
 * else does but for what cover.h declares and calls itself. All is in memory that was there before:
 * none of these can fail but ps_blocks_new.
 */
#ifndef PERSEAS_CLIENT_BLOCKS_H
#define PERSEAS_CLIENT_BLOCKS_H

#include "cover.h"

enum {
	PS_BLOCK = 128,       /* spans that a block may have */
	PS_BLOCKS_FROM = 512, /* spans for which there is memory: others have no blocks */
	PS_BLOCKS_FAR = 256,  /* spans that are moved in one array */
};

/* Memory for so many spans, with a copy of what the cover has in its blocks, so that places stay
 * what they are; NULL: there is none. Freed by free. */
struct ps_blocks *ps_blocks_new(const struct ps_cover *cover, unsigned spans);

/* The spans go into blocks, and `spans` means nothing until they are collected there again. Its
 * last place says that no range is behind all others, since ps_cover_behind looks there. */
void ps_blocks_spread(struct ps_cover *cover);

/* As those of cover.h are, of a cover whose spans are in blocks. What is inserted is alone; a place
 * means something only until the next of these calls. */
const struct ps_span *ps_blocks_from(const struct ps_cover *cover, uint64_t address);
void ps_blocks_insert(struct ps_cover *cover, const struct ps_span *span);
void ps_blocks_add(struct ps_cover *cover, const struct ps_span *span);

/* Does the first end where the next begins, and in another segment? */
static inline bool ps_span_ends_apart(const struct ps_span *first, const struct ps_span *next)
{
	return first->end == next->start && first->base != next->base;
}

/* Returns true if `next` begins before `range` ends, or right behind it in the same segment. */
bool ps_span_is_reached(const struct ps_span *next, const struct ps_span *range);

#endif
