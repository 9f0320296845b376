/*
 * aim.c - which kinds of aimed schedules there are, and what they share: aim.h.
 */
#include "aim.h"

#include "../../client/core/handle.h"
#include "../../client/keeper/change.h"
#include "../../client/open/open.h"
#include "creators.h"
#include "fabric_sim.h"
#include "mirror.h"
#include "mixed.h"
#include "schedule.h"

#include <string.h>

static const struct sim_aim *const aims[] = {
	&sim_absence_aim,  &sim_copied_spill_aim, &sim_deposed_aim, &sim_disjoint_aim,
	&sim_fillers_aim,  &sim_forger_aim,       &sim_fork_aim,    &sim_hang_aim,
	&sim_impostor_aim, &sim_loaded_aim,       &sim_lossy_aim,   &sim_misled_aim,
	&sim_overload_aim, &sim_past_aim,         &sim_removed_aim, &sim_reverted_mirror_aim,
	&sim_stuck_aim,
};

static bool is_for(const struct sim_world *w, const struct sim_aim *aim)
{
	if (!w->mistake)
		return w->seed % SIM_AIM_TURNS == aim->turn &&
		       w->seed / SIM_AIM_TURNS % (aim->rare ? aim->rare : 1) == 0 &&
		       !sim_is_mixed(w) && !sim_creators_count(w);
	for (unsigned i = 0; i < SIM_AIM_MISTAKES; i++)
		if (w->mistake == aim->mistakes[i])
			return true;
	return false;
}

void sim_aim_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	for (unsigned i = 0; i < sizeof(aims) / sizeof(aims[0]); i++) {
		if (!is_for(w, aims[i]))
			continue;
		assert(!w->schedule->aim);
		w->schedule->aim = aims[i];
		aims[i]->shape(w, mirrors, spares);
	}
}

void sim_aim_begin(struct sim_world *w)
{
	const struct sim_aim *aim = w->schedule->aim;

	if (aim && aim->begin)
		aim->begin(w);
}

bool sim_aim_is(const struct sim_world *w, const struct sim_aim *aim)
{
	return w->schedule->aim == aim;
}

void sim_aim_quiet(struct sim_schedule *s)
{
	s->faults = s->losses = s->jumps = s->slow = s->local = s->changes = s->stops = s->work = 0;
	s->calm = s->near = s->disks = false;
	s->steady = true;
	s->left = 1000;
	s->think = 20 * SIM_MS;
}

bool sim_aim_is_open(const struct sim_owner *o)
{
	return !o->dead && o->handle && o->handle->is_open && !o->handle->is_stopping;
}

struct sim_owner *sim_aim_owner(const struct sim_world *w, unsigned live)
{
	for (unsigned i = 0; i < w->owner_count; i++) {
		struct sim_owner *o = w->owners[i];
		unsigned count = 0;

		if (!sim_aim_is_open(o))
			continue;
		for (unsigned k = 0; k < o->handle->mirror_count; k++)
			count += o->handle->mirrors[k].state == PERSEAS_MIRROR_LIVE;
		if (!live || count == live)
			return o;
	}
	return NULL;
}

struct ps_mirror *sim_aim_mirror(const struct sim_owner *o, const struct sim_mirror *mirror)
{
	struct perseas *p = o->handle;

	for (unsigned i = 0; i < p->mirror_count; i++)
		if (!strcmp(p->mirrors[i].address.text, mirror->address))
			return &p->mirrors[i];
	sim_fail(mirror->world, "the owner does not know mirror %u", mirror->index);
}

void sim_aim_hang(struct sim_world *w, const struct sim_mirror *mirror, bool hangs)
{
	w->schedule->unreachable[mirror->index] = hangs ? UINT64_MAX : 0;
	for (unsigned i = 0; i < w->owner_count; i++)
		sim_path_block(&w->owners[i]->paths[mirror->index], hangs, hangs);
}

bool sim_aim_shares(const struct sim_owner *o)
{
	for (unsigned i = 0; i < SIM_MIRRORS_MAX; i++)
		if (o->local[i])
			return true;
	return false;
}

int sim_aim_take_over(struct sim_owner *o, const char *who, const char *list, struct perseas **p)
{
	const struct sim_schedule *s = o->world->schedule;
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct ps_error error = { 0 };
	int rc;

	options.flags = PERSEAS_TAKEOVER;
	options.log_size = s->log_size;
	options.ring_size = s->ring_size;
	options.connect_timeout_ms = s->connect_timeout_ms;
	options.open_timeout_ms = s->open_timeout_ms;
	options.spin_us = UINT32_MAX;
	rc = ps_open(&o->env, SIM_STORE, list, &options, p, &error);
	sim_trace(o->world, "%s: open: %s: %s", who, perseas_error_name(rc), error.text);
	if (rc)
		*p = NULL;
	return rc;
}

bool sim_aim_change(struct sim_owner *o, const struct perseas_roster_change *wanted)
{
	struct perseas *p = o->handle;
	bool begun;

	p->is_admin_taken = true;
	begun = !ps_change_begin(p, wanted, NULL);
	if (!begun)
		sim_trace(o->world, "no change is begun: %s", p->upkeep.change.text);
	p->is_admin_taken = false;
	p->env->ops->wake(p->env, PS_KEEPER);
	return begun;
}

void sim_aim_reset(struct sim_owner *o)
{
	for (struct ps_control *control = o->controls; control; control = control->next)
		sim_control_reset(control);
	for (struct ps_link *link = o->links; link; link = link->next)
		sim_link_reset(link);
}
