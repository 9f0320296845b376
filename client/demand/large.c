/*
 * large.c - small pages that are gathered to large ones once all memory is here: what came granule
 * by granule lies in small pages. The kernel looks these up one by one, and frees them so when the
 * process ends. The fault lane calls this file, as nobody waits for it any more. Nothing of it
 * changes what memory holds, so that an unmap need not wait for it.
 */
#include "demand.h"

#include "../core/env.h"
#include "../../proto/base/large_page.h"

enum { PASSES = 8 };
#define GATHER_AGAIN ps_ms(100) /* doubled each time */

/* The next place where all of a large page lies in the mapping; 0: there is none. */
static uint64_t next_place(const struct ps_mapping *mapping)
{
	const uint64_t start = (uint64_t)(uintptr_t)mapping->base;
	const uint64_t from = start + mapping->gathered;
	const uint64_t place = (from + PS_LARGE_PAGE - 1) / PS_LARGE_PAGE * PS_LARGE_PAGE;

	return place + PS_LARGE_PAGE <= start + mapping->size ? place : 0;
}

/* Pages that somebody touches at the moment stay small; all of it is gone through again then, and
 * after so many passes they stay small for good. */
static void end_pass(struct ps_mapping *mapping, uint64_t now)
{
	if (!mapping->in_use || ++mapping->passes == PASSES) {
		mapping->gather_at = PS_NEVER;
		return;
	}
	mapping->gathered = 0;
	mapping->in_use = false;
	mapping->gather_at = now + (GATHER_AGAIN << mapping->passes);
}

/* The mapping of the next place, if all memory is here and its time has come. The kernel gathers no
 * pages that are watched, and a store would part them. */
static struct ps_mapping *find_next(struct ps_demand *d, uint64_t now, uint64_t *place)
{
	for (unsigned i = 0; i < d->mapping_count; i++)
		if (d->mappings[i].missing || d->mappings[i].covered <= 0)
			return NULL;
	for (unsigned i = 0; i < d->mapping_count; i++) {
		struct ps_mapping *mapping = &d->mappings[i];

		if (mapping->watched || now < mapping->gather_at)
			continue;
		*place = next_place(mapping);
		if (*place)
			return mapping;
		end_pass(mapping, now);
	}
	return NULL;
}

static uint64_t due(const struct ps_demand *d, uint64_t now)
{
	uint64_t at = PS_NEVER;

	for (unsigned i = 0; i < d->mapping_count; i++)
		if (d->mappings[i].gather_at > now && d->mappings[i].gather_at < at)
			at = d->mappings[i].gather_at;
	return at;
}

/* One place at a time: the kernel does not look at signals meanwhile, so that a process ends after
 * it. */
static bool gather(struct ps_demand *d, uint64_t place)
{
	uint8_t *at = (uint8_t *)(uintptr_t)place;

	return (d->ops->is_large && d->ops->is_large(d->pager, at, PS_LARGE_PAGE)) ||
	       d->ops->gather(d->pager, at, PS_LARGE_PAGE);
}

uint64_t ps_large_step(struct ps_demand *d, uint64_t now)
{
	struct ps_mapping *mapping;
	uint64_t place, generation, at;
	bool all;

	pthread_mutex_lock(&d->lock);
	mapping = find_next(d, now, &place);
	generation = mapping ? mapping->generation : 0;
	at = due(d, now);
	pthread_mutex_unlock(&d->lock);
	if (!generation)
		return at;
	all = gather(d, place);
	pthread_mutex_lock(&d->lock);
	mapping = ps_mapping_of(d, generation);
	if (mapping) {
		mapping->gathered = place + PS_LARGE_PAGE - (uint64_t)(uintptr_t)mapping->base;
		mapping->in_use |= !all;
	}
	pthread_mutex_unlock(&d->lock);
	return now;
}
