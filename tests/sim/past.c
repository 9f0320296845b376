/*
 * past.c - the schedules of past.h. The oracle knows what the owner has forgotten, and so finds
 * whatever the owner does to it.
 */
#include "past.h"

#include "../../client/core/handle.h"
#include "../support/rewind.h"
#include "aim.h"
#include "creators.h"
#include "env_sim.h"
#include "fabric_sim.h"
#include "mixed.h"
#include "mistakes.h"
#include "schedule.h"

enum { EVERY = 32, MEMBERS = 3, MOST = 5 };

#define LOOKS SIM_MS
/* Mirrors are tried again after a second at most, and have 100 ms to answer. */
#define WITHIN (3000 * SIM_MS)

static bool is_for_it(const struct sim_world *w)
{
	return w->mistake == SIM_MISTAKE_PAST ||
	       (!w->mistake && !sim_is_mixed(w) && w->seed % EVERY == 28 && !sim_creators_count(w));
}

void sim_past_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	if (!is_for_it(w))
		return;
	*mirrors = MEMBERS;
	*spares = 0;
	w->acks = 2;
	s->faults = s->losses = s->jumps = s->slow = s->local = s->changes = s->stops = 0;
	/* The shadow, and what a heap knows besides its segments, would not go back. */
	s->work = s->tracks = s->threads = s->nowait = s->gather_us = 0;
	s->demand = s->heap = s->apart = s->calm = s->near = s->disks = false;
	s->steady = true;
	s->left = 1000;
	s->think = 20 * SIM_MS;
}

bool sim_past_ends(struct sim_owner *o)
{
	if (!o->reverted && o->handle && o->handle->upkeep.renewal.past[0])
		sim_fail(o->world, "owner %u did not go back in time, and is told that it did: %s",
		         o->index, o->handle->upkeep.renewal.past);
	while (o->reverted && !o->dead && !o->handle->superseded && !o->world->schedule->ending)
		sim_owner_sleep(o, LOOKS);
	return o->reverted;
}

static void look(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_owner *o = arg;

	if (w->schedule->ending || !sim_aim_is_open(o))
		return;
	if (o->handle->superseded) {
		sim_count(w, SIM_REVERTED, o->handle->upkeep.renewal.past[0] != 0);
		return;
	}
	if (w->now > ticket && w->mistake != SIM_MISTAKE_PAST)
		sim_fail(w, "owner %u went back in time, and is not fenced", o->index);
	sim_at(w, w->now + LOOKS, look, o, ticket);
}

/* Has the owner nothing open or under way, so that it can be taken back as a whole? */
static bool is_idle(const struct sim_owner *o)
{
	const struct perseas *p = o->handle;

	if (p->admin || p->waiters || p->commit.in_doubt || p->commit.open_list || o->locks)
		return false;
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].acked != p->commit.seq)
			return false;
	return true;
}

static void break_connections(struct sim_owner *o)
{
	for (struct ps_control *control = o->controls; control; control = control->next)
		sim_control_reset(control);
	for (struct ps_link *link = o->links; link; link = link->next)
		sim_link_reset(link);
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
	break_connections(o);
	look(w, o, w->now + WITHIN);
}

void sim_past_begin(struct sim_world *w)
{
	if (is_for_it(w))
		sim_at(w, w->now + sim_between(w, 100, 3000) * SIM_MS, go_back, NULL, 0);
}
