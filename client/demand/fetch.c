/*
 * fetch.c - how a lane fetches missing memory: it asks sources for it, and judges what they answer
 * (source.c). What counts is left to the fault lane to fill in (fill.c). Nothing here waits for
 * anything, but for the moment for which `lock` is held.
 */
#include "demand.h"

#include "../core/env.h"

#include <assert.h>
#include <string.h>

#define FIRST_DELAY ps_ms(2)
#define LAST_DELAY ps_ms(250)
#define LATE 4     /* times as long as usual */
#define USUAL_OF 8 /* answers, about */

static struct ps_source *mirror_of(struct ps_demand *d, unsigned which)
{
	return &d->sources[which % PS_MIRRORS_MAX];
}

/* --- the end of a fetch --- */

static void set_state(struct ps_demand *d, unsigned which, enum ps_fetch_state state)
{
	pthread_mutex_lock(&d->lock);
	d->fetching[which].state = state;
	pthread_mutex_unlock(&d->lock);
}

static enum ps_fetch_state state_of(struct ps_demand *d, unsigned which)
{
	enum ps_fetch_state state;

	pthread_mutex_lock(&d->lock);
	state = d->fetching[which].state;
	pthread_mutex_unlock(&d->lock);
	return state;
}

/* Gives the granules of a request back to the lane. Caller holds d->lock. */
static void return_granules(struct ps_demand *d, struct ps_fetching *f)
{
	for (unsigned i = 0; i < f->granule_count; i++)
		ps_granule_allow_request_again(d, f->generation, f->granule + i);
	f->state = PS_FETCH_IDLE;
}

/* Gives the granules of a source that sent nothing useful back to the lane, and lets the source
 * pause. */
static void pause_source(struct ps_demand *d, struct ps_fetching *f, uint64_t now)
{
	pthread_mutex_lock(&d->lock);
	return_granules(d, f);
	if (!d->starved_at)
		d->starved_at = now;
	pthread_mutex_unlock(&d->lock);
	f->next_request_at = now + f->retry_delay_ns;
	f->retry_delay_ns = 2 * f->retry_delay_ns < LAST_DELAY ? 2 * f->retry_delay_ns : LAST_DELAY;
}

/* Drops the source's connection, and tells the keeper, which may know another way to the mirror. */
static void drop_source_connection(struct ps_demand *d, unsigned which, uint64_t now)
{
	bool known;

	d->ops->drop(d->pager, which);
	pause_source(d, &d->fetching[which], now);
	pthread_mutex_lock(&d->lock);
	known = mirror_of(d, which)->has_lost_connection;
	mirror_of(d, which)->has_lost_connection = true;
	pthread_mutex_unlock(&d->lock);
	if (!known)
		d->env->ops->wake(d->env, PS_KEEPER);
}

/* Takes over what the keeper has changed about the mirror since the last look. */
static void update_source_address(struct ps_demand *d, unsigned which)
{
	struct ps_fetching *f = &d->fetching[which];
	struct ps_source source;
	bool same;

	pthread_mutex_lock(&d->lock);
	same = mirror_of(d, which)->version == f->source_version;
	if (!same)
		source = *mirror_of(d, which);
	if (!same && f->state == PS_FETCH_ASKED)
		return_granules(d, f);
	pthread_mutex_unlock(&d->lock);
	if (same)
		return;
	d->ops->drop(d->pager, which);
	d->ops->set_source_address(d->pager, which, source.is_in_roster ? &source.way : NULL);
	f->source_version = source.version;
	f->next_request_at = 0;
	f->retry_delay_ns = FIRST_DELAY;
}

/* --- what to ask for --- */

/* Returns when a second source is asked as well, so that a hanging mirror holds up no thread: after
 * a multiple of the usual time, because a second request helps nobody if all sources are slow. */
static uint64_t second_request_at(const struct ps_demand *d, enum ps_lane lane,
                                  const struct ps_fetching *f)
{
	const uint64_t usual = LATE * d->usual_answer_ns[lane];
	const uint64_t late = usual > d->ops->second_request_after_ns
	                              ? usual
	                              : d->ops->second_request_after_ns;

	return f->has_second_request || late > PS_NEVER - f->asked_at ? PS_NEVER
	                                                              : f->asked_at + late;
}

static bool is_any_missing(const struct ps_mapping *mapping, const struct ps_fetching *f)
{
	for (unsigned i = 0; i < f->granule_count; i++)
		if (mapping->states[f->granule + i] < PS_GRANULE_HERE)
			return true;
	return false;
}

/* Finds granules that another source of the lane should have sent long ago. The later of the two
 * answers is dropped. */
static bool find_overdue_granules(struct ps_demand *d, enum ps_lane lane, uint64_t now,
                                  struct ps_want *next)
{
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		struct ps_fetching *f = &d->fetching[ps_source_number(lane, i)];
		const struct ps_mapping *mapping;

