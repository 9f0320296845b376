/*
 * mixed.c - see mixed.h. schedule.c calls it between what it draws itself and the shapes of those
 * schedules that are about one thing.
 */
#include "mixed.h"

#include "../../client/perseas.h"
#include "rivals.h"
#include "schedule.h"

bool sim_is_mixed(const struct sim_world *w)
{
	if (w->mistake)
		return false;
	return w->seed < SIM_WIDE_SEEDS ? w->seed >= SIM_MIXED && w->seed < SIM_MIXED_END
	                                : w->seed / 1000 % 2;
}

static void draw_mirrors(struct sim_world *w, struct sim_schedule *s)
{
	s->mirror_timeout_ms = sim_chance(w, 25) ? (uint32_t)sim_between(w, 100, 400) : UINT32_MAX;
	s->alarms = s->mirror_timeout_ms != UINT32_MAX && sim_chance(w, 25) ? 4 : 0;
	s->disks = sim_chance(w, 25);
	s->jumps = sim_chance(w, 15) ? 15 : 0;
	s->work = sim_chance(w, 20) && !s->calm ? 8 : 0;
}

static void draw_memory(struct sim_world *w, struct sim_schedule *s)
{
	s->demand = sim_chance(w, 35);
	s->direct_link = s->demand && sim_chance(w, 50);
	s->poor = s->demand && sim_chance(w, 33) ? 30 : 0;
	s->destroys = sim_chance(w, 50) ? 5 : 0;
	s->grows = sim_chance(w, 50) ? 8 : 0;
}

static void draw_transactions(struct sim_world *w, struct sim_schedule *s)
{
	s->nowait = sim_chance(w, 60) ? 70 : 0;
	s->gather_us = s->nowait && sim_chance(w, 75) ? (uint32_t)sim_between(w, 1, 40000) : 0;
	s->apart = sim_chance(w, 40);
	if (s->apart)
		s->threads = 90;
	s->tracks = !s->apart && sim_chance(w, 33) ? 50 : 0;
}

void sim_mixed_shape(struct sim_world *w)
{
	if (!sim_is_mixed(w))
		return;
	draw_mirrors(w, w->schedule);
	draw_memory(w, w->schedule);
	draw_transactions(w, w->schedule);
	sim_rivals_draw(w);
}

unsigned sim_mixed_turn(struct sim_world *w, bool alone)
{
	return sim_is_mixed(w) && alone && sim_chance(w, 30) ? PERSEAS_SERIAL : 0;
}
