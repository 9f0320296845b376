/*
 * resync_states.c - the states of a whole copy: the allowed moves, and the invariant of each state.
 */
#include "resync.h"

#include "resync_internal.h"
#include "../core/mirror.h"
#include "../core/states.h"

#include <assert.h>
#include <string.h>

#define READYING (PS_TO(PS_RESYNC_ADDING) | PS_TO(PS_RESYNC_COPYING) | PS_TO(PS_RESYNC_NONE))

static const struct ps_state_row states[] = {
	[PS_RESYNC_NONE] = { "none", PS_TO(PS_RESYNC_ASKING) | PS_TO(PS_RESYNC_COMPARING) |
	                                     PS_TO(PS_RESYNC_MAKING_ROOM) },
	[PS_RESYNC_ASKING] = { "asking", PS_TO(PS_RESYNC_RECORDING) | PS_TO(PS_RESYNC_MAKING_ROOM) |
	                                         PS_TO(PS_RESYNC_NONE) },
	[PS_RESYNC_RECORDING] = { "recording",
	                          PS_TO(PS_RESYNC_MAKING_ROOM) | PS_TO(PS_RESYNC_NONE) },
	[PS_RESYNC_COMPARING] = { "comparing",
	                          PS_TO(PS_RESYNC_MAKING_ROOM) | PS_TO(PS_RESYNC_NONE) },
	[PS_RESYNC_MAKING_ROOM] = { "making", PS_TO(PS_RESYNC_ATTACHING) | READYING },
	[PS_RESYNC_ATTACHING] = { "attaching", READYING },
	[PS_RESYNC_ADDING] = { "adding", PS_TO(PS_RESYNC_COPYING) | PS_TO(PS_RESYNC_NONE) },
	[PS_RESYNC_COPYING] = { "copying", PS_TO(PS_RESYNC_READING) | PS_TO(PS_RESYNC_CONFIRMING) |
	                                           PS_TO(PS_RESYNC_FINISHING) |
	                                           PS_TO(PS_RESYNC_NONE) },
	[PS_RESYNC_READING] = { "reading", PS_TO(PS_RESYNC_READING) | PS_TO(PS_RESYNC_VOUCHING) |
	                                           PS_TO(PS_RESYNC_COPYING) |
	                                           PS_TO(PS_RESYNC_NONE) },
	[PS_RESYNC_VOUCHING] = { "vouching", PS_TO(PS_RESYNC_READING) | PS_TO(PS_RESYNC_COPYING) |
	                                             PS_TO(PS_RESYNC_NONE) },
	[PS_RESYNC_CONFIRMING] = { "confirming", PS_TO(PS_RESYNC_FINISHING) |
	                                                 PS_TO(PS_RESYNC_COPYING) |
	                                                 PS_TO(PS_RESYNC_NONE) },
	[PS_RESYNC_FINISHING] = { "finishing", PS_TO(PS_RESYNC_NONE) },
};

const struct ps_states ps_resync_states = { states, sizeof(states) / sizeof(states[0]) };

static bool is_preparing(const struct ps_mirror *m)
{
	return m->session.state == PS_SESSION_PREPARING && m->control && !m->is_active;
}

/* Returns true if the fields of the copy fit its state. */
static bool fields_fit_state(const struct ps_resync *r)
{
	const struct ps_mirror *m = r->target;

	switch (r->state) {
	case PS_RESYNC_NONE:
		return !m && !r->question.id && !r->saved_answer;
	case PS_RESYNC_ASKING:
	case PS_RESYNC_RECORDING:
		return is_preparing(m) && r->gets_new_image_id && r->question.id;
	case PS_RESYNC_MAKING_ROOM:
		return is_preparing(m) && !r->question.id && !r->saved_answer;
	case PS_RESYNC_ATTACHING:
		return is_preparing(m) && m->link && r->saved_answer;
	case PS_RESYNC_COMPARING:
		return is_preparing(m) && m->link && r->is_in_place && !r->question.id &&
		       !r->saved_answer;
	case PS_RESYNC_ADDING:
		return is_preparing(m) && m->link && !r->saved_answer;
	case PS_RESYNC_COPYING:
		return m->control && !r->question.id && !r->saved_answer;
	case PS_RESYNC_VOUCHING:
		return m->control && r->question.id && r->saved_answer;
	case PS_RESYNC_READING:
	case PS_RESYNC_CONFIRMING:
	case PS_RESYNC_FINISHING:
		return m->control && r->question.id && !r->saved_answer;
	}
	return false;
}

void ps_resync_move(struct perseas *p, enum ps_resync_state to)
{
	struct ps_resync *r = &p->upkeep.resync;

	r->state = ps_states_move(p->env, &ps_resync_states, r->state, to, "copy to %.255s",
	                          r->target->address.text);
	if (to == PS_RESYNC_NONE)
		memset(r, 0, sizeof(*r));
	assert(fields_fit_state(r));
}
