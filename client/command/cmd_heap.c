/*
 * cmd_heap.c - perseas heap: shows what the heaps of a store are used for, by size and type, and
 * how fragmented they are, while the store runs. It reads the heaps' metadata from one mirror, and
 * no object. client/heap/use.h checks what the mirror sends.
 */
#include "command.h"
#include "live/live_copy.h"
#include "../heap/use.h"
#include "../../proto/base/json.h"

#include <inttypes.h>
#include <string.h>

struct heaps {
	/* Must be the first member: is_wanted casts it to the whole struct. */
	struct ps_live_copy_wish wish;
	const struct ps_args *args;
	struct ps_live_copy copy;
	struct ps_json *json; /* NULL: print text */
	unsigned shown;
};

/* --- finding heaps by the names of segments --- */

static const char META[] = ".meta.";

/* Returns the length of the heap's name and sets *index if the segment is named like the metadata
 * of an extent, else returns 0. */
static size_t parse_metadata_name(const char *segment, unsigned *index)
{
	char name[PS_NAME_MAX + 1];
	const char *at = NULL;

	for (const char *next = strstr(segment, META); next; next = strstr(next + 1, META))
		at = next;
	for (*index = 0; at && *index < PS_HEAP_EXTENTS; ++*index) {
		snprintf(name, sizeof(name), "%s%u", META, *index);
		if (!strcmp(at, name) && at - segment <= PS_HEAP_NAME)
			return (size_t)(at - segment);
	}
	return 0;
}

static const Perseas__Segment *find_heap_segment(const Perseas__Header *header, const char *heap,
                                                 const char *part, unsigned index)
{
	char name[PS_NAME_MAX + 1];

	snprintf(name, sizeof(name), "%s.%s.%u", heap, part, index);
	for (size_t k = 0; k < header->n_segments; k++)
		if (!strcmp(header->segments[k]->name, name))
			return header->segments[k];
	return NULL;
}

/* Returns true if the segment is named like the metadata of a heap that was asked for. Sets the
 * heap's name and the index of the extent. */
static bool is_metadata_of_heap(const struct ps_args *args, const char *segment,
                                char name[PS_HEAP_NAME + 1], unsigned *index)
{
	const size_t length = parse_metadata_name(segment, index);

	snprintf(name, PS_HEAP_NAME + 1, "%.*s", (int)length, segment);
	return length && (!args->heap || !strcmp(args->heap, name));
}

/* Accepts a metadata segment only if its size fits its extent: an application's segment may have
 * such a name, and any size. */
static bool is_wanted(const struct ps_live_copy_wish *wish, const Perseas__Header *header,
                      const Perseas__Segment *segment)
{
	const Perseas__Segment *data;
	char name[PS_HEAP_NAME + 1];
	unsigned index;

	if (!is_metadata_of_heap(((const struct heaps *)wish)->args, segment->name, name, &index))
		return false;
	data = find_heap_segment(header, name, "heap", index);
	return data && data->size && data->size % PS_CHUNK == 0 && data->size <= PS_EXTENT_MAX &&
	       segment->size == ps_heap_meta_size(data->size / PS_CHUNK);
}

/* Finds the extents 0, 1, … up to the first that is missing. Returns NULL, or what is wrong with
 * the last extent found. */
static const char *find_extents(const struct ps_live_copy *copy, const char *heap,
                                struct ps_usage_extent extents[PS_HEAP_EXTENTS], unsigned *count)
{
	for (*count = 0; *count < PS_HEAP_EXTENTS; ++*count) {
		const Perseas__Segment *meta = find_heap_segment(copy->header, heap, "meta",
		                                                 *count);
		const Perseas__Segment *data = find_heap_segment(copy->header, heap, "heap",
		                                                 *count);

		if (!meta)
			break;
		if (!data)
			return "has no segment of objects";
		if (!copy->segments[meta->id])
			return "is not the metadata of a heap: its size is another";
		extents[*count] = (struct ps_usage_extent){ copy->segments[meta->id], meta->size,
			                                    data->size };
	}
	return NULL;
}

/* --- output --- */

/* Returns the unused bytes in the chunks of this row. */
static uint64_t unused_chunk_bytes(const struct ps_usage_row *row)
{
	return row->chunks * PS_CHUNK - row->bytes;
}

