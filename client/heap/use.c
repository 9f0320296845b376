/*
 * use.c - counts what a heap contains, by class and type, and checks its metadata (use.h). The
 * command calls it with what a mirror sent. It accepts any bytes, and takes time proportional to
 * their number.
 */
#include "use.h"

#include "../../proto/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The extent that is being counted. */
struct counting {
	struct ps_heap_usage *use;
	const char *name; /* name of the heap */
	unsigned index;   /* index of the extent */
	uint64_t chunks;
	const struct ps_heap_entry *entries;
	const uint64_t *bitmaps;
	uint64_t free_row; /* number of consecutive free chunks that were counted last */
};

static bool __attribute__((format(printf, 2, 3)))
set_fault(struct ps_heap_usage *use, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(use->fault, sizeof(use->fault), format, args);
	va_end(args);
	/* Names may contain any bytes, and the sentence goes to a terminal. */
	ps_make_printable(use->fault);
	return false;
}

static bool set_chunk_fault(const struct counting *c, uint64_t chunk, const char *fault)
{
	return set_fault(c->use, "chunk %llu of heap '%s', extent %u, %s",
	                 (unsigned long long)chunk, c->name, c->index, fault);
}

/* --- rows --- */

static int compare_rows(const void *a, const void *b)
{
	const struct ps_usage_row *x = a, *y = b;

	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	return x->type == y->type ? 0 : x->type < y->type ? -1 : 1;
}

static void merge_rows(struct ps_heap_usage *use)
{
	size_t kept = 0;

	if (!use->count)
		return;
	qsort(use->rows, use->count, sizeof(*use->rows), compare_rows);
	for (size_t i = 1; i < use->count; i++) {
		struct ps_usage_row *last = &use->rows[kept];
		const struct ps_usage_row *row = &use->rows[i];

		if (compare_rows(last, row) != 0) {
			use->rows[++kept] = *row;
			continue;
		}
		last->chunks += row->chunks;
		last->objects += row->objects;
		last->bytes += row->bytes;
	}
	use->count = kept + 1;
}

/* Adds a row. Full rows are merged, and grow only if that freed less than half of them. So counting
 * stays linear even if each chunk has a type of its own. */
static bool add_row(struct ps_heap_usage *use, const struct ps_usage_row *row)
{
	const bool full = use->count == use->room;
	struct ps_usage_row *rows;
	size_t room;

	if (full)
		merge_rows(use);
	if (full && 2 * use->count >= use->room) {
		room = use->room ? 2 * use->room : 64;
		rows = realloc(use->rows, room * sizeof(*rows));
		if (!rows)
			return false;
		use->rows = rows;
		use->room = room;
	}
	use->rows[use->count++] = *row;
	use->objects += row->objects;
	use->used += row->bytes;
	return true;
}

/* --- chunks --- */

static const uint64_t *chunk_bits(const struct counting *c, uint64_t chunk)
{
	return c->bitmaps + chunk * PS_CHUNK_WORDS;
}

/* Notes the roots that lead to an object of this chunk. */
static void record_roots(const struct counting *c, uint64_t chunk, const struct ps_usage_row *row)
{
	const uint64_t start = ps_heap_place(c->index, chunk * PS_CHUNK);

	for (unsigned i = 0; i < PS_ROOTS; i++) {
		const struct ps_heap_root *root = &c->use->root[i];
		const uint64_t offset = root->place - start;
		uint64_t object;

		if (!root->name[0] || root->place < start || offset >= PS_CHUNK ||
		    root->type != row->type)
			continue;
		if (row->class == PS_USAGE_LARGE) {
			c->use->rooted |= (uint64_t)!offset << i;
			continue;
		}
		object = offset / ps_class_sizes[row->class];
		if (offset % ps_class_sizes[row->class] == 0)
			c->use->rooted |= (chunk_bits(c, chunk)[object / 64] >> object % 64 & 1)
			                  << i;
	}
}

static void count_free(struct counting *c, uint64_t chunks)
{
	c->free_row += chunks;
	c->use->free += chunks * PS_CHUNK;
	if (c->free_row * PS_CHUNK > c->use->longest)
		c->use->longest = c->free_row * PS_CHUNK;
}

