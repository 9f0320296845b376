/*
 * granules.c - the tables of mappings and of their granules, and which granules each lane asks for
 * next. Callers hold the lock of demand.h. Nothing here touches the memory of segments.
 */
#include "demand.h"

#include <string.h>

struct ps_mapping *ps_mapping_by_generation(struct ps_demand *d, uint64_t generation)
{
	for (unsigned i = 0; i < d->mapping_count; i++)
		if (d->mappings[i].generation == generation)
			return &d->mappings[i];
	return NULL;
}

struct ps_mapping *ps_mapping_by_address(struct ps_demand *d, uint64_t address)
{
	for (unsigned i = 0; i < d->mapping_count; i++) {
		struct ps_mapping *mapping = &d->mappings[i];
		const uint64_t start = (uint64_t)(uintptr_t)mapping->base;

		/* The last page may be longer than the segment. */
		if (address >= start &&
		    address < ((start + mapping->size + PS_PAGE - 1) & ~(uint64_t)(PS_PAGE - 1)))
			return mapping;
	}
	return NULL;
}

struct ps_mapping *ps_mapping_by_segment(struct ps_demand *d, uint32_t segment)
{
	for (unsigned i = 0; i < d->mapping_count; i++)
		if (d->mappings[i].segment == segment)
			return &d->mappings[i];
	return NULL;
}

uint64_t ps_granule_by_address(const struct ps_demand *d, const struct ps_mapping *mapping,
                               uint64_t address)
{
	return (address - (uint64_t)(uintptr_t)mapping->base) / d->ops->granule;
}

uint32_t ps_granule_present_bytes(const struct ps_demand *d, const struct ps_mapping *mapping,
                                  uint64_t granule)
{
	if (mapping->states[granule] == PS_GRANULE_HERE)
		return d->ops->granule;
	return mapping->partial_pages ? mapping->partial_pages[granule] * d->ops->page : 0;
}

uint32_t ps_granule_length(const struct ps_demand *d, const struct ps_mapping *mapping,
                           uint64_t granule)
{
	const uint64_t rest = mapping->size - granule * d->ops->granule;

	return rest < d->ops->granule ? (uint32_t)rest : d->ops->granule;
}

static void queue_want(struct ps_demand *d, const struct ps_mapping *mapping, uint64_t granule)
{
	if (d->want_count == PS_WANTS) {
		d->want_ring_overflowed = true;
		return;
	}
	d->wants[(d->want_first + d->want_count++) % PS_WANTS] = (struct ps_want){
		mapping->generation, granule, 1
	};
}

void ps_granule_note_wanted(struct ps_demand *d, struct ps_mapping *mapping, uint64_t granule)
{
	if (mapping->states[granule] == PS_GRANULE_COPIED) {
		mapping->states[granule] = PS_GRANULE_COPIED_WANTED;
		mapping->may_have_wanted_in_copy = true;
	}
	if (mapping->states[granule] != PS_GRANULE_MISSING &&
	    mapping->states[granule] != PS_GRANULE_PREFETCH &&
	    mapping->states[granule] != PS_GRANULE_COMING)
		return;
	mapping->states[granule] = PS_GRANULE_WANTED;
	queue_want(d, mapping, granule);
}

void ps_granule_ask_early(struct ps_mapping *mapping, uint64_t granule)
{
	const bool first = mapping->prefetch_at == mapping->prefetch_end;

	if (mapping->states[granule] != PS_GRANULE_MISSING)
		return;
	mapping->states[granule] = PS_GRANULE_PREFETCH;
	if (first || granule < mapping->prefetch_at)
		mapping->prefetch_at = granule;
	if (first || granule >= mapping->prefetch_end)
		mapping->prefetch_end = granule + 1;
}

void ps_granule_allow_request_again(struct ps_demand *d, uint64_t generation, uint64_t granule)
{
	struct ps_mapping *mapping = ps_mapping_by_generation(d, generation);

	if (!mapping || mapping->states[granule] >= PS_GRANULE_HERE)
		return;
	if (granule < mapping->next_bulk)
		mapping->next_bulk = granule;
	if (mapping->states[granule] == PS_GRANULE_COMING)
		mapping->states[granule] = PS_GRANULE_MISSING;
	if (mapping->states[granule] == PS_GRANULE_ASKED ||
	    mapping->states[granule] == PS_GRANULE_COPIED_WANTED ||
	    mapping->states[granule] == PS_GRANULE_COPIED) {
		mapping->states[granule] = PS_GRANULE_WANTED;
		queue_want(d, mapping, granule);
	}
}

/* --- granules that threads wait for --- */

/* Finds a WANTED granule for which the ring had no room. */
static bool find_unqueued(struct ps_demand *d, struct ps_want *next)
{
	for (unsigned i = 0; i < d->mapping_count && d->want_ring_overflowed; i++) {
		struct ps_mapping *mapping = &d->mappings[i];
		const uint8_t *at = memchr(mapping->states, PS_GRANULE_WANTED, mapping->count);

		if (!at)
			continue;
		*next = (struct ps_want){ mapping->generation, (uint64_t)(at - mapping->states),
			                  1 };
		return true;
	}
	d->want_ring_overflowed = false;
	return false;
}

