/*
 * settle.c - which fetched memory counts as here, for callers that compare it with a shadow
 * (core/shadow.h). The application can see a page as soon as the kernel has it, a moment before it
 * counts as here. Commit and abort look for stores only in memory that is here, so they wait in
 * this file first, without a lock. They must never wait for memory that may not come: if the host
 * has no memory for a whole granule, the pages that were filled count as here at once.
 */
#include "demand.h"

#include "../core/env.h"

#include <string.h>

bool ps_demand_can_track_stores(const struct perseas *p)
{
	return !p->demand || p->demand->ops->can_track_stores(p->demand->pager);
}

void ps_granules_note_filled(struct ps_demand *d, const struct ps_want *part, uint32_t here)
{
	struct ps_mapping *mapping = ps_mapping_by_generation(d, part->generation);
	const bool all = here == ps_granules_length(d, mapping, part);
	const unsigned whole = all ? part->count : here / d->ops->granule;

	memset(&mapping->states[part->granule], PS_GRANULE_HERE, whole);
	mapping->missing_count -= whole;
	if (!all && mapping->partial_pages)
		mapping->partial_pages[part->granule + whole] = (uint8_t)(here % d->ops->granule /
		                                                          d->ops->page);
}

/* Returns the end of what is here of the granule that contains this offset. */
static uint64_t present_until(const struct ps_demand *d, const struct ps_mapping *mapping,
                              uint64_t at)
{
	const uint64_t granule = at / d->ops->granule;

	return granule * d->ops->granule + ps_granule_present_bytes(d, mapping, granule);
}

uint64_t ps_demand_uniform_run(struct perseas *p, const struct ps_segment *segment, uint64_t offset,
                               uint64_t length, bool *here)
{
	struct ps_demand *d = p->demand;
	const struct ps_mapping *mapping;
	const uint64_t end = offset + length;
	uint64_t at = offset;

	*here = true;
	if (!d)
		return length;
	pthread_mutex_lock(&d->lock);
	mapping = ps_mapping_by_segment(d, segment->id);
	if (mapping)
		*here = at < present_until(d, mapping, at);
	while (mapping && at < end && (at < present_until(d, mapping, at)) == *here)
		at = *here ? present_until(d, mapping, at)
		           : (at / d->ops->granule + 1) * d->ops->granule;
	pthread_mutex_unlock(&d->lock);
	return mapping && at < end ? at - offset : length;
}

/* Waits for the fill that is going on, if any: a copy within this host. */
void ps_demand_await_fill(struct perseas *p)
{
	struct ps_demand *d = p->demand;
	uint64_t fills;

	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	fills = d->fill_count;
	while (d->filling_generation && d->fill_count == fills)
		d->env->ops->wait(d->env, &d->changed, &d->lock, PS_NEVER);
	pthread_mutex_unlock(&d->lock);
}
