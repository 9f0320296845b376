/*
 * large.c - memory that lies in small pages, though it could lie in large ones: what came in
 * granules does. The kernel looks small pages up one by one, and frees them so when the process
 * ends. The thread that fetches calls this file: it notes at which places of large pages small ones
 * lie, and has the kernel gather these while nobody is likely to wait. Nothing of it changes what
 * memory holds, so that an unmap need not wait for it.
 */
#include "demand.h"

#include "../../proto/base/large_page.h"

#include <string.h>

/* So much is gathered at once. The kernel does not look at signals meanwhile, so that a process
 * ends after it; and each time it waits once for all processors. It is soon done with places that
 * are large already. */
enum {
	AT_ONCE = 4, /* places that hold small pages */
	ACROSS = 64, /* places */
	PASSES = 8,
	SHARE = 8, /* while something is missing, it is done in one of so many parts of the time */
};
#define GATHER_AGAIN ps_ms(100) /* doubled each time */

struct places {
	uint64_t first, end;
};

static uint64_t start_of(const struct ps_mapping *mapping)
{
	return (uint64_t)(uintptr_t)mapping->base;
}

/* The large page of the process in which this byte of the mapping lies, from its first on. */
static uint64_t place_of(const struct ps_mapping *mapping, uint64_t at)
{
	return (start_of(mapping) + at) / PS_LARGE_PAGE - start_of(mapping) / PS_LARGE_PAGE;
}

uint64_t ps_large_places(const uint8_t *base, uint64_t size)
{
	const struct ps_mapping mapping = { .base = (uint8_t *)base };

	return place_of(&mapping, size - 1) + 1;
}

/* Where the place begins, which may be before the mapping. */
static uint64_t address_of(const struct ps_mapping *mapping, uint64_t place)
{
	return (start_of(mapping) / PS_LARGE_PAGE + place) * PS_LARGE_PAGE;
}

/* Only then it can be one large page. */
static bool is_inside(const struct ps_mapping *mapping, uint64_t place)
{
	const uint64_t address = address_of(mapping, place);

	return address >= start_of(mapping) &&
	       address + PS_LARGE_PAGE <= start_of(mapping) + mapping->size;
}

static bool is_large(struct ps_demand *d, const struct ps_mapping *mapping, uint64_t at,
                     uint64_t length)
{
	return length == PS_LARGE_PAGE && (start_of(mapping) + at) % PS_LARGE_PAGE == 0 &&
	       d->ops->is_large && d->ops->is_large(d->pager, mapping->base + at, length);
}

/* The kernel gathers no pages that are watched, and a store would part them. */
void ps_large_note(struct ps_demand *d, struct ps_mapping *mapping, uint64_t at, uint64_t length)
{
	const uint64_t last = place_of(mapping, at + length - 1);

	if (mapping->watched || is_large(d, mapping, at, length))
		return;
	for (uint64_t place = place_of(mapping, at); place <= last; place++)
		if (is_inside(mapping, place))
			mapping->small[place] = 1;
}

/* A place with a hole stays as it is, so there is no use in asking. */
static bool are_whole(const struct ps_demand *d, const struct ps_mapping *mapping, uint64_t first,
                      uint64_t end)
{
	const uint64_t at = address_of(mapping, first) - start_of(mapping);
	const uint64_t to = address_of(mapping, end) - start_of(mapping);

	for (uint64_t g = at / d->ops->granule; g * d->ops->granule < to; g++)
		if (mapping->states[g] != PS_GRANULE_HERE)
			return false;
	return true;
}

static uint64_t count_places(const struct ps_mapping *mapping)
{
	return ps_large_places(mapping->base, mapping->size);
}

/* From this place on the first that holds small pages; as many as there are: none does. */
static uint64_t next_small(const struct ps_mapping *mapping, uint64_t place)
{
	const uint64_t count = count_places(mapping);
	const uint8_t *at = memchr(mapping->small + place, 1, count - place);

	return at ? (uint64_t)(at - mapping->small) : count;
}

static bool has_small(const struct ps_mapping *mapping)
{
	return next_small(mapping, 0) < count_places(mapping);
}