static bool find_wanted(struct ps_demand *d, struct ps_want *next)
{
	while (d->want_count > 0) {
		const struct ps_mapping *mapping;

		*next = d->wants[d->want_first];
		d->want_first = (d->want_first + 1) % PS_WANTS;
		d->want_count--;
		mapping = ps_mapping_by_generation(d, next->generation);
		if (mapping && mapping->states[next->granule] == PS_GRANULE_WANTED)
			return true;
	}
	return find_unqueued(d, next);
}

/* Widens *want to its whole run, if none of that is here or in a standby's copy, and if the answer
 * can be moved. */
static void widen_want(const struct ps_demand *d, const struct ps_mapping *mapping, unsigned run,
                       struct ps_want *want)
{
	const struct ps_want whole = { want->generation, want->granule / run * run, run };

	for (uint64_t g = whole.granule; g < whole.granule + run; g++)
		if (g >= mapping->count || mapping->states[g] >= PS_GRANULE_COPIED ||
		    ps_granule_present_bytes(d, mapping, g))
			return;
	if (ps_granules_can_be_moved(d, mapping, &whole))
		*want = whole;
}

bool ps_granule_next_wanted(struct ps_demand *d, unsigned run, struct ps_want *next)
{
	struct ps_mapping *mapping;

	if (!find_wanted(d, next))
		return false;
	mapping = ps_mapping_by_generation(d, next->generation);
	widen_want(d, mapping, run, next);
	memset(&mapping->states[next->granule], PS_GRANULE_ASKED, next->count);
	return true;
}

/* --- the rest --- */

/* Returns true if the bulk lane must ask for the granule. It also asks for what the fault lane has
 * asked for, because that lane may have lost its connections. */
static bool is_due_for_bulk_lane(const struct ps_mapping *mapping, uint64_t granule)
{
	return mapping->states[granule] < PS_GRANULE_COMING;
}

/* Returns how many granules the bulk lane asks for at once: a large page, but no more than the rate
 * limit allows in 10 ms. */
static unsigned bulk_run_length(const struct ps_demand *d)
{
	unsigned run = d->ops->run;

	while (d->bulk_bytes_per_s && run > 1 &&
	       (uint64_t)run * d->ops->granule > d->bulk_bytes_per_s / 100)
		run /= 2;
	return run;
}

/* Marks the granule COMING, with its neighbors in the same run for which the lane has not asked,
 * and sets *next to all of them. Returns true. */
static bool mark_run_coming(const struct ps_demand *d, struct ps_mapping *mapping, uint64_t granule,
                            struct ps_want *next)
{
	const unsigned run = bulk_run_length(d);
	uint64_t first = granule, end = granule + 1;

	while (first % run && is_due_for_bulk_lane(mapping, first - 1))
		first--;
	while (end % run && end < mapping->count && is_due_for_bulk_lane(mapping, end))
		end++;
	for (uint64_t g = first; g < end; g++)
		if (mapping->states[g] < PS_GRANULE_WANTED)
			mapping->states[g] = PS_GRANULE_COMING;
	if (mapping->next_bulk >= first && mapping->next_bulk < end)
		mapping->next_bulk = end;
	*next = (struct ps_want){ mapping->generation, first, (unsigned)(end - first) };
	return true;
}

static bool find_prefetched(struct ps_demand *d, struct ps_want *next)
{
	for (unsigned i = 0; i < d->mapping_count; i++) {
		struct ps_mapping *mapping = &d->mappings[i];

		for (; mapping->cover_state > 0 && mapping->prefetch_at < mapping->prefetch_end;
		     mapping->prefetch_at++)
			if (mapping->states[mapping->prefetch_at] == PS_GRANULE_PREFETCH)
				return mark_run_coming(d, mapping, mapping->prefetch_at, next);
	}
	return false;
}

static bool find_missing(struct ps_demand *d, struct ps_want *next)
{
	for (unsigned i = 0; i < d->mapping_count; i++) {
		struct ps_mapping *mapping = &d->mappings[i];

		for (; mapping->cover_state > 0 && mapping->next_bulk < mapping->count;
		     mapping->next_bulk++)
			if (is_due_for_bulk_lane(mapping, mapping->next_bulk))
				return mark_run_coming(d, mapping, mapping->next_bulk, next);
	}
	return false;
}

bool ps_granule_next_bulk(struct ps_demand *d, uint64_t now, struct ps_want *next)
{
	if (now < d->bulk_allowed_at || (!find_prefetched(d, next) && !find_missing(d, next)))
		return false;
	if (d->bulk_bytes_per_s)
		d->bulk_allowed_at = now + (uint64_t)next->count * d->ops->granule * 1000000000 /
		                                   d->bulk_bytes_per_s;
	return true;
}
