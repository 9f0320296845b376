/*
 * chunks.c - finds out what the chunks of a heap contain, from the metadata, when they are needed,
 * and finds free objects and free chunks. Callers hold the heap's lock, so nothing here may wait.
 * Metadata is read only after ps_heap_require has said that it is in memory.
 */
#include "heap.h"

#include "../core/demand.h"

#include <assert.h>
#include <stdlib.h>

enum {
	CHUNKS_PER_SLICE =
		4096, /* chunks that are examined before other threads may have the lock */
	PEEK = 32,    /* chunks that are examined for a free object before a free chunk is taken */
	FETCH_BYTES = 65536 /* bytes of metadata that are fetched at once */
};

int ps_heap_fail_damaged_chunk(const struct ps_extent *extent, uint64_t chunk, const char *fault)
{
	return ps_fail(extent->heap->p, PERSEAS_EHEAP, "chunk %llu of heap '%s', extent %u, %s",
	               (unsigned long long)chunk, extent->heap->name, extent->index, fault);
}

int ps_heap_require(struct ps_extent *extent, const void *at, uint64_t length,
                    struct ps_heap_need *need)
{
	struct perseas *p = extent->heap->p;
	const uint64_t start = (uint64_t)(uintptr_t)at, end = extent->meta.end;
	struct ps_segment segment = { .id = extent->meta.segment_id };
	uint64_t run;
	bool is_here;

	if (extent->is_present)
		return 0;
	if (!ps_demand_has_missing(p, &segment)) {
		extent->is_present = true;
		return 0;
	}
	run = ps_demand_uniform_run(p, &segment, start - extent->meta.start, length, &is_here);
	if (is_here && run >= length)
		return 0;
	need->start = start;
	need->end = end - start > FETCH_BYTES && length < FETCH_BYTES ? start + FETCH_BYTES
	                                                              : start + length;
	if (need->end > end)
		need->end = end;
	return PS_HEAP_FETCH;
}

/* --- runs --- */

static void link_run(struct ps_run *run)
{
	struct ps_bin *bin = run->bin;

	run->previous = NULL;
	run->next = bin->open_runs;
	if (run->next)
		run->next->previous = run;
	bin->open_runs = run;
}

static void unlink_run(struct ps_run *run)
{
	if (run->previous)
		run->previous->next = run->next;
	else
		run->bin->open_runs = run->next;
	if (run->next)
		run->next->previous = run->previous;
}

struct ps_bin *ps_bin_get(struct perseas_heap *heap, unsigned class, uint64_t type)
{
	const uint64_t hash = (type * 0x9e3779b97f4a7c15ull >> 32) + (uint64_t) class * 7;
	struct ps_bin **at = &heap->bins[hash % PS_BIN_HASHES];

	for (struct ps_bin *bin = *at; bin; bin = bin->next)
		if (bin->class == class && bin->type == type)
			return bin;
	struct ps_bin *bin = calloc(1, sizeof(*bin));

	if (!bin)
		return NULL;
	bin->class = class;
	bin->type = type;
	bin->next = *at;
	return *at = bin;
}

/* Makes the run of a chunk, with the objects that its bitmap has. Returns NULL if out of memory. */
static struct ps_run *create_run(struct ps_extent *extent, uint64_t chunk, struct ps_bin *bin)
{
	const unsigned objects = ps_objects_per_run(bin->class), words = (objects + 63) / 64;
	struct ps_run *run = calloc(1, sizeof(*run) + (size_t)2 * words * sizeof(uint64_t));

	if (!run)
		return NULL;
	run->bin = bin;
	run->extent = extent;
	run->chunk = (uint32_t)chunk;
	run->object_count = (uint16_t)objects;
	run->word_count = (uint16_t)words;
	run->freeing = run->taken + words;
	memcpy(run->taken, ps_chunk_bits(extent, chunk), words * sizeof(uint64_t));
	/* Set the bits after the last object: these are never free. */
	if (objects % 64)
		run->taken[words - 1] |= ~(uint64_t)0 << objects % 64;
	for (unsigned i = 0; i < words; i++)
		run->free_count += (uint16_t)__builtin_popcountll(~run->taken[i]);
	extent->known[chunk] = PS_KNOWN_RUN;
	extent->runs[chunk] = run;
	if (run->free_count)
		link_run(run);
	return run;
}

unsigned ps_run_first_free(struct ps_run *run)
{
	unsigned word = run->first_free_word;

	while (!~run->taken[word])
		word++;
	run->first_free_word = (uint16_t)word;
	return word * 64 + (unsigned)__builtin_ctzll(~run->taken[word]);
}

void ps_run_allocate(struct ps_run *run, unsigned index)
{
	run->taken[index / 64] |= (uint64_t)1 << index % 64;
	if (!--run->free_count)
		unlink_run(run);
}

/* Marks `count` chunks as free. */
static void mark_free(struct ps_extent *extent, uint64_t chunk, uint64_t count)
{
	assert(count <= extent->chunks - chunk);
	memset(extent->known + chunk, PS_KNOWN_FREE, count);
	extent->free_count += count;
	if (chunk < extent->lowest_free_chunk)
		extent->lowest_free_chunk = chunk;
}

