/*
 * format.h - the byte layout of a heap's metadata, and the checks of what a mirror sent. A heap
 * consists of extents. Extent K has two segments: NAME.heap.K holds the objects and nothing else,
 * NAME.meta.K holds the metadata described here. The functions are pure: they know no handle. Every
 * reader of metadata calls them before it relies on any of it.
 *
 * An extent's data is divided into chunks of 64 KiB. A chunk is free, or a run of objects of one
 * size class and one type, or part of a large object, which takes a whole number of chunks. Objects
 * have no header. Each run has a bitmap with a bit for each of its objects, set while the object
 * lives. A run without set bits is free, whatever its entry says. A large object covers the chunks
 * after its first: their bitmaps are empty, and their entries, which count again once the object is
 * freed, are those of free chunks or of runs.
 */
#ifndef PERSEAS_CLIENT_HEAP_FORMAT_H
#define PERSEAS_CLIENT_HEAP_FORMAT_H

#include "../../proto/image/layout.h"

#include <stdbool.h>

#define PS_HEAP_MAGIC 0x31504145485350ull /* "PSHEAP1" in memory */

enum {
	PS_HEAP_VERSION = 1,
	PS_HEAP_EXTENTS = 32,
	PS_HEAP_NAME = 48, /* longest name of a heap, in bytes */
	PS_CHUNK = 65536,
	/* 64-bit words in a chunk's bitmap: a bit for each object of the smallest class */
	PS_CHUNK_WORDS = 64,
	PS_CLASSES = 52,
	PS_CLASS_MAX = 32768, /* bytes of an object of the largest class; larger ones take chunks */
	PS_UNIT = 16,         /* bytes; the size of every class is a multiple */
	PS_ROOTS = 64,
	PS_ROOT_NAME = 39, /* longest name of a root, in bytes */
};

#define PS_EXTENT_MAX ((uint64_t)1 << 40) /* the largest extent, in bytes of objects */

/* The first bytes of an extent's metadata. */
struct ps_heap_head {
	uint64_t magic;
	uint32_t version;
	uint32_t extent; /* index of the extent (K) */
	uint64_t chunks;
	uint32_t zero;
	uint32_t crc; /* crc32c of the members above */
};
static_assert(sizeof(struct ps_heap_head) == 32, "head layout");

/* A named root. Extent 0 has PS_ROOTS of them; an unused one is all zeros. */
struct ps_heap_root {
	char name[PS_ROOT_NAME + 1]; /* padded with zeros */
	uint64_t type;
	uint64_t place; /* place of the root's object (ps_heap_place) */
	uint64_t zero;
};
static_assert(sizeof(struct ps_heap_root) == 64, "root layout");

enum ps_chunk_state {
	PS_CHUNK_FREE = 0,
	PS_CHUNK_RUN = 1,
	PS_CHUNK_LARGE = 2, /* the first chunk of a large object */
};

struct ps_heap_entry {
	uint8_t state; /* enum ps_chunk_state */
	uint8_t class; /* size class of a run */
	uint16_t zero;
	uint32_t span; /* chunks of a large object; 1 for a run */
	uint64_t type;
};
static_assert(sizeof(struct ps_heap_entry) == 16, "entry layout");

/* Byte offsets in an extent's metadata: the roots, the chunks' entries, and behind these the
 * bitmaps. */
enum { PS_HEAP_ROOTS = PS_PAGE, PS_HEAP_ENTRIES = 2 * PS_PAGE };

/* Returns the offset of the bitmaps in the metadata of an extent with `chunks` chunks. */
static inline uint64_t ps_heap_bitmaps_offset(uint64_t chunks)
{
	const uint64_t entries = chunks * sizeof(struct ps_heap_entry);

	return PS_HEAP_ENTRIES + ((entries + PS_PAGE - 1) & ~(uint64_t)(PS_PAGE - 1));
}

static inline uint64_t ps_heap_meta_size(uint64_t chunks)
{
	const uint64_t size = ps_heap_bitmaps_offset(chunks) +
	                      chunks * PS_CHUNK_WORDS * sizeof(uint64_t);

	return (size + PS_PAGE - 1) & ~(uint64_t)(PS_PAGE - 1);
}

/* Returns an object's place in the heap, which is never 0: the index of its extent plus 1 in the
 * upper 16 bits, and the offset in the extent's data in the lower 48. */
static inline uint64_t ps_heap_place(unsigned extent, uint64_t offset)
{
	return (uint64_t)(extent + 1) << 48 | offset;
}

/* Object sizes of the classes in bytes, ascending. */
extern const uint16_t ps_class_sizes[PS_CLASSES];

/* Returns how many objects a run of the class holds. */
static inline unsigned ps_objects_per_run(unsigned class)
{
	return PS_CHUNK / ps_class_sizes[class];
}

/* Fills in the head of extent number `extent`, with its checksum. */
void ps_heap_head_seal(struct ps_heap_head *head, unsigned extent, uint64_t chunks);

/* Returns what is wrong with the head, as the end of a sentence that begins with the segment's
 * name, or NULL. meta_size and data_size are the sizes of the extent's two segments. */
const char *ps_heap_head_fault(const struct ps_heap_head *head, unsigned extent, uint64_t meta_size,
                               uint64_t data_size);

/* Return what is wrong with a chunk's entry, or with its bitmap of PS_CHUNK_WORDS words, as the end
 * of a sentence that begins with the chunk, or NULL. */
const char *ps_heap_entry_fault(const struct ps_heap_entry *entry, uint64_t chunk, uint64_t chunks);
const char *ps_heap_bits_fault(const struct ps_heap_entry *entry, const uint64_t *bits);

/* Returns what is wrong with a chunk that a large object covers, or NULL. The chunk's entry must be
 * valid, since it counts again once the object is freed, and must not begin another large object.
 * The first chunk has the object's own entry, and only its bits are checked. */
const char *ps_heap_covered_fault(const struct ps_heap_entry *entries, const uint64_t *bits,
                                  uint64_t first, uint64_t chunk, uint64_t chunks);

/* Returns what is wrong with a root, as the end of a sentence that begins with its name, or
 * NULL. */
const char *ps_heap_root_fault(const struct ps_heap_root *root);

/* Returns how many bits of `word` are set. Fast for none and one, the usual cases. */
static inline unsigned ps_bits_count(uint64_t word)
{
	return word & (word - 1) ? (unsigned)__builtin_popcountll(word) : word != 0;
}

/* Returns true if any bit of the first `words` words is set. */
static inline bool ps_bits_any(const uint64_t *bits, unsigned words)
{
	uint64_t any = 0;

	for (unsigned i = 0; i < words; i++)
		any |= bits[i];
	return any;
}

#endif
