/*
 * open.c - a heap is opened, made, and made larger (trim.c makes it smaller). An extent exists from
 * the publish of its two segments on to the transaction that destroys both, and nothing else says
 * how many there are: so a heap whose owner died while it grew has the extent, or has it not.
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

static const uint64_t FIRST = (uint64_t)16 << 20;

static void segment_name(char *to, const char *heap, const char *part, unsigned index)
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

static struct ps_extent *extent_new(struct perseas_heap *heap, unsigned index, uint64_t chunks)
{
	struct ps_extent *extent = calloc(1, sizeof(*extent));

	assert(chunks > 0);
	if (!extent)
		return NULL;
	extent->heap = heap;
	extent->index = index;
	extent->chunks = chunks;
	extent->lowest = chunks - 1;
	extent->known = calloc(chunks, sizeof(*extent->known));
	extent->runs = calloc(chunks, sizeof(struct ps_run *));
	extent->spans = calloc(chunks, sizeof(*extent->spans));
	extent->types = calloc(chunks, sizeof(*extent->types));
	if (extent->known && extent->runs && extent->spans && extent->types)
		return extent;
	ps_extent_free(extent);
	return NULL;
}

/* Its segments stay mapped as long as they are held, by one heap or another. Admin. */
static void hold(const struct perseas_heap *heap, unsigned index, int by)
{
	static const char *const parts[] = { "heap", "meta" };
	char name[PS_NAME_MAX + 1];

	ps_assert_admin(heap->p);
	for (unsigned i = 0; i < 2; i++) {
		segment_name(name, heap->name, parts[i], index);
		ps_segment_find(heap->p, name)->pins += (unsigned)by;
	}
}

/* Where its segments lie, which are held. With the handle's lock, or admin. */
static void extent_set(struct ps_extent *extent, void *data, void *meta)
{
	struct perseas *p = extent->heap->p;
	const char *name = extent->heap->name;
	char data_name[PS_NAME_MAX + 1], meta_name[PS_NAME_MAX + 1];
	struct ps_segment *segment;

	segment_name(data_name, name, "heap", extent->index);
	segment_name(meta_name, name, "meta", extent->index);
	segment = ps_segment_find(p, data_name);
	extent->segment = segment->id;
	extent->heap->moved |= ps_segment_start(segment) != segment->address;
	segment = ps_segment_find(p, meta_name);
	extent->heap->moved |= ps_segment_start(segment) != segment->address;
	extent->data = data;
	extent->entries = (struct ps_heap_entry *)((uint8_t *)meta + PS_HEAP_ENTRIES);
	extent->bitmaps = (uint64_t *)((uint8_t *)meta + ps_heap_bitmaps(extent->chunks));
	extent->meta = (struct ps_extent_of){
		.start = ps_segment_start(segment),
		.end = ps_segment_start(segment) + segment->size,
		.segment = segment->id,
		.published = true,
		.usual = true,
	};
	if (!extent->index)
		extent->heap->roots = (struct ps_heap_root *)((uint8_t *)meta + PS_HEAP_ROOTS);
}

static void heap_add(struct perseas_heap *heap, struct ps_extent *extent)
{
	const unsigned count = heap->extent_count;

	ps_biased_lock(&heap->lock);
	heap->extents[count] = extent;
	/* Last: who counts extents without the lock reads those that it counted. */
	atomic_store_explicit(&heap->extent_count, count + 1, memory_order_release);
	ps_biased_unlock(&heap->lock);
}

/* --- making them --- */

static int not_a_heap(const struct perseas_heap *heap, const char *segment, const char *fault)
{
	return ps_fail(heap->p, PERSEAS_EHEAP, "segment '%s' of heap '%s' %s", segment, heap->name,
	               fault);
}

/* Is there a segment with a name that an extent is to have? Then *name is that. */
static bool is_taken(const struct perseas_heap *heap, unsigned index, char *name)
{
	segment_name(name, heap->name, "heap", index);
	if (ps_segment_find(heap->p, name))
		return true;
	segment_name(name, heap->name, "meta", index);
	return ps_segment_find(heap->p, name) != NULL;
}

struct making {
	struct perseas_heap *heap;
	struct ps_extent *extent; /* NULL once it is the heap's */
};

static bool is_wanted(void *arg)
{
	const struct making *making = arg;
	const struct perseas_heap *heap = making->heap;
	char name[PS_NAME_MAX + 1];

	return heap->extent_count == making->extent->index &&
	       !is_taken(heap, making->extent->index, name);
}

