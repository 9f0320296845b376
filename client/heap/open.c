/*
 * open.c - opens and creates a heap, and makes it grow (trim.c makes it smaller). An extent exists
 * from the publish of its two segments until the transaction that destroys both. The number of
 * extents is recorded nowhere else: so if the owner died while the heap grew, the heap has either
 * the whole extent or nothing of it.
 */
#include "heap.h"

#include "../core/demand.h"
#include "../keeper/exclusive.h"
#include "../core/segment.h"
#include "../open/map.h"
#include "../core/cancel.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static const uint64_t DEFAULT_SIZE = (uint64_t)16 << 20; /* bytes of a new heap's first extent */

/* Formats the name of a segment of an extent; `part` is "heap" or "meta". */
static void format_segment_name(char *to, const char *heap, const char *part, unsigned index)
{
	snprintf(to, PS_NAME_MAX + 1, "%s.%s.%u", heap, part, index);
}

/* --- extents --- */

void ps_extent_free(struct ps_extent *extent)
{
	if (!extent)
		return;
	for (uint64_t i = 0; extent->runs && i < extent->chunks; i++)
		free(extent->runs[i]);
	free(extent->known);
	free(extent->runs);
	free(extent->spans);
	free(extent->types);
	free(extent);
}

static struct ps_extent *create_extent(struct perseas_heap *heap, unsigned index, uint64_t chunks)
{
	struct ps_extent *extent = calloc(1, sizeof(*extent));

	assert(chunks > 0);
	if (!extent)
		return NULL;
	extent->heap = heap;
	extent->index = index;
	extent->chunks = chunks;
	extent->lowest_free_chunk = chunks - 1;
	extent->known = calloc(chunks, sizeof(*extent->known));
	extent->runs = calloc(chunks, sizeof(struct ps_run *));
	extent->spans = calloc(chunks, sizeof(*extent->spans));
	extent->types = calloc(chunks, sizeof(*extent->types));
	if (extent->known && extent->runs && extent->spans && extent->types)
		return extent;
	ps_extent_free(extent);
	return NULL;
}

/* Adds `by` (1 or -1) to the pins of both segments of an extent. Pinned segments stay mapped.
 * Caller has admin. */
static void pin_segments(const struct perseas_heap *heap, unsigned index, int by)
{
	static const char *const parts[] = { "heap", "meta" };
	char name[PS_NAME_MAX + 1];

	ps_assert_admin(heap->p);
	for (unsigned i = 0; i < 2; i++) {
		format_segment_name(name, heap->name, parts[i], index);
		ps_segment_by_name(heap->p, name)->heap_count += (unsigned)by;
	}
}

/* Sets where the extent's segments are mapped. They are pinned. Caller holds p->lock or has
 * admin. */
static void set_extent_addresses(struct ps_extent *extent, void *data, void *meta)
{
	struct perseas *p = extent->heap->p;
	const char *name = extent->heap->name;
	char data_name[PS_NAME_MAX + 1], meta_name[PS_NAME_MAX + 1];
	struct ps_segment *segment;

	format_segment_name(data_name, name, "heap", extent->index);
	format_segment_name(meta_name, name, "meta", extent->index);
	segment = ps_segment_by_name(p, data_name);
	extent->segment = segment->id;
	extent->heap->has_moved |= ps_segment_start_address(segment) != segment->address;
	segment = ps_segment_by_name(p, meta_name);
	extent->heap->has_moved |= ps_segment_start_address(segment) != segment->address;
	extent->data = data;
	extent->entries = (struct ps_heap_entry *)((uint8_t *)meta + PS_HEAP_ENTRIES);
	extent->bitmaps = (uint64_t *)((uint8_t *)meta + ps_heap_bitmaps_offset(extent->chunks));
	extent->meta = (struct ps_mapped_extent){
		.start = ps_segment_start_address(segment),
		.end = ps_segment_start_address(segment) + segment->size,
		.segment_id = segment->id,
		.is_published = true,
		.is_ready = true,
	};
	if (!extent->index)
		extent->heap->roots = (struct ps_heap_root *)((uint8_t *)meta + PS_HEAP_ROOTS);
}

static void add_extent(struct perseas_heap *heap, struct ps_extent *extent)
{
	const unsigned count = heap->extent_count;

	ps_biased_lock(&heap->lock);
	heap->extents[count] = extent;
	/* The count is stored last: a thread that reads it without the lock finds all extents that
	 * it counts. */
	atomic_store_explicit(&heap->extent_count, count + 1, memory_order_release);
	ps_biased_unlock(&heap->lock);
}

/* --- creating extents --- */

