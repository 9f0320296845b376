/*
 * long.h - requests that take a mirror long, as those do that touch much memory: it tells signs of
 * progress, and answers in the end. What else comes on the same connection waits.
 */
#ifndef PERSEAS_SIM_LONG_H
#define PERSEAS_SIM_LONG_H

#include "env_sim.h"

/* Takes a request, which is carried out now or later. */
void sim_long_take(struct ps_control *control, struct sim_message *message);

/* In schedules that hold requests: sends a sign of progress for the request that was begun, and,
 * when it is due, carries it out with the requests behind it. */
void sim_long_sign(struct ps_control *control, uint64_t done);
void sim_long_end(struct ps_control *control);

#endif