static void fill(const struct ps_birth *birth, void *arg)
{
	const struct making *making = arg;

	ps_heap_head_seal(birth->segments[1].addr, making->extent->index, making->extent->chunks);
}

static void born(const struct ps_birth *birth, void *arg)
{
	struct making *making = arg;

	hold(making->heap, making->extent->index, 1);
	extent_set(making->extent, birth->segments[0].addr, birth->segments[1].addr);
	heap_add(making->heap, making->extent);
	making->extent = NULL;
}

/* The heap gets an extent, unless another thread gave it one meanwhile. */
static int extent_make(struct perseas_heap *heap, unsigned index, uint64_t chunks)
{
	struct making making = { heap, extent_new(heap, index, chunks) };
	struct ps_birth birth = {
		.count = 2, .wanted = is_wanted, .fill = fill, .born = born, .arg = &making
	};
	int rc;

	if (!making.extent)
		return ps_fail(heap->p, PERSEAS_ENOMEM, "no memory for an extent of heap '%s'",
		               heap->name);
	segment_name(birth.segments[0].name, heap->name, "heap", index);
	birth.segments[0].size = chunks * PS_CHUNK;
	segment_name(birth.segments[1].name, heap->name, "meta", index);
	birth.segments[1].size = ps_heap_meta_size(chunks);
	rc = ps_map_birth(heap->p, &birth);
	ps_extent_free(making.extent);
	return rc;
}

/* Has it the extent, from this thread or another? If not, and a name is taken, it would be asked
 * for again for ever. 0 also where the name is free again. */
static int check_made(struct perseas_heap *heap, unsigned index)
{
	char name[PS_NAME_MAX + 1];
	bool taken;

	if (heap->extent_count > index)
		return 0;
	/* Another thread may give it back just now: then the names are still there for a while. */
	ps_admin_enter(heap->p);
	taken = heap->extent_count <= index && is_taken(heap, index, name);
	ps_admin_leave(heap->p);
	return taken ? not_a_heap(heap, name,
	                          "is there already, and no part of it: while it is, the heap "
	                          "can neither be made nor grow")
	             : 0;
}

/* The chunks of all extents. False: there are not as many extents any more, or already more. */
static bool count_chunks(struct perseas_heap *heap, unsigned had, uint64_t *all)
{
	bool same;

	*all = 0;
	ps_biased_lock(&heap->lock);
	same = heap->extent_count == had;
	for (unsigned i = 0; same && i < had; i++)
		*all += heap->extents[i]->chunks;
	ps_biased_unlock(&heap->lock);
	return same;
}

static int heap_grow(struct perseas_heap *heap, unsigned had, uint64_t chunks)
{
	const uint64_t most = heap->most / PS_CHUNK;
	uint64_t all, more;
	int rc;

	/* Others may find room now, or see anew how much there is. */
	if (!count_chunks(heap, had, &all))
		return 0;
	if (had == PS_HEAP_EXTENTS)
		return ps_fail(heap->p, PERSEAS_ELIMIT,
		               "heap '%s' is full, and has grown %u times: it can grow no more",
		               heap->name, had - 1);
	more = all > chunks ? all : chunks;
	if (most && all + more > most)
		more = most > all ? most - all : 0;
	if (more > PS_EXTENT_MAX / PS_CHUNK)
		more = PS_EXTENT_MAX / PS_CHUNK;
	if (more < chunks)
		return ps_fail(heap->p, PERSEAS_ELIMIT,
		               "heap '%s' is full, has %llu bytes, and may have %llu", heap->name,
		               (unsigned long long)all * PS_CHUNK, (unsigned long long)heap->most);
	rc = extent_make(heap, had, more);
	/* Not as much as would be good for the next objects, too, but enough for this one. */
	if (rc == PERSEAS_EMIRRORMEM && more > chunks)
		rc = extent_make(heap, had, chunks);
	/* It has grown; whether enough mirrors have it is for commits to say. */
	return rc && rc != PERSEAS_EINDOUBT ? rc : check_made(heap, had);
}

int ps_heap_go_on(struct perseas_heap *heap, int rc, const struct ps_bring *bring)
{
	if (rc == PS_HEAP_BRING)
		rc = ps_demand_bring(heap->p, bring->start, bring->end);
	else if (rc == PS_HEAP_GROW)
		rc = heap_grow(heap, bring->had, bring->chunks);
	else
		rc = 0; /* PS_HEAP_AGAIN */
	return rc ? rc : 1;
}