static bool count_run(struct counting *c, uint64_t chunk)
{
	const struct ps_heap_entry *entry = &c->entries[chunk];
	struct ps_usage_row row = { entry->class, entry->type, 1, 0, 0 };

	for (unsigned i = 0; i < PS_CHUNK_WORDS; i++)
		row.objects += (unsigned)__builtin_popcountll(chunk_bits(c, chunk)[i]);
	row.bytes = row.objects * ps_class_sizes[entry->class];
	c->free_row = 0;
	c->use->gaps += PS_CHUNK - row.bytes;
	record_roots(c, chunk, &row);
	return add_row(c->use, &row);
}

static bool count_large(struct counting *c, uint64_t chunk)
{
	const struct ps_heap_entry *entry = &c->entries[chunk];
	const struct ps_usage_row row = { PS_USAGE_LARGE, entry->type, entry->span, 1,
		                          (uint64_t)entry->span * PS_CHUNK };

	for (uint64_t i = chunk; i < chunk + entry->span; i++) {
		const char *fault = ps_heap_covered_fault(c->entries, chunk_bits(c, i), chunk, i,
		                                          c->chunks);

		if (fault)
			return set_chunk_fault(c, i, fault);
	}
	c->free_row = 0;
	c->use->large++;
	record_roots(c, chunk, &row);
	return add_row(c->use, &row);
}

static bool count_chunk(struct counting *c, uint64_t chunk)
{
	const struct ps_heap_entry *entry = &c->entries[chunk];
	const char *fault = ps_heap_entry_fault(entry, chunk, c->chunks);

	if (!fault)
		fault = ps_heap_bits_fault(entry, chunk_bits(c, chunk));
	if (fault)
		return set_chunk_fault(c, chunk, fault);
	if (entry->state == PS_CHUNK_LARGE)
		return count_large(c, chunk);
	if (entry->state == PS_CHUNK_RUN && ps_bits_any(chunk_bits(c, chunk), PS_CHUNK_WORDS))
		return count_run(c, chunk);
	count_free(c, 1);
	return true;
}

/* --- extents and roots --- */

static bool count_extent(struct counting *c, const struct ps_usage_extent *extent)
{
	const struct ps_heap_head *head = (const void *)extent->meta;
	const char *fault = "is not the metadata of a heap";

	if (extent->meta_size >= ps_heap_meta_size(1))
		fault = ps_heap_head_fault(head, c->index, extent->meta_size, extent->data_size);
	if (fault)
		return set_fault(c->use, "segment '%s.meta.%u' of heap '%s' %s", c->name, c->index,
		                 c->name, fault);
	c->chunks = head->chunks;
	c->entries = (const void *)(extent->meta + PS_HEAP_ENTRIES);
	c->bitmaps = (const void *)(extent->meta + ps_heap_bitmaps_offset(head->chunks));
	c->use->size += c->chunks * PS_CHUNK;
	if (!c->index)
		memcpy(c->use->root, extent->meta + PS_HEAP_ROOTS, sizeof(c->use->root));
	for (uint64_t chunk = 0; chunk < c->chunks;) {
		const struct ps_heap_entry *entry = &c->entries[chunk];

		if (!count_chunk(c, chunk))
			return false;
		chunk += entry->state == PS_CHUNK_LARGE ? entry->span : 1;
	}
	return true;
}

static bool check_root(struct ps_heap_usage *use, const char *name, unsigned place)
{
	const struct ps_heap_root *root = &use->root[place];
	const char *fault = ps_heap_root_fault(root);

	for (unsigned i = 0; i < place && !fault; i++)
		if (root->name[0] && !strcmp(root->name, use->root[i].name))
			fault = "has the same name as another root";
	if (fault)
		return set_fault(use, "root %u of heap '%s' %s", place, name, fault);
	if (!root->name[0])
		return true;
	use->roots++;
	if (!(use->rooted >> place & 1) && !use->fault[0])
		set_fault(use, "root '%s' of heap '%s' does not lead to an object of type %llu",
		          root->name, name, (unsigned long long)root->type);
	return true;
}

bool ps_heap_usage_count(struct ps_heap_usage *use, const char *name,
                         const struct ps_usage_extent *extents, unsigned count)
{
	memset(use, 0, sizeof(*use));
	for (; use->extents < count; use->extents++) {
		struct counting counting = { .use = use, .name = name, .index = use->extents };

		if (!count_extent(&counting, &extents[use->extents]))
			return false;
	}
	merge_rows(use);
	for (unsigned i = 0; i < PS_ROOTS; i++)
		if (!check_root(use, name, i))
			return false;
	return true;
}

void ps_heap_usage_free(struct ps_heap_usage *use)
{
	free(use->rows);
	use->rows = NULL;
	use->count = use->room = 0;
}
