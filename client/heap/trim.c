/*
 * trim.c - perseas_heap_trim: gives extents that have no objects back to the mirrors. The number of
 * extents is recorded only by the store's segments. So an extent ends by one transaction that
 * destroys both of its segments, and no owner ever finds half of one.
 *
 * Only the last extents can go. An owner that opens the heap counts extents up to the first missing
 * one, and an object's place (ps_heap_place) contains the index of its extent.
 */
#include "heap.h"

#include "../open/map.h"
#include "../core/cancel.h"

/* State of one perseas_heap_trim; argument of the callbacks of ps_map_destroy_set. */
struct trimming {
	struct perseas_heap *heap;
	uint64_t keep;                           /* bytes for objects that the heap keeps */
	struct ps_extent *gone[PS_HEAP_EXTENTS]; /* the extents given back, the last one first */
	unsigned count;
	uint64_t bytes; /* bytes for objects in `gone` */
};

static uint64_t extent_bytes(const struct ps_extent *extent)
{
	return extent->chunks * PS_CHUNK;
}

/* Returns the total size, in bytes for objects, of the extents before number `index`. */
static uint64_t object_bytes_before(const struct perseas_heap *heap, unsigned index)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < index; i++)
		bytes += extent_bytes(heap->extents[i]);
	return bytes;
}

/* Returns true if the heap can keep `keep` bytes without this extent. The first extent holds the
 * roots and always stays. Caller holds the heap's lock. */
static bool can_spare_extent(const struct perseas_heap *heap, unsigned index, uint64_t keep)
{
	return index > 0 && index < heap->extent_count && object_bytes_before(heap, index) >= keep;
}

/* --- looking for empty extents --- */

/* Sets *empty to whether the extent is empty and may be given back. Examining its chunks may take
 * long; other threads use the heap in the meantime. */
static int check_extent_empty(struct perseas_heap *heap, unsigned index, uint64_t keep, bool *empty)
{
	struct ps_heap_need need;
	uint64_t looked = 0;
	int rc;

	do {
		*empty = false;
		rc = 0;
		ps_biased_lock(&heap->lock);
		if (can_spare_extent(heap, index, keep))
			rc = ps_extent_check_empty(heap->extents[index], &looked, empty, &need);
		ps_biased_unlock(&heap->lock);
		rc = ps_heap_provide(heap, rc, &need);
	} while (rc > 0);
	return rc;
}

/* Sets *any to whether the heap has an extent to give back. ps_map_destroy_set holds up commits, so
 * it is called only if there is one. */
static int find_extent_to_give_back(struct perseas_heap *heap, uint64_t keep, bool *any)
{
	bool empty = true;
	int rc = 0;

	*any = false;
	for (unsigned i = heap->extent_count; i-- > 0 && empty && !rc;) {
		rc = check_extent_empty(heap, i, keep, &empty);
		*any |= empty && !rc;
	}
	return rc;
}

/* --- giving extents back --- */

/* Returns true if only this heap pins the segment, and no open transaction has declared ranges in
 * it. A transaction may still have ranges of objects that another one has freed since. */
static bool is_unused(struct perseas *p, uint32_t id)
{
	const struct ps_segment *segment = ps_segment_by_id(p, id);

	return segment->heap_count == 1 && !ps_map_has_open_transaction(p, segment);
}

static bool can_remove_last(const struct trimming *t)
{
	const struct perseas_heap *heap = t->heap;
	const unsigned last = heap->extent_count - 1;

	return !heap->survey_count && can_spare_extent(heap, last, t->keep) &&
	       ps_extent_is_empty(heap->extents[last]) &&
	       is_unused(heap->p, heap->extents[last]->segment) &&
	       is_unused(heap->p, heap->extents[last]->meta.segment_id);
}

/* Removes the extents from the heap: no thread allocates or searches in them from now on. */
static void remove_empty_extents(struct ps_destroy_set *destroy_set, void *arg)
{
	struct trimming *t = arg;
	struct perseas_heap *heap = t->heap;

	pthread_mutex_lock(&heap->p->lock);
	ps_biased_lock(&heap->lock);
	while (can_remove_last(t)) {
		const unsigned last = heap->extent_count - 1;
		struct ps_extent *extent = heap->extents[last];

		heap->extents[last] = NULL;
		heap->extent_count = last;
		t->gone[t->count++] = extent;
		t->bytes += extent_bytes(extent);
		/* open_extent relies on this order: metadata first. */
		destroy_set->ids[destroy_set->count++] = extent->meta.segment_id;
		destroy_set->ids[destroy_set->count++] = extent->segment;
	}
	ps_biased_unlock(&heap->lock);
	pthread_mutex_unlock(&heap->p->lock);
}

/* Puts the extents back into the heap after their segments were not destroyed. */
static void restore_extents(void *arg)
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
	struct ps_destroy_set destroy_set = { .choose = remove_empty_extents,
		                              .undo_choose = restore_extents,
		                              .arg = &t };
	bool any;
	int rc;

	if (given)
		*given = 0;
	if (!heap)
		return ps_fail(NULL, PERSEAS_EINVAL, "heap is NULL");
	rc = find_extent_to_give_back(heap, keep, &any);
	if (rc)
		return rc;
	if (!any) {
		/* An earlier call may have ended in doubt: its memory can be freed by now. */
		ps_map_free_destroyed_on_mirrors(heap->p);
		return 0;
	}
	rc = ps_map_destroy_set(heap->p, &destroy_set);
	for (unsigned i = 0; i < t.count; i++)
		ps_extent_free(t.gone[i]);
	if (given)
		*given = t.bytes;
	return rc;
}
