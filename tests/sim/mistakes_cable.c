/*
 * mistakes_cable.c - faults in how an owner goes on where the better fabric fails (lossy.c).
 */
#include "mistakes.h"

#include "../../client/core/handle.h"
#include "mirror.h"

void sim_mistake_worn(struct sim_owner *o)
{
	for (unsigned i = 0; o->handle && i < o->handle->mirror_count; i++)
		if (sim_mistake_is(o->world, SIM_MISTAKE_WORN))
			o->handle->mirrors[i].way_back.break_count = 0;
}

/* Claimed once more under the same epoch, it seems to be another image. */
void sim_mistake_restarts(struct ps_control *control, Perseas__ClaimReply *claim)
{
	struct sim_owner *o = control->owner;
	uint64_t *granted = &o->granted[control->mirror->index];

	if (!o->opened && *granted == claim->header->promised_epoch &&
	    sim_mistake_is(o->world, SIM_MISTAKE_RESTARTS))
		claim->header->image_id.data[0] ^= 1;
	*granted = claim->header->promised_epoch;
}
