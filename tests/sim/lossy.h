/*
 * lossy.h - schedules in which each mirror is reached over a better fabric first (cable.h), and one
 * of these fails while control connections work: it is out, or loses so much that its links break.
 * The store must go on within a bounded time, over the other fabric, an open must not begin again
 * for that, and the first one is taken up again when it works. Only faults of this file happen in
 * them.
 */
#ifndef PERSEAS_SIM_LOSSY_H
#define PERSEAS_SIM_LOSSY_H

#include "world.h"

/* As those of hang.h. */
void sim_lossy_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares);
void sim_lossy_begin(struct sim_world *w);

#endif