static void print_rows(const struct ps_heap_usage *use)
{
	struct ps_table table = { 0 };
	char bytes[PS_SIZE_TEXT], gaps[PS_SIZE_TEXT];

	if (!use->count)
		return;
	ps_table_add_heads(&table, "  SIZE|TYPE|OBJECTS|BYTES|CHUNKS|GAPS|");
	for (size_t i = 0; i < use->count; i++) {
		const struct ps_usage_row *row = &use->rows[i];

		if (row->class == PS_USAGE_LARGE)
			ps_table_set_cell(&table, 0, "  large");
		else
			ps_table_set_cell(&table, 0, "  %u", (unsigned)ps_class_sizes[row->class]);
		ps_table_set_cell(&table, 1, "%" PRIu64, row->type);
		ps_table_set_cell(&table, 2, "%" PRIu64, row->objects);
		ps_table_set_cell(&table, 3, "%s", ps_size_text(bytes, row->bytes));
		ps_table_set_cell(&table, 4, "%" PRIu64, row->chunks);
		ps_table_set_cell(&table, 5, "%s", ps_size_text(gaps, unused_chunk_bytes(row)));
		ps_table_set_cell(&table, 6, "%u %%",
		                  ps_percent(unused_chunk_bytes(row), row->chunks * PS_CHUNK));
	}
	ps_table_print(&table, stdout);
}

static void print_heap(const struct heaps *heaps, const char *name, const struct ps_heap_usage *use)
{
	char size[PS_SIZE_TEXT], used[PS_SIZE_TEXT], gaps[PS_SIZE_TEXT], unused[PS_SIZE_TEXT],
		longest[PS_SIZE_TEXT];

	printf("heap '%s' of store '%s' on %s, as it was at epoch %" PRIu64 ", transaction %" PRIu64
	       ": %s in %u extent%s\n",
	       name, heaps->args->store, heaps->args->from_mirror, heaps->copy.slot.epoch,
	       heaps->copy.slot.seq, ps_size_text(size, use->size), use->extents,
	       ps_plural(use->extents));
	printf("  %" PRIu64 " object%s %s, %s are gaps (%u %%); %s are free, of which %s lie "
	       "in a row; %u root%s\n",
	       use->objects, use->objects == 1 ? " takes" : "s take", ps_size_text(used, use->used),
	       ps_size_text(gaps, use->gaps), ps_percent(use->gaps, use->size - use->free),
	       ps_size_text(unused, use->free), ps_size_text(longest, use->longest), use->roots,
	       ps_plural(use->roots));
	print_rows(use);
}

static void rows_json(struct ps_json *json, const struct ps_heap_usage *use)
{
	ps_json_begin(json, "use", '[');
	for (size_t i = 0; i < use->count; i++) {
		const struct ps_usage_row *row = &use->rows[i];
		const bool large = row->class == PS_USAGE_LARGE;

		ps_json_begin(json, NULL, '{');
		ps_json_number_if(json, "size", !large, large ? 0 : ps_class_sizes[row->class]);
		ps_json_number(json, "type", row->type);
		ps_json_number(json, "objects", row->objects);
		ps_json_number(json, "bytes", row->bytes);
		ps_json_number(json, "chunks", row->chunks);
		ps_json_number(json, "gaps", unused_chunk_bytes(row));
		ps_json_end(json, '}');
	}
	ps_json_end(json, ']');
}

static void roots_json(struct ps_json *json, const struct ps_heap_usage *use)
{
	ps_json_begin(json, "roots", '[');
	for (unsigned i = 0; i < PS_ROOTS; i++) {
		if (!use->root[i].name[0])
			continue;
		ps_json_begin(json, NULL, '{');
		ps_json_text(json, "name", use->root[i].name);
		ps_json_number(json, "type", use->root[i].type);
		ps_json_end(json, '}');
	}
	ps_json_end(json, ']');
}

