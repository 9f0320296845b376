/*
 * hearing.h - mirrors that say nothing (env.h, hear): what a thread of the real env finds out by
 * signs of life, env_sim.c finds out here.
 */
#ifndef PERSEAS_SIM_HEARING_H
#define PERSEAS_SIM_HEARING_H

#include "env_sim.h"

/* Makes the env look for silence longer than limit_ns; 0 ends that. */
void sim_hear(struct ps_control *control, uint64_t limit_ns);

#endif
