/*
 * fill_from_copy.c - fills missing memory from the copy that a standby kept, which was proven when
 * the store was opened (prove.c), instead of from a mirror. The fault lane calls it, so it must
 * never wait for a thread that touches missing memory. A segment that was unmapped since the open
 * takes nothing from the copy.
 */
#include "demand.h"

#include "../core/segment.h"

#include <string.h>

void ps_fill_from_copy_mark(struct ps_demand *d, const struct ps_segment *segment, uint64_t count,
                            uint8_t *states)
{
	const struct ps_segment_key key = ps_segment_key(segment);
	const struct ps_warm_part *part = ps_warm_find_usable_part(d->standby_copy, &key);
	const uint64_t size = d->ops->granule;

	for (uint64_t g = 0; part && g < count; g++) {
		const uint64_t at = g * size;
		const uint64_t rest = segment->size - at;

		if (ps_warm_part_has_bytes(part, at, rest < size ? rest : size))
			states[g] = PS_GRANULE_COPIED;
	}
}

static void *find_state(const struct ps_mapping *mapping, uint64_t from, enum ps_granule state)
{
	return memchr(&mapping->states[from], (int)state, mapping->count - from);
}

static uint64_t granule_number(const struct ps_mapping *mapping, const void *at)
{
	return (uint64_t)((const uint8_t *)at - mapping->states);
}

static bool find_copied_and_wanted(struct ps_demand *d, struct ps_want *next)
{
	for (unsigned i = 0; i < d->mapping_count; i++) {
		struct ps_mapping *mapping = &d->mappings[i];
		const void *at = NULL;

		if (mapping->cover_state > 0 && mapping->may_have_wanted_in_copy)
			at = find_state(mapping, 0, PS_GRANULE_COPIED_WANTED);
		if (mapping->cover_state > 0)
			mapping->may_have_wanted_in_copy = at != NULL;
		if (!at)
			continue;
		*next = (struct ps_want){ mapping->generation, granule_number(mapping, at), 1 };
		return true;
	}
	return false;
}

static bool find_copied(struct ps_demand *d, struct ps_want *next)
{
	for (unsigned i = 0; i < d->mapping_count; i++) {
		struct ps_mapping *mapping = &d->mappings[i];
		const void *at;

		if (mapping->cover_state <= 0 || mapping->next_copied == mapping->count)
			continue;
		at = find_state(mapping, mapping->next_copied, PS_GRANULE_COPIED);
		mapping->next_copied = at ? granule_number(mapping, at) : mapping->count;
		if (!at)
			continue;
		*next = (struct ps_want){ mapping->generation, mapping->next_copied++, 1 };
		return true;
	}
	return false;
}

/* Fills in the granule. If this host has no memory for all of it, mirrors are asked for it later.
 * Caller holds d->lock. */
static void fill_granule_from_copy(struct ps_demand *d, const struct ps_want *part)
{
	struct ps_mapping *mapping = ps_mapping_by_generation(d, part->generation);
	struct ps_warm_part *copy = ps_warm_part(d->standby_copy, mapping->segment);
	const uint64_t at = part->granule * d->ops->granule;
	const uint32_t length = ps_granules_length(d, mapping, part);
	bool all;

	(void)ps_granules_fill(d, part, copy->bytes + at, &all);
	if (all) /* The granule is here for good, so its bytes in the copy can be freed. */
		ps_warm_free_used_bytes(copy, at, length);
	else
		ps_granule_allow_request_again(d, part->generation, part->granule);
}

bool ps_fill_from_copy_step(struct ps_demand *d)
{
	struct ps_want part;
	bool found = false;

	if (!d->standby_copy)
		return false;
	pthread_mutex_lock(&d->lock);
	if (!d->is_fenced)
		found = find_copied_and_wanted(d, &part) || find_copied(d, &part);
	if (found)
		fill_granule_from_copy(d, &part);
	pthread_mutex_unlock(&d->lock);
	return found;
}
