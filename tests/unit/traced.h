/*
 * traced.h - what an owner traces of one thing's moves, for tests that compare it with a list.
 */
#ifndef PERSEAS_TESTS_TRACED_H
#define PERSEAS_TESTS_TRACED_H

#include "owner.h"

enum { LINES_MAX = 32 };

/* The lines that begin with `of`. */
struct traced {
	const char *of;
	char moves[LINES_MAX][80];
	unsigned count;
};

static inline void take_line(void *arg, const char *line)
{
	struct traced *t = arg;
	const size_t length = strlen(t->of);

	if (strncmp(line, t->of, length) != 0)
		return;
	if (t->count < LINES_MAX)
		snprintf(t->moves[t->count], sizeof(t->moves[0]), "%s", line + length);
	t->count++;
}

static inline void listen_to(struct owner *o, struct traced *t)
{
	o->d->on_trace = take_line;
	o->d->on_trace_arg = t;
}

/* These moves were traced and no others; the last is followed by NULL. */
static inline void assert_traced(struct owner *o, const struct traced *t, const char *const *moves)
{
	o->d->on_trace = NULL;
	for (unsigned i = 0; i < t->count && i < LINES_MAX; i++) {
		if (!moves[i])
			fail_msg("not expected: %s", t->moves[i]);
		assert_string_equal(t->moves[i], moves[i]);
	}
	assert_null(moves[t->count]);
}

#endif
