/*
 * use.h - what a heap is used for, by class and type, counted from the bytes of its metadata alone.
 * The command calls it with what a mirror sent; no handle is needed. The bytes may be hostile: what
 * it takes is bounded by their number.
 */
#ifndef PERSEAS_CLIENT_HEAP_USE_H
#define PERSEAS_CLIENT_HEAP_USE_H

#include "format.h"

enum { PS_USE_LARGE = PS_CLASSES }; /* as a class: objects of whole chunks */

/* Objects of a class and a type. */
struct ps_use_row {
	unsigned class;
	uint64_t type;
	uint64_t chunks; /* that they are in */
	uint64_t objects;
	uint64_t bytes; /* that these take */
};

/* The metadata of an extent, and how large its segments are. */
struct ps_use_extent {
	const uint8_t *meta; /* aligned as a page is */
	uint64_t meta_size, data_size;
};

struct ps_heap_use {
	struct ps_use_row *rows; /* by class, then type */
	size_t count, room;
	unsigned extents, roots;
	uint64_t size;    /* bytes for objects */
	uint64_t objects; /* as in perseas_heap_stat, all of these */
	uint64_t used, free, gaps, large;
	uint64_t longest;             /* the largest of the free chunks in a row, in bytes */
	uint64_t rooted;              /* roots that lead to an object, as bits */
	struct ps_heap_root root[64]; /* as they are; without a name: none */
	char fault[192];              /* a sentence that can be printed; empty: all is well */
};
static_assert(PS_ROOTS == 64, "a bit for each root");

/* Counts all extents of the heap `name`, which has one at least. False: out of memory, or
 * use->fault says where the metadata contradicts itself. True: the figures are right; use->fault
 * names a root that leads to no object, if there is one: its object was freed, and the root was
 * left. ps_heap_use_free either way. */
bool ps_heap_use_count(struct ps_heap_use *use, const char *name,
                       const struct ps_use_extent *extents, unsigned count);
void ps_heap_use_free(struct ps_heap_use *use);

#endif
