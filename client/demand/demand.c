/*
 * demand.c - the calls of the library (core/demand.h), by any of its threads: segments are mapped
 * and unmapped, transactions wait for pages, and the keeper passes on what it knows of mirrors,
 * epochs and fences. Nothing here touches memory that may be missing.
 */
#include "demand.h"

#include "../core/env.h"
#include "../core/event.h"
#include "../core/gather.h"
#include "../core/mirror.h"
#include "../core/segment.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_UP_AGAIN ps_ms(5000) /* after a lookup that failed */
#define LOOK_UP_LOST ps_ms(1000)  /* after a connection was lost */
#define STARVED_FOR ps_ms(1000)   /* until an event says so */

/* Wakes every thread that waits for memory, also for all of it: none may come any more, or none may
 * be missing. */
static void wake_waiters(struct ps_demand *d)
{
	d->env->ops->broadcast(d->env, &d->changed);
	d->env->ops->broadcast(d->env, &d->all_here);
}

static void wake_lanes(struct ps_demand *d)
{
	d->ops->wake(d->pager, PS_FAULT_LANE);
	d->ops->wake(d->pager, PS_BULK_LANE);
}

static void await_demand_change(struct ps_demand *d, uint64_t until)
{
	d->env->ops->wait(d->env, &d->changed, &d->lock, until);
}

/* --- life --- */

static struct ps_demand *demand_new(struct perseas *p)
{
	struct ps_demand *d = calloc(1, sizeof(*d));
	pthread_condattr_t attr;

	if (!d)
		return NULL;
	d->env = p->env;
	d->ops = p->env->pager;
	d->answer_timeout_ns = ps_ms(p->options.connect_timeout_ms);
	d->bulk_bytes_per_s = p->options.fetch_rate;
	d->standby_copy = p->warm_copy;
	memcpy(d->store, p->store, sizeof(d->store));
	memcpy(d->store_id, p->store_id, PS_ID_SIZE);
	memcpy(d->owner, p->owner, PS_ID_SIZE);
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&d->changed, &attr);
	pthread_cond_init(&d->all_here, &attr);
	pthread_condattr_destroy(&attr);
	return d;
}

