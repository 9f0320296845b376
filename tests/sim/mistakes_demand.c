/*
 * mistakes_demand.c - faults of recovery on demand: answers that are taken although a rule forbids
 * it, links that are read when they must not be, and memory that is used although it is missing.
 * Without its mistake none changes anything.
 */
#include "mistakes.h"

#include "../../client/demand/demand.h"
#include "../../client/demand/direct_reader.h"
#include "pager_sim.h"
#include "process.h"

bool sim_mistake_demands(const struct sim_world *w)
{
	return w->mistake > SIM_MISTAKE_DEMANDS && w->mistake < SIM_MISTAKES_END;
}

static bool is(const struct sim_owner *o, enum sim_mistake mistake)
{
	return sim_mistake_is(o->world, mistake);
}

static Perseas__StoreStatus *changeable(const Perseas__StoreStatus *status)
{
	return (Perseas__StoreStatus *)(uintptr_t)status;
}

/* Makes the status look as if the image were promised to this owner and had its slot. */
static void claim(const struct ps_wanted *wanted, const Perseas__StoreStatus *status)
{
	Perseas__Header *header = changeable(status)->header;

	header->promised_epoch = wanted->epoch;
	if (header->promised_owner.len == PS_ID_SIZE)
		memcpy(header->promised_owner.data, wanted->owner, 8);
	if (status->slot)
		changeable(status)->slot->epoch = wanted->epoch;
}

void sim_mistake_fetched(struct sim_owner *o, enum ps_lane lane, const struct ps_wanted *wanted,
                         struct ps_fetch_answer *fetched)
{
	Perseas__StoreStatus *before = changeable(fetched->before);
	Perseas__StoreStatus *after = changeable(fetched->after);

	if (!before->header || !after->header)
		return;
	if (is(o, lane == PS_BULK_LANE ? SIM_MISTAKE_LATER : SIM_MISTAKE_LATER_WAITED)) {
		claim(wanted, before);
		claim(wanted, after);
		after->header->rewrites = before->header->rewrites;
	}
	if (is(o, SIM_MISTAKE_LAGS) && before->slot && before->slot->seq < wanted->last_unmap_seq)
		before->slot->seq = wanted->last_unmap_seq;
	if (is(o, SIM_MISTAKE_HALF)) {
		before->header->state = after->header->state = PERSEAS__STATE__STATE_CONSISTENT;
		after->header->rewrites = before->header->rewrites;
	}
}

/* Fills in bytes once more that came for an earlier mapping, over the present ones. */
static void come_late(struct sim_owner *o, struct ps_demand *d,
                      const struct ps_fetch_request *missing, uint64_t generation,
                      const struct ps_fetch_answer *fetched)
{
	struct sim_late *late = &o->late;
	struct ps_mapping *mapping = ps_mapping_by_segment(d, late->segment);

	if (late->length && mapping && mapping->generation != late->generation &&
	    mapping->states[late->offset / d->ops->granule] == PS_GRANULE_HERE) {
		memcpy(mapping->base + late->offset, late->bytes, late->length);
		late->length = 0;
	}
	if (late->length || fetched->bytes.len > sizeof(late->bytes))
		return;
	late->generation = generation;
	late->segment = missing->region - PS_REGION_SEGMENT;
	late->offset = missing->offset;
	late->length = (uint32_t)fetched->bytes.len;
	memcpy(late->bytes, fetched->bytes.data, late->length);
}

void sim_mistake_late(struct sim_owner *o, struct ps_demand *d, unsigned which,
                      const struct ps_fetch_request *missing, const struct ps_fetch_answer *fetched)
{
	if (is(o, SIM_MISTAKE_OUTLIVES) &&
	    !ps_answer_rejection(&d->fetching[which].wanted, fetched))
		come_late(o, d, missing, d->fetching[which].generation, fetched);
}

/* A granule of what came, if it is here already. */
static void come_twice(const struct ps_demand *d, const struct ps_mapping *mapping,
                       uint64_t granule, const uint8_t *bytes)
{
	if (mapping->states[granule] == PS_GRANULE_HERE)
		memcpy(mapping->base + granule * d->ops->granule, bytes,
		       ps_granule_length(d, mapping, granule));
}

void sim_mistake_twice(struct sim_owner *o, const struct ps_demand *d, unsigned which,
                       const struct ps_fetch_answer *fetched)
{
	const struct ps_fetching *f = &d->fetching[which];
	const struct ps_mapping *mapping;

	if (!is(o, SIM_MISTAKE_FILLED_AGAIN) || ps_answer_rejection(&f->wanted, fetched))
		return;
	mapping = ps_mapping_by_generation(o->handle->demand, f->generation);
	for (unsigned i = 0; mapping && i < f->granule_count; i++)
		come_twice(d, mapping, f->granule + i,
		           fetched->bytes.data + (uint64_t)i * d->ops->granule);
}

/* Returns a bit for each granule of the fetch that is missing, or that has come. */
static unsigned find_granules(struct ps_demand *d, const struct ps_fetching *f, bool here)
{
	const struct ps_mapping *mapping = ps_mapping_by_generation(d, f->generation);
	unsigned found = 0;

	for (unsigned i = 0; mapping && i < f->granule_count; i++)
		if ((mapping->states[f->granule + i] == PS_GRANULE_HERE) == here)
			found |= 1u << i;
	return found;
}