static void heap_json(const struct heaps *heaps, const char *name, const struct ps_heap_usage *use)
{
	struct ps_json *json = heaps->json;

	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "heap", name);
	ps_json_number(json, "extents", use->extents);
	ps_json_number(json, "size", use->size);
	ps_json_number(json, "objects", use->objects);
	ps_json_number(json, "used", use->used);
	ps_json_number(json, "free", use->free);
	ps_json_number(json, "gaps", use->gaps);
	ps_json_number(json, "large", use->large);
	ps_json_number(json, "free_in_a_row", use->longest);
	rows_json(json, use);
	roots_json(json, use);
	ps_json_end(json, '}');
}

/* --- all of it --- */

static enum ps_exit complain_of_damage(const struct heaps *heaps, const char *fault)
{
	return ps_complain(PS_EXIT_NO, "%s, store '%s': %s", heaps->args->from_mirror,
	                   heaps->args->store, fault);
}

static enum ps_exit show_heap(struct heaps *heaps, const char *heap_name)
{
	struct ps_usage_extent extents[PS_HEAP_EXTENTS];
	struct ps_heap_usage use = { 0 };
	enum ps_exit status = PS_EXIT_OK;
	unsigned count;
	const char *fault = find_extents(&heaps->copy, heap_name, extents, &count);

	/* Without a heap's heap_name on the command line, a segment with such a heap_name need not
	 * be a heap's. */
	if (fault && !count && !heaps->args->heap)
		return PS_EXIT_OK;
	heaps->shown++;
	if (fault)
		return ps_complain(PS_EXIT_NO, "%s, store '%s': segment '%s.meta.%u' %s",
		                   heaps->args->from_mirror, heaps->args->store, heap_name, count,
		                   fault);
	if (ps_heap_usage_count(&use, heap_name, extents, count))
		(heaps->json ? heap_json : print_heap)(heaps, heap_name, &use);
	else if (!use.fault[0])
		status = ps_complain(PS_EXIT_FAILURE, "out of memory");
	/* A heap can be printed and still be damaged: a root may point to no object. */
	if (use.fault[0])
		status = complain_of_damage(heaps, use.fault);
	ps_heap_usage_free(&use);
	return status;
}

static enum ps_exit show_heaps(struct heaps *heaps)
{
	const Perseas__Header *header = heaps->copy.header;
	enum ps_exit status = PS_EXIT_OK;

	for (size_t k = 0; k < header->n_segments; k++) {
		char name[PS_HEAP_NAME + 1];
		unsigned index;
		enum ps_exit worse;

		if (!is_metadata_of_heap(heaps->args, header->segments[k]->name, name, &index) ||
		    index)
			continue;
		worse = show_heap(heaps, name);
		status = worse > status ? worse : status;
	}
	if (!heaps->shown && heaps->args->heap)
		return ps_complain(PS_EXIT_NO, "store '%s' has no heap '%s'", heaps->args->store,
		                   heaps->args->heap);
	if (!heaps->shown)
		return ps_complain(PS_EXIT_NO, "store '%s' has no heap", heaps->args->store);
	return status;
}

static enum ps_exit show_all(struct heaps *heaps)
{
	struct ps_json *json = heaps->json;
	enum ps_exit status;

	if (!json)
		return show_heaps(heaps);
	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "store", heaps->args->store);
	ps_json_text(json, "mirror", heaps->args->from_mirror);
	ps_json_number(json, "epoch", heaps->copy.slot.epoch);
	ps_json_number(json, "seq", heaps->copy.slot.seq);
	ps_json_number(json, "bytes_read", heaps->copy.bytes);
	ps_json_begin(json, "heaps", '[');
	status = show_heaps(heaps);
	ps_json_end(json, ']');
	ps_json_end(json, '}');
	return status;
}

enum ps_exit ps_verb_heap(const struct ps_args *args)
{
	struct ps_json json = { .out = stdout };
	struct heaps heaps = { .wish.wants = is_wanted,
		               .args = args,
		               .json = args->json ? &json : NULL };
	struct ps_peers peers;
	enum ps_exit status = ps_peers_open_one(&peers, args->from_mirror, &args->options);

	if (status)
		return status;
	ps_bar_show_library_copies();
	status = ps_live_copy_take_wished(&heaps.copy, &peers, args->store, &heaps.wish);
	ps_bar_clear();
	if (!status) {
		status = show_all(&heaps);
		ps_live_copy_free(&heaps.copy);
	}
	ps_peers_close(&peers);
	return status;
}
