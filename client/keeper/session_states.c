/*
 * session_states.c - the states of a session: the allowed moves, and the invariant of each state.
 */
#include "session.h"

#include "../core/mirror.h"
#include "../core/states.h"

#include <assert.h>

static const struct ps_state_row states[] = {
	[PS_SESSION_NONE] = { "none", PS_TO(PS_SESSION_ASKING) | PS_TO(PS_SESSION_UP) },
	[PS_SESSION_ASKING] = { "asking", PS_TO(PS_SESSION_QUEUING) | PS_TO(PS_SESSION_CLAIMING) |
	                                          PS_TO(PS_SESSION_PREPARING) |
	                                          PS_TO(PS_SESSION_NONE) },
	[PS_SESSION_QUEUING] = { "queuing", PS_TO(PS_SESSION_ASKING) | PS_TO(PS_SESSION_NONE) },
	[PS_SESSION_CLAIMING] = { "claiming", PS_TO(PS_SESSION_ATTACHING) |
	                                              PS_TO(PS_SESSION_PREPARING) |
	                                              PS_TO(PS_SESSION_NONE) },
	[PS_SESSION_ATTACHING] = { "attaching",
	                           PS_TO(PS_SESSION_PREPARING) | PS_TO(PS_SESSION_NONE) },
	[PS_SESSION_PREPARING] = { "preparing", PS_TO(PS_SESSION_UP) | PS_TO(PS_SESSION_NONE) },
	[PS_SESSION_UP] = { "up", PS_TO(PS_SESSION_NONE) },
};

const struct ps_states ps_session_states = { states, sizeof(states) / sizeof(states[0]) };

/* Returns true if the mirror's fields fit the state of its session. Before UP the mirror takes no
 * transactions. */
static bool fields_fit_state(const struct ps_mirror *m)
{
	switch (m->session.state) {
	case PS_SESSION_NONE:
		return !m->control && !m->link && !m->session.claim_reply && !m->is_active;
	case PS_SESSION_ASKING:
	case PS_SESSION_QUEUING:
	case PS_SESSION_CLAIMING:
		return m->control && !m->link && !m->session.claim_reply && !m->is_active;
	case PS_SESSION_ATTACHING:
		return m->control && m->link && m->session.claim_reply && !m->is_active;
	case PS_SESSION_PREPARING:
		return m->control && !m->is_active;
	case PS_SESSION_UP:
		return m->control && !m->session.claim_reply;
	}
	return false;
}

void ps_session_move(struct perseas *p, struct ps_mirror *m, enum ps_session_state to)
{
	m->session.state = ps_states_move(p->env, &ps_session_states, m->session.state, to,
	                                  "session with %.255s", m->address.text);
	assert(fields_fit_state(m));
}

void ps_session_note_copy_place(struct perseas *p, struct ps_mirror *m, uint32_t place)
{
	pthread_mutex_lock(&p->lock);
	m->copy_place = place;
	pthread_mutex_unlock(&p->lock);
}