		if (f->state != PS_FETCH_ASKED || now < second_request_at(d, lane, f))
			continue;
		mapping = ps_mapping_by_generation(d, f->generation);
		f->has_second_request = true;
		if (!mapping || !is_any_missing(mapping, f))
			continue;
		*next = (struct ps_want){ f->generation, f->granule, f->granule_count };
		return true;
	}
	return false;
}

/* Returns how many granules are fetched for a fault. A direct read brings a whole large page: it
 * takes about as long as the kernel needs to map its small pages, and saves all other faults in it.
 * With a rate limit only the granule of the fault is fetched. */
static unsigned granules_for_fault(struct ps_demand *d, unsigned which)
{
	const struct ps_source *source = mirror_of(d, which);

	return source->direct_link.fabric && !source->is_link_refused && !d->bulk_bytes_per_s
	               ? d->ops->run
	               : 1;
}

static bool find_next_granules(struct ps_demand *d, unsigned which, uint64_t now,
                               struct ps_want *next)
{
	const enum ps_lane lane = ps_source_lane(which);

	if (find_overdue_granules(d, lane, now, next))
		return true;
	if (lane == PS_BULK_LANE)
		return ps_granule_next_bulk(d, now, next);
	return ps_granule_next_wanted(d, granules_for_fault(d, which), next);
}

/* Chooses what to fetch, and fills in the request. Returns false if the source has nothing to do.
 * Caller holds d->lock. */
static bool choose_request(struct ps_demand *d, unsigned which, uint64_t now,
                           struct ps_fetch_request *fetch)
{
	struct ps_fetching *f = &d->fetching[which];
	struct ps_source *source = mirror_of(d, which);
	struct ps_wanted *wanted = &f->wanted;
	struct ps_mapping *mapping;
	struct ps_want next;

	if (d->is_fenced || !d->epoch || !source->is_in_roster ||
	    source->version != f->source_version || !find_next_granules(d, which, now, &next))
		return false;
	mapping = ps_mapping_by_generation(d, next.generation);
	f->generation = next.generation;
	f->granule = next.granule;
	f->granule_count = next.count;
	memcpy(wanted->store_id, d->store_id, PS_ID_SIZE);
	memcpy(wanted->owner, d->owner, PS_ID_SIZE);
	memcpy(wanted->image_id, source->image_id, PS_ID_SIZE);
	wanted->epoch = d->epoch;
	wanted->last_unmap_seq = mapping->last_unmap_seq;
	wanted->length = ps_granules_length(d, mapping, &next);
	*fetch = (struct ps_fetch_request){ .store = d->store,
		                            .region = PS_REGION_SEGMENT + mapping->segment,
		                            .length = wanted->length,
		                            .offset = next.granule * d->ops->granule };
	if (!source->is_link_refused)
		fetch->direct_link = source->direct_link;
	source->reading_lanes[ps_source_lane(which)] = fetch->direct_link.fabric != NULL;
	assert(f->state == PS_FETCH_IDLE);
	f->state = PS_FETCH_ASKED;
	return true;
}

/* --- asking and hearing --- */

/* Returns true if the source's memory is still being read by a request that was given up: only the
 * thread that ends the link waits for that. */
static bool is_link_being_read(const struct ps_demand *d, unsigned which)
{
	return d->ops->is_still_reading && d->ops->is_still_reading(d->pager, which);
}

/* Lets the thread that ends the source's link go on, if no read uses the link any more. */
static void release_link(struct ps_demand *d, unsigned which)
{
	bool *peeking = &mirror_of(d, which)->reading_lanes[ps_source_lane(which)];

	if (is_link_being_read(d, which))
		return;
	pthread_mutex_lock(&d->lock);
	if (*peeking && d->fetching[which].state != PS_FETCH_ASKED) {
		*peeking = false;
		d->env->ops->broadcast(d->env, &d->changed);
	}
	pthread_mutex_unlock(&d->lock);
}

static void take_answer(struct ps_demand *d, unsigned which, const struct ps_fetch_answer *fetched,
                        uint64_t now)
{
	struct ps_fetching *f = &d->fetching[which];
	uint64_t *usual = &d->usual_answer_ns[ps_source_lane(which)];

	if (ps_answer_rejection(&f->wanted, fetched)) {
		/* After a direct read that does not count, the mirror is asked over a connection:
		 * it may send the bytes, or say what is wrong. */
		pthread_mutex_lock(&d->lock);
		mirror_of(d, which)->is_link_refused |= fetched->seen != NULL;
		pthread_mutex_unlock(&d->lock);
		pause_source(d, f, now);
		return;
	}
	*usual += (now - f->asked_at) / USUAL_OF - *usual / USUAL_OF;
	assert(f->state == PS_FETCH_ASKED);
	f->bytes = fetched->bytes.data;
	f->filled_count = 0;
	set_state(d, which, PS_FETCH_FILLING);
	if (ps_source_lane(which) != PS_FAULT_LANE)
		d->ops->wake(d->pager, PS_FAULT_LANE);
}

