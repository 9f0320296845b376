/*
 * pager_sim.c - recovery on demand in a schedule: its lanes are tasks of the owner's process, and
 * ask mirrors over simulated control connections of their own. env_sim.c offers it to the library.
 */
#include "pager_sim.h"

#include "../../client/demand/demand.h"
#include "../support/pager_source.h"
#include "env_sim.h"
#include "mistakes.h"
#include "schedule.h"
#include "straight.h"
#include "written_sim.h"

/* States of a page, as the kernel would know them. */
enum page {
	PAGE_MISSING,
	PAGE_HERE,
	/* The application has discarded it, so that the kernel takes bytes for it. Its contents
	 * stay, and tell whether it got any. */
	PAGE_DISCARDED,
};

/* Memory that is covered. */
struct covered {
	struct covered *next;
	const uint8_t *base;
	uint64_t size;
	uint8_t *pages; /* enum page of each */
};

struct ps_pager {
	struct sim_owner *owner;
	struct ps_demand *demand;
	bool woken[PS_LANES];
	struct covered *covered; /* the newest first */
	struct pager_source sources[PS_SOURCES];
	struct sim_reader readers[PS_SOURCES];
};

static struct ps_pager *pager_begin(struct ps_env *env, void (*const lanes[PS_LANES])(void *arg),
                                    void *arg, struct ps_error *error)
{
	struct sim_owner *o = (struct sim_owner *)env;
	struct ps_pager *pager = sim_alloc(o->world, sizeof(*pager));

	(void)error;
	pager->owner = o;
	pager->demand = arg;
	for (unsigned i = 0; i < PS_SOURCES; i++)
		sim_reader_init(&pager->readers[i], o, i % PS_MIRRORS_MAX,
		                &pager->woken[ps_source_lane(i)]);
	for (int lane = 0; lane < PS_LANES; lane++)
		sim_task_begin(o, SIM_FETCHER + lane, lanes[lane], arg);
	return pager;
}

static void pager_end(struct ps_pager *pager)
{
	for (int lane = 0; lane < PS_LANES; lane++)
		sim_task_join(pager->owner, SIM_FETCHER + lane);
	for (unsigned i = 0; i < PS_SOURCES; i++)
		sim_reader_end(&pager->readers[i]);
}

static int pager_start_peeker(struct ps_pager *pager, unsigned mirror)
{
	return sim_reader_hire(&pager->readers[ps_source_number(PS_BULK_LANE, mirror)]);
}

static void pager_wake(struct ps_pager *pager, enum ps_lane lane)
{
	pager->woken[lane] = true;
	sim_owner_poke(pager->owner);
}

/* --- memory --- */

static bool pager_can_watch(const struct ps_pager *pager)
{
	(void)pager;
	return true;
}

static int pager_cover(struct ps_pager *pager, uint8_t *base, uint64_t size, bool watch)
{
	struct covered *covered = sim_alloc(pager->owner->world, sizeof(*covered));

	memset(base, PAGER_NOBODYS, size);
	*covered = (struct covered){ pager->covered, base, size, NULL };
	covered->pages = sim_alloc(pager->owner->world, size / SIM_SMALL_PAGE + 1);
	pager->covered = covered;
	if (watch)
		sim_written_watch(pager->owner, base, size);
	return 0;
}

/* Returns where the enum page of the byte's page is noted. */
static uint8_t *page_of(const struct ps_pager *pager, const uint8_t *at)
{
	const struct covered *covered = pager->covered;

	while (at < covered->base || at >= covered->base + covered->size)
		covered = covered->next;
	return &covered->pages[(at - covered->base) / SIM_SMALL_PAGE];
}

/* Returns true if the byte can be read. Otherwise asks for it, or sets *never. The caller holds the
 * lock. */
static bool can_see(struct ps_demand *d, const uint8_t *at, bool *never)
{
	struct ps_mapping *mapping = ps_mapping_by_address(d, (uint64_t)(uintptr_t)at);

	if (!mapping || *page_of(d->pager, at) != PAGE_MISSING)
		return true;
	*never = d->is_fenced;
	ps_granule_note_wanted(d, mapping,
	                       ps_granule_by_address(d, mapping, (uint64_t)(uintptr_t)at));
	return false;
}

