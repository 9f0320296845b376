/*
 * fetch.c - the thread that fetches missing memory: what is waited for first, then the rest, from
 * several mirrors at once. It has one thing under way at each source; what does not come of one is
 * asked of another one, too. It must never wait for a thread that touches missing memory (struct
 * ps_pager_ops), and never fill what was filled before.
 */
#include "demand.h"

#include <string.h>

#define FIRST_DELAY ps_ms(2)
#define LAST_DELAY ps_ms(250)
#define LATE 4     /* times as long as usual */
#define USUAL_OF 8 /* answers, about */

/* --- faults --- */

static void refuse(struct ps_demand *d, struct ps_mapping *mapping, uint64_t granule)
{
	mapping->states[granule] = PS_GRANULE_REFUSED;
	d->refusals++;
	d->ops->refuse(d->pager, mapping->base + granule * d->ops->granule,
	               ps_granule_length(d, mapping, granule));
}

/* It was here: who discarded it has lost what was there, and gets no older bytes. Where it is here
 * after all, the fault is from before it came. */
static void refuse_again(struct ps_demand *d, const struct ps_mapping *mapping, uint64_t offset)
{
	d->ops->refuse(d->pager, mapping->base + (offset & ~(uint64_t)(PS_PAGE - 1)), PS_PAGE);
}

static void take_fault(struct ps_demand *d, uint64_t address)
{
	struct ps_mapping *mapping = ps_mapping_at(d, address);
	uint64_t granule, offset;

	if (!mapping)
		return;
	d->faults++;
	offset = address - (uint64_t)(uintptr_t)mapping->base;
	granule = ps_granule_at(d, mapping, address);
	if (mapping->states[granule] == PS_GRANULE_REFUSED ||
	    offset % d->ops->granule < ps_granule_here(d, mapping, granule))
		refuse_again(d, mapping, offset);
	else
		ps_granule_want(d, mapping, granule);
}

static void take_faults(struct ps_demand *d)
{
	uint64_t address;

	while (d->ops->fault(d->pager, &address)) {
		pthread_mutex_lock(&d->lock);
		take_fault(d, address);
		pthread_mutex_unlock(&d->lock);
	}
}

/* Those who wait; others find out when they touch it. */
static void refuse_waiting(struct ps_demand *d)
{
	for (unsigned i = 0; i < d->mapping_count; i++) {
		struct ps_mapping *mapping = &d->mappings[i];

		for (uint64_t g = 0; g < mapping->count; g++)
			if (mapping->states[g] == PS_GRANULE_WANTED ||
			    mapping->states[g] == PS_GRANULE_ASKED ||
			    mapping->states[g] == PS_GRANULE_TAKEN)
				refuse(d, mapping, g);
	}
	d->want_count = 0;
	d->wants_lost = false;
}

static void cover_new(struct ps_demand *d, uint64_t now)
{
	for (unsigned i = 0; i < d->mapping_count; i++) {
		struct ps_mapping *mapping = &d->mappings[i];

		if (mapping->covered)
			continue;
		mapping->covered = d->ops->cover(d->pager, mapping->base, mapping->size,
		                                 mapping->watched)
		                           ? -1
		                           : 1;
		ps_runs_begin(d, now);
		d->env->ops->broadcast(d->env, &d->change);
	}
}

/* --- sources --- */

static void give_back(struct ps_demand *d, struct ps_fetching *f)
{
	pthread_mutex_lock(&d->lock);
	for (unsigned i = 0; i < f->count; i++)
		ps_granule_give_back(d, f->generation, f->granule + i);
	pthread_mutex_unlock(&d->lock);
	f->busy = false;
}

/* It gave nothing: others are asked, and this one in a while. */
static void strike(struct ps_demand *d, struct ps_fetching *f, uint64_t now)
{
	if (f->busy)
		give_back(d, f);
	f->again_at = now + f->delay;
	f->delay = 2 * f->delay < LAST_DELAY ? 2 * f->delay : LAST_DELAY;
	pthread_mutex_lock(&d->lock);
	if (!d->starved_at)
		d->starved_at = now;
	pthread_mutex_unlock(&d->lock);
}

/* Its connection is over: the next one may have to go elsewhere. */
static void lose(struct ps_demand *d, unsigned i, uint64_t now)
{
	bool known;

	d->ops->drop(d->pager, i);
	strike(d, &d->fetching[i], now);
	pthread_mutex_lock(&d->lock);
	known = d->sources[i].lost;
	d->sources[i].lost = true;
	pthread_mutex_unlock(&d->lock);
	if (!known)
		d->env->ops->wake(d->env, PS_KEEPER);
}

