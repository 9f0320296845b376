/*
 * rivals.c - the schedules of rivals.h. mixed.c draws them, and mirror.c tells when segments are
 * about to change.
 */
#include "rivals.h"

#include "env_sim.h"
#include "schedule.h"

/* Recorded addresses of segments. */
#define FIRST_PLACE ((uint64_t)0x180000000000)
#define PLACE_STRIDE ((uint64_t)64 << 20)

/* Time after a mirror handled the request within which most owners send the transaction. */
#define PARTED_WITHIN (400 * SIM_US)

void sim_rivals_draw(struct sim_world *w)
{
	struct sim_schedule *s = w->schedule;

	s->restless = sim_chance(w, 15);
	if (!sim_chance(w, 30))
		return;
	s->rivals = (unsigned)sim_between(w, 50, 90);
	s->destroys = (unsigned)sim_between(w, 5, 25);
	s->takeover = 100;
	s->partings = (unsigned)sim_between(w, 1, 8);
	s->think = sim_between(w, 1, 60) * SIM_MS;
	s->calm = false;
}

/* Returns all mirrors but W - 1, so that too few get what the owner sends. */
static uint64_t most_mirrors(struct sim_world *w)
{
	const unsigned first = (unsigned)sim_below(w, w->mirror_count);
	uint64_t most = UINT64_MAX;

	for (unsigned i = 0; i + 1 < w->acks; i++)
		most &= ~((uint64_t)1 << (first + i) % w->mirror_count);
	return most;
}

static void part(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_owner *o = arg;

	(void)ticket;
	if (o->dead || !w->schedule->partings || w->schedule->ending)
		return;
	w->schedule->partings--;
	sim_count(w, SIM_RIVALS, 1);
	sim_schedule_split(w, o, most_mirrors(w), w->schedule->parted_until - w->now);
}

void sim_rivals_told(struct sim_owner *o, uint64_t kind)
{
	struct sim_world *w = o->world;

	if (kind != PERSEAS__REQUEST__BODY_PUBLISH && kind != PERSEAS__REQUEST__BODY_DESTROY)
		return;
	/* One split at a time, since several would leave the owner alone. */
	if (w->schedule->parted_until > w->now || !w->schedule->rivals ||
	    !sim_chance(w, w->schedule->rivals))
		return;
	w->schedule->parted_until = w->now + sim_between(w, 300, 2000) * SIM_MS;
	sim_at(w, w->now + sim_below(w, PARTED_WITHIN), part, o, 0);
}

int sim_rivals_map(const struct sim_application *a, unsigned i, uint32_t size, void **addr)
{
	/* The owner's own address for address 0 of the store. */
	const uint64_t shift = 0 - sim_recorded(a->owner, 0);
	void *at = NULL;

	if (a->world->schedule->rivals)
		at = (void *)(FIRST_PLACE + i * PLACE_STRIDE + shift);
	return perseas_map_at(a->p, sim_segment_name(i), size, at, addr, NULL);
}
