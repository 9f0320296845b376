/*
 * content.h - what the drills' owner writes. Transaction k changes several ranges of some segments.
 * All changes are derived from k, so that the state after k transactions can be computed from k
 * alone.
 *
 * Each transaction also writes one of STRIPES stripes of every segment, in turn. So no byte is
 * older than STRIPES transactions, and computing a state takes no longer for a large k.
 */
#ifndef PERSEAS_DRILLS_CONTENT_H
#define PERSEAS_DRILLS_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

enum {
	BOOKS = 4,            /* upper bound */
	BOOK_MAX = 256 << 10, /* bytes of the largest segment */
	STRIPES = 256,
	CHANGES_MAX = 10, /* upper bound for a transaction */
};

struct book {
	const char *name; /* of the segment */
	uint64_t size;
};

extern struct book books[BOOKS];
extern unsigned book_count; /* 2, unless content_shape changes it */

/* Draws the number and sizes of segments and the lengths of ranges from a seed; 0 leaves the
 * defaults. All processes that use one store must use the same seed. */
void content_shape(uint64_t seed);

struct change {
	unsigned book;
	uint32_t length;
	uint64_t offset;
	uint64_t seed; /* of the bytes; for the counter, k itself */
	bool counter;
};

/* Plans the changes of transaction k (1 or more), in order; the last one is the counter. They may
 * overlap. Returns how many there are. */
unsigned content_plan(uint64_t k, struct change changes[CHANGES_MAX]);

/* Writes a change's bytes to `to`. */
void content_fill(uint8_t *to, const struct change *change);

/* Computes the state after k transactions. The images must be zeroed and have the sizes of the
 * books. */
void content_make(uint64_t k, uint8_t *const images[BOOKS]);

/* Returns the counter in the images, the number of the last transaction that they claim to have. */
uint64_t content_counter(uint8_t *const images[BOOKS]);

#endif
