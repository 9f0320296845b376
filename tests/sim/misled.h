/*
 * misled.h - schedules in which addresses lead to other mirrors than before: one leads to the
 * mirror of another address for a while, so that this one has several, or two are exchanged.
 * Connections break when that happens, and other faults go on meanwhile. At the end each leads to
 * its own.
 */
#ifndef PERSEAS_SIM_MISLED_H
#define PERSEAS_SIM_MISLED_H

#include "control.pb-c.h"
#include "world.h"

struct ps_control;

/* Returns the mirror to which the address of this one leads now. */
struct sim_mirror *sim_misled_leads(struct sim_mirror *called);

/* The mistake: the client takes the mirror that answers for the member that a roster lists at the
 * dialled address, whatever the reply says. */
void sim_misled_reply(const struct ps_control *control, Perseas__Reply *reply);

#endif
