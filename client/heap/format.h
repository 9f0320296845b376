/*
 * format.h - the bytes of a heap's metadata, and what they may be. A heap consists of extents, each
 * of two segments: NAME.heap.K has the objects and nothing else, NAME.meta.K what is here. Pure:
 * knows no handle. What a mirror sent is checked by these functions before anybody relies on it.
 *
 * An extent's data is cut into chunks of 64 KiB. A chunk is a run of objects that are all of one
 * class (of size) and one type, or a whole number of chunks are one large object. Objects have no
 * header. A run has a bit for each of its objects, which is set while the object lives. A run
 * without such bits is free, whatever its entry says. A large object covers the chunks behind its
 * first: no bit of theirs is set, and their entries, which count again once the object is freed,
 * are those of free chunks or of runs.
 */
#ifndef PERSEAS_CLIENT_HEAP_FORMAT_H
#define PERSEAS_CLIENT_HEAP_FORMAT_H

#include "../../proto/image/layout.h"

#include <stdbool.h>

#define PS_HEAP_MAGIC 0x31504145485350ull /* "PSHEAP1" in memory */

enum {
	PS_HEAP_VERSION = 1,
	PS_HEAP_EXTENTS = 32,
	PS_HEAP_NAME = 48, /* bytes in a heap's name */
	PS_CHUNK = 65536,
	PS_CHUNK_WORDS = 64, /* of its bitmap: a bit for each object of the smallest class */
	PS_CLASSES = 52,
	PS_CLASS_MAX = 32768, /* bytes of the largest class */
	PS_UNIT = 16,         /* every class's size is a multiple of it */
	PS_ROOTS = 64,
	PS_ROOT_NAME = 39, /* bytes in a root's name */
};

#define PS_EXTENT_MAX ((uint64_t)1 << 40) /* bytes of the objects of one extent */

/* At the beginning of the metadata. */
struct ps_heap_head {
	uint64_t magic;
	uint32_t version;
	uint32_t extent; /* K */
	uint64_t chunks;
	uint32_t zero;
	uint32_t crc; /* crc32c of the bytes before */
};
static_assert(sizeof(struct ps_heap_head) == 32, "head layout");

/* A named root, in extent 0: all zeros where there is none. */
struct ps_heap_root {
	char name[PS_ROOT_NAME + 1]; /* padded with zeros */
	uint64_t type;
	uint64_t place; /* of its object: ps_heap_place() */
	uint64_t zero;
};
static_assert(sizeof(struct ps_heap_root) == 64, "root layout");

enum ps_chunk_state {
	PS_CHUNK_FREE = 0,
	PS_CHUNK_RUN = 1,
	PS_CHUNK_LARGE = 2, /* the first of `span` chunks */
};

struct ps_heap_entry {
	uint8_t state; /* enum ps_chunk_state */
	uint8_t class; /* RUN */
	uint16_t zero;
	uint32_t span; /* LARGE: chunks; RUN: 1 */
	uint64_t type;
};
static_assert(sizeof(struct ps_heap_entry) == 16, "entry layout");

/* Where things lie in the metadata of an extent with so many chunks. */
enum { PS_HEAP_ROOTS = PS_PAGE, PS_HEAP_ENTRIES = 2 * PS_PAGE };

static inline uint64_t ps_heap_bitmaps(uint64_t chunks)
{
	const uint64_t entries = chunks * sizeof(struct ps_heap_entry);

	return PS_HEAP_ENTRIES + ((entries + PS_PAGE - 1) & ~(uint64_t)(PS_PAGE - 1));
}

static inline uint64_t ps_heap_meta_size(uint64_t chunks)
{
	const uint64_t size = ps_heap_bitmaps(chunks) + chunks * PS_CHUNK_WORDS * sizeof(uint64_t);

	return (size + PS_PAGE - 1) & ~(uint64_t)(PS_PAGE - 1);
}

/* An object's place in the heap, never 0: extent + 1 above, and its offset below. */
static inline uint64_t ps_heap_place(unsigned extent, uint64_t offset)
{
	return (uint64_t)(extent + 1) << 48 | offset;
}

/* The sizes of the classes, in bytes, rising. */
extern const uint16_t ps_class_sizes[PS_CLASSES];

/* How many objects of a class a run has. */
static inline unsigned ps_class_objects(unsigned class)
{
	return PS_CHUNK / ps_class_sizes[class];
}

void ps_heap_head_seal(struct ps_heap_head *head, unsigned extent, uint64_t chunks);

/* What is wrong with it, as the end of a sentence that begins with its name; NULL: nothing.
 * meta_size, data_size: of the extent's segments. */
const char *ps_heap_head_fault(const struct ps_heap_head *head, unsigned extent, uint64_t meta_size,
                               uint64_t data_size);

/* The same of the entry of a chunk, with its bitmap of PS_CHUNK_WORDS. */
const char *ps_heap_entry_fault(const struct ps_heap_entry *entry, uint64_t chunk, uint64_t chunks);
const char *ps_heap_bits_fault(const struct ps_heap_entry *entry, const uint64_t *bits);

/* Returns what is wrong with a chunk that a large object covers, or NULL. The chunk's entry must be
 * valid, since it counts again once the object is freed, and must not begin another large object.
 * The first chunk has the object's own entry, and only its bits are checked. */
const char *ps_heap_covered_fault(const struct ps_heap_entry *entries, const uint64_t *bits,
                                  uint64_t first, uint64_t chunk, uint64_t chunks);

/* The same of a root. */
const char *ps_heap_root_fault(const struct ps_heap_root *root);

/* How many bits are set? Most often none, or one. */
static inline unsigned ps_bits_count(uint64_t word)
{
	return word & (word - 1) ? (unsigned)__builtin_popcountll(word) : word != 0;
}

/* Is a bit set in the first so many words? */
static inline bool ps_bits_any(const uint64_t *bits, unsigned words)
{
	uint64_t any = 0;

	for (unsigned i = 0; i < words; i++)
		any |= bits[i];
	return any;
}

#endif
