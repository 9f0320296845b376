/*
 * attempt.h - attempts to have a store, as a table of steps. open.c tries them until its time is
 * over, for the state that mirrors hold; renew.c does for the memory of an owner that is open.
 *
 *   NONE -> PROBED -> JUDGED -> CLAIMED -> CHOSEN -> CONFIRMED -> ADOPTED -> OPEN
 *            |  ^
 *            v  |
 *            MADE
 *
 * From each of them an attempt that ends without the store goes back to NONE. So does a handle that
 * is closed, and an owner that gives its claims up to renew them. Once another owner has succeeded
 * it, an owner that is open, or renews, is SUPERSEDED for good. Up to JUDGED nothing has changed on
 * any mirror of a store that was there. Before CONFIRMED no state is adopted anywhere, for a
 * candidate whose session broke may be another's (I6); before OPEN no transaction is sent.
 *
 * A step returns 0, a PERSEAS_E… code, or PS_AGAIN: a session broke, or another claimer was faster,
 * and the attempt starts again with a higher epoch and no candidates (I6). Admin, or before open.
 */
#ifndef PERSEAS_CLIENT_ATTEMPT_H
#define PERSEAS_CLIENT_ATTEMPT_H

#include "../core/handle.h"
#include "../core/states.h"

enum { PS_AGAIN = 1 };

extern const struct ps_states ps_attempt_steps;

/* The steps of an attempt from PROBED to OPEN. */
struct ps_attempt_way {
	/* Decides whether to claim. p->epoch becomes the highest promise that it must exceed. */
	int (*judge)(struct perseas *p);
	/* Claims with the epoch above that one (ps_claims_run). */
	int (*claim)(struct perseas *p);
	int (*choose)(struct perseas *p, struct ps_standing *chosen);
	/* Asks whether the claims stand, before and after the adoption. */
	int (*confirm)(struct perseas *p);
	/* Makes the chosen state this owner's on W mirrors. */
	int (*adopt)(struct perseas *p, const struct ps_standing *chosen);
};

/* Is the handle what it must be at the step that its attempt has reached? */
bool ps_attempt_is_sound(const struct perseas *p);

/* A step was done with this result, which is returned: the next one begins, or the attempt ends. */
int ps_attempt_reach(struct perseas *p, enum ps_attempt_step step, int rc);

/* Goes on from PROBED. Returns 0: OPEN, with the state p->opening.chosen; else as the step that
 * failed. */
int ps_attempt_run(struct perseas *p, const struct ps_attempt_way *way);

/* The handle is being closed, or gives its claims up. */
void ps_attempt_end(struct perseas *p);

#endif
