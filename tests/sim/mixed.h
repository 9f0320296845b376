/*
 * mixed.h - schedules in which whatever applications may use comes with anything else. What the
 * others use follows from their seeds' remainders, so that some pairs never meet there, and each of
 * them stays as it was when something is added. None of these is about one thing alone (hang.h,
 * loaded.h, fork.h, lossy.h): what is looked at there holds only where nothing else is wrong.
 */
#ifndef PERSEAS_SIM_MIXED_H
#define PERSEAS_SIM_MIXED_H

#include "world.h"

/* Is it one of them? Their seeds are SIM_MIXED and higher. */
enum { SIM_MIXED = 1000000 };
bool sim_is_mixed(const struct sim_world *w);

/* Draws, for those, what an application uses; its heap is heap_work.c's to draw. */
void sim_mixed_shape(struct sim_world *w);

/* PERSEAS_SERIAL, or 0: does a transaction that is tracked take its turn, too? alone: no other is
 * open, which might have the turn for longer than a thread of the simulator can wait. */
unsigned sim_mixed_turn(struct sim_world *w, bool alone);

#endif
