/*
 * impostor.h - schedules in which a client that may create stores on spare mirrors, and read the
 * real ones, makes images of the same name, while one real mirror of three is down and the owner
 * dies (n = 3, W = 2). They are of another store, or of this one with a roster of their own. Owners
 * are given all mirrors. None may take the images for the store's.
 */
#ifndef PERSEAS_SIM_IMPOSTOR_H
#define PERSEAS_SIM_IMPOSTOR_H

#include "world.h"

/* Is the schedule such a one? By its seed and its mistake alone. */
bool sim_impostor_comes(const struct sim_world *w);

/* Makes the schedule such a one, if this seed or the mistake is for it: by these alone, so that
 * other schedules stay as they are. */
void sim_impostor_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares);

/* Begins, where the schedule is such a one. */
void sim_impostor_begin(struct sim_world *w);

#endif
