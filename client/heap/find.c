/*
 * find.c - finds the object at an address, for perseas_free, for roots and for perseas_object. The
 * application may pass any address: a wrong one is refused with a sentence.
 */
#include "heap.h"

static int fail_no_object(const struct perseas_heap *heap, const void *addr, const char *why)
{
	return ps_fail(heap->p, PERSEAS_EOBJECT, "%p is no object of heap '%s': %s", addr,
	               heap->name, why);
}

static int find_in_run(struct perseas_heap *heap, struct ps_found_object *found, uint64_t offset)
{
	struct ps_run *run = found->extent->runs[found->chunk];
	const unsigned size = ps_class_sizes[run->bin->class];
	const unsigned index = (unsigned)offset / size;
	const uint64_t bit = (uint64_t)1 << index % 64;
	const void *addr = found->object.addr;

	if (index >= run->object_count || offset % size)
		return fail_no_object(heap, addr, "the objects there begin elsewhere");
	if (!(run->taken[index / 64] & bit))
		return fail_no_object(heap, addr, "it is free, or was freed already");
	found->run = run;
	found->index = index;
	found->is_being_freed = run->freeing[index / 64] & bit;
	found->is_committed = ps_chunk_bits(found->extent, found->chunk)[index / 64] & bit;
	found->object.size = size;
	found->object.type = run->bin->type;
	return 0;
}

static int find_large(struct perseas_heap *heap, struct ps_found_object *found, uint64_t offset)
{
	const struct ps_extent *extent = found->extent;

	if (offset)
		return fail_no_object(heap, found->object.addr, "it is inside of one");
	found->run = NULL;
	found->index = 0;
	found->is_being_freed = extent->known[found->chunk] == PS_KNOWN_FREEING;
	found->is_committed = extent->entries[found->chunk].state == PS_CHUNK_LARGE;
	found->object.size = (uint64_t)extent->spans[found->chunk] * PS_CHUNK;
	found->object.type = extent->types[found->chunk];
	return 0;
}

int ps_object_find(struct perseas_heap *heap, const void *addr, struct ps_found_object *found,
                   struct ps_heap_need *need)
{
	struct ps_extent *extent = ps_heap_find_extent(heap, addr);
	uint64_t offset;
	int rc;

	if (!extent)
		return fail_no_object(heap, addr, "it lies outside of the heap");
	offset = (uint64_t)((const uint8_t *)addr - extent->data);
	found->extent = extent;
	found->chunk = offset / PS_CHUNK;
	found->object.addr = extent->data + offset;
	rc = ps_chunk_ensure_known(extent, found->chunk, need);
	if (rc)
		return rc;
	switch (extent->known[found->chunk]) {
	case PS_KNOWN_RUN:
		return find_in_run(heap, found, offset % PS_CHUNK);
	case PS_KNOWN_LARGE:
	case PS_KNOWN_FREEING:
		return find_large(heap, found, offset % PS_CHUNK);
	case PS_KNOWN_TAIL:
		return fail_no_object(heap, addr, "it is inside of one");
	default:
		return fail_no_object(heap, addr, "it is free, or was freed already");
	}
}

int perseas_object(perseas_heap_t *heap, const void *addr, struct perseas_object *object)
{
	struct ps_found_object found;
	struct ps_heap_need need;
	int rc;

	if (!heap || !object)
		return ps_fail(heap ? heap->p : NULL, PERSEAS_EINVAL,
		               "an object needs a heap and a place for what it is");
	do {
		ps_biased_lock(&heap->lock);
		rc = ps_object_find(heap, addr, &found, &need);
		ps_biased_unlock(&heap->lock);
		rc = ps_heap_provide(heap, rc, &need);
	} while (rc > 0);
	if (!rc)
		*object = found.object;
	return rc;
}