/* The keeper has other news of the mirror. */
static void follow(struct ps_demand *d, unsigned i)
{
	struct ps_fetching *f = &d->fetching[i];
	struct ps_source source;

	pthread_mutex_lock(&d->lock);
	source = d->sources[i];
	pthread_mutex_unlock(&d->lock);
	if (source.version == f->version)
		return;
	if (f->busy)
		give_back(d, f);
	d->ops->drop(d->pager, i);
	d->ops->lead(d->pager, i, source.counts ? &source.way : NULL);
	f->version = source.version;
	f->again_at = 0;
	f->delay = FIRST_DELAY;
}

/* When another source is asked for it, too: a mirror that hangs must not hold up who waits. Where
 * all are slow, for a network or a processor, that would only be more work for them. */
static uint64_t late_at(const struct ps_demand *d, const struct ps_fetching *f)
{
	const uint64_t late = LATE * d->usual > d->ops->late ? LATE * d->usual : d->ops->late;

	return f->doubled || late > PS_NEVER - f->asked_at ? PS_NEVER : f->asked_at + late;
}

static bool is_any_asked(const struct ps_mapping *mapping, const struct ps_fetching *f)
{
	return memchr(&mapping->states[f->granule], PS_GRANULE_ASKED, f->count) != NULL;
}

/* What another source was asked for long ago. What comes second of the two finds it here. */
static bool find_late(struct ps_demand *d, uint64_t now, struct ps_want *next)
{
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		struct ps_fetching *f = &d->fetching[i];
		const struct ps_mapping *mapping;

		if (!f->busy || now < late_at(d, f))
			continue;
		mapping = ps_mapping_of(d, f->generation);
		f->doubled = true;
		if (!mapping || !is_any_asked(mapping, f))
			continue;
		*next = (struct ps_want){ f->generation, f->granule, f->count };
		return true;
	}
	return false;
}

/* Is a run under way that nobody waited for? One that hangs is another source's by now. */
static bool has_run(const struct ps_demand *d)
{
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		const struct ps_fetching *f = &d->fetching[i];

		if (f->busy && !f->waited_for && f->count > 1 && !f->doubled)
			return true;
	}
	return false;
}

static bool find_next(struct ps_demand *d, uint64_t now, struct ps_want *next, bool *waits)
{
	struct ps_runs runs;

	*waits = false;
	if (find_late(d, now, next))
		return true;
	runs = ps_runs_now(d, now);
	if (runs.alone && runs.rest > 1 && has_run(d))
		runs.rest = 0;
	if (!ps_granule_next(d, now, runs, next, waits))
		return false;
	if (*waits)
		ps_runs_wait(d, now);
	return true;
}

uint32_t ps_granules_length(const struct ps_demand *d, const struct ps_mapping *mapping,
                            const struct ps_want *want)
{
	return (want->count - 1) * d->ops->granule +
	       ps_granule_length(d, mapping, want->granule + want->count - 1);
}

static struct ps_peek_link way_by(const struct ps_source *source)
{
	return source->spoilt ? (struct ps_peek_link){ NULL, NULL } : source->straight;
}

/* What was given up: a mirror's memory that hangs holds up nobody but who is to end the link. */
static bool is_read(const struct ps_demand *d, unsigned i)
{
	return d->ops->reads && d->ops->reads(d->pager, i);
}

/* Who is to end the link of a source goes on. */
static void let_go(struct ps_demand *d, unsigned i)
{
	if (d->fetching[i].busy || is_read(d, i))
		return;
	pthread_mutex_lock(&d->lock);
	if (d->sources[i].peeking) {
		d->sources[i].peeking = false;
		d->env->ops->broadcast(d->env, &d->change);
	}
	pthread_mutex_unlock(&d->lock);
}

