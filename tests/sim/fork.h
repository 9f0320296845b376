/*
 * fork.h - schedules in which a mirror of two is called gone, and comes back with its image and its
 * old roster, which are enough to open the store a second time (n = 2, W = 2). That fork is opened
 * under ever higher epochs, and records ever newer rosters, since the other mirror of its roster
 * loses its memory again and again. Then it wants the mirror that has the store to join it. That
 * must be refused, for what was acknowledged is nowhere else.
 */
#ifndef PERSEAS_SIM_FORK_H
#define PERSEAS_SIM_FORK_H

#include "world.h"

/* Makes the schedule such a one, if this seed or the mistake is for it: by these alone, so that
 * other schedules stay as they are. */
void sim_fork_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares);

/* Begins, where the schedule is such a one. */
void sim_fork_begin(struct sim_world *w);

#endif
