/*
 * trim.c - perseas_heap_trim: a heap gives extents back in which nothing is. The program calls it.
 * Nothing says how many extents there are but the segments of the store. So what ends an extent is
 * one transaction that destroys both its segments, and no owner ever finds half of it.
 *
 * Only the last extents go: an owner that opens the heap counts them up to the first that is not
 * there, and the place of an object (ps_heap_place) has the number of its extent.
 */
#include "heap.h"

#include "../open/map.h"
#include "../core/cancel.h"

struct trimming {
	struct perseas_heap *heap;
	uint64_t keep;                           /* bytes for objects */
	struct ps_extent *gone[PS_HEAP_EXTENTS]; /* the last one first */
	unsigned count;
	uint64_t bytes; /* that these have for objects */
};

static uint64_t bytes_of(const struct ps_extent *extent)
{
	return extent->chunks * PS_CHUNK;
}

/* The bytes of the extents before this one. */
static uint64_t bytes_before(const struct perseas_heap *heap, unsigned index)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < index; i++)
		bytes += bytes_of(heap->extents[i]);
	return bytes;
}

/* May it go, as far as sizes say? The first one has the roots. With the heap's lock. */
static bool is_beyond(const struct perseas_heap *heap, unsigned index, uint64_t keep)
{
	return index > 0 && index < heap->extent_count && bytes_before(heap, index) >= keep;
}

/* --- before --- */

/* Is nothing in the extent, and may it go? Learns what its chunks are, which may take long, while
 * others use the heap. */
static int look(struct perseas_heap *heap, unsigned index, uint64_t keep, bool *empty)
{
	struct ps_bring bring;
	uint64_t looked = 0;
	int rc;

	do {
		*empty = false;
		rc = 0;
		ps_biased_lock(&heap->lock);
		if (is_beyond(heap, index, keep))
			rc = ps_extent_look(heap->extents[index], &looked, empty, &bring);
		ps_biased_unlock(&heap->lock);
		rc = ps_heap_again(heap, rc, &bring);
	} while (rc > 0);
	return rc;
}

/* Is there an extent to give back? Commits are not held up where there is none. */
static int find(struct perseas_heap *heap, uint64_t keep, bool *any)
{
	bool empty = true;
	int rc = 0;

	*any = false;
	for (unsigned i = heap->extent_count; i-- > 0 && empty && !rc;) {
		rc = look(heap, i, keep, &empty);
		*any |= empty && !rc;
	}
	return rc;
}

/* --- then --- */

/* Does this heap alone hold the segment, and has no open transaction ranges there? Those of objects
 * that another one freed since, for instance. */
static bool is_at_rest(struct perseas *p, uint32_t id)
{
	const struct ps_segment *segment = ps_segment_by_id(p, id);

	return segment->pins == 1 && !ps_map_in_use(p, segment);
}

static bool may_go(const struct trimming *t)
{
	const struct perseas_heap *heap = t->heap;
	const unsigned last = heap->extent_count - 1;

	return !heap->surveys && is_beyond(heap, last, t->keep) &&
	       ps_extent_is_empty(heap->extents[last]) &&
	       is_at_rest(heap->p, heap->extents[last]->segment) &&
	       is_at_rest(heap->p, heap->extents[last]->meta.segment);
}

/* Takes extents out of the heap: nobody allocates there, or looks there, from now on. */
static void choose(struct ps_death *death, void *arg)
{
	struct trimming *t = arg;
	struct perseas_heap *heap = t->heap;

	pthread_mutex_lock(&heap->p->lock);
	ps_biased_lock(&heap->lock);
	while (may_go(t)) {
		const unsigned last = heap->extent_count - 1;
		struct ps_extent *extent = heap->extents[last];

		heap->extents[last] = NULL;
		heap->extent_count = last;
		t->gone[t->count++] = extent;
		t->bytes += bytes_of(extent);
		/* Who opens the heap meanwhile relies on this order (extent_open). */
		death->ids[death->count++] = extent->meta.segment;
		death->ids[death->count++] = extent->segment;
	}
	ps_biased_unlock(&heap->lock);
	pthread_mutex_unlock(&heap->p->lock);
}

static void stay(void *arg)
{
	struct trimming *t = arg;
	struct perseas_heap *heap = t->heap;

	ps_biased_lock(&heap->lock);
	while (t->count > 0) {
		heap->extents[heap->extent_count] = t->gone[--t->count];
		heap->extent_count++;
	}
	t->bytes = 0;
	ps_biased_unlock(&heap->lock);
}

int perseas_heap_trim(perseas_heap_t *heap, uint64_t keep, uint64_t *given)
{
	PS_UNCANCELLED;
	struct trimming t = { .heap = heap, .keep = keep };
	struct ps_death death = { .choose = choose, .stay = stay, .arg = &t };
	bool any;
	int rc;

	if (given)
		*given = 0;
	if (!heap)
		return ps_fail(NULL, PERSEAS_EINVAL, "heap is NULL");
	rc = find(heap, keep, &any);
	if (rc)
		return rc;
	if (!any) {
		/* An earlier call may have been left in doubt. */
		ps_map_give_back(heap->p);
		return 0;
	}
	rc = ps_map_death(heap->p, &death);
	for (unsigned i = 0; i < t.count; i++)
		ps_extent_free(t.gone[i]);
	if (given)
		*given = t.bytes;
	return rc;
}
