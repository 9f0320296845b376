/*
 * chunks.c - what is in the chunks of a heap, learned from the metadata when it is needed, and
 * which of them have room. Allocation calls it, with the heap's lock; it must not wait, and touches
 * no metadata before it has made sure that this is here.
 */
#include "heap.h"

#include "../core/demand.h"

#include <stdlib.h>

enum {
	SLICE = 4096, /* chunks that are looked at before others may have the lock */
	PEEK = 32,    /* chunks that are looked at for room before a free one is taken */
	AHEAD = 65536 /* bytes that are brought at once */
};

int ps_heap_damaged(const struct ps_extent *extent, uint64_t chunk, const char *fault)
{
	return ps_fail(extent->heap->p, PERSEAS_EHEAP, "chunk %llu of heap '%s', extent %u, %s",
	               (unsigned long long)chunk, extent->heap->name, extent->index, fault);
}

int ps_heap_here(struct ps_extent *extent, const void *at, uint64_t length, struct ps_bring *bring)
{
	struct perseas *p = extent->heap->p;
	const uint64_t start = (uint64_t)(uintptr_t)at, end = extent->meta.end;
	struct ps_segment segment = { .id = extent->meta.segment };
	uint64_t run;
	bool here;

	if (extent->whole)
		return 0;
	if (!ps_demand_lacks(p, &segment)) {
		extent->whole = true;
		return 0;
	}
	run = ps_demand_run(p, &segment, start - extent->meta.start, length, &here);
	if (here && run >= length)
		return 0;
	bring->start = start;
	bring->end = end - start > AHEAD && length < AHEAD ? start + AHEAD : start + length;
	if (bring->end > end)
		bring->end = end;
	return PS_HEAP_BRING;
}

/* --- runs --- */

static void list_run(struct ps_run *run)
{
	struct ps_bin *bin = run->bin;

	run->previous = NULL;
	run->next = bin->runs;
	if (run->next)
		run->next->previous = run;
	bin->runs = run;
}

