/*
 * stuck.h - schedules in which W healthy mirrors answer a living owner, and none that comes back
 * may be copied to (I9): the owner claims all of them again, without a whole copy that cannot
 * count. In some of them the owner before lives on, cut off, and must not claim anything again.
 */
#ifndef PERSEAS_SIM_STUCK_H
#define PERSEAS_SIM_STUCK_H

#include "world.h"

/* As those of fork.h. */
void sim_stuck_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares);
void sim_stuck_begin(struct sim_world *w);

#endif
