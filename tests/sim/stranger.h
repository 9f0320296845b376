/*
 * stranger.h - somebody with a right to claim who owns nothing, and what it must not get.
 */
#ifndef PERSEAS_SIM_STRANGER_H
#define PERSEAS_SIM_STRANGER_H

#include "world.h"

/* Claims the mirror once, with an epoch near a limit, and goes. */
void sim_stranger_claim(struct sim_world *w, struct sim_mirror *m);

#endif
