/*
 * content.h - what the drills' owner writes. Transaction k changes several ranges of some
 * segments, all derived from k, so that the state after k transactions can be computed again
 * by somebody who knows nothing but k.
 *
 * Each transaction also writes one of STRIPES stripes of every segment, in turn: no byte is older
 * than STRIPES transactions, and to compute a state takes no longer for a large k.
 */
#ifndef PERSEAS_DRILLS_CONTENT_H
#define PERSEAS_DRILLS_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

enum {
	BOOKS = 4,            /* at most */
	BOOK_MAX = 256 << 10, /* bytes of the largest segment */
	STRIPES = 256,
	CHANGES_MAX = 10, /* of one transaction */
};

struct book {
	const char *name; /* of the segment */
	uint64_t size;
};

extern struct book books[BOOKS];
extern unsigned book_count; /* 2, unless they are shaped */

/* Other numbers of segments, sizes and lengths of ranges, drawn by this seed; 0: those of a start.
 * All who look at one store must have the same. */
void content_shape(uint64_t seed);

struct change {
	unsigned book;
	uint32_t length;
	uint64_t offset;
	uint64_t seed; /* of the bytes; of the counter: k itself */
	bool counter;
};

/* The changes of transaction k (1 or more), in their order; the last is the counter. They may
 * overlap. Returns how many. */
unsigned content_plan(uint64_t k, struct change changes[CHANGES_MAX]);

/* Writes a change's bytes. */
void content_fill(uint8_t *to, const struct change *change);

/* Makes the state after k transactions in zeroed memory of the books' sizes. */
void content_make(uint64_t k, uint8_t *const images[BOOKS]);

/* The counter that a state holds: the k that it claims to be of. */
uint64_t content_counter(uint8_t *const images[BOOKS]);

#endif