void sim_mistake_discarded(struct sim_owner *o, struct ps_demand *d, unsigned which,
                           const struct ps_fetch_answer *fetched)
{
	const struct ps_fetching *f = &d->fetching[which];
	unsigned filled;

	if (!is(o, SIM_MISTAKE_DISCARDED) || ps_source_lane(which) != PS_BULK_LANE ||
	    ps_answer_rejection(&f->wanted, fetched))
		return;
	filled = find_granules(d, f, false);
	sim_owner_sleep(o, sim_below(o->world, 200 * SIM_MS));
	filled &= find_granules(d, f, true);
	for (unsigned i = 0; i < f->granule_count; i++)
		if (filled >> i & 1)
			sim_pager_copy(d->pager, ps_mapping_by_generation(d, f->generation),
			               f->granule + i,
			               fetched->bytes.data + (uint64_t)i * d->ops->granule);
}

bool sim_mistake_poor(const struct sim_world *w)
{
	return w->mistake >= SIM_MISTAKE_TORN_MISSED && w->mistake <= SIM_MISTAKE_TORN_AGAIN;
}

/* Fills in the granule's rest together with bytes that were filled in before, and may have been
 * committed since. */
void sim_mistake_rest(struct sim_owner *o, struct ps_mapping *mapping, uint64_t offset,
                      const uint8_t *bytes)
{
	const uint64_t here = offset % SIM_GRANULE;

	if (is(o, SIM_MISTAKE_TORN_AGAIN) && mapping->shadow)
		memcpy(mapping->shadow + offset - here, bytes - here, here);
}

bool sim_mistake_straight(const struct sim_world *w)
{
	return w->mistake > SIM_MISTAKE_STRAIGHT && w->mistake < SIM_MISTAKES_END;
}

void sim_mistake_peeked(struct sim_owner *o, const struct ps_fetch_request *fetch,
                        struct ps_direct_read_result *seen)
{
	struct ps_fetch_request slots = *fetch;
	struct ps_direct_read_result behind;
	uint8_t none;

	if (!is(o, SIM_MISTAKE_SLOT_BEHIND))
		return;
	slots.length = 0;
	ps_direct_read(&slots, &none, &behind);
	seen->epoch = behind.epoch;
	seen->seq = behind.seq;
}

/* --- functions that these stand in front of --- */

void __real_ps_demand_drop_link(struct perseas *p, const struct ps_mirror *m);
void __wrap_ps_demand_drop_link(struct perseas *p, const struct ps_mirror *m);

bool __real_ps_demand_request(struct perseas *p, const struct ps_segment *segment, uint64_t offset,
                              uint64_t length);
bool __wrap_ps_demand_request(struct perseas *p, const struct ps_segment *segment, uint64_t offset,
                              uint64_t length);

void __real_ps_granules_note_filled(struct ps_demand *d, const struct ps_want *part, uint32_t here);
void __wrap_ps_granules_note_filled(struct ps_demand *d, const struct ps_want *part, uint32_t here);

uint64_t __real_ps_demand_uniform_run(struct perseas *p, const struct ps_segment *segment,
                                      uint64_t offset, uint64_t length, bool *here);
uint64_t __wrap_ps_demand_uniform_run(struct perseas *p, const struct ps_segment *segment,
                                      uint64_t offset, uint64_t length, bool *here);

/* Counts nothing, or everything, of a granule of which a part is here. */
void __wrap_ps_granules_note_filled(struct ps_demand *d, const struct ps_want *part, uint32_t here)
{
	const uint32_t all = ps_granules_length(d, ps_mapping_by_generation(d, part->generation),
	                                        part);
	const struct sim_owner *o = (const struct sim_owner *)d->env;
	const uint32_t part_of = here % SIM_GRANULE;

	if (here < all && is(o, SIM_MISTAKE_TORN_MISSED))
		here -= part_of;
	else if (here < all && part_of && is(o, SIM_MISTAKE_TORN_WHOLE))
		here += SIM_GRANULE - part_of;
	__real_ps_granules_note_filled(d, part, here < all ? here : all);
}

/* Lets a resync copy a chunk from memory that is missing. */
bool __wrap_ps_demand_request(struct perseas *p, const struct ps_segment *segment, uint64_t offset,
                              uint64_t length)
{
	const bool here = __real_ps_demand_request(p, segment, offset, length);

	return here || is((struct sim_owner *)p->env, SIM_MISTAKE_UNFETCHED);
}

/* Lets the link end, or get other regions, while a thread reads by it. */
void __wrap_ps_demand_drop_link(struct perseas *p, const struct ps_mirror *m)
{
	if (!is((struct sim_owner *)p->env, SIM_MISTAKE_NOT_PARTED))
		__real_ps_demand_drop_link(p, m);
}

/* Tells a renewal that copies images that all memory is here. */
uint64_t __wrap_ps_demand_uniform_run(struct perseas *p, const struct ps_segment *segment,
                                      uint64_t offset, uint64_t length, bool *here)
{
	const uint64_t run = __real_ps_demand_uniform_run(p, segment, offset, length, here);
	const struct sim_owner *o = (const struct sim_owner *)p->env;

	*here |= p->is_renewing && o->running == &o->tasks[SIM_KEEPER] &&
	         is(o, SIM_MISTAKE_RENEWED);
	return run;
}