/* Returns true if the source still has time. Each granule that arrives restarts the time limit, so
 * that a run over a slow link has as much time as its granules would have alone. */
static bool has_time_left(struct ps_demand *d, unsigned which, uint64_t now)
{
	struct ps_fetching *f = &d->fetching[which];
	const uint64_t arrived = d->ops->received_bytes ? d->ops->received_bytes(d->pager, which)
	                                                : 0;

	if (arrived >= f->arrived_bytes + d->ops->granule) {
		f->arrived_bytes = arrived;
		f->answer_by = now + d->answer_timeout_ns;
	}
	return now < f->answer_by;
}

static void poll_answer(struct ps_demand *d, unsigned which, uint64_t now)
{
	struct ps_fetch_answer fetched;
	const int rc = d->ops->answer(d->pager, which, &fetched);

	if (rc > 0)
		take_answer(d, which, &fetched, now);
	else if (rc < 0 || !has_time_left(d, which, now))
		drop_source_connection(d, which, now);
}

/* Takes the source's answer, and notes what became of the previous one. */
static void poll_source(struct ps_demand *d, unsigned which, uint64_t now)
{
	struct ps_fetching *f = &d->fetching[which];
	const enum ps_fetch_state state = state_of(d, which);

	if (state == PS_FETCH_FILLING)
		return;
	if (state == PS_FETCH_POOR)
		pause_source(d, f, now);
	if (state == PS_FETCH_FILLED) {
		f->retry_delay_ns = FIRST_DELAY;
		set_state(d, which, PS_FETCH_IDLE);
	}
	update_source_address(d, which);
	if (f->state == PS_FETCH_ASKED)
		poll_answer(d, which, now);
	release_link(d, which);
}

static void send_request(struct ps_demand *d, unsigned which, uint64_t now)
{
	struct ps_fetching *f = &d->fetching[which];
	struct ps_fetch_request fetch;
	bool chosen;

	pthread_mutex_lock(&d->lock);
	chosen = choose_request(d, which, now, &fetch);
	pthread_mutex_unlock(&d->lock);
	if (!chosen)
		return;
	f->has_second_request = false;
	f->asked_at = now;
	f->answer_by = now + d->answer_timeout_ns;
	f->arrived_bytes = 0;
	if (!d->ops->ask(d->pager, which, &fetch))
		drop_source_connection(d, which, now);
	/* A direct read is complete already. */
	else if (fetch.direct_link.fabric)
		poll_answer(d, which, d->env->ops->now(d->env));
	release_link(d, which);
}

/* Returns when the rate limit allows the bulk lane's next request. */
static uint64_t rate_allows_bulk_at(struct ps_demand *d, unsigned which, uint64_t now)
{
	uint64_t at;

	pthread_mutex_lock(&d->lock);
	at = d->bulk_allowed_at;
	pthread_mutex_unlock(&d->lock);
	return ps_source_lane(which) == PS_BULK_LANE && at > now ? at : PS_NEVER;
}

/* Sends the source its next request, if it is idle. Returns when to look at the source again if
 * nothing arrives. */
static uint64_t advance_source(struct ps_demand *d, unsigned which, uint64_t now)
{
	struct ps_fetching *f = &d->fetching[which];
	uint64_t late;

	if (state_of(d, which) == PS_FETCH_IDLE && now >= f->next_request_at &&
	    !is_link_being_read(d, which))
		send_request(d, which, now);
	switch (state_of(d, which)) {
	case PS_FETCH_IDLE:
		return f->next_request_at > now ? f->next_request_at
		                                : rate_allows_bulk_at(d, which, now);
	case PS_FETCH_ASKED:
		late = second_request_at(d, ps_source_lane(which), f);
		return late > now && late < f->answer_by ? late : f->answer_by;
	default: /* The fault lane fills in its answers before it asks for more. */
		return ps_source_lane(which) == PS_FAULT_LANE ? now : PS_NEVER;
	}
}

/* Sets the order in which mirrors are asked: mirrors without a bulk request come first. */
static void sort_mirrors(struct ps_demand *d, unsigned order[PS_MIRRORS_MAX])
{
	unsigned count = 0;

	pthread_mutex_lock(&d->lock);
	for (unsigned busy = 0; busy < 2; busy++)
		for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
			if ((d->fetching[ps_source_number(PS_BULK_LANE, i)].state ==
			     PS_FETCH_ASKED) == busy)
				order[count++] = i;
	pthread_mutex_unlock(&d->lock);
}

uint64_t ps_sources_step(struct ps_demand *d, enum ps_lane lane, uint64_t now)
{
	unsigned order[PS_MIRRORS_MAX];
	uint64_t until = PS_NEVER, due;

	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		poll_source(d, ps_source_number(lane, i), now);
	sort_mirrors(d, order);
	for (unsigned i = 0; i < PS_MIRRORS_MAX && until > now; i++) {
		due = advance_source(d, ps_source_number(lane, order[i]), now);
		until = due < until ? due : until;
	}
	return until;
}