void ps_run_release(struct ps_run *run, unsigned word, uint64_t bits)
{
	if (!bits)
		return;
	assert(!(bits & ~run->taken[word]));
	if (!run->free_count)
		link_run(run);
	run->taken[word] &= ~bits;
	run->free_count += (uint16_t)ps_bits_count(bits);
	if (word < run->first_free_word)
		run->first_free_word = (uint16_t)word;
	if (run->free_count < run->object_count)
		return;
	unlink_run(run);
	run->extent->runs[run->chunk] = NULL;
	mark_free(run->extent, run->chunk, 1);
	free(run);
}

void ps_large_release(struct ps_extent *extent, uint64_t chunk)
{
	assert(extent->known[chunk] == PS_KNOWN_LARGE || extent->known[chunk] == PS_KNOWN_FREEING);
	mark_free(extent, chunk, extent->spans[chunk]);
}

/* --- examining chunks --- */

static int load_run(struct ps_extent *extent, uint64_t chunk, struct ps_heap_need *need)
{
	const struct ps_heap_entry *entry = &extent->entries[chunk];
	const uint64_t *bits = ps_chunk_bits(extent, chunk);
	struct ps_run *run = NULL;
	struct ps_bin *bin;
	const char *fault;
	int rc = ps_heap_require(extent, bits, PS_CHUNK_WORDS * sizeof(*bits), need);

	if (rc)
		return rc;
	fault = ps_heap_bits_fault(entry, bits);
	if (fault)
		return ps_heap_fail_damaged_chunk(extent, chunk, fault);
	if (!ps_bits_any(bits, PS_CHUNK_WORDS))
		return 0;
	bin = ps_bin_get(extent->heap, entry->class, entry->type);
	if (bin)
		run = create_run(extent, chunk, bin);
	if (!run)
		return ps_fail(extent->heap->p, PERSEAS_ENOMEM, "no memory for a run of a heap");
	run->recorded = true;
	return 0;
}

static int load_large(struct ps_extent *extent, uint64_t chunk)
{
	const uint64_t span = extent->entries[chunk].span;

	for (uint64_t i = 1; i < span; i++)
		if (extent->known[chunk + i] != PS_KNOWN_NOTHING)
			return ps_heap_fail_damaged_chunk(extent, chunk,
			                                  "reaches over another object");
	memset(extent->known + chunk, PS_KNOWN_TAIL, span);
	extent->known[chunk] = PS_KNOWN_LARGE;
	extent->spans[chunk] = (uint32_t)span;
	extent->types[chunk] = extent->entries[chunk].type;
	return 0;
}

/* A run without objects stays unknown: it may be free, or covered by a large object. Only a scan
 * that comes from the chunks before it can tell. */
int ps_chunk_examine(struct ps_extent *extent, uint64_t chunk, struct ps_heap_need *need)
{
	const struct ps_heap_entry *entry = &extent->entries[chunk];
	const char *fault;
	int rc;

	rc = ps_heap_require(extent, entry, sizeof(*entry), need);
	if (rc)
		return rc;
	fault = ps_heap_entry_fault(entry, chunk, extent->chunks);
	if (fault)
		return ps_heap_fail_damaged_chunk(extent, chunk, fault);
	if (entry->state == PS_CHUNK_RUN)
		return load_run(extent, chunk, need);
	return entry->state == PS_CHUNK_LARGE ? load_large(extent, chunk) : 0;
}

/* Returns the chunk after `chunk`, or after the large object that begins there. */
static uint64_t next_chunk(const struct ps_extent *extent, uint64_t chunk)
{
	const uint8_t known = extent->known[chunk];

	return chunk +
	       (known == PS_KNOWN_LARGE || known == PS_KNOWN_FREEING ? extent->spans[chunk] : 1);
}

/* Examines the next `count` chunks at most. Returns 0, PS_HEAP_FETCH, EHEAP or ENOMEM. */
static int examine_chunks(struct ps_extent *extent, unsigned count, struct ps_heap_need *need)
{
	for (; count > 0 && extent->examined < extent->chunks; count--) {
		const uint64_t chunk = extent->examined;
		int rc = ps_chunk_ensure_known(extent, chunk, need);

		if (rc)
			return rc;
		if (extent->known[chunk] == PS_KNOWN_NOTHING)
			mark_free(extent, chunk, 1);
		extent->examined = next_chunk(extent, chunk);
	}
	return 0;
}

bool ps_extent_is_empty(const struct ps_extent *extent)
{
	return extent->examined == extent->chunks && extent->free_count == extent->chunks;
}

int ps_extent_check_empty(struct ps_extent *extent, uint64_t *looked, bool *empty,
                          struct ps_heap_need *need)
{
	const int rc = examine_chunks(extent, CHUNKS_PER_SLICE, need);

	*empty = ps_extent_is_empty(extent);
	/* One object is enough to say that the extent is not empty. */
	for (; *looked < extent->examined; ++*looked)
		if (extent->known[*looked] != PS_KNOWN_FREE)
			return 0;
	if (rc || extent->examined == extent->chunks)
		return rc;
	return PS_HEAP_YIELD;
}