/* --- opening them --- */

static const char *roots_fault(const struct ps_heap_root *roots)
{
	const char *fault = NULL;

	for (unsigned i = 0; i < PS_ROOTS && !fault; i++)
		fault = ps_heap_root_fault(&roots[i]);
	return fault;
}

/* Maps its segments, which are held then. 0, or 1: another thread gave the extent back just now. */
static int map_parts(const struct perseas_heap *heap, const char *meta, const char *data, void **at,
                     void **objects)
{
	int rc = ps_map_held(heap->p, meta, heap->moves, at);

	if (rc)
		return rc == PERSEAS_ENOSEGMENT ? 1 : rc;
	rc = ps_map_held(heap->p, data, heap->moves, objects);
	if (!rc)
		return 0;
	ps_admin_enter(heap->p);
	ps_segment_find(heap->p, meta)->pins--;
	ps_admin_leave(heap->p);
	return rc;
}

static bool is_published(struct perseas *p, const char *name, struct perseas_segment_info *info)
{
	return !perseas_segment(p, name, info) && info->published;
}

/* The extent that is mapped there joins the heap. */
static int extent_join(struct perseas_heap *heap, unsigned index, void *at, void *objects,
                       const struct perseas_segment_info *meta,
                       const struct perseas_segment_info *data)
{
	struct perseas *p = heap->p;
	const struct ps_heap_head *head = at;
	struct ps_extent *extent;
	const char *fault;
	int rc = ps_demand_bring(p, (uint64_t)(uintptr_t)at,
	                         (uint64_t)(uintptr_t)at + PS_HEAP_ENTRIES);

	if (rc)
		return rc;
	fault = ps_heap_head_fault(head, index, meta->size, data->size);
	if (!fault && !index)
		fault = roots_fault((const void *)((const uint8_t *)at + PS_HEAP_ROOTS));
	if (fault)
		return not_a_heap(heap, meta->name, fault);
	extent = extent_new(heap, index, head->chunks);
	if (!extent)
		return ps_fail(p, PERSEAS_ENOMEM, "no memory for an extent of heap '%s'",
		               heap->name);
	ps_admin_enter(p);
	extent_set(extent, objects, at);
	ps_admin_leave(p);
	heap_add(heap, extent);
	return 0;
}

/* An extent that is there. 0, or 1: there is none of this number. */
static int extent_open(struct perseas_heap *heap, unsigned index)
{
	struct perseas *p = heap->p;
	struct perseas_segment_info meta, data;
	char name[PS_NAME_MAX + 1], data_name[PS_NAME_MAX + 1];
	void *at, *objects;
	int rc;

	segment_name(name, heap->name, "meta", index);
	segment_name(data_name, heap->name, "heap", index);
	if (!is_published(p, name, &meta))
		return 1;
	/* Another thread that has the heap may give the extent back: the metadata goes first. */
	if (!is_published(p, data_name, &data))
		return is_published(p, name, &meta)
		               ? not_a_heap(heap, name, "has no segment of objects")
		               : 1;
	if (meta.size < ps_heap_meta_size(1))
		return not_a_heap(heap, name, "is not the metadata of a heap");
	rc = map_parts(heap, name, data_name, &at, &objects);
	if (rc)
		return rc;
	/* As they are now: another thread may have had it back and made anew. */
	if (is_published(p, name, &meta) && is_published(p, data_name, &data))
		rc = extent_join(heap, index, at, objects, &meta, &data);
	else
		rc = 1;
	if (rc) {
		ps_admin_enter(p);
		hold(heap, index, -1);
		ps_admin_leave(p);
	}
	return rc;
}

static int extents_open(struct perseas_heap *heap)
{
	int rc = 0;

	while (!rc && heap->extent_count < PS_HEAP_EXTENTS)
		rc = extent_open(heap, heap->extent_count);
	return rc < 0 ? rc : 0;
}

