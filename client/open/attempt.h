/*
 * attempt.h - attempts to open a store, or to make it: a table of steps, which open.c tries until
 * its time is over.
 *
 *   NONE -> PROBED -> JUDGED -> CLAIMED -> CHOSEN -> CONFIRMED -> ADOPTED -> OPEN
 *            |  ^
 *            v  |
 *            MADE
 *
 * From each of them an attempt that ends without the store goes back to NONE, and so does a handle
 * that is closed. Up to JUDGED nothing has changed on any mirror of a store that was there. Before
 * CONFIRMED no state is adopted anywhere, for a candidate whose session broke may be another's
 * (I6); before OPEN no transaction begins.
 */
#ifndef PERSEAS_CLIENT_ATTEMPT_H
#define PERSEAS_CLIENT_ATTEMPT_H

#include "../core/handle.h"
#include "../core/states.h"

extern const struct ps_states ps_attempt_steps;

/* Is the handle what it must be at the step that its attempt has reached? */
bool ps_attempt_is_sound(const struct perseas *p);

/* One attempt, everything from the probe on. 0: OPEN, with the state p->opening.chosen; else as
 * again.h says. */
int ps_attempt_open(struct perseas *p);

/* One attempt to make a store, and not to open it: as again.h says. */
int ps_attempt_create(struct perseas *p);

/* The handle is being closed. */
void ps_attempt_end(struct perseas *p);

/* Frees a handle whose store was not opened. Returns rc; if rc is an error, *error gets its
 * sentence. */
int ps_attempt_dismiss(struct perseas *p, int rc, struct ps_error *error);

#endif
