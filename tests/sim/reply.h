/*
 * reply.h - what the simulator notes of the replies that the library takes.
 */
#ifndef PERSEAS_SIM_REPLY_H
#define PERSEAS_SIM_REPLY_H

#include "env_sim.h"

/* Counts the reply, notes whether it shows an image of the store (sim_owner.told), and fails the
 * schedule if the mirror did not understand the library. */
void sim_reply_note(const struct ps_control *control, const Perseas__Reply *reply);

#endif
