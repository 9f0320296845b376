/*
 * probe.h - asks the mirrors, without claiming them, which images they have, and decides from the
 * answers which store is meant, which rosters are the newest, and which mirror is which member. The
 * first steps of an attempt (attempt.h).
 */
#ifndef PERSEAS_CLIENT_PROBE_H
#define PERSEAS_CLIENT_PROBE_H

#include "../core/handle.h"

/* Asks every mirror of the handle for its image of the store. */
void ps_probe_mirrors(struct perseas *p);

/* Decides from the answers which store and which rosters the open uses, and asks members that the
 * list lacks. Sets p->epoch to the highest promise. Returns 0, PS_AGAIN, or an error code:
 * PERSEAS_EBUSY if the store has a live owner. */
int ps_probe_judge_answers(struct perseas *p);

/* Finds the newest rosters in the headers that mirrors reported last, and which mirror is which
 * member. Returns 0 or PERSEAS_ENOMEM. */
int ps_probe_find_rosters(struct perseas *p);

#endif
