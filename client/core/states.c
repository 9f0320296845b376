/*
 * states.c - moves in tables of states (states.h).
 */
#include "states.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

enum { WHAT = 280, LINE = 320 };

bool ps_states_allow(const struct ps_states *states, unsigned from, unsigned to)
{
	return from < states->count && to < states->count &&
	       states->rows[from].next_states & PS_TO(to);
}

unsigned ps_states_move(struct ps_env *env, const struct ps_states *states, unsigned from,
                        unsigned to, const char *format, ...)
{
	char what[WHAT], line[LINE];
	va_list args;

	assert(ps_states_allow(states, from, to));
	if (!env->ops->trace)
		return to;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(line, sizeof(line), "%s: %s, then %s", what, states->rows[from].name,
	         states->rows[to].name);
	env->ops->trace(env, line);
	return to;
}
