/*
 * aim.c - what schedules share that aim at one situation: aim.h.
 */
#include "aim.h"

#include "../../client/core/handle.h"
#include "fillers.h"
#include "disjoint.h"
#include "forger.h"
#include "fork.h"
#include "hang.h"
#include "impostor.h"
#include "loaded.h"
#include "lossy.h"
#include "mirror.h"
#include "misled.h"
#include "past.h"
#include "removed.h"
#include "schedule.h"
#include "stuck.h"

#include <string.h>

void sim_aim_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	sim_hang_shape(w, mirrors, spares);
	sim_lossy_shape(w, mirrors, spares);
	sim_loaded_shape(w, mirrors, spares);
	sim_fork_shape(w, mirrors, spares);
	sim_past_shape(w, mirrors, spares);
	sim_removed_shape(w, mirrors, spares);
	sim_stuck_shape(w, mirrors, spares);
	sim_forger_shape(w, mirrors, spares);
	sim_misled_begin(w, mirrors, spares);
	sim_impostor_shape(w, mirrors, spares);
	sim_fillers_shape(w, mirrors, spares);
	sim_disjoint_shape(w, mirrors, spares);
}

void sim_aim_begin(struct sim_world *w)
{
	sim_hang_begin(w);
	sim_lossy_begin(w);
	sim_loaded_begin(w);
	sim_fork_begin(w);
	sim_past_begin(w);
	sim_removed_begin(w);
	sim_stuck_begin(w);
	sim_impostor_begin(w);
	sim_disjoint_begin(w);
}

bool sim_aim_is_open(const struct sim_owner *o)
{
	return !o->dead && o->handle && o->handle->open && !o->handle->stopping;
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
	for (unsigned i = 0; i < w->owner_count; i++) {
		sim_path_block(&w->owners[i]->paths[mirror->index], SIM_OUT, hangs);
		sim_path_block(&w->owners[i]->paths[mirror->index], SIM_IN, hangs);
	}
}

bool sim_aim_shares(const struct sim_owner *o)
{
	for (unsigned i = 0; i < SIM_MIRRORS_MAX; i++)
		if (o->local[i])
			return true;
	return false;
}
