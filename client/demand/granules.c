/*
 * granules.c - the table of what is here and what is missing, with the lock of demand.h. It never
 * touches the memory that it tells of.
 */
#include "demand.h"

#include <string.h>

struct ps_mapping *ps_mapping_of(struct ps_demand *d, uint64_t generation)
{
	for (unsigned i = 0; i < d->mapping_count; i++)
		if (d->mappings[i].generation == generation)
			return &d->mappings[i];
	return NULL;
}

struct ps_mapping *ps_mapping_at(struct ps_demand *d, uint64_t address)
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

struct ps_mapping *ps_mapping_segment(struct ps_demand *d, uint32_t segment)
{
	for (unsigned i = 0; i < d->mapping_count; i++)
		if (d->mappings[i].segment == segment)
			return &d->mappings[i];
	return NULL;
}

uint64_t ps_granule_at(const struct ps_demand *d, const struct ps_mapping *mapping,
                       uint64_t address)
{
	return (address - (uint64_t)(uintptr_t)mapping->base) / d->ops->granule;
}

uint32_t ps_granule_here(const struct ps_demand *d, const struct ps_mapping *mapping,
                         uint64_t granule)
{
	if (mapping->states[granule] == PS_GRANULE_HERE)
		return d->ops->granule;
	return mapping->torn ? mapping->torn[granule] * d->ops->page : 0;
}

uint32_t ps_granule_length(const struct ps_demand *d, const struct ps_mapping *mapping,
                           uint64_t granule)
{
	const uint64_t rest = mapping->size - granule * d->ops->granule;

	return rest < d->ops->granule ? (uint32_t)rest : d->ops->granule;
}

static void push(struct ps_demand *d, const struct ps_mapping *mapping, uint64_t granule)
{
	if (d->want_count == PS_WANTS) {
		d->wants_lost = true;
		return;
	}
	d->wants[(d->want_first + d->want_count++) % PS_WANTS] = (struct ps_want){
		mapping->generation, granule, 1
	};
}

void ps_granule_want(struct ps_demand *d, struct ps_mapping *mapping, uint64_t granule)
{
	if (mapping->states[granule] == PS_GRANULE_COPIED) {
		mapping->states[granule] = PS_GRANULE_TAKEN;
		mapping->taken = true;
	}
	if (mapping->states[granule] != PS_GRANULE_MISSING &&
	    mapping->states[granule] != PS_GRANULE_SOON)
		return;
	mapping->states[granule] = PS_GRANULE_WANTED;
	push(d, mapping, granule);
}

void ps_granule_soon(struct ps_mapping *mapping, uint64_t granule)
{
	const bool first = mapping->soon == mapping->soon_end;

	if (mapping->states[granule] != PS_GRANULE_MISSING)
		return;
	mapping->states[granule] = PS_GRANULE_SOON;
	if (first || granule < mapping->soon)
		mapping->soon = granule;
	if (first || granule >= mapping->soon_end)
		mapping->soon_end = granule + 1;
}

void ps_granule_give_back(struct ps_demand *d, uint64_t generation, uint64_t granule)
{
	struct ps_mapping *mapping = ps_mapping_of(d, generation);

	if (!mapping || mapping->states[granule] != PS_GRANULE_ASKED)
		return;
	mapping->states[granule] = PS_GRANULE_WANTED;
	push(d, mapping, granule);
}

/* With those beside it that have come less far than `below`: of one multiple of `run` at most,
 * which is one large page. */
static bool ask_run(struct ps_mapping *mapping, uint64_t granule, unsigned run,
                    enum ps_granule below, struct ps_want *next)
{
	uint64_t first = granule, end = granule + 1;

	while (first % run && mapping->states[first - 1] < below)
		first--;
	while (end % run && end < mapping->count && mapping->states[end] < below)
		end++;
	memset(&mapping->states[first], PS_GRANULE_ASKED, end - first);
	*next = (struct ps_want){ mapping->generation, first, (unsigned)(end - first) };
	return true;
}

/* The first granule of any mapping that is WANTED, where the ring had no room for it. */
static bool find_lost(struct ps_demand *d, unsigned run, struct ps_want *next)
{
	for (unsigned i = 0; i < d->mapping_count && d->wants_lost; i++) {
		struct ps_mapping *mapping = &d->mappings[i];
		const uint8_t *at = memchr(mapping->states, PS_GRANULE_WANTED, mapping->count);

		if (at)
			return ask_run(mapping, (uint64_t)(at - mapping->states), run,
			               PS_GRANULE_ASKED, next);
	}
	d->wants_lost = false;
	return false;
}

static bool find_soon(struct ps_demand *d, unsigned run, struct ps_want *next)
{
	for (unsigned i = 0; i < d->mapping_count; i++) {
		struct ps_mapping *mapping = &d->mappings[i];

		for (; mapping->covered > 0 && mapping->soon < mapping->soon_end; mapping->soon++)
			if (mapping->states[mapping->soon] == PS_GRANULE_SOON)
				return ask_run(mapping, mapping->soon, run, PS_GRANULE_WANTED,
				               next);
	}
	return false;
}

static bool find_missing(struct ps_demand *d, unsigned run, struct ps_want *next)
{
	for (unsigned i = 0; i < d->mapping_count; i++) {
		struct ps_mapping *mapping = &d->mappings[i];

		for (; mapping->covered > 0 && mapping->next < mapping->count; mapping->next++)
			if (mapping->states[mapping->next] == PS_GRANULE_MISSING)
				return ask_run(mapping, mapping->next, run, PS_GRANULE_WANTED,
				               next);
	}
	return false;
}

/* What nobody waits for. */
static bool find_rest(struct ps_demand *d, uint64_t now, unsigned run, struct ps_want *next)
{
	if (!run || now < d->rest_at || (!find_soon(d, run, next) && !find_missing(d, run, next)))
		return false;
	if (d->rate)
		d->rest_at = now + (uint64_t)next->count * d->ops->granule * 1000000000 / d->rate;
	return true;
}

/* With what else is missing beside it, whoever waits for that. */
static bool find_wanted(struct ps_demand *d, unsigned run, struct ps_want *next)
{
	while (d->want_count > 0) {
		const struct ps_want want = d->wants[d->want_first];
		struct ps_mapping *mapping = ps_mapping_of(d, want.generation);

		d->want_first = (d->want_first + 1) % PS_WANTS;
		d->want_count--;
		if (mapping && mapping->states[want.granule] == PS_GRANULE_WANTED)
			return ask_run(mapping, want.granule, run, PS_GRANULE_ASKED, next);
	}
	return find_lost(d, run, next);
}

bool ps_granule_next(struct ps_demand *d, uint64_t now, struct ps_runs runs, struct ps_want *next,
                     bool *waits)
{
	*waits = find_wanted(d, runs.waited_for, next);
	return *waits || find_rest(d, now, runs.rest, next);
}
