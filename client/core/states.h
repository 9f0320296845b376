/*
 * states.h - tables of states, with the moves that are allowed. What has one has a single function
 * that moves: it calls ps_states_move, keeps what that returns, and asserts what is so in the new
 * state. No state is assigned elsewhere.
 */
#ifndef PERSEAS_CLIENT_STATES_H
#define PERSEAS_CLIENT_STATES_H

#include "env.h"

#include <stdbool.h>

#define PS_TO(state) (1u << (state))

/* One state: its name, for people, and the set of those that it leads to. */
struct ps_state {
	const char *name;
	unsigned leads_to;
};

/* Rows by state; 0 is the one that it all begins in. */
struct ps_states {
	const struct ps_state *rows;
	unsigned count;
};

/* Does the table allow the move? */
bool ps_states_lead(const struct ps_states *states, unsigned from, unsigned to);

/* Asserts that the table allows the move, and tells env of it in one line, "WHAT: FROM, then TO".
 * `format` says what moves. Returns `to`. */
unsigned ps_states_move(struct ps_env *env, const struct ps_states *states, unsigned from,
                        unsigned to, const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
