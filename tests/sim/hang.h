/*
 * hang.h - schedules in which one mirror hangs. Another one loses its memory, and must be copied
 * whole within a bounded time, or leaves the roster, which must be done in such a time: the owner
 * has all that it needs for that. Only faults of this file happen in them, so that nothing else can
 * be the reason for a delay.
 */
#ifndef PERSEAS_SIM_HANG_H
#define PERSEAS_SIM_HANG_H

#include "world.h"

/* Makes the schedule such a one, if this seed is for it: by the seed alone, so that other schedules
 * stay as they are. */
void sim_hang_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares);

/* Begins, where the schedule is such a one. */
void sim_hang_begin(struct sim_world *w);

#endif
