/*
 * mixed.h - schedules in which whatever applications may use comes with anything else. What the
 * others use follows from their seeds' remainders, so that some pairs never meet there, and each of
 * them stays as it was when something is added. None of these is about one thing alone (hang.c,
 * loaded.c, fork.c, lossy.c): what is looked at there holds only where nothing else is wrong.
 */
#ifndef PERSEAS_SIM_MIXED_H
#define PERSEAS_SIM_MIXED_H

#include "world.h"

/* Mixed are the seeds from SIM_MIXED to SIM_MIXED_END - 1, and of the seeds from SIM_WIDE_SEEDS on
 * those with an odd digit of thousands. */
#define SIM_MIXED ((uint64_t)1000000)
#define SIM_MIXED_END ((uint64_t)2000000)

/* Returns true if the schedule of this world is mixed. */
bool sim_is_mixed(const struct sim_world *w);

/* Draws, for mixed seeds, which features the application uses; heap_work.c draws its heap. */
void sim_mixed_shape(struct sim_world *w);

/* Returns PERSEAS_SERIAL if a tracked transaction takes its turn, too, else 0. With `alone` no
 * other transaction is open, which might have the turn for longer than a thread of the simulator
 * can wait. */
unsigned sim_mixed_turn(struct sim_world *w, bool alone);

#endif
