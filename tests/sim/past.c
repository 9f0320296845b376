/*
 * past.c - the schedules of past.h. The oracle knows what the owner has forgotten, and so finds
 * whatever the owner does to it.
 */
#include "past.h"

#include "../../client/core/handle.h"
#include "../support/rewind.h"
#include "aim.h"
#include "env_sim.h"
#include "fabric_sim.h"
#include "mistakes.h"
#include "schedule.h"

enum { MEMBERS = 3, MOST = 5 };

#define LOOKS SIM_MS
/* Mirrors are tried again after a second at most, and have 100 ms to answer. */
#define WITHIN (3000 * SIM_MS)

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	*mirrors = MEMBERS;
	*spares = 0;
	w->acks = 2;
	sim_aim_quiet(s);
	/* The shadow, and what a heap knows besides its segments, would not go back. */
	s->tracks = s->threads = s->nowait = s->gather_us = 0;
	s->demand = s->heap = s->apart = false;
}

bool sim_past_ends(struct sim_owner *o)
{
	if (!o->reverted && o->handle && o->handle->upkeep.renewal.reverted_text[0])
		sim_fail(o->world, "owner %u did not go back in time, and is told that it did: %s",
		         o->index, o->handle->upkeep.renewal.reverted_text);
	while (o->reverted && !o->dead && !o->handle->is_superseded && !o->world->schedule->ending)
		sim_owner_sleep(o, LOOKS);
	return o->reverted;
}

static void look(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_owner *o = arg;

	if (w->schedule->ending || !sim_aim_is_open(o))
		return;
	if (o->handle->is_superseded) {
		sim_count(w, SIM_REVERTED, o->handle->upkeep.renewal.reverted_text[0] != 0);
		return;
	}
	if (w->now > ticket && w->mistake != SIM_MISTAKE_PAST)
		sim_fail(w, "owner %u went back in time, and is not fenced", o->index);
	sim_at(w, w->now + LOOKS, look, o, ticket);
}

/* Returns true if the owner has nothing open or in flight, so that it can be taken back as a
 * whole. */
static bool is_idle(const struct sim_owner *o)
{
	const struct perseas *p = o->handle;

	if (p->is_admin_taken || p->commit.wait_line.waiting_count || p->commit.in_doubt_seq ||
	    p->commit.open_list || o->locks)
		return false;
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].acked_seq != p->commit.seq)
			return false;
	return true;
}

static void go_back(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_owner *o = sim_aim_owner(w, MEMBERS);
	unsigned count = 0;

	(void)arg;
	(void)ticket;
	if (w->schedule->ending)
		return;
	if (o && is_idle(o))
		count = rewind_owner(o->handle, (unsigned)sim_between(w, 1, MOST));
	if (!count) {
		sim_at(w, w->now + LOOKS, go_back, NULL, 0);
		return;
	}
	sim_trace(w, "owner %u goes back by %u transactions", o->index, count);
	o->reverted = true;
	sim_aim_reset(o);
	look(w, o, w->now + WITHIN);
}

static void begin(struct sim_world *w)
{
	sim_at(w, w->now + sim_between(w, 100, 3000) * SIM_MS, go_back, NULL, 0);
}

const struct sim_aim sim_past_aim = {
	.turn = 28,
	.mistakes = { SIM_MISTAKE_PAST },
	.shape = shape,
	.begin = begin,
};
