/*
 * large_pages.c - gathers small pages to large ones once all memory is here. What came granule by
 * granule lies in small pages, which the kernel looks up one by one, and frees one by one when the
 * process ends. The fault lane calls this file when no thread waits for it any more. Gathering
 * never changes what memory holds, so an unmap need not wait for it.
 */
#include "demand.h"

#include "../core/env.h"
#include "../../proto/base/large_page.h"

enum { TRIES = 8 }; /* for each large page */
#define TRY_AGAIN ps_ms(20)

/* Returns the address of the next large page that lies wholly in the mapping, or 0 if none is left.
 */
static uint64_t next_large_page_address(const struct ps_mapping *mapping)
{
	const uint64_t start = (uint64_t)(uintptr_t)mapping->base;
	const uint64_t from = start + mapping->large_bytes_done;
	const uint64_t place = (from + PS_LARGE_PAGE - 1) / PS_LARGE_PAGE * PS_LARGE_PAGE;

	return place + PS_LARGE_PAGE <= start + mapping->size ? place : 0;
}

/* Finds the next large page to make, and its mapping. Returns NULL if none is left, or if memory is
 * missing. The kernel does not gather watched pages, and a store would split them again. */
static struct ps_mapping *find_next_large_page(struct ps_demand *d, uint64_t *place)
{
	for (unsigned i = 0; i < d->mapping_count; i++)
		if (d->mappings[i].missing_count || d->mappings[i].cover_state <= 0)
			return NULL;
	for (unsigned i = 0; i < d->mapping_count; i++) {
		struct ps_mapping *mapping = &d->mappings[i];

		*place = next_large_page_address(mapping);
		if (*place && !mapping->tracks_stores)
			return mapping;
	}
	return NULL;
}

/* Gathers one large page: the kernel ignores signals meanwhile, so a killed process ends only
 * after it. Returns false if some of it is in use at the moment. */
static bool collapse_to_large_page(struct ps_demand *d, uint64_t place)
{
	uint8_t *at = (uint8_t *)(uintptr_t)place;

	return (d->ops->is_large && d->ops->is_large(d->pager, at, PS_LARGE_PAGE)) ||
	       d->ops->collapse(d->pager, at, PS_LARGE_PAGE);
}

uint64_t ps_make_large_pages_step(struct ps_demand *d, uint64_t now)
{
	struct ps_mapping *mapping;
	uint64_t place, generation;
	bool done;

	pthread_mutex_lock(&d->lock);
	mapping = find_next_large_page(d, &place);
	generation = mapping ? mapping->generation : 0;
	pthread_mutex_unlock(&d->lock);
	if (!generation)
		return PS_NEVER;
	done = collapse_to_large_page(d, place);
	pthread_mutex_lock(&d->lock);
	mapping = ps_mapping_by_generation(d, generation);
	if (mapping && (done || ++mapping->large_page_tries == TRIES)) {
		mapping->large_bytes_done = place + PS_LARGE_PAGE -
		                            (uint64_t)(uintptr_t)mapping->base;
		mapping->large_page_tries = 0;
	}
	pthread_mutex_unlock(&d->lock);
	return done ? now : now + TRY_AGAIN;
}