int sim_pager_touch(struct sim_owner *o, const uint8_t *at, uint64_t length)
{
	struct ps_demand *d = o->handle->demand;
	bool never = false;

	if (!d)
		return 0;
	pthread_mutex_lock(&d->lock);
	for (const uint8_t *end = at + length; at < end && !never; at++)
		while (!can_see(d, at, &never) && !never) {
			d->ops->wake(d->pager, PS_FAULT_LANE);
			o->env.ops->wait(&o->env, &d->changed, &d->lock, PS_NEVER);
		}
	pthread_mutex_unlock(&d->lock);
	return never ? PERSEAS_EFENCED : 0;
}

/* Returns the length of some of the whole pages, but not all. */
static uint32_t some(struct ps_pager *pager, uint32_t length)
{
	const uint32_t pages = (length + SIM_SMALL_PAGE - 1) / SIM_SMALL_PAGE;

	return (uint32_t)sim_below(pager->owner->world, pages) * SIM_SMALL_PAGE;
}

/* Returns for how many of the bytes there is memory now. */
static uint32_t room(struct ps_pager *pager, uint32_t length)
{
	struct sim_world *w = pager->owner->world;

	if (w->schedule->ending || !w->schedule->poor || !sim_chance(w, w->schedule->poor))
		return length;
	sim_count(w, SIM_POOR, 1);
	return some(pager, length);
}

void sim_pager_discard(struct sim_owner *o)
{
	struct ps_demand *d = o->handle ? o->handle->demand : NULL;

	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	for (unsigned i = 0; i < d->mapping_count; i++) {
		const struct ps_mapping *mapping = &d->mappings[i];
		uint8_t *pages = mapping->cover_state > 0 ? page_of(d->pager, mapping->base) : NULL;

		for (uint64_t at = 0; pages && at < mapping->size; at += SIM_SMALL_PAGE)
			if (mapping->states[at / SIM_GRANULE] == PS_GRANULE_HERE) {
				pages[at / SIM_SMALL_PAGE] = PAGE_DISCARDED;
				sim_count(o->world, SIM_DISCARDED, 1);
			}
	}
	pthread_mutex_unlock(&d->lock);
}

/* Copies in the pages that the kernel does not have. */
static void come(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes, uint32_t length,
                 bool watched)
{
	for (uint32_t at = 0, run; at < length; at += run) {
		run = length - at < SIM_SMALL_PAGE ? length - at : SIM_SMALL_PAGE;
		if (*page_of(pager, to + at) == PAGE_HERE)
			continue;
		memcpy(to + at, bytes + at, run);
		if (watched)
			sim_written_came(pager->owner, to + at, run);
		*page_of(pager, to + at) = PAGE_HERE;
	}
}

/* Others go on before what has come counts as here. */
static void show(struct ps_pager *pager)
{
	struct sim_owner *o = pager->owner;

	o->env.ops->broadcast(&o->env, &pager->demand->changed);
	sim_owner_sleep(o, sim_below(o->world, SIM_MS));
}

void sim_pager_copy(struct ps_pager *pager, const struct ps_mapping *mapping, uint64_t granule,
                    const uint8_t *bytes)
{
	come(pager, mapping->base + granule * SIM_GRANULE, bytes,
	     ps_granule_length(pager->demand, mapping, granule), mapping->tracks_stores);
}

static uint32_t pager_fill(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes,
                           uint32_t length, bool watched)
{
	struct ps_mapping *mapping = ps_mapping_by_generation(pager->demand,
	                                                      pager->demand->filling_generation);
	const bool shadowed = mapping->shadow;
	const uint32_t most = room(pager, length);

	sim_mistake_rest(pager->owner, mapping, (uint64_t)(to - mapping->base), bytes);
	/* First some of it, where the kernel stops in between. */
	if (shadowed && pager->owner->world->schedule->poor) {
		come(pager, to, bytes, some(pager, most), watched);
		show(pager);
	}
	come(pager, to, bytes, most, watched);
	sim_count(pager->owner->world, SIM_FETCHED, 1);
	if (shadowed && sim_chance(pager->owner->world, 50))
		show(pager);
	return most;
}

/* Moves and copies look the same here. */
static bool pager_moves(const struct ps_pager *pager, const uint8_t *to, uint32_t length,
                        bool watched)
{
	(void)pager;
	(void)to;
	return length == SIM_GRANULE * SIM_RUN && !watched;
}

static void pager_refuse(struct ps_pager *pager, uint8_t *at, uint32_t length)
{
	(void)at;
	(void)length;
	sim_count(pager->owner->world, SIM_UNFETCHED, 1);
}

