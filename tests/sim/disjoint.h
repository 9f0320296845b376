/*
 * disjoint.h - schedules in which two owners may complete a change of the roster with disjoint
 * mirrors. A mirror of four is replaced, W = 3, and both rosters count. The other owner claims the
 * new mirror and the two members that the owner of the change does not reach, and adopts on those.
 * Then the new mirror loses its memory. What the owner of the change acknowledges through it must
 * be in the state of later opens. Only faults of this file happen in these schedules.
 */
#ifndef PERSEAS_SIM_DISJOINT_H
#define PERSEAS_SIM_DISJOINT_H

#include "world.h"

/* Makes the schedule such a one, if this seed or the mistake is for it. Draws nothing. */
void sim_disjoint_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares);

/* Begins, where the schedule is such a one. */
void sim_disjoint_begin(struct sim_world *w);

#endif
