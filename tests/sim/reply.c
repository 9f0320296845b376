/*
 * reply.c - what the simulator notes of the replies that the library takes. env_sim.c calls it.
 */
#include "reply.h"

#include "../../client/core/handle.h"
#include "mirror.h"
#include "rosters.h"
#include "schedule.h"

/* Returns the header of the image in the reply, or NULL. */
static const Perseas__Header *header_of(const Perseas__Reply *reply)
{
	if (reply->body_case == PERSEAS__REPLY__BODY_STORE && reply->store->status)
		return reply->store->status->header;
	return reply->body_case == PERSEAS__REPLY__BODY_CLAIM ? reply->claim->header : NULL;
}

/* Returns true if the mirror may lack segments that a later owner destroyed, while a resync of this
 * owner still reads them. */
static bool reads_of_another(const struct ps_control *control)
{
	const struct perseas *p = control->owner->handle;

	return control->asked == PERSEAS__REQUEST__BODY_READ && p &&
	       control->mirror->granted > p->epoch;
}

void sim_reply_note(const struct ps_control *control, const Perseas__Reply *reply)
{
	struct sim_world *w = control->owner->world;
	const Perseas__Header *header = header_of(reply);

	/* An owner takes back a segment also where it was never made, and asks for missing memory
	 * where the mirror may have another image by now. */
	if (reply->status == PERSEAS__STATUS__STATUS_BAD_REQUEST &&
	    control->asked != PERSEAS__REQUEST__BODY_DROP_SEGMENTS && !reads_of_another(control) &&
	    !(w->schedule->demand && control->asked == PERSEAS__REQUEST__BODY_STATUS))
		sim_fail(w, "a mirror does not understand the library: %s", reply->message);
	if (reply->status == PERSEAS__STATUS__STATUS_NO_MEMORY)
		sim_count(w, SIM_LIMITS, 1);
	if (header && sim_rosters_counts(w, header))
		control->owner->told = true;
	if (reply->body_case != PERSEAS__REPLY__BODY_CLAIM)
		return;
	sim_count(w, SIM_AWAY, reply->claim->copied);
	sim_count(w, SIM_UNDONE, reply->claim->undone);
	sim_count(w, SIM_AWAY_UNDONE, reply->claim->copied && reply->claim->undone);
}