static int fail_not_heap(const struct perseas_heap *heap, const char *segment, const char *fault)
{
	return ps_fail(heap->p, PERSEAS_EHEAP, "segment '%s' of heap '%s' %s", segment, heap->name,
	               fault);
}

/* Returns true if the store already has one of the two segments of an extent; *name is then its
 * name. */
static bool is_name_taken(const struct perseas_heap *heap, unsigned index, char *name)
{
	format_segment_name(name, heap->name, "heap", index);
	if (ps_segment_by_name(heap->p, name))
		return true;
	format_segment_name(name, heap->name, "meta", index);
	return ps_segment_by_name(heap->p, name) != NULL;
}

/* Argument of the callbacks of ps_map_create_and_publish_segments. */
struct extent_creation {
	struct perseas_heap *heap;
	struct ps_extent *extent; /* NULL once the heap has the extent */
};

static bool is_extent_missing(void *arg)
{
	const struct extent_creation *creation = arg;
	const struct perseas_heap *heap = creation->heap;
	char name[PS_NAME_MAX + 1];

	return heap->extent_count == creation->extent->index &&
	       !is_name_taken(heap, creation->extent->index, name);
}

static void fill_metadata(const struct ps_new_segments *new_segments, void *arg)
{
	const struct extent_creation *creation = arg;

	ps_heap_head_seal(new_segments->segments[1].addr, creation->extent->index,
	                  creation->extent->chunks);
}

static void add_new_extent(const struct ps_new_segments *new_segments, void *arg)
{
	struct extent_creation *creation = arg;

	pin_segments(creation->heap, creation->extent->index, 1);
	set_extent_addresses(creation->extent, new_segments->segments[0].addr,
	                     new_segments->segments[1].addr);
	add_extent(creation->heap, creation->extent);
	creation->extent = NULL;
}

/* Creates an extent and adds it to the heap, unless another thread did so in the meantime. */
static int make_extent(struct perseas_heap *heap, unsigned index, uint64_t chunks)
{
	struct extent_creation creation = { heap, create_extent(heap, index, chunks) };
	struct ps_new_segments new_segments = { .count = 2,
		                                .is_wanted = is_extent_missing,
		                                .fill = fill_metadata,
		                                .on_published = add_new_extent,
		                                .arg = &creation };
	int rc;

	if (!creation.extent)
		return ps_fail(heap->p, PERSEAS_ENOMEM, "no memory for an extent of heap '%s'",
		               heap->name);
	format_segment_name(new_segments.segments[0].name, heap->name, "heap", index);
	new_segments.segments[0].size = chunks * PS_CHUNK;
	format_segment_name(new_segments.segments[1].name, heap->name, "meta", index);
	new_segments.segments[1].size = ps_heap_meta_size(chunks);
	rc = ps_map_create_and_publish_segments(heap->p, &new_segments);
	ps_extent_free(creation.extent);
	return rc;
}

/* Returns 0 if the heap now has the extent, or if creating it may be tried again. Fails if a
 * segment of the application has the name of one of the extent's segments, because retrying would
 * then never end. */
static int check_extent_exists(struct perseas_heap *heap, unsigned index)
{
	char name[PS_NAME_MAX + 1];
	bool taken;

	if (heap->extent_count > index)
		return 0;
	/* While another thread gives the extent back, its segments still exist for a moment. */
	ps_admin_enter(heap->p);
	taken = heap->extent_count <= index && is_name_taken(heap, index, name);
	ps_admin_leave(heap->p);
	return taken ? fail_not_heap(heap, name,
	                             "exists and is not part of it: the heap can neither be "
	                             "created nor grow until that segment is destroyed")
	             : 0;
}

/* Sets *all to the number of chunks of all extents. Returns false if the number of extents is no
 * longer `extent_count`. */
static bool count_chunks(struct perseas_heap *heap, unsigned extent_count, uint64_t *all)
{
	bool same;

	*all = 0;
	ps_biased_lock(&heap->lock);
	same = heap->extent_count == extent_count;
	for (unsigned i = 0; same && i < extent_count; i++)
		*all += heap->extents[i]->chunks;
	ps_biased_unlock(&heap->lock);
	return same;
}

