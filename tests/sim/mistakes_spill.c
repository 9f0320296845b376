/*
 * mistakes_spill.c - faults of mirrors that stop on purpose, or load what they spilled.
 */
#include "mistakes.h"

#include "../../server/store/store_private.h"
#include "mirror.h"
#include "oracle.h"

#define LATER (5 * SIM_MS)

static bool keeps(const struct sim_world *w)
{
	return sim_mistake_is(w, SIM_MISTAKE_OLD_SPILL) ||
	       sim_mistake_is(w, SIM_MISTAKE_TWO_LOADS) ||
	       sim_mistake_is(w, SIM_MISTAKE_SPILL_WINS);
}

static void complain(void *arg, const char *text)
{
	struct sim_mirror *m = arg;

	sim_fail(m->world, "mirror %u cannot spill: %s", m->index, text);
}

static void end_daemon(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_mirror *m = arg;

	(void)w;
	(void)ticket;
	if (m->stores) {
		sim_mirror_stop(m, SIM_HOST_ENDS);
		spill_heap_free(m->spill);
		m->spill = m->early;
		m->early = NULL;
	}
	spill_heap_free(m->early);
	m->early = NULL;
}

/* Writes the present image, while sessions go on until the daemon ends. */
bool sim_mistake_stops(struct sim_mirror *m)
{
	struct spill_sum sum;
	struct stores *stores;
	struct memory *copy;

	if (!sim_mistake_is(m->world, SIM_MISTAKE_SPILLED_EARLY) || m->early)
		return false;
	copy = memory_heap_copy(m->memory);
	stores = stores_new(copy);
	m->early = spill_heap_new();
	stores_set_spill(stores, m->early);
	stores_load(stores, complain, m);
	stores_spill(stores, &sum, complain, m);
	stores_free(stores);
	memory_heap_free(copy);
	sim_at(m->world, m->world->now + LATER, end_daemon, m, 0);
	return true;
}

/* The spill is kept when it is loaded, and is there again when the memory is lost. */
static void keep_spill(struct sim_mirror *m)
{
	struct spill *kept = spill_heap_copy(m->spill);

	spill_heap_free(m->old_spill);
	m->old_spill = kept;
}

/* Starts without looking into the memory. */
static void forget_memory(struct sim_mirror *m)
{
	stores_free(m->stores);
	memory_heap_lose(m->memory, NULL);
	m->stores = stores_new(m->memory);
	if (!m->stores)
		sim_fail(m->world, "out of memory");
	stores_set_spill(m->stores, m->spill);
	m->granted = 0;
}

void sim_mistake_unspill(struct sim_mirror *m)
{
	const struct sim_world *w = m->world;
	struct sim_mirror *from = m;
	size_t len = 0;
	uint8_t *bytes;

	if (!keeps(w))
		return;
	if (sim_mistake_is(w, SIM_MISTAKE_TWO_LOADS))
		from = w->mirrors[(m->index + 1) % w->mirror_count];
	if (spill_heap_count(m->spill) > 0) {
		keep_spill(m);
		return;
	}
	if (from->old_spill && sim_mistake_is(w, SIM_MISTAKE_SPILL_WINS))
		forget_memory(m);
	if (!from->old_spill || store_find(m->stores, SIM_STORE))
		return;
	bytes = spill_heap_bytes(from->old_spill, SIM_STORE, &len);
	if (bytes)
		spill_heap_put(m->spill, SIM_STORE, bytes, len);
}

/* Gives the image an id that the roster lists: its own, or that of this mirror's member. */
void sim_mistake_unspilled(struct sim_mirror *m)
{
	struct store *store = store_find(m->stores, SIM_STORE);
	const Perseas__Roster *roster = store && store->header ? store->header->roster : NULL;

	if (!keeps(m->world))
		return;
	roster = roster && m->world->settled ? m->world->settled : roster;
	for (size_t k = 0; roster && k < roster->n_members; k++)
		if (!strcmp(roster->members[k]->address, m->address)) {
			memcpy(store->header->image_id.data, roster->members[k]->image_id.data,
			       PS_ID_SIZE);
			store->header->parent_id.len = 0;
		}
}
