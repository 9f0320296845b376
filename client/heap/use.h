/*
 * use.h - counts the objects of a heap, by class and type, from the bytes of its metadata alone.
 * The command calls it with metadata that a mirror sent; no handle is needed. The bytes may be
 * hostile: time and memory are bounded by their number.
 */
#ifndef PERSEAS_CLIENT_HEAP_USE_H
#define PERSEAS_CLIENT_HEAP_USE_H

#include "format.h"

enum { PS_USAGE_LARGE = PS_CLASSES }; /* the `class` of large objects */

/* The objects of one class and one type. */
struct ps_usage_row {
	unsigned class;
	uint64_t type;
	uint64_t chunks; /* chunks that contain them */
	uint64_t objects;
	uint64_t bytes; /* bytes that the objects take */
};

/* The metadata of an extent, and the sizes of its two segments. */
struct ps_usage_extent {
	const uint8_t *meta; /* page-aligned */
	uint64_t meta_size, data_size;
};

struct ps_heap_usage {
	struct ps_usage_row *rows; /* sorted by class, then type */
	size_t count, room;
	unsigned extents, roots;
	uint64_t size; /* bytes for objects in all extents */
	/* Counted as in struct perseas_heap_stat, which describes them. */
	uint64_t objects, used, free, gaps, large;
	uint64_t longest;             /* the longest sequence of free chunks, in bytes */
	uint64_t rooted;              /* a bit for each root that leads to an object */
	struct ps_heap_root root[64]; /* all roots; unused ones have no name */
	/* A printable sentence about a fault of the metadata; empty if none was found. */
	char fault[192];
};
static_assert(PS_ROOTS == 64, "a bit for each root");

/* Counts the `count` extents of heap `name`; count is at least 1. Returns false if out of memory,
 * or if the metadata contradicts itself: use->fault then says where. Returns true if the figures
 * are right; use->fault may then name a root whose object was freed. Call ps_heap_usage_free in
 * either case. */
bool ps_heap_usage_count(struct ps_heap_usage *use, const char *name,
                         const struct ps_usage_extent *extents, unsigned count);
void ps_heap_usage_free(struct ps_heap_usage *use);

#endif
