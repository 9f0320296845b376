/*
 * removed.c - the schedules of removed.h.
 */
#include "removed.h"

#include "../../server/store/store_private.h"
#include "../support/memory_heap.h"
#include "aim.h"
#include "creators.h"
#include "mirror.h"
#include "mixed.h"
#include "oracle.h"
#include "process.h"
#include "schedule.h"

#include <stdio.h>

enum { EVERY = 32, PERCENT_ALL = 40, PERCENT_CLAIMED = 25, PERCENT_ENDED = 40 };

#define BETWEEN (300 * SIM_MS) /* removals, at most */
#define LOOKS (1000 * SIM_MS)  /* until the daemon does, at most */
#define AWAY (20 * SIM_MS)

static bool is_for_it(const struct sim_world *w)
{
	return !w->mistake && !sim_is_mixed(w) && w->seed % EVERY == 20 && !sim_creators_count(w);
}

void sim_removed_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	(void)mirrors;
	if (!is_for_it(w))
		return;
	*spares = 0;
	s->faults = s->losses = s->jumps = s->changes = s->stops = 0;
	s->calm = s->disks = false;
	s->left = 1000;
	s->think = 20 * SIM_MS;
}

static struct store *image_of_mirror(const struct sim_mirror *m)
{
	struct store *store = m->stores ? store_find(m->stores, SIM_STORE) : NULL;

	return store && store->header && !store->damage[0] ? store : NULL;
}

static void start_again(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_mirror *m = arg;

	(void)w;
	(void)ticket;
	if (!m->stores)
		sim_mirror_start(m);
}

/* What the daemon does within a second. A mirror that is made again is there at its next start. */
static void look(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_mirror *m = arg;
	struct store *store = image_of_mirror(m);
	bool again;

	(void)ticket;
	if (!store)
		return;
	if (stores_check_names(m->stores, &again)) {
		stores_mend_names(m->stores);
		sim_count(w, SIM_MENDED, 1);
	}
	if (store->astray[0])
		sim_fail(w, "mirror %u: %s", m->index, store->astray);
	sim_oracle_look(m);
	if (!sim_chance(w, PERCENT_ENDED))
		return;
	sim_mirror_crash(m, false, false);
	sim_at(w, w->now + AWAY, start_again, m, 0);
}

static void remove_files(struct sim_world *w, struct sim_mirror *m, const struct store *store)
{
	char name[PIECE_NAME];

	sim_trace(w, "files of mirror %u are removed", m->index);
	sim_count(w, SIM_REMOVED, 1);
	if (sim_chance(w, PERCENT_ALL)) {
		memory_heap_lose(m->memory, SIM_STORE);
		return;
	}
	snprintf(name, sizeof(name), "log.%llu", (unsigned long long)store->header->generation);
	(void)memory_heap_lose_piece(m->memory, SIM_STORE, sim_chance(w, 50) ? name : "header");
}

static void strike(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_mirror *m = w->mirrors[sim_below(w, w->mirror_count)];
	const struct store *store = image_of_mirror(m);
	struct sim_owner *o = sim_aim_owner(w, 0);

	(void)arg;
	(void)ticket;
	if (w->schedule->ending)
		return;
	if (store && store->header->state != STATE(CREATING)) {
		remove_files(w, m, store);
		if (o && sim_chance(w, PERCENT_CLAIMED))
			sim_owner_kill(o, false);
		sim_at(w, w->now + sim_below(w, LOOKS), look, m, 0);
	}
	sim_at(w, w->now + sim_below(w, BETWEEN), strike, NULL, 0);
}

void sim_removed_begin(struct sim_world *w)
{
	if (is_for_it(w))
		sim_at(w, w->now + sim_below(w, BETWEEN), strike, NULL, 0);
}
