/*
 * recorded_pointers.c - perseas_here and perseas_recorded, for pointers in a segment that is mapped
 * at another address than the store records. The application calls them for every such pointer, so
 * they take no lock: a layout never changes once it is published (struct ps_layout).
 */
#include "handle.h"

/* Returns the index in extents_by_recorded of the first extent whose recorded address is above
 * `address`. */
static unsigned find_first_above(const struct ps_layout *layout, uint64_t address)
{
	unsigned low = 0, high = layout->extent_count;

	while (low < high) {
		const unsigned middle = (low + high) / 2;

		if (layout->extents[layout->extents_by_recorded[middle]].recorded_start > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void *perseas_here(const perseas_t *p, const void *recorded)
{
	const struct ps_layout *layout = p ? p->layout : NULL;
	const uint64_t address = (uint64_t)(uintptr_t)recorded;
	const struct ps_mapped_extent *extent;
	unsigned behind;

	behind = layout ? find_first_above(layout, address) : 0;
	if (!behind)
		return NULL;
	extent = &layout->extents[layout->extents_by_recorded[behind - 1]];
	if (address - extent->recorded_start >= extent->end - extent->start)
		return NULL;
	return (void *)(uintptr_t)(extent->start + (address - extent->recorded_start));
}

void *perseas_recorded(const perseas_t *p, const void *here)
{
	const struct ps_layout *layout = p ? p->layout : NULL;
	const uint64_t address = (uint64_t)(uintptr_t)here;
	unsigned low = 0, high = layout ? layout->extent_count : 0;

	while (low < high) {
		const unsigned middle = (low + high) / 2;
		const struct ps_mapped_extent *extent = &layout->extents[middle];

		if (address < extent->start)
			high = middle;
		else if (address >= extent->end)
			low = middle + 1;
		else
			return (void *)(uintptr_t)(extent->recorded_start +
			                           (address - extent->start));
	}
	return NULL;
}
