/*
 * mirror_faults.c - see mirror_faults.h. schedule.c draws which fault comes when.
 */
#include "mirror_faults.h"

#include "creators.h"
#include "mirror.h"
#include "schedule.h"

uint64_t sim_some_time(struct sim_world *w)
{
	static const uint64_t most[] = { 5, 50, 500, 3000 };

	return sim_between(w, 1, most[sim_below(w, 4)] * 1000) * SIM_US;
}

void sim_mirror_faults_start(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_mirror *m = arg;

	(void)ticket;
	if (m->stores)
		return;
	/* An image that does not fit into the memory is lost until the next start. */
	if (m->away && w->schedule->losses > 0 && sim_chance(w, 50)) {
		w->schedule->losses--;
	} else {
		memory_heap_set_limit(m->memory, 0);
		memory_heap_fail(m->memory, 0, 0);
	}
	sim_mirror_start(m);
	/* The operator makes room, and starts the daemon again. */
	if (m->away) {
		sim_mirror_stop(m, SIM_MEMORY_KEPT);
		sim_at(w, w->now + sim_some_time(w), sim_mirror_faults_start, m, 0);
	}
}

static void stop(struct sim_world *w, struct sim_mirror *m)
{
	enum sim_stopping how = sim_chance(w, 40) ? SIM_MEMORY_KEPT : SIM_HOST_ENDS;

	if (how == SIM_HOST_ENDS && w->schedule->losses > 0 && sim_chance(w, 20)) {
		w->schedule->losses--;
		how = SIM_SPILL_LOST;
	}
	sim_mirror_stop(m, how);
	sim_at(w, w->now + sim_some_time(w), sim_mirror_faults_start, m, 0);
}

void sim_mirror_faults_stop(struct sim_world *w, struct sim_mirror *m)
{
	if (sim_creators_at_work(w))
		return;
	if (!sim_chance(w, 20)) {
		stop(w, m);
		return;
	}
	sim_trace(w, "all mirrors end");
	for (unsigned i = 0; i < w->mirror_count; i++)
		stop(w, w->mirrors[i]);
}

void sim_mirror_faults_crash(struct sim_world *w, struct sim_mirror *m)
{
	bool making = sim_creators_at_work(w);
	bool lost = w->schedule->losses > 0 && sim_chance(w, 60);

	if (!m->stores || (lost && making))
		return;
	w->schedule->losses -= lost;
	sim_mirror_crash(m, lost && sim_chance(w, 30), lost);
	sim_at(w, w->now + sim_some_time(w), sim_mirror_faults_start, m, 0);
}

static void lift(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_mirror *m = arg;

	(void)w;
	(void)ticket;
	memory_heap_set_limit(m->memory, 0);
}

void sim_mirror_faults_limit(struct sim_world *w, struct sim_mirror *m)
{
	uint64_t used = m->memory->ops->used(m->memory);

	if (sim_chance(w, 40)) {
		memory_heap_fail(m->memory, (unsigned)sim_below(w, 6),
		                 (unsigned)sim_between(w, 1, 3));
		return;
	}
	memory_heap_set_limit(m->memory, used + sim_below(w, 3000));
	sim_at(w, w->now + sim_some_time(w), lift, m, 0);
}