static void heap_free(struct ps_guest *guest)
{
	struct perseas_heap *heap = (struct perseas_heap *)guest;

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

/* Of a heap that was not listed: its segments may be unmapped again. */
static void heap_drop(struct perseas_heap *heap)
{
	ps_admin_enter(heap->p);
	for (unsigned i = 0; i < heap->extent_count; i++)
		hold(heap, i, -1);
	ps_admin_leave(heap->p);
	heap_free(&heap->guest);
}

static struct perseas_heap *heap_new(struct perseas *p, const char *name)
{
	struct perseas_heap *heap = calloc(1, sizeof(*heap));
	unsigned class = 0;

	if (!heap)
		return NULL;
	heap->guest.free = heap_free;
	heap->p = p;
	snprintf(heap->name, sizeof(heap->name), "%s", name);
	ps_biased_init(&heap->lock, p->observing.has_barrier ? p->env : NULL);
	for (unsigned units = 0; units <= PS_CLASS_MAX / PS_UNIT; units++) {
		class += ps_class_sizes[class] < units * PS_UNIT;
		heap->classes[units] = (uint8_t) class;
	}
	return heap;
}

static struct perseas_heap *heap_listed(struct perseas *p, const char *name)
{
	struct ps_guest *guest;

	ps_assert_locked(p);
	for (guest = p->guests; guest; guest = guest->next)
		if (guest->free == heap_free && !strcmp(((struct perseas_heap *)guest)->name, name))
			return (struct perseas_heap *)guest;
	return NULL;
}

/* Of two threads that open it at once, the second gets the first one's. */
static struct perseas_heap *heap_list(struct perseas_heap *heap)
{
	struct perseas *p = heap->p;
	struct perseas_heap *listed;

	pthread_mutex_lock(&p->lock);
	listed = heap_listed(p, heap->name);
	if (!listed) {
		heap->guest.next = p->guests;
		p->guests = &heap->guest;
	}
	pthread_mutex_unlock(&p->lock);
	if (!listed)
		return heap;
	heap_drop(heap);
	return listed;
}

static int heap_open(struct perseas_heap *heap, const struct perseas_heap_options *options)
{
	int rc = extents_open(heap);

	if (rc || heap->extent_count)
		return rc;
	if (!(options->flags & PERSEAS_HEAP_CREATE))
		return ps_fail(heap->p, PERSEAS_ENOSEGMENT,
		               "store '%s' has no heap '%s': give PERSEAS_HEAP_CREATE to make it",
		               heap->p->store, heap->name);
	rc = extent_make(heap, 0, (options->first + PS_CHUNK - 1) / PS_CHUNK);
	if (rc || heap->extent_count)
		return rc;
	/* Another thread was faster. */
	rc = extents_open(heap);
	if (rc || heap->extent_count)
		return rc;
	rc = check_made(heap, 0);
	return rc ? rc : not_a_heap(heap, heap->name, "is mapped, and not published");
}

/* `most` counts in whole chunks, as `first` does. */
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
		options->first = most && most * PS_CHUNK < FIRST ? most * PS_CHUNK : FIRST;
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

static struct perseas_heap *heap_find(struct perseas *p, const char *name)
{
	struct perseas_heap *heap;

	pthread_mutex_lock(&p->lock);
	heap = heap_listed(p, name);
	pthread_mutex_unlock(&p->lock);
	return heap;
}

/* A heap that was not open. */
static int open_first(struct perseas *p, const char *name,
                      const struct perseas_heap_options *options, struct perseas_heap **out)
{
	struct perseas_heap *heap = heap_new(p, name);
	int rc;

	if (!heap)
		return ps_fail(p, PERSEAS_ENOMEM, "no memory for heap '%s'", name);
	heap->most = options->most;
	heap->moves = options->flags & PERSEAS_HEAP_MOVED;
	rc = heap_open(heap, options);
	if (!rc) {
		*out = heap_list(heap);
		return 0;
	}
	heap_drop(heap);
	/* Another thread that was faster may have trimmed it, and had it grow again, while this one
	 * looked: what that found says nothing of the heap. */
	*out = heap_find(p, name);
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
	heap = heap_find(p, name);
	if (!heap)
		rc = open_first(p, name, &options, &heap);
	if (rc)
		return rc;
	assert(heap);
	if (heap->moved && !(options.flags & PERSEAS_HEAP_MOVED))
		return ps_fail(p, PERSEAS_EADDRESS,
		               "heap '%s' is open with a segment elsewhere than recorded, where "
		               "pointers in its objects are not good as they are: give "
		               "PERSEAS_HEAP_MOVED to use it so",
		               name);
	*out = heap;
	return 0;
}
