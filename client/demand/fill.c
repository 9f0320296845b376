/*
 * fill.c - puts what has come into memory. The fault lane does it for both lanes, so that to look
 * whether a granule is missing and to fill it in is one step, between which nothing else fills: a
 * page that was filled, changed and discarded never gets its older bytes back. It goes granule by
 * granule, so that no thread that waits for a page waits behind more than one of them.
 */
#include "demand.h"

#include "../core/env.h"

#include <assert.h>
#include <string.h>

uint32_t ps_granules_length(const struct ps_demand *d, const struct ps_mapping *mapping,
                            const struct ps_want *want)
{
	return (want->count - 1) * d->ops->granule +
	       ps_granule_length(d, mapping, want->granule + want->count - 1);
}

bool ps_granules_can_be_moved(const struct ps_demand *d, const struct ps_mapping *mapping,
                              const struct ps_want *want)
{
	return d->ops->can_move &&
	       d->ops->can_move(d->pager, mapping->base + want->granule * d->ops->granule,
	                        ps_granules_length(d, mapping, want), mapping->tracks_stores);
}

uint32_t ps_granules_fill(struct ps_demand *d, const struct ps_want *part, const uint8_t *bytes,
                          bool *all)
{
	struct ps_mapping *mapping = ps_mapping_by_generation(d, part->generation);
	const uint32_t here = ps_granule_present_bytes(d, mapping, part->granule);
	const uint32_t rest = ps_granules_length(d, mapping, part) - here;
	const uint64_t at = part->granule * d->ops->granule + here;
	uint8_t *to = mapping->base + at, *shadow = mapping->shadow;
	const bool watched = mapping->tracks_stores;
	uint32_t came;
	bool whole;

	d->filling_generation = part->generation;
	d->fill_count++;
	pthread_mutex_unlock(&d->lock);
	/* The shadow first: once a page is visible, the application may store to it, and a commit
	 * compares it with the shadow. */
	if (shadow)
		memcpy(shadow + at, bytes + here, rest);
	came = d->ops->fill(d->pager, to, bytes + here, rest, watched);
	pthread_mutex_lock(&d->lock);
	d->filling_generation = 0;
	ps_granules_note_filled(d, part, here + came);
	d->env->ops->broadcast(d->env, &d->changed);
	/* The mapping still exists, because its unmap waits for `filling_generation`. Another
	 * mapping's unmap may have moved its entry. */
	whole = !ps_mapping_by_generation(d, part->generation)->missing_count;
	if (whole)
		d->env->ops->broadcast(d->env, &d->all_here);
	if (whole || d->must_wake_keeper)
		d->env->ops->wake(d->env, PS_KEEPER);
	d->must_wake_keeper = false;
	*all = came == rest;
	return came;
}

/* Returns true if the whole answer can be moved to its place without a copy. */
static bool is_movable(const struct ps_demand *d, const struct ps_mapping *mapping,
                       const struct ps_fetching *f)
{
	const struct ps_want run = { f->generation, f->granule, f->granule_count };

	if (f->filled_count || f->granule_count < d->ops->run)
		return false;
	for (unsigned i = 0; i < f->granule_count; i++)
		if (mapping->states[f->granule + i] >= PS_GRANULE_HERE ||
		    ps_granule_present_bytes(d, mapping, f->granule + i))
			return false;
	return ps_granules_can_be_moved(d, mapping, &run);
}

/* Finds the next part of the answer to fill in. Returns false if no part is left. Granules that are
 * here already, because both lanes fetched them or two sources were asked, stay unchanged. */
static bool find_next_part(struct ps_demand *d, struct ps_fetching *f, struct ps_want *part)
{
	const struct ps_mapping *mapping = ps_mapping_by_generation(d, f->generation);

	if (!mapping || d->is_fenced)
		return false;
	while (f->filled_count < f->granule_count &&
	       mapping->states[f->granule + f->filled_count] >= PS_GRANULE_HERE)
		f->filled_count++;
	*part = (struct ps_want){ f->generation, f->granule + f->filled_count, 1 };
	if (is_movable(d, mapping, f))
		part->count = f->granule_count;
	return f->filled_count < f->granule_count;
}

static void finish_answer(struct ps_demand *d, unsigned which, enum ps_fetch_state state)
{
	assert(d->fetching[which].state == PS_FETCH_FILLING);
	d->fetching[which].state = state;
	d->lacks_memory = state == PS_FETCH_POOR;
	if (ps_source_lane(which) == PS_BULK_LANE)
		d->ops->wake(d->pager, PS_BULK_LANE);
}

/* Fills in one part of a source's answer. Caller holds d->lock. */
static void fill_next_part(struct ps_demand *d, unsigned which)
{
	struct ps_fetching *f = &d->fetching[which];
	struct ps_want part;
	bool all;

	if (!find_next_part(d, f, &part)) {
		finish_answer(d, which, PS_FETCH_FILLED);
		return;
	}
	d->fetched_bytes += ps_granules_fill(d, &part,
	                                     f->bytes + (uint64_t)f->filled_count * d->ops->granule,
	                                     &all);
	if (!all) {
		finish_answer(d, which, PS_FETCH_POOR);
		return;
	}
	f->filled_count += part.count;
	d->starved_at = 0;
	if (f->filled_count == f->granule_count)
		finish_answer(d, which, PS_FETCH_FILLED);
}

bool ps_fill_answers_step(struct ps_demand *d)
{
	unsigned which = 0;

	pthread_mutex_lock(&d->lock);
	/* Answers to faults come first. */
	while (which < PS_SOURCES && d->fetching[which].state != PS_FETCH_FILLING)
		which++;
	if (which < PS_SOURCES)
		fill_next_part(d, which);
	pthread_mutex_unlock(&d->lock);
	return which < PS_SOURCES;
}
