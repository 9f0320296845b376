/*
 * past.h - schedules in which an owner goes back in time, as when its machine is reverted to a
 * checkpoint: it forgets its last transactions, which were acknowledged, and its connections break.
 * It must be fenced for good, and must not copy its memory over what mirrors hold.
 */
#ifndef PERSEAS_SIM_PAST_H
#define PERSEAS_SIM_PAST_H

#include "process.h"

/* Waits, where this owner went back in time, until its handle is fenced. Returns true then: its
 * application must leave, since it has not forgotten what its memory has. */
bool sim_past_ends(struct sim_owner *o);

#endif
