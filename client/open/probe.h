/*
 * probe.h - asks the mirrors, read-only, what they have, and decides what that means: which store,
 * which rosters, who is which member. Steps of an attempt (attempt.h).
 */
#ifndef PERSEAS_CLIENT_PROBE_H
#define PERSEAS_CLIENT_PROBE_H

#include "../core/handle.h"

/* Asks every mirror that was given. */
void ps_probe(struct perseas *p);

/* Decides which store is meant, and which roster is the newest. EBUSY for a live owner. */
int ps_probe_judge(struct perseas *p);

/* Finds the newest rosters and who is which member, from the headers as they are known. */
int ps_probe_roster(struct perseas *p);

#endif
