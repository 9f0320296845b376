/*
 * attempt.h - an attempt to own a store, as a table of steps. open.c repeats attempts until its
 * time is over, for the state that mirrors hold. renew.c runs them for the memory of an open owner.
 *
 *   NONE -> PROBED -> JUDGED -> CLAIMED -> CHOSEN -> CONFIRMED -> ADOPTED -> OPEN
 *            |  ^
 *            v  |
 *            MADE
 *
 * Every step leads back to NONE if the attempt ends without the store, if the handle is closed, or
 * if an owner gives up its claims to renew them. An open owner, or one that renews, is SUPERSEDED
 * for good once another owner has succeeded it. Up to JUDGED, nothing has changed on any mirror
 * that has the store. Before CONFIRMED no state is adopted, because a candidate whose session broke
 * may belong to another owner (I6). Before OPEN no transaction is sent.
 *
 * A step returns 0, a PERSEAS_E… code, or PS_AGAIN if a session broke or another claimer was
 * faster. The attempt then starts again with a higher epoch and no candidates (I6). Callers hold
 * admin, or the store is not open yet.
 */
#ifndef PERSEAS_CLIENT_ATTEMPT_H
#define PERSEAS_CLIENT_ATTEMPT_H

#include "../core/handle.h"
#include "../core/states.h"

enum { PS_AGAIN = 1 };

extern const struct ps_states ps_attempt_steps;

/* The functions that do the steps of an attempt from PROBED to OPEN. Each returns 0, an error code,
 * or PS_AGAIN. */
struct ps_attempt_actions {
	/* Decides whether to claim. Sets p->epoch to the highest promise that the claims must
	 * exceed. */
	int (*judge)(struct perseas *p);
	/* Claims the mirrors under the next epoch (ps_claims_send_and_await). */
	int (*claim)(struct perseas *p);
	/* Chooses the state to adopt (I6), and fills in *chosen with its position. */
	int (*choose)(struct perseas *p, struct ps_image_position *chosen);
	/* Asks the mirrors whether the claims still stand. Called before and after the adoption. */
	int (*confirm)(struct perseas *p);
	/* Makes the chosen state this owner's on W mirrors. */
	int (*adopt)(struct perseas *p, const struct ps_image_position *chosen);
};

/* Returns true if the handle is in a condition that the step of its attempt allows. */
bool ps_attempt_fits_step(const struct perseas *p);

/* Moves the attempt to `step` if rc is 0, and otherwise to NONE. Returns rc. */
int ps_attempt_record_step(struct perseas *p, enum ps_attempt_step step, int rc);

/* Runs the steps from PROBED. Returns 0 if the store is OPEN with the state
 * p->opening.chosen_position, or what the failed step returned. */
int ps_attempt_to_own_store(struct perseas *p, const struct ps_attempt_actions *actions);

/* Moves the attempt to NONE. The handle is being closed, or gives up its claims. */
void ps_attempt_end(struct perseas *p);

#endif
