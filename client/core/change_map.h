/*
 * change_map.h - which parts of the store this handle changed, and when: for each granule of each
 * segment, the seq of the last transaction that changed it. A mirror that was away is sent only
 * what changed after its commit slot (unsent_granules.h), however long it was away.
 *
 * The map tells about transactions of this handle alone, and about all of them: it begins empty
 * when the store is opened, and it outlives unmaps and renewals. A publish is not in it, because an
 * image whose table has the segment has the contents, too.
 */
#ifndef PERSEAS_CLIENT_CHANGE_MAP_H
#define PERSEAS_CLIENT_CHANGE_MAP_H

#include "handle.h"

enum { PS_CHANGE_SHIFT = PS_GRANULE_SHIFT };

/* The unit of the map. */
#define PS_CHANGE_GRANULE ((uint64_t)1 << PS_CHANGE_SHIFT)

static inline uint64_t ps_change_granules(uint64_t size)
{
	return (size + PS_CHANGE_GRANULE - 1) >> PS_CHANGE_SHIFT;
}

/* Makes the map of a segment that is about to be mapped, if it has none yet. Returns 0, or -1 if
 * out of memory. */
int ps_change_map_make(struct perseas *p, const struct ps_segment *segment);

/* Frees the map of a segment that is destroyed, so that its id may be used again. */
void ps_change_map_drop(struct perseas *p, uint32_t segment);

/* Returns the last transaction of this handle that changed the granule; 0: none did. Caller holds
 * p->lock. */
static inline uint64_t ps_change_map_last_seq(const struct perseas *p, uint32_t segment,
                                              uint64_t granule)
{
	const uint64_t *changed = p->commit.change_maps[segment];

	return changed ? changed[granule] : 0;
}

/* Marks the granules of a part of a segment as changed by transaction `seq`, which is being posted.
 * Caller holds p->lock until it is posted, and can no longer fail: each transaction was posted to a
 * mirror, or is marked. */
static inline void ps_change_map_mark(struct perseas *p, uint32_t segment, uint64_t offset,
                                      uint64_t length, uint64_t seq)
{
	uint64_t *changed = p->commit.change_maps[segment];
	const uint64_t last = (offset + length - 1) >> PS_CHANGE_SHIFT;
	uint64_t at = offset >> PS_CHANGE_SHIFT;

	changed[at] = seq;
	while (at != last)
		changed[++at] = seq;
}

#endif