/* Adds an extent with at least `chunks` chunks, if the heap still has `had` extents. */
static int grow_heap(struct perseas_heap *heap, unsigned had, uint64_t chunks)
{
	const uint64_t most = heap->max_size / PS_CHUNK;
	uint64_t all, more;
	int rc;

	/* Another thread has changed the heap, so the caller searches it again. */
	if (!count_chunks(heap, had, &all))
		return 0;
	if (had == PS_HEAP_EXTENTS)
		return ps_fail(
			heap->p, PERSEAS_ELIMIT,
			"heap '%s' is full, and has grown %u times, the most that it can: free "
			"objects, or open another heap",
			heap->name, had - 1);
	more = all > chunks ? all : chunks;
	if (most && all + more > most)
		more = most > all ? most - all : 0;
	if (more > PS_EXTENT_MAX / PS_CHUNK)
		more = PS_EXTENT_MAX / PS_CHUNK;
	if (more < chunks)
		return ps_fail(heap->p, PERSEAS_ELIMIT,
		               "heap '%s' is full: it has %llu bytes, and options.most allows %llu",
		               heap->name, (unsigned long long)all * PS_CHUNK,
		               (unsigned long long)heap->max_size);
	rc = make_extent(heap, had, more);
	/* The mirrors lack memory for the usual size: make the extent just large enough for this
	 * object. */
	if (rc == PERSEAS_EMIRRORMEM && more > chunks)
		rc = make_extent(heap, had, chunks);
	/* After EINDOUBT the extent exists here. Later commits will say whether enough mirrors have
	 * it. */
	return rc && rc != PERSEAS_EINDOUBT ? rc : check_extent_exists(heap, had);
}

int ps_heap_provide_slowly(struct perseas_heap *heap, int rc, const struct ps_heap_need *need)
{
	if (rc == PS_HEAP_FETCH)
		rc = ps_demand_await(heap->p, need->start, need->end);
	else if (rc == PS_HEAP_GROW)
		rc = grow_heap(heap, need->extent_count, need->chunks);
	else
		rc = 0; /* PS_HEAP_YIELD */
	return rc ? rc : 1;
}

/* --- opening existing extents --- */

static const char *roots_fault(const struct ps_heap_root *roots)
{
	const char *fault = NULL;

	for (unsigned i = 0; i < PS_ROOTS && !fault; i++)
		fault = ps_heap_root_fault(&roots[i]);
	return fault;
}

/* Maps and pins the two segments of an extent. Returns 0, 1 if another thread has just given the
 * extent back, or an error. */
static int map_segments(const struct perseas_heap *heap, const char *meta, const char *data,
                        void **at, void **objects)
{
	int rc = ps_map_for_heap(heap->p, meta, heap->may_move, at);

	if (rc)
		return rc == PERSEAS_ENOSEGMENT ? 1 : rc;
	rc = ps_map_for_heap(heap->p, data, heap->may_move, objects);
	if (!rc)
		return 0;
	ps_admin_enter(heap->p);
	ps_segment_by_name(heap->p, meta)->heap_count--;
	ps_admin_leave(heap->p);
	return rc;
}

static bool is_published(struct perseas *p, const char *name, struct perseas_segment_info *info)
{
	return !perseas_segment(p, name, info) && info->published;
}

/* Checks the metadata of an extent that is mapped, and adds the extent to the heap. */
static int add_mapped_extent(struct perseas_heap *heap, unsigned index, void *at, void *objects,
                             const struct perseas_segment_info *meta,
                             const struct perseas_segment_info *data)
{
	struct perseas *p = heap->p;
	const struct ps_heap_head *head = at;
	struct ps_extent *extent;
	const char *fault;
	int rc = ps_demand_await(p, (uint64_t)(uintptr_t)at,
	                         (uint64_t)(uintptr_t)at + PS_HEAP_ENTRIES);

	if (rc)
		return rc;
	fault = ps_heap_head_fault(head, index, meta->size, data->size);
	if (!fault && !index)
		fault = roots_fault((const void *)((const uint8_t *)at + PS_HEAP_ROOTS));
	if (fault)
		return fail_not_heap(heap, meta->name, fault);
	extent = create_extent(heap, index, head->chunks);
	if (!extent)
		return ps_fail(p, PERSEAS_ENOMEM, "no memory for an extent of heap '%s'",
		               heap->name);
	ps_admin_enter(p);
	set_extent_addresses(extent, objects, at);
	ps_admin_leave(p);
	add_extent(heap, extent);
	return 0;
}