/* Scans entries, but no bitmaps, for free chunks. This finds chunks that were never used and chunks
 * of freed large objects. */
static int scan_entries(struct ps_extent *extent, struct ps_heap_need *need)
{
	const uint64_t before = extent->free_count;

	for (unsigned count = CHUNKS_PER_SLICE; count > 0 && extent->scanned < extent->chunks;
	     count--) {
		const uint64_t chunk = extent->scanned;
		const struct ps_heap_entry *entry = &extent->entries[chunk];

		if (extent->known[chunk] == PS_KNOWN_NOTHING) {
			int rc = ps_heap_require(extent, entry, sizeof(*entry), need);

			if (!rc && entry->state != PS_CHUNK_RUN)
				rc = ps_chunk_ensure_known(extent, chunk, need);
			if (rc)
				return rc;
			if (entry->state == PS_CHUNK_FREE)
				mark_free(extent, chunk, 1);
		}
		extent->scanned = next_chunk(extent, chunk);
		if (extent->free_count > before + PEEK)
			break;
	}
	return 0;
}

/* --- finding room --- */

/* Finds `span` consecutive chunks that are known to be free. */
static bool find_free_chunks(struct ps_extent *extent, uint64_t span, uint64_t *chunk)
{
	const uint8_t *known = extent->known;
	uint64_t row = 0;

	if (extent->free_count < span)
		return false;
	while (known[extent->lowest_free_chunk] != PS_KNOWN_FREE)
		extent->lowest_free_chunk++;
	for (uint64_t at = extent->lowest_free_chunk; at < extent->chunks; at++) {
		row = known[at] == PS_KNOWN_FREE ? row + 1 : 0;
		if (row == span) {
			*chunk = at + 1 - span;
			return true;
		}
	}
	return false;
}

static int find_in_extent(struct ps_extent *extent, uint64_t span, uint64_t *chunk,
                          struct ps_heap_need *need)
{
	int rc;

	if (find_free_chunks(extent, span, chunk))
		return 0;
	if (extent->scanned < extent->chunks)
		rc = scan_entries(extent, need);
	else if (extent->examined < extent->chunks)
		rc = examine_chunks(extent, CHUNKS_PER_SLICE, need);
	else
		return PS_HEAP_GROW;
	return rc ? rc : PS_HEAP_YIELD;
}

/* Finds `span` consecutive free chunks. Returns 0, a PS_HEAP_… result or EHEAP. */
static int find_in_heap(struct perseas_heap *heap, uint64_t span, struct ps_extent **extent,
                        uint64_t *chunk, struct ps_heap_need *need)
{
	int rc = PS_HEAP_GROW;

	need->chunks = span;
	need->extent_count = heap->extent_count;
	for (unsigned i = 0; i < heap->extent_count && rc == PS_HEAP_GROW; i++) {
		*extent = heap->extents[i];
		rc = find_in_extent(*extent, span, chunk, need);
	}
	/* The commit will store to the chunk's entry and bitmap, so these must be in memory. */
	if (!rc)
		rc = ps_heap_require(*extent, &(*extent)->entries[*chunk],
		                     sizeof(struct ps_heap_entry), need);
	if (!rc)
		rc = ps_heap_require(*extent, ps_chunk_bits(*extent, *chunk),
		                     PS_CHUNK_WORDS * sizeof(uint64_t), need);
	if (!rc && ps_bits_any(ps_chunk_bits(*extent, *chunk), PS_CHUNK_WORDS))
		rc = ps_heap_fail_damaged_chunk(*extent, *chunk, "is free, and has objects");
	return rc;
}

int ps_run_find_free(struct perseas_heap *heap, struct ps_bin *bin, struct ps_run **run,
                     struct ps_heap_need *need)
{
	struct ps_extent *extent;
	uint64_t chunk;
	int rc = 0;

	for (unsigned i = 0; i < heap->extent_count && !bin->open_runs && !rc; i++)
		rc = examine_chunks(heap->extents[i], PEEK, need);
	if (rc)
		return rc;
	*run = bin->open_runs;
	if (*run)
		return 0;
	rc = find_in_heap(heap, 1, &extent, &chunk, need);
	if (rc)
		return rc;
	*run = create_run(extent, chunk, bin);
	if (!*run)
		return ps_fail(heap->p, PERSEAS_ENOMEM, "no memory for a run of a heap");
	extent->free_count--;
	return 0;
}

int ps_large_allocate(struct perseas_heap *heap, uint64_t span, uint64_t type,
                      struct ps_extent **extent, uint64_t *chunk, struct ps_heap_need *need)
{
	int rc = find_in_heap(heap, span, extent, chunk, need);

	if (rc)
		return rc;
	memset((*extent)->known + *chunk, PS_KNOWN_TAIL, span);
	(*extent)->known[*chunk] = PS_KNOWN_LARGE;
	(*extent)->spans[*chunk] = (uint32_t)span;
	(*extent)->types[*chunk] = type;
	(*extent)->free_count -= span;
	return 0;
}