/* --- mirrors --- */

static void pager_drop(struct ps_pager *pager, unsigned which)
{
	sim_reader_drop(&pager->readers[which]);
	pager_source_drop(&sim_env_ops, &pager->sources[which]);
}

static void pager_lead(struct ps_pager *pager, unsigned which, const struct ps_known_addresses *way)
{
	sim_reader_drop(&pager->readers[which]);
	pager_source_lead(&sim_env_ops, &pager->sources[which], way);
}

static bool pager_is_still_peeking(struct ps_pager *pager, unsigned which)
{
	return sim_reader_reads(&pager->readers[which]);
}

static bool pager_ask(struct ps_pager *pager, unsigned which,
                      const struct ps_fetch_request *missing)
{
	struct pager_source *source = &pager->sources[which];
	struct ps_error error;

	if (missing->direct_link.fabric) {
		sim_reader_ask(&pager->readers[which], missing);
		return true;
	}
	if (!source->leads)
		return false;
	pager_source_forget(source);
	if (!source->control)
		source->control = sim_env_ops.connect(&pager->owner->env, &source->address, &error);
	source->asking = true;
	source->missing = *missing;
	return source->control && pager_source_ask_status(&sim_env_ops, source) &&
	       pager_source_ask_bytes(&sim_env_ops, source) &&
	       pager_source_ask_status(&sim_env_ops, source);
}

static int pager_answer(struct ps_pager *pager, unsigned which, struct ps_fetch_answer *fetched)
{
	struct pager_source *source = &pager->sources[which];

	if (pager->readers[which].asked)
		return sim_reader_answer(&pager->readers[which], fetched);
	while (source->answered < PAGER_ANSWERS) {
		if (!sim_env_ops.answered(source->control))
			return 0;
		if (!pager_source_take(&sim_env_ops, source))
			return -1;
	}
	source->asking = false;
	pager_source_tell(source, fetched);
	sim_mistake_fetched(pager->owner, ps_source_lane(which),
	                    &pager->demand->fetching[which].wanted, fetched);
	sim_mistake_late(pager->owner, pager->demand, which, &source->missing, fetched);
	sim_mistake_twice(pager->owner, pager->demand, which, fetched);
	sim_mistake_discarded(pager->owner, pager->demand, which, fetched);
	return 1;
}

/* Ends the waits of a dead process. */
static void let_go(struct ps_pager *pager)
{
	struct ps_demand *d = pager->demand;

	pthread_mutex_lock(&d->lock);
	d->is_fenced = true;
	d->env->ops->broadcast(d->env, &d->changed);
	pthread_mutex_unlock(&d->lock);
}

static void pager_sleep(struct ps_pager *pager, enum ps_lane lane, uint64_t until_ns)
{
	struct pollfd fds[PS_MIRRORS_MAX];
	struct sim_wait wait = { .until = until_ns, .sleeper = -1, .fds = fds };

	for (unsigned i = 0; i < PS_MIRRORS_MAX; i++) {
		const struct pager_source *source = &pager->sources[ps_source_number(lane, i)];

		if (source->asking && source->control)
			sim_env_ops.fill_control_pollfd(source->control, &fds[wait.count++]);
	}
	wait.flag = &pager->woken[lane];
	if (pager->owner->dead)
		let_go(pager);
	sim_task_block(pager->owner, &wait);
	pager->woken[lane] = false;
}

const struct ps_pager_ops sim_pager_ops = {
	.granule = SIM_GRANULE,
	.page = SIM_SMALL_PAGE,
	.run = SIM_RUN,
	.second_request_after_ns = SIM_LATE,
	.begin = pager_begin,
	.end = pager_end,
	.limitation_text = pager_has_no_limit,
	.wake = pager_wake,
	.look_up = pager_looks_up_nothing,
	.start_direct_reader = pager_start_peeker,
	.can_track_stores = pager_can_watch,
	.cover = pager_cover,
	.fault = pager_has_no_faults,
	.fill = pager_fill,
	.can_move = pager_moves,
	.collapse = pager_gathers_all,
	.poison = pager_refuse,
	.set_source_address = pager_lead,
	.drop = pager_drop,
	.is_still_reading = pager_is_still_peeking,
	.ask = pager_ask,
	.answer = pager_answer,
	.sleep = pager_sleep,
};