/* Opens the existing extent with this index. Returns 0, 1 if the store has none, or an error. */
static int open_extent(struct perseas_heap *heap, unsigned index)
{
	struct perseas *p = heap->p;
	struct perseas_segment_info meta, data;
	char name[PS_NAME_MAX + 1], data_name[PS_NAME_MAX + 1];
	void *at, *objects;
	int rc;

	format_segment_name(name, heap->name, "meta", index);
	format_segment_name(data_name, heap->name, "heap", index);
	if (!is_published(p, name, &meta))
		return 1;
	/* Another thread may be giving the extent back; the segment of metadata disappears
	 * first. */
	if (!is_published(p, data_name, &data))
		return is_published(p, name, &meta)
		               ? fail_not_heap(heap, name, "has no segment of objects")
		               : 1;
	if (meta.size < ps_heap_meta_size(1))
		return fail_not_heap(heap, name, "is not the metadata of a heap");
	rc = map_segments(heap, name, data_name, &at, &objects);
	if (rc)
		return rc;
	/* Look again: another thread may have given the extent back and created a new one. */
	if (is_published(p, name, &meta) && is_published(p, data_name, &data))
		rc = add_mapped_extent(heap, index, at, objects, &meta, &data);
	else
		rc = 1;
	if (rc) {
		ps_admin_enter(p);
		pin_segments(heap, index, -1);
		ps_admin_leave(p);
	}
	return rc;
}

static int open_extents(struct perseas_heap *heap)
{
	int rc = 0;

	while (!rc && heap->extent_count < PS_HEAP_EXTENTS)
		rc = open_extent(heap, heap->extent_count);
	return rc < 0 ? rc : 0;
}

static void free_heap(struct ps_handle_attachment *attachment)
{
	struct perseas_heap *heap = (struct perseas_heap *)attachment;

	for (unsigned i = 0; i < heap->extent_count; i++)
		ps_extent_free(heap->extents[i]);
	for (unsigned i = 0; i < PS_BIN_HASHES; i++) {
		while (heap->bins[i]) {
			struct ps_bin *bin = heap->bins[i];

			heap->bins[i] = bin->next;
			free(bin);
		}
	}
	ps_biased_destroy(&heap->lock);
	free(heap);
}

/* Frees a heap that was not listed, and unpins its segments. */
static void free_unlisted_heap(struct perseas_heap *heap)
{
	ps_admin_enter(heap->p);
	for (unsigned i = 0; i < heap->extent_count; i++)
		pin_segments(heap, i, -1);
	ps_admin_leave(heap->p);
	free_heap(&heap->attachment);
}

static struct perseas_heap *create_heap(struct perseas *p, const char *name)
{
	struct perseas_heap *heap = calloc(1, sizeof(*heap));
	unsigned class = 0;

	if (!heap)
		return NULL;
	heap->attachment.free = free_heap;
	heap->p = p;
	snprintf(heap->name, sizeof(heap->name), "%s", name);
	ps_biased_init(&heap->lock, p->observing.has_barrier ? p->env : NULL);
	for (unsigned units = 0; units <= PS_CLASS_MAX / PS_UNIT; units++) {
		class += ps_class_sizes[class] < units * PS_UNIT;
		heap->classes[units] = (uint8_t) class;
	}
	return heap;
}

static struct perseas_heap *find_listed(struct perseas *p, const char *name)
{
	struct ps_handle_attachment *attachment;

	ps_assert_locked(p);
	for (attachment = p->attachments; attachment; attachment = attachment->next)
		if (attachment->free == free_heap &&
		    !strcmp(((struct perseas_heap *)attachment)->name, name))
			return (struct perseas_heap *)attachment;
	return NULL;
}

/* Lists the heap, and returns it. If another thread has listed the same heap, drops this one and
 * returns the other. */
static struct perseas_heap *list_heap(struct perseas_heap *heap)
{
	struct perseas *p = heap->p;
	struct perseas_heap *listed;

	pthread_mutex_lock(&p->lock);
	listed = find_listed(p, heap->name);
	if (!listed) {
		heap->attachment.next = p->attachments;
		p->attachments = &heap->attachment;
	}
	pthread_mutex_unlock(&p->lock);
	if (!listed)
		return heap;
	free_unlisted_heap(heap);
	return listed;
}

static int open_or_create(struct perseas_heap *heap, const struct perseas_heap_options *options)
{
	int rc = open_extents(heap);

	if (rc || heap->extent_count)
		return rc;
	if (!(options->flags & PERSEAS_HEAP_CREATE))
		return ps_fail(heap->p, PERSEAS_ENOSEGMENT,
		               "store '%s' has no heap '%s': give PERSEAS_HEAP_CREATE to make it",
		               heap->p->store, heap->name);
	rc = make_extent(heap, 0, (options->first + PS_CHUNK - 1) / PS_CHUNK);
	if (rc || heap->extent_count)
		return rc;
	/* Another thread made the extent first. */
	rc = open_extents(heap);
	if (rc || heap->extent_count)
		return rc;
	rc = check_extent_exists(heap, 0);
	return rc ? rc : fail_not_heap(heap, heap->name, "is mapped, and not published");
}

