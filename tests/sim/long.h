/*
 * long.h - requests that take a mirror long, as those do that touch much memory: it tells signs of
 * progress, and answers in the end. What else comes on the same connection waits.
 */
#ifndef PERSEAS_SIM_LONG_H
#define PERSEAS_SIM_LONG_H

#include "env_sim.h"

/* A request has come: it is carried out now, or later. */
void sim_long_take(struct ps_control *control, struct sim_message *message);

/* Where the schedule says that requests are held: a sign of progress for the one that was begun;
 * and it is carried out, with those behind it. */
void sim_long_sign(struct ps_control *control, uint64_t done);
void sim_long_end(struct ps_control *control);

#endif
