/*
 * lanes.c - the two threads that fetch missing memory. The fault lane takes page faults, fetches
 * those pages, and fills in the answers of both lanes. The bulk lane only asks for the rest and
 * receives it. Neither may wait for a thread that touches missing memory (struct ps_pager_ops).
 */
#include "demand.h"

#include "../core/env.h"

/* --- faults --- */

static void poison_granule(struct ps_demand *d, struct ps_mapping *mapping, uint64_t granule)
{
	mapping->states[granule] = PS_GRANULE_REFUSED;
	d->ops->poison(d->pager, mapping->base + granule * d->ops->granule,
	               ps_granule_length(d, mapping, granule));
}

static void take_fault(struct ps_demand *d, uint64_t address)
{
	struct ps_mapping *mapping = ps_mapping_by_address(d, address);
	uint64_t granule, offset;

	if (!mapping)
		return;
	d->fault_count++;
	offset = address - (uint64_t)(uintptr_t)mapping->base;
	granule = ps_granule_by_address(d, mapping, address);
	/* A page that was here and is missing was discarded: it must not get older bytes. If the
	 * page is here, the fault is from before it came, and the kernel refuses nothing. */
	if (mapping->states[granule] == PS_GRANULE_REFUSED ||
	    offset % d->ops->granule < ps_granule_present_bytes(d, mapping, granule))
		d->ops->poison(d->pager, mapping->base + (offset & ~(uint64_t)(PS_PAGE - 1)),
		               PS_PAGE);
	else
		ps_granule_note_wanted(d, mapping, granule);
}

static void take_faults(struct ps_demand *d)
{
	uint64_t address;

	while (d->ops->fault(d->pager, &address)) {
		pthread_mutex_lock(&d->lock);
		take_fault(d, address);
		pthread_mutex_unlock(&d->lock);
	}
}

/* Refuses the granules that threads wait for, once the owner is fenced. Other granules are refused
 * when a thread touches them. */
static void poison_wanted_granules(struct ps_demand *d)
{
	for (unsigned i = 0; i < d->mapping_count; i++) {
		struct ps_mapping *mapping = &d->mappings[i];

		for (uint64_t g = 0; g < mapping->count; g++)
			if (mapping->states[g] == PS_GRANULE_WANTED ||
			    mapping->states[g] == PS_GRANULE_ASKED ||
			    mapping->states[g] == PS_GRANULE_COPIED_WANTED)
				poison_granule(d, mapping, g);
	}
	d->want_count = 0;
	d->want_ring_overflowed = false;
}

static void cover_mappings(struct ps_demand *d)
{
	for (unsigned i = 0; i < d->mapping_count; i++) {
		struct ps_mapping *mapping = &d->mappings[i];

		if (mapping->cover_state)
			continue;
		mapping->cover_state = d->ops->cover(d->pager, mapping->base, mapping->size,
		                                     mapping->tracks_stores)
		                               ? -1
		                               : 1;
		d->env->ops->broadcast(d->env, &d->changed);
		d->ops->wake(d->pager, PS_BULK_LANE);
	}
}

/* --- the threads --- */

/* Returns true while the lane must run. The first call waits until ps_demand_begin has set
 * d->pager.
 */
static bool is_running(struct ps_demand *d)
{
	bool on;

	pthread_mutex_lock(&d->lock);
	on = !d->is_stopping;
	pthread_mutex_unlock(&d->lock);
	return on;
}

static void take_events(struct ps_demand *d)
{
	take_faults(d);
	pthread_mutex_lock(&d->lock);
	cover_mappings(d);
	if (d->is_fenced)
		poison_wanted_granules(d);
	pthread_mutex_unlock(&d->lock);
}

static void end_sources(struct ps_demand *d, enum ps_lane lane)
{
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		d->ops->set_source_address(d->pager, ps_source_number(lane, i), NULL);
}

void ps_fault_lane(void *arg)
{
	struct ps_demand *d = arg;

	while (is_running(d)) {
		const uint64_t now = d->env->ops->now(d->env);
		uint64_t until, due = now;
		bool fills, takes;

		take_events(d);
		until = ps_sources_step(d, PS_FAULT_LANE, now);
		fills = ps_fill_answers_step(d);
		takes = ps_fill_from_copy_step(d);
		if (!fills && !takes)
			due = ps_make_large_pages_step(d, now);
		d->ops->sleep(d->pager, PS_FAULT_LANE, due < until ? due : until);
	}
	end_sources(d, PS_FAULT_LANE);
}

void ps_bulk_lane(void *arg)
{
	struct ps_demand *d = arg;

	while (is_running(d))
		d->ops->sleep(d->pager, PS_BULK_LANE,
		              ps_sources_step(d, PS_BULK_LANE, d->env->ops->now(d->env)));
	end_sources(d, PS_BULK_LANE);
}