/* Checks `first` and `most`, the sizes at which the heap begins and to which it may grow. Compares
 * them in whole chunks: `first` rounded up, `most` rounded down. Sets `first` if it is 0. */
static int check_sizes(struct perseas *p, struct perseas_heap_options *options)
{
	const uint64_t most = options->most / PS_CHUNK;

	if (options->first > PS_EXTENT_MAX)
		return ps_fail(p, PERSEAS_EINVAL, "a heap begins with 1 TiB at most");
	if (options->most && !most)
		return ps_fail(p, PERSEAS_EINVAL,
		               "options.most is %llu: a heap has %llu bytes at least, and 0 is no "
		               "limit",
		               (unsigned long long)options->most, (unsigned long long)PS_CHUNK);
	if (most && (options->first + PS_CHUNK - 1) / PS_CHUNK > most)
		return ps_fail(p, PERSEAS_EINVAL,
		               "options.first is %llu, in whole chunks of %llu, and options.most "
		               "is %llu",
		               (unsigned long long)options->first, (unsigned long long)PS_CHUNK,
		               (unsigned long long)options->most);
	if (!options->first)
		options->first = most && most * PS_CHUNK < DEFAULT_SIZE ? most * PS_CHUNK
		                                                        : DEFAULT_SIZE;
	return 0;
}

static int check_options(struct perseas *p, const char *name,
                         const struct perseas_heap_options *given,
                         struct perseas_heap_options *options)
{
	const uint32_t known = PERSEAS_HEAP_CREATE | PERSEAS_HEAP_MOVED;

	*options = (struct perseas_heap_options)PERSEAS_HEAP_OPTIONS_INIT;
	if (!name || !ps_name_valid(name) || strlen(name) > PS_HEAP_NAME)
		return ps_fail(p, PERSEAS_EINVAL,
		               "a heap's name is 1 to %d of A-Z a-z 0-9 . _ -, not beginning with "
		               "a dot",
		               PS_HEAP_NAME);
	if (!given)
		return check_sizes(p, options);
	if (given->size < sizeof(size_t) || given->size > sizeof(*options))
		return ps_fail(p, PERSEAS_EINVAL,
		               "options.size is %zu: begin with PERSEAS_HEAP_OPTIONS_INIT",
		               given->size);
	memcpy(options, given, given->size);
	if (options->flags & ~known)
		return ps_fail(p, PERSEAS_EINVAL, "flags 0x%x has unknown bits; known are 0x%x",
		               options->flags, known);
	return check_sizes(p, options);
}

static struct perseas_heap *find_open_heap(struct perseas *p, const char *name)
{
	struct perseas_heap *heap;

	pthread_mutex_lock(&p->lock);
	heap = find_listed(p, name);
	pthread_mutex_unlock(&p->lock);
	return heap;
}

/* Opens a heap that this process has not open. */
static int open_first(struct perseas *p, const char *name,
                      const struct perseas_heap_options *options, struct perseas_heap **out)
{
	struct perseas_heap *heap = create_heap(p, name);
	int rc;

	if (!heap)
		return ps_fail(p, PERSEAS_ENOMEM, "no memory for heap '%s'", name);
	heap->max_size = options->most;
	heap->may_move = options->flags & PERSEAS_HEAP_MOVED;
	rc = open_or_create(heap, options);
	if (!rc) {
		*out = list_heap(heap);
		return 0;
	}
	free_unlisted_heap(heap);
	/* Another thread may have opened, trimmed and grown the heap in the meantime, and made this
	 * open fail. Then use that thread's heap. */
	*out = find_open_heap(p, name);
	return *out ? 0 : rc;
}

int perseas_heap_open(perseas_t *p, const char *name, const struct perseas_heap_options *given,
                      perseas_heap_t **out)
{
	PS_UNCANCELLED;
	struct perseas_heap_options options;
	struct perseas_heap *heap;
	int rc;

	if (!p || !out)
		return ps_fail(p, PERSEAS_EINVAL,
		               "opening a heap needs a store and a place for it");
	*out = NULL;
	rc = check_options(p, name, given, &options);
	if (rc)
		return rc;
	heap = find_open_heap(p, name);
	if (!heap)
		rc = open_first(p, name, &options, &heap);
	if (rc)
		return rc;
	assert(heap);
	if (heap->has_moved && !(options.flags & PERSEAS_HEAP_MOVED))
		return ps_fail(p, PERSEAS_EADDRESS,
		               "heap '%s' is open with a segment elsewhere than recorded, where "
		               "pointers in its objects are not good as they are: give "
		               "PERSEAS_HEAP_MOVED to use it so",
		               name);
	*out = heap;
	return 0;
}