/* Chooses what to fetch, by the rules of now. */
static bool choose(struct ps_demand *d, unsigned i, uint64_t now, struct ps_fetch_request *fetch)
{
	struct ps_fetching *f = &d->fetching[i];
	const struct ps_source *source = &d->sources[i];
	struct ps_wanted *wanted = &f->wanted;
	struct ps_mapping *mapping;
	struct ps_want next;

	if (d->fenced || !d->epoch || !source->counts || source->version != f->version ||
	    !find_next(d, now, &next, &f->waited_for))
		return false;
	mapping = ps_mapping_of(d, next.generation);
	f->generation = next.generation;
	f->granule = next.granule;
	f->count = next.count;
	memcpy(wanted->store_id, d->store_id, PS_ID_SIZE);
	memcpy(wanted->owner, d->owner, PS_ID_SIZE);
	memcpy(wanted->image_id, source->image_id, PS_ID_SIZE);
	wanted->epoch = d->epoch;
	wanted->left = mapping->left;
	wanted->length = ps_granules_length(d, mapping, &next);
	*fetch = (struct ps_fetch_request){ d->store, PS_REGION_SEGMENT + mapping->segment,
		                            wanted->length, next.granule * d->ops->granule,
		                            way_by(&d->sources[i]) };
	d->sources[i].peeking = fetch->straight.fabric != NULL;
	return true;
}

static void ask(struct ps_demand *d, unsigned i, uint64_t now)
{
	struct ps_fetching *f = &d->fetching[i];
	struct ps_fetch_request fetch;

	pthread_mutex_lock(&d->lock);
	f->busy = choose(d, i, now, &fetch);
	pthread_mutex_unlock(&d->lock);
	if (!f->busy)
		return;
	f->doubled = false;
	f->asked_at = now;
	f->until = now + d->patience;
	f->come = 0;
	if (d->ops->ask(d->pager, i, &fetch))
		return;
	lose(d, i, now);
	let_go(d, i);
}

uint32_t ps_granules_fill(struct ps_demand *d, const struct ps_want *part, const uint8_t *bytes,
                          bool *all)
{
	struct ps_mapping *mapping = ps_mapping_of(d, part->generation);
	const uint32_t here = ps_granule_here(d, mapping, part->granule);
	const uint32_t rest = ps_granules_length(d, mapping, part) - here;
	const uint64_t at = part->granule * d->ops->granule + here;
	uint8_t *to = mapping->base + at, *shadow = mapping->shadow;
	const bool watched = mapping->watched;
	uint32_t came;

	d->filling = part->generation;
	d->fills++;
	pthread_mutex_unlock(&d->lock);
	/* First, since what can be seen of a page can be stored to, and is then compared. */
	if (shadow)
		memcpy(shadow + at, bytes + here, rest);
	came = d->ops->fill(d->pager, to, bytes + here, rest, watched);
	pthread_mutex_lock(&d->lock);
	d->filling = 0;
	ps_settle_note(d, part, here + came);
	/* It is there: its unmap waits for `filling`. That of another one may have moved it. */
	mapping = ps_mapping_of(d, part->generation);
	if (came)
		ps_large_note(d, mapping, at, came);
	d->env->ops->broadcast(d->env, &d->change);
	if (!mapping->missing)
		d->env->ops->broadcast(d->env, &d->whole);
	*all = came == rest;
	return came;
}

/* Of what was fetched, `count` granules from `first` on. */
static bool fill(struct ps_demand *d, const struct ps_fetching *f, unsigned first, unsigned count,
                 const uint8_t *bytes)
{
	const struct ps_want part = { f->generation, f->granule + first, count };
	bool all;

	d->fetched += ps_granules_fill(d, &part, bytes + (uint64_t)first * d->ops->granule, &all);
	if (all)
		d->starved_at = 0;
	return all;
}

/* How many granules from `first` on are to be filled at once: of the first one some may be here. */
static unsigned count_missing(const struct ps_demand *d, const struct ps_mapping *mapping,
                              const struct ps_fetching *f, unsigned first)
{
	unsigned count = mapping->states[f->granule + first] < PS_GRANULE_HERE;

	while (count && first + count < f->count &&
	       !ps_granule_here(d, mapping, f->granule + first + count))
		count++;
	return count;
}

/* With the lock. What is here already, since it was asked for twice, stays as it is. */
static bool fill_all(struct ps_demand *d, const struct ps_fetching *f, const uint8_t *bytes)
{
	const struct ps_mapping *mapping;
	unsigned done = 0, count;

	while (done < f->count && (mapping = ps_mapping_of(d, f->generation)) && !d->fenced) {
		count = count_missing(d, mapping, f, done);
		if (count && !fill(d, f, done, count, bytes))
			return false;
		done += count ? count : 1;
	}
	return true;
}

