/*
 * loaded.h - schedules in which W = n, and a mirror comes back with what it spilled: before another
 * one has recorded its new id, that one loses its memory. It must be made anew within a bounded
 * time, or another must take its place in such a time, for there is no W without the loaded image.
 * The latter change cannot be taken back while both rosters count, and that must be refused.
 * Only faults of this file happen in them, so that nothing else can be the reason for a delay.
 */
#ifndef PERSEAS_SIM_LOADED_H
#define PERSEAS_SIM_LOADED_H

#include "world.h"

/* Makes the schedule such a one, if this seed is for it: by the seed alone, so that other schedules
 * stay as they are. */
void sim_loaded_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares);

/* Begins, where the schedule is such a one. */
void sim_loaded_begin(struct sim_world *w);

#endif
