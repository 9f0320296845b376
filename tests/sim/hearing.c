/*
 * hearing.c - silence, as env_sim.c's owners see it. No sign of life is sent here: a mirror is
 * silent when two looks, one limit apart, find the path to it cut. Now and then a look finds one
 * silent that is not, as on a host that is too busy: nothing of the protocol may depend on that.
 */
#include "hearing.h"

#include "mirror.h"
#include "schedule.h"

static bool is_cut(const struct ps_control *control)
{
	const struct sim_path *path = control->out.path;

	return path->blocked[SIM_OUT] || path->blocked[SIM_IN] || !control->mirror->stores;
}

static void fall_silent(struct ps_control *control)
{
	struct sim_owner *o = control->owner;

	sim_trace(o->world, "owner %u hears nothing of mirror %u", o->index,
	          control->mirror->index);
	control->ended = control->arrived = control->silent = true;
	sim_owner_poke(o);
}

static void look(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct ps_control *control = arg;
	const bool cut = is_cut(control), was_cut = control->cut;

	if (ticket != control->hearings || control->ended || control->closed ||
	    control->owner->dead)
		return;
	/* An end that is stopped cannot notice silence. */
	control->cut = cut && !control->owner->stopped;
	if (control->cut && was_cut) {
		sim_count(w, SIM_SILENT, 1);
		fall_silent(control);
	} else if (!cut && sim_chance(w, w->schedule->alarms)) {
		sim_count(w, SIM_ALARMS, 1);
		fall_silent(control);
	} else {
		sim_at(w, w->now + control->hear_ns, look, control, ticket);
	}
}

void sim_hear(struct ps_control *control, uint64_t limit_ns)
{
	struct sim_world *w = control->owner->world;

	control->hear_ns = limit_ns;
	control->cut = false;
	control->hearings++;
	if (limit_ns)
		sim_at(w, w->now + limit_ns, look, control, control->hearings);
}