/* The mirror may tell over a connection what is wrong with it, or give the bytes. */
static void spoil(struct ps_demand *d, unsigned i, const struct ps_fetch_answer *fetched)
{
	pthread_mutex_lock(&d->lock);
	d->sources[i].spoilt |= fetched->seen != NULL;
	pthread_mutex_unlock(&d->lock);
}

static void arrived(struct ps_demand *d, unsigned i, const struct ps_fetch_answer *fetched,
                    uint64_t now)
{
	struct ps_fetching *f = &d->fetching[i];
	const struct ps_mapping *mapping;
	bool filled, tell;

	if (ps_source_fault(&f->wanted, fetched)) {
		spoil(d, i, fetched);
		strike(d, f, now);
		return;
	}
	pthread_mutex_lock(&d->lock);
	filled = fill_all(d, f, fetched->bytes.data);
	d->poor = !filled;
	mapping = ps_mapping_of(d, f->generation);
	tell = d->tell_keeper || (mapping && !mapping->missing);
	d->tell_keeper = false;
	pthread_mutex_unlock(&d->lock);
	if (tell)
		d->env->ops->wake(d->env, PS_KEEPER);
	if (!filled) {
		strike(d, f, now);
		return;
	}
	f->busy = false;
	f->delay = FIRST_DELAY;
	d->usual += (now - f->asked_at) / USUAL_OF - d->usual / USUAL_OF;
	ps_runs_note(d, f->count, f->asked_at, d->env->ops->now(d->env));
}

/* When what nobody waits for may be asked for, or more of it than one run. */
static uint64_t due_rest(struct ps_demand *d, uint64_t now)
{
	uint64_t at;

	pthread_mutex_lock(&d->lock);
	at = d->rest_at;
	if (at <= now)
		at = ps_runs_quiet_at(d);
	pthread_mutex_unlock(&d->lock);
	return at > now ? at : PS_NEVER;
}

/* A run over a slow link, which others may share, has as much time as its granules would alone. */
static bool goes_on(struct ps_demand *d, unsigned i, uint64_t now)
{
	struct ps_fetching *f = &d->fetching[i];
	const uint64_t come = d->ops->come ? d->ops->come(d->pager, i) : 0;

	if (come >= f->come + d->ops->granule) {
		f->come = come;
		f->until = now + d->patience;
	}
	return now < f->until;
}

/* What a source says. */
static void hear(struct ps_demand *d, unsigned i, uint64_t now)
{
	struct ps_fetching *f = &d->fetching[i];
	struct ps_fetch_answer fetched;
	int rc;

	follow(d, i);
	if (!f->busy)
		return;
	rc = d->ops->answer(d->pager, i, &fetched);
	if (rc > 0)
		arrived(d, i, &fetched, now);
	else if (rc < 0 || !goes_on(d, i, now))
		lose(d, i, now);
}

/* What it is asked. When it is to be looked at again, if nothing comes. */
static uint64_t go_on(struct ps_demand *d, unsigned i, uint64_t now)
{
	struct ps_fetching *f = &d->fetching[i];
	uint64_t late;

	if (!f->busy && now >= f->again_at && !is_read(d, i))
		ask(d, i, now);
	if (!f->busy)
		return f->again_at > now ? f->again_at : due_rest(d, now);
	late = late_at(d, f);
	return late > now && late < f->until ? late : f->until;
}

static bool prepare(struct ps_demand *d)
{
	bool goes_on;

	take_faults(d);
	pthread_mutex_lock(&d->lock);
	cover_new(d, d->env->ops->now(d->env));
	if (d->fenced)
		refuse_waiting(d);
	goes_on = !d->stopping;
	pthread_mutex_unlock(&d->lock);
	return goes_on;
}

void ps_demand_thread(void *arg)
{
	struct ps_demand *d = arg;

	/* Until whoever began it has noted the pager. */
	pthread_mutex_lock(&d->lock);
	pthread_mutex_unlock(&d->lock);
	while (prepare(d)) {
		const bool takes = ps_take_step(d);
		const uint64_t now = d->env->ops->now(d->env);
		uint64_t until = PS_NEVER, due;

		for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
			hear(d, i, now);
			let_go(d, i);
		}
		for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
			due = go_on(d, i, now);
			until = due < until ? due : until;
		}
		due = takes ? now : ps_large_step(d, now);
		d->ops->sleep(d->pager, due < until ? due : until);
	}
	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++)
		d->ops->lead(d->pager, i, NULL);
}