static void demand_free(struct ps_demand *d)
{
	pthread_cond_destroy(&d->all_here);
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

void ps_demand_begin(struct perseas *p)
{
	static void (*const lanes[PS_LANES])(void *arg) = { ps_fault_lane, ps_bulk_lane };
	struct ps_error error = { PERSEAS_ENOMEM, "out of memory" };
	struct ps_demand *d;

	if (p->options.recovery != PERSEAS_RECOVERY_ON_DEMAND)
		return;
	if (!p->env->pager) {
		ps_report_add_line(p,
		                   "memory is read first: this process cannot fetch it on demand");
		return;
	}
	d = demand_new(p);
	if (d) {
		/* The lanes take this lock before they use d->pager. */
		pthread_mutex_lock(&d->lock);
		d->pager = d->ops->begin(p->env, lanes, d, &error);
		pthread_mutex_unlock(&d->lock);
	}
	if (!d || !d->pager) {
		ps_report_add_line(p, "memory is read first: %s", error.text);
		if (d)
			demand_free(d);
		return;
	}
	p->demand = d;
	if (d->ops->limitation_text(d->pager))
		ps_report_add_line(p, "memory is fetched on demand: %s",
		                   d->ops->limitation_text(d->pager));
	ps_demand_step(p);
}

static void do_nothing(void *arg)
{
	(void)arg;
}

int ps_demand_probe(struct ps_env *env, const char **limit, struct ps_error *error)
{
	static void (*const lanes[PS_LANES])(void *arg) = { do_nothing, do_nothing };
	struct ps_pager *pager;

	*error = (struct ps_error){ PERSEAS_ENOMEM, "out of memory" };
	*limit = NULL;
	pager = env->pager->begin(env, lanes, NULL, error);
	if (!pager)
		return error->code;
	*limit = env->pager->limitation_text(pager);
	env->pager->end(pager);
	return 0;
}

/* Unmaps all segments on demand, except that memory which the application keeps stays mapped. Once
 * the userfaultfd is closed, a missing page would read as zeros. */
static void unmap_segments_on_demand(struct perseas *p)
{
	for (unsigned i = 0; i < p->segment_count; i++) {
		struct ps_segment *segment = &p->segments[i];

		if (!segment->base || !ps_mapping_by_segment(p->demand, segment->id))
			continue;
		ps_demand_unmap(p, segment);
		if (!segment->memory_outlives_handle)
			ps_segment_unmap(segment);
	}
}

void ps_demand_end(struct perseas *p)
{
	struct ps_demand *d = p->demand;

	if (!d)
		return;
	unmap_segments_on_demand(p);
	pthread_mutex_lock(&d->lock);
	d->is_stopping = true;
	pthread_mutex_unlock(&d->lock);
	wake_lanes(d);
	d->ops->end(d->pager);
	p->demand = NULL;
	demand_free(d);
}

/* --- mapping --- */

static bool is_here(const struct ps_mapping *mapping, uint64_t granule)
{
	return mapping->states[granule] == PS_GRANULE_HERE;
}

uint64_t ps_demand_missing_bytes(const struct ps_demand *d, bool *any)
{
	uint64_t missing = 0;

	for (unsigned i = 0; i < d->mapping_count; i++) {
		const struct ps_mapping *mapping = &d->mappings[i];
		const uint64_t last = mapping->count - 1;

		missing += mapping->missing_count * d->ops->granule;
		if (!is_here(mapping, last))
			missing -= d->ops->granule - ps_granule_length(d, mapping, last);
	}
	*any = d->mapping_count > 0;
	return missing;
}

/* Removes the mapping. Returns its states, which the caller frees after it has released d->lock:
 * the lanes must not wait for malloc. */
static uint8_t *remove_mapping(struct ps_demand *d, struct ps_mapping *mapping)
{
	uint8_t *states = mapping->states;

	memmove(mapping, mapping + 1,
	        (size_t)(&d->mappings[d->mapping_count] - (mapping + 1)) * sizeof(*mapping));
	d->mapping_count--;
	/* Threads that wait for its pages must look again. */
	wake_waiters(d);
	return states;
}

static uint64_t count_granules(const struct ps_demand *d, const struct ps_segment *segment)
{
	return (segment->size + d->ops->granule - 1) / d->ops->granule;
}

/* Adds a mapping, which the fault lane will cover. Returns its generation. Caller holds d->lock. */
static uint64_t add_mapping(struct perseas *p, const struct ps_segment *segment, uint8_t *shadow,
                            uint8_t *states)
{
	struct ps_demand *d = p->demand;
	struct ps_mapping *mapping = &d->mappings[d->mapping_count++];
	const uint64_t count = count_granules(d, segment);

	*mapping = (struct ps_mapping){
		.generation = ++d->last_generation,
		.segment = segment->id,
		.base = segment->base,
		.size = segment->size,
		.last_unmap_seq = segment->last_unmap_seq,
		.count = count,
		.missing_count = count,
		.tracks_stores = shadow && p->written,
		.partial_pages = shadow ? states + count : NULL,
	};
	mapping->states = states;
	mapping->shadow = shadow;
	return mapping->generation;
}

bool ps_demand_map(struct perseas *p, const struct ps_segment *segment, uint8_t *shadow)
{
	struct ps_demand *d = p->demand;
	struct ps_mapping *mapping;
	uint64_t generation;
	uint8_t *states;
	bool covered, any;

	if (!d)
		return false;
	/* The states of all granules, and with a shadow their `partial_pages`. */
	states = calloc(count_granules(d, segment), shadow ? 2 : 1);
	if (!states)
		return false;
	ps_fill_from_copy_mark(d, segment, count_granules(d, segment), states);
	pthread_mutex_lock(&d->lock);
	/* Nothing is missing, so that no thread has waited since. */
	if (!ps_demand_missing_bytes(d, &any))
		d->starved_at = 0;
	generation = add_mapping(p, segment, shadow, states);
	d->ops->wake(d->pager, PS_FAULT_LANE);
	while (!(mapping = ps_mapping_by_generation(d, generation))->cover_state)
		await_demand_change(d, PS_NEVER);
	covered = mapping->cover_state > 0;
	if (!covered)
		remove_mapping(d, mapping);
	else
		d->has_told_whole = false;
	pthread_mutex_unlock(&d->lock);
	if (!covered)
		free(states);
	return covered;
}

void ps_demand_unmap(struct perseas *p, const struct ps_segment *segment)
{
	struct ps_demand *d = p->demand;
	struct ps_mapping *mapping;
	uint8_t *states = NULL;

	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	while ((mapping = ps_mapping_by_segment(d, segment->id)) &&
	       d->filling_generation == mapping->generation)
		await_demand_change(d, PS_NEVER);
	if (mapping)
		states = remove_mapping(d, mapping);
	pthread_mutex_unlock(&d->lock);
	free(states);
	/* The copy has the segment as it was at the open, and its memory may have been changed. */
	ps_warm_stop_using_segment(d->standby_copy, segment->id);
}

/* --- what is here --- */

bool ps_demand_has_missing(struct perseas *p, const struct ps_segment *segment)
{
	const struct ps_mapping *mapping;
	bool lacks;

	if (!p->demand)
		return false;
	pthread_mutex_lock(&p->demand->lock);
	mapping = ps_mapping_by_segment(p->demand, segment->id);
	lacks = mapping && mapping->missing_count > 0;
	pthread_mutex_unlock(&p->demand->lock);
	return lacks;
}

bool ps_demand_request(struct perseas *p, const struct ps_segment *segment, uint64_t offset,
                       uint64_t length)
{
	struct ps_demand *d = p->demand;
	struct ps_mapping *mapping;
	bool here = true;

	if (!d || !length)
		return true;
	pthread_mutex_lock(&d->lock);
	mapping = ps_mapping_by_segment(d, segment->id);
	for (uint64_t g = offset / d->ops->granule;
	     mapping && g <= (offset + length - 1) / d->ops->granule; g++) {
		here &= is_here(mapping, g);
		ps_granule_note_wanted(d, mapping, g);
	}
	d->must_wake_keeper |= !here;
	pthread_mutex_unlock(&d->lock);
	if (!here)
		d->ops->wake(d->pager, PS_FAULT_LANE);
	return here;
}

/* Returns 0 if the granule at the address is here, 1 if it was requested, or PERSEAS_EFENCED.
 * Caller holds d->lock. */
static int request_granule(struct ps_demand *d, uint64_t address)
{
	struct ps_mapping *mapping = ps_mapping_by_address(d, address);
	uint64_t granule;

	if (!mapping)
		return 0;
	granule = ps_granule_by_address(d, mapping, address);
	if (is_here(mapping, granule))
		return 0;
	if (d->is_fenced)
		return PERSEAS_EFENCED;
	ps_granule_note_wanted(d, mapping, granule);
	return 1;
}

/* Returns the end of the granule at the address, which counts from the segment's first byte, or
 * UINT64_MAX if nothing is mapped there. */
static uint64_t granule_end(struct ps_demand *d, uint64_t address)
{
	const struct ps_mapping *mapping = ps_mapping_by_address(d, address);

	if (!mapping)
		return UINT64_MAX;
	return (uint64_t)(uintptr_t)mapping->base +
	       (ps_granule_by_address(d, mapping, address) + 1) * d->ops->granule;
}

int ps_demand_await(struct perseas *p, uint64_t start, uint64_t end)
{
	struct ps_demand *d = p->demand;
	int rc = 0;

	if (!d)
		return 0;
	pthread_mutex_lock(&d->lock);
	for (uint64_t at = start; at < end && rc >= 0; at = granule_end(d, at)) {
		while ((rc = request_granule(d, at)) > 0) {
			d->ops->wake(d->pager, PS_FAULT_LANE);
			await_demand_change(d, PS_NEVER);
		}
	}
	pthread_mutex_unlock(&d->lock);
	return rc ? ps_fail_fenced(p) : 0;
}

/* --- the keeper --- */

static bool is_source_current(const struct ps_source *source, const struct ps_mirror *m,
                              bool is_in_roster)
{
	return source->is_in_roster == is_in_roster &&
	       (!is_in_roster || (!memcmp(source->image_id, m->image_id, PS_ID_SIZE) &&
	                          !strcmp(source->way.address.text, m->address.text)));
}

/* Returns true, once for each time, if a lane has lost its connection to the mirror. */
static bool take_lost_connection_note(struct ps_demand *d, struct ps_source *source)
{
	bool lost;

	pthread_mutex_lock(&d->lock);
	lost = source->has_lost_connection;
	source->has_lost_connection = false;
	pthread_mutex_unlock(&d->lock);
	return lost;
}

static bool has_same_addresses(const struct ps_known_addresses *a,
                               const struct ps_known_addresses *b)
{
	return a->count == b->count && !memcmp(a->lengths, b->lengths, sizeof(a->lengths)) &&
	       !memcmp(a->to, b->to, sizeof(a->to));
}

/* Updates the source of mirror `i`. Every mirror of the roster is one, connected or not, because
 * its own status decides which answers count. After a lost connection its name is looked up again.
 * Returns true if the source changed. */
static bool update_source(struct perseas *p, unsigned i, uint64_t now)
{
	const struct ps_mirror *m = &p->mirrors[i];
	const bool counts = i < p->mirror_count && m->is_image_in_roster &&
	                    m->state != PERSEAS_MIRROR_REMOVED;
	struct ps_demand *d = p->demand;
	struct ps_source *source = &d->sources[i];
	struct ps_error error;
	struct ps_known_addresses way;

	if ((counts && now < d->next_lookup_at[i]) ||
	    (is_source_current(source, m, counts) &&
	     !(counts && take_lost_connection_note(d, source))))
		return false;
	if (counts && d->ops->look_up(d->pager, &m->address, &way, &error)) {
		d->next_lookup_at[i] = now + LOOK_UP_AGAIN;
		return false;
	}
	if (is_source_current(source, m, counts)) {
		d->next_lookup_at[i] = now + LOOK_UP_LOST;
		if (has_same_addresses(&source->way, &way))
			return false;
	}
	pthread_mutex_lock(&d->lock);
	source->version++;
	source->is_in_roster = counts;
	if (counts) {
		memcpy(source->image_id, m->image_id, PS_ID_SIZE);
		source->way = way;
	}
	pthread_mutex_unlock(&d->lock);
	return true;
}

static void report_progress(struct perseas *p, uint64_t missing, const char *starved)
{
	struct ps_demand *d = p->demand;

	pthread_mutex_lock(&p->lock);
	if (starved && !d->has_told_starved)
		ps_event(p, PERSEAS_EVENT_MEMORY_WAITS, ps_last_committed_seq(p), NULL,
		         "%llu bytes of memory are missing, and %s", (unsigned long long)missing,
		         starved);
	if (!missing && !d->has_told_whole)
		ps_event(p, PERSEAS_EVENT_WHOLE, ps_last_committed_seq(p), NULL,
		         "all memory is here");
	pthread_mutex_unlock(&p->lock);
	d->has_told_starved = starved != NULL;
	d->has_told_whole = !missing;
}

/* Publishes the layout anew if a segment became whole: set_range need not wait in it any more. */
static void publish_whole_segments(struct perseas *p)
{
	const struct ps_layout *layout = p->layout;

	for (unsigned i = 0; layout && i < layout->extent_count; i++) {
		const struct ps_mapped_extent *extent = &layout->extents[i];

		if (extent->is_published && !extent->is_ready &&
		    !ps_demand_has_missing(p, ps_segment_by_id(p, extent->segment_id))) {
			(void)ps_layout_refresh(p);
			return;
		}
	}
}

/* Frees the standby's copy of segments that are whole. */
static void free_standby_copies_of_whole_segments(struct perseas *p)
{
	for (unsigned i = 0; p->warm_copy && i < p->segment_count; i++)
		if (p->segments[i].base && !ps_demand_has_missing(p, &p->segments[i]))
			ps_warm_stop_using_segment(p->warm_copy, p->segments[i].id);
}

void ps_demand_suspend(struct perseas *p)
{
	struct ps_demand *d = p->demand;

	ps_assert_admin(p);
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->epoch = 0;
	pthread_mutex_unlock(&d->lock);
}

void ps_demand_step(struct perseas *p)
{
	struct ps_demand *d = p->demand;
	const char *starved = NULL;
	bool changed = false, any;
	uint64_t epoch, missing, now;

	if (!d)
		return;
	now = ps_now(p);
	ps_assert_admin(p);
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		changed |= update_source(p, i, now);
		ps_direct_link_update(p, i);
	}
	epoch = p->is_renewing ? 0 : p->epoch;
	pthread_mutex_lock(&d->lock);
	changed |= d->epoch != epoch || (p->is_superseded && !d->is_fenced);
	d->epoch = epoch;
	d->is_fenced |= p->is_superseded;
	missing = ps_demand_missing_bytes(d, &any);
	if (missing && !d->is_fenced && d->starved_at && now > d->starved_at + STARVED_FOR)
		starved = "none of them arrived for a second";
	if (starved && d->lacks_memory)
		starved = "this host has no memory for all of what mirrors give: free some";
	if (changed)
		wake_waiters(d);
	pthread_mutex_unlock(&d->lock);
	if (changed)
		wake_lanes(d);
	if (any)
		report_progress(p, missing, starved);
	publish_whole_segments(p);
	free_standby_copies_of_whole_segments(p);
}

void ps_demand_fill_stat(struct perseas *p, struct perseas_stat *stat)
{
	struct ps_demand *d = p->demand;
	bool any;

	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	stat->missing = ps_demand_missing_bytes(d, &any);
	stat->fetched = d->fetched_bytes;
	stat->faults = d->fault_count;
	pthread_mutex_unlock(&d->lock);
}
