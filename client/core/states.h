/*
 * states.h - tables of states with their allowed moves. Each owner of such a table has one function
 * that moves: it calls ps_states_move, stores the result, and asserts the invariants of the new
 * state. States are assigned nowhere else.
 */
#ifndef PERSEAS_CLIENT_STATES_H
#define PERSEAS_CLIENT_STATES_H

#include "env.h"

#include <stdbool.h>

#define PS_TO(state) (1u << (state))

/* A state: its name for people, and the set of states that may follow it. */
struct ps_state_row {
	const char *name;
	unsigned next_states; /* set of PS_TO(state) */
};

/* One row for each state; state 0 is the initial one. */
struct ps_states {
	const struct ps_state_row *rows;
	unsigned count;
};

/* Returns true if the table allows the move. */
bool ps_states_allow(const struct ps_states *states, unsigned from, unsigned to);

/* Asserts that the table allows the move, and traces it as one line, "WHAT: FROM, then TO". The
 * format and its arguments make WHAT. Returns `to`. */
unsigned ps_states_move(struct ps_env *env, const struct ps_states *states, unsigned from,
                        unsigned to, const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