static void unlist_run(struct ps_run *run)
{
	if (run->previous)
		run->previous->next = run->next;
	else
		run->bin->runs = run->next;
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

/* A run of the chunk, with what the metadata says of its objects. */
static struct ps_run *run_new(struct ps_extent *extent, uint64_t chunk, struct ps_bin *bin)
{
	const unsigned objects = ps_class_objects(bin->class), words = (objects + 63) / 64;
	struct ps_run *run = calloc(1, sizeof(*run) + (size_t)2 * words * sizeof(uint64_t));

	if (!run)
		return NULL;
	run->bin = bin;
	run->extent = extent;
	run->chunk = (uint32_t)chunk;
	run->objects = (uint16_t)objects;
	run->words = (uint16_t)words;
	run->leaving = run->taken + words;
	memcpy(run->taken, ps_chunk_bits(extent, chunk), words * sizeof(uint64_t));
	/* Bits behind the last object are never free. */
	if (objects % 64)
		run->taken[words - 1] |= ~(uint64_t)0 << objects % 64;
	for (unsigned i = 0; i < words; i++)
		run->room += (uint16_t)__builtin_popcountll(~run->taken[i]);
	extent->known[chunk] = PS_KNOWN_RUN;
	extent->runs[chunk] = run;
	if (run->room)
		list_run(run);
	return run;
}

unsigned ps_run_first(struct ps_run *run)
{
	unsigned word = run->first;

	while (!~run->taken[word])
		word++;
	run->first = (uint16_t)word;
	return word * 64 + (unsigned)__builtin_ctzll(~run->taken[word]);
}

void ps_run_take(struct ps_run *run, unsigned index)
{
	run->taken[index / 64] |= (uint64_t)1 << index % 64;
	if (!--run->room)
		unlist_run(run);
}

static void set_free(struct ps_extent *extent, uint64_t chunk, uint64_t count)
{
	memset(extent->known + chunk, PS_KNOWN_FREE, count);
	extent->free += count;
	if (chunk < extent->lowest)
		extent->lowest = chunk;
}

void ps_run_release(struct ps_run *run, unsigned word, uint64_t bits)
{
	if (!bits)
		return;
	if (!run->room)
		list_run(run);
	run->taken[word] &= ~bits;
	run->room += (uint16_t)ps_bits_count(bits);
	if (word < run->first)
		run->first = (uint16_t)word;
	if (run->room < run->objects)
		return;
	unlist_run(run);
	run->extent->runs[run->chunk] = NULL;
	set_free(run->extent, run->chunk, 1);
	free(run);
}

void ps_large_release(struct ps_extent *extent, uint64_t chunk)
{
	set_free(extent, chunk, extent->spans[chunk]);
}

/* --- learning what a chunk is --- */

static int load_run(struct ps_extent *extent, uint64_t chunk, struct ps_bring *bring)
{
	const struct ps_heap_entry *entry = &extent->entries[chunk];
	const uint64_t *bits = ps_chunk_bits(extent, chunk);
	struct ps_run *run = NULL;
	struct ps_bin *bin;
	const char *fault;
	int rc = ps_heap_here(extent, bits, PS_CHUNK_WORDS * sizeof(*bits), bring);

	if (rc)
		return rc;
	fault = ps_heap_bits_fault(entry, bits);
	if (fault)
		return ps_heap_damaged(extent, chunk, fault);
	if (!ps_bits_any(bits, PS_CHUNK_WORDS))
		return 0;
	bin = ps_bin_get(extent->heap, entry->class, entry->type);
	if (bin)
		run = run_new(extent, chunk, bin);
	if (!run)
		return ps_fail(extent->heap->p, PERSEAS_ENOMEM, "no memory for a run of a heap");
	run->recorded = true;
	return 0;
}

static int load_large(struct ps_extent *extent, uint64_t chunk)
{
	const uint64_t span = extent->entries[chunk].span;

	for (uint64_t i = 1; i < span; i++)
		if (extent->known[chunk + i] != PS_KNOWN_NOT)
			return ps_heap_damaged(extent, chunk, "reaches over another object");
	memset(extent->known + chunk, PS_KNOWN_TAIL, span);
	extent->known[chunk] = PS_KNOWN_LARGE;
	extent->spans[chunk] = (uint32_t)span;
	extent->types[chunk] = extent->entries[chunk].type;
	return 0;
}

/* A chunk without objects stays as it was: free, or behind the first of a large object. Only who
 * comes from the chunks before it can tell. */
int ps_chunk_learn(struct ps_extent *extent, uint64_t chunk, struct ps_bring *bring)
{
	const struct ps_heap_entry *entry = &extent->entries[chunk];
	const char *fault;
	int rc;

	rc = ps_heap_here(extent, entry, sizeof(*entry), bring);
	if (rc)
		return rc;
	fault = ps_heap_entry_fault(entry, chunk, extent->chunks);
	if (fault)
		return ps_heap_damaged(extent, chunk, fault);
	if (entry->state == PS_CHUNK_RUN)
		return load_run(extent, chunk, bring);
	return entry->state == PS_CHUNK_LARGE ? load_large(extent, chunk) : 0;
}

static uint64_t behind(const struct ps_extent *extent, uint64_t chunk)
{
	const uint8_t known = extent->known[chunk];

	return chunk +
	       (known == PS_KNOWN_LARGE || known == PS_KNOWN_FREED ? extent->spans[chunk] : 1);
}

/* Looks at some chunks that are not known yet: 0 when that was done. */
static int examine(struct ps_extent *extent, unsigned count, struct ps_bring *bring)
{
	for (; count > 0 && extent->examined < extent->chunks; count--) {
		const uint64_t chunk = extent->examined;
		int rc = ps_chunk_load(extent, chunk, bring);

		if (rc)
			return rc;
		if (extent->known[chunk] == PS_KNOWN_NOT)
			set_free(extent, chunk, 1);
		extent->examined = behind(extent, chunk);
	}
	return 0;
}

bool ps_extent_is_empty(const struct ps_extent *extent)
{
	return extent->examined == extent->chunks && extent->free == extent->chunks;
}

int ps_extent_look(struct ps_extent *extent, uint64_t *looked, bool *empty, struct ps_bring *bring)
{
	const int rc = examine(extent, SLICE, bring);

	*empty = ps_extent_is_empty(extent);
	/* One object is enough: the rest need not be known. */
	for (; *looked < extent->examined; ++*looked)
		if (extent->known[*looked] != PS_KNOWN_FREE)
			return 0;
	if (rc || extent->examined == extent->chunks)
		return rc;
	return PS_HEAP_AGAIN;
}

/* Looks for chunks that were never used, or large objects that were freed: at entries only. */
static int look_for_free(struct ps_extent *extent, struct ps_bring *bring)
{
	const uint64_t before = extent->free;

	for (unsigned count = SLICE; count > 0 && extent->fresh < extent->chunks; count--) {
		const uint64_t chunk = extent->fresh;
		const struct ps_heap_entry *entry = &extent->entries[chunk];

		if (extent->known[chunk] == PS_KNOWN_NOT) {
			int rc = ps_heap_here(extent, entry, sizeof(*entry), bring);

			if (!rc && entry->state != PS_CHUNK_RUN)
				rc = ps_chunk_load(extent, chunk, bring);
			if (rc)
				return rc;
			if (entry->state == PS_CHUNK_FREE)
				set_free(extent, chunk, 1);
		}
		extent->fresh = behind(extent, chunk);
		if (extent->free > before + PEEK)
			break;
	}
	return 0;
}

/* --- finding room --- */

static bool find_known(struct ps_extent *extent, uint64_t span, uint64_t *chunk)
{
	const uint8_t *known = extent->known;
	uint64_t row = 0;

	if (extent->free < span)
		return false;
	while (known[extent->lowest] != PS_KNOWN_FREE)
		extent->lowest++;
	for (uint64_t at = extent->lowest; at < extent->chunks; at++) {
		row = known[at] == PS_KNOWN_FREE ? row + 1 : 0;
		if (row == span) {
			*chunk = at + 1 - span;
			return true;
		}
	}
	return false;
}

static int find_in_extent(struct ps_extent *extent, uint64_t span, uint64_t *chunk,
                          struct ps_bring *bring)
{
	int rc;

	if (find_known(extent, span, chunk))
		return 0;
	if (extent->fresh < extent->chunks)
		rc = look_for_free(extent, bring);
	else if (extent->examined < extent->chunks)
		rc = examine(extent, SLICE, bring);
	else
		return PS_HEAP_GROW;
	return rc ? rc : PS_HEAP_AGAIN;
}

static int find_chunks(struct perseas_heap *heap, uint64_t span, struct ps_extent **extent,
                       uint64_t *chunk, struct ps_bring *bring)
{
	int rc = PS_HEAP_GROW;

	bring->chunks = span;
	bring->had = heap->extent_count;
	for (unsigned i = 0; i < heap->extent_count && rc == PS_HEAP_GROW; i++) {
		*extent = heap->extents[i];
		rc = find_in_extent(*extent, span, chunk, bring);
	}
	/* Its entry and its bits are what a commit stores. */
	if (!rc)
		rc = ps_heap_here(*extent, &(*extent)->entries[*chunk],
		                  sizeof(struct ps_heap_entry), bring);
	if (!rc)
		rc = ps_heap_here(*extent, ps_chunk_bits(*extent, *chunk),
		                  PS_CHUNK_WORDS * sizeof(uint64_t), bring);
	if (!rc && ps_bits_any(ps_chunk_bits(*extent, *chunk), PS_CHUNK_WORDS))
		rc = ps_heap_damaged(*extent, *chunk, "is free, and has objects");
	return rc;
}

int ps_run_find(struct perseas_heap *heap, struct ps_bin *bin, struct ps_run **run,
                struct ps_bring *bring)
{
	struct ps_extent *extent;
	uint64_t chunk;
	int rc = 0;

	for (unsigned i = 0; i < heap->extent_count && !bin->runs && !rc; i++)
		rc = examine(heap->extents[i], PEEK, bring);
	if (rc)
		return rc;
	*run = bin->runs;
	if (*run)
		return 0;
	rc = find_chunks(heap, 1, &extent, &chunk, bring);
	if (rc)
		return rc;
	*run = run_new(extent, chunk, bin);
	if (!*run)
		return ps_fail(heap->p, PERSEAS_ENOMEM, "no memory for a run of a heap");
	extent->free--;
	return 0;
}

int ps_large_find(struct perseas_heap *heap, uint64_t span, uint64_t type,
                  struct ps_extent **extent, uint64_t *chunk, struct ps_bring *bring)
{
	int rc = find_chunks(heap, span, extent, chunk, bring);

	if (rc)
		return rc;
	memset((*extent)->known + *chunk, PS_KNOWN_TAIL, span);
	(*extent)->known[*chunk] = PS_KNOWN_LARGE;
	(*extent)->spans[*chunk] = (uint32_t)span;
	(*extent)->types[*chunk] = type;
	(*extent)->free -= span;
	return 0;
}
