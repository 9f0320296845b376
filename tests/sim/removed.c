/*
 * removed.c - schedules in which somebody removes files of images, now at one mirror and then at
 * another, under daemons that run: all of them, or one. The daemon looks within a second; before
 * that a claim may come, since the owner dies. Then some daemons end, and what they start with
 * must be all that they had. Only these faults happen in them: a daemon that ends before it has
 * looked has lost its memory.
 */
#include "aim.h"

#include "../../server/store/store_private.h"
#include "../support/memory_heap.h"
#include "mirror.h"
#include "mistakes.h"
#include "oracle.h"
#include "process.h"
#include "schedule.h"

#include <stdio.h>

enum { PERCENT_ALL = 40, PERCENT_CLAIMED = 25, PERCENT_ENDED = 40 };

#define BETWEEN (300 * SIM_MS) /* removals, at most */
#define LOOKS (1000 * SIM_MS)  /* until the daemon does, at most */
#define AWAY (20 * SIM_MS)

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	(void)mirrors;
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

/* Makes images again whose files were removed. */
static void mend(struct sim_mirror *m, const struct store *store)
{
	bool again;

	if (sim_mistake_is(m->world, SIM_MISTAKE_UNLINKED))
		return;
	if (stores_check_names(m->stores, &again)) {
		stores_repair_names(m->stores);
		sim_count(m->world, SIM_MENDED, 1);
	}
	if (store->restart_loss[0])
		sim_fail(m->world, "mirror %u: %s", m->index, store->restart_loss);
	sim_oracle_look(m);
}

/* Does what the daemon does within a second: looks for removed files. A mirror that is made again
 * has its image at its next start. */
static void look(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_mirror *m = arg;
	const struct store *store = image_of_mirror(m);

	(void)ticket;
	if (!store)
		return;
	mend(m, store);
	if (!sim_chance(w, PERCENT_ENDED))
		return;
	sim_mirror_crash(m, false, false);
	sim_at(w, w->now + AWAY, sim_mirror_start_again, m, 0);
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

static void begin(struct sim_world *w)
{
	sim_at(w, w->now + sim_below(w, BETWEEN), strike, NULL, 0);
}

const struct sim_aim sim_removed_aim = {
	.turn = 20,
	.mistakes = { SIM_MISTAKE_UNLINKED },
	.shape = shape,
	.begin = begin,
};
