/*
 * removed.h - schedules in which somebody removes files of images, now at one mirror and then at
 * another, under daemons that run: all of them, or one. The daemon looks within a second; before
 * that a claim may come, since the owner dies. Then some daemons end, and what they start with must
 * be all that they had. Only these faults happen in them: a daemon that ends before it has looked
 * has lost its memory.
 */
#ifndef PERSEAS_SIM_REMOVED_H
#define PERSEAS_SIM_REMOVED_H

#include "world.h"

/* As those of hang.h. */
void sim_removed_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares);
void sim_removed_begin(struct sim_world *w);

#endif