/* The next places whose small pages are gathered at once, with those between them. */
static bool find_places(const struct ps_demand *d, const struct ps_mapping *mapping,
                        struct places *found)
{
	const uint64_t count = count_places(mapping);
	uint64_t place = next_small(mapping, mapping->gathered);
	unsigned small = 0;

	while (place < count && !are_whole(d, mapping, place, place + 1))
		place = next_small(mapping, place + 1);
	*found = (struct places){ place, place };
	while (place < count && place < found->first + ACROSS && small < AT_ONCE &&
	       are_whole(d, mapping, found->end, place + 1)) {
		small++;
		found->end = place + 1;
		place = next_small(mapping, found->end);
	}
	return small > 0;
}

/* Pages that somebody touches at the moment stay small; later all of these are gone through again.
 * True: that has begun. */
static bool begin_again(struct ps_mapping *mapping, uint64_t now)
{
	const bool again = mapping->gathered > 0;

	mapping->gathered = 0;
	if (!mapping->in_use)
		return again;
	mapping->in_use = false;
	/* After so many they stay small. */
	if (++mapping->passes == PASSES)
		memset(mapping->small, 0, count_places(mapping));
	mapping->gather_at = now + (GATHER_AGAIN << mapping->passes);
	return false;
}

/* What of this mapping is to be gathered now. */
static bool find_in(const struct ps_demand *d, struct ps_mapping *mapping, uint64_t now,
                    struct places *found)
{
	if (now < mapping->gather_at)
		return false;
	return find_places(d, mapping, found) ||
	       (begin_again(mapping, now) && find_places(d, mapping, found));
}

/* May the thread be away for a moment? Where all is here, nobody waits for it. */
static bool is_idle(const struct ps_demand *d, uint64_t now)
{
	bool missing = false;

	for (unsigned i = 0; i < d->mapping_count; i++) {
		if (d->mappings[i].covered <= 0)
			return false;
		missing |= d->mappings[i].missing > 0;
	}
	/* Where processors are busy it takes long, and what is missing meanwhile can be lost with
	 * its mirrors. */
	if (missing && (d->waits_whole || now < d->gather_after || now < ps_runs_quiet_at(d)))
		return false;
	return !d->fenced;
}

static struct ps_mapping *find_small(struct ps_demand *d, uint64_t now, struct places *found)
{
	if (!is_idle(d, now))
		return NULL;
	for (unsigned i = 0; i < d->mapping_count; i++)
		if (find_in(d, &d->mappings[i], now, found))
			return &d->mappings[i];
	return NULL;
}

/* When the next is to be looked for, if nothing else comes. */
static uint64_t due(const struct ps_demand *d, uint64_t now)
{
	uint64_t at = PS_NEVER;

	for (unsigned i = 0; i < d->mapping_count; i++) {
		const struct ps_mapping *mapping = &d->mappings[i];

		if (mapping->gather_at > now && mapping->gather_at < at && has_small(mapping))
			at = mapping->gather_at;
	}
	return at;
}

static void note_gathered(struct ps_demand *d, uint64_t generation, const struct places *places,
                          bool all)
{
	struct ps_mapping *mapping = ps_mapping_of(d, generation);

	if (!mapping)
		return;
	mapping->gathered = places->end;
	mapping->in_use |= !all;
	if (all)
		memset(mapping->small + places->first, 0, places->end - places->first);
}

uint64_t ps_large_step(struct ps_demand *d, uint64_t now)
{
	struct ps_mapping *mapping;
	struct places places;
	uint64_t generation, at, began;
	bool all;

	pthread_mutex_lock(&d->lock);
	mapping = find_small(d, now, &places);
	if (!mapping) {
		at = due(d, now);
		pthread_mutex_unlock(&d->lock);
		return at;
	}
	generation = mapping->generation;
	at = address_of(mapping, places.first);
	pthread_mutex_unlock(&d->lock);
	began = d->env->ops->now(d->env);
	all = d->ops->gather(d->pager, (uint8_t *)(uintptr_t)at,
	                     (places.end - places.first) * PS_LARGE_PAGE);
	d->gather_after = began + SHARE * (d->env->ops->now(d->env) - began);
	pthread_mutex_lock(&d->lock);
	note_gathered(d, generation, &places, all);
	pthread_mutex_unlock(&d->lock);
	return now;
}
