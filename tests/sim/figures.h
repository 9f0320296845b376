/*
 * figures.h - what a handle counted, added to what the schedules count.
 */
#ifndef PERSEAS_SIM_FIGURES_H
#define PERSEAS_SIM_FIGURES_H

#include "world.h"

struct perseas;

void sim_count_figures(struct sim_world *w, const struct perseas *p);

#endif
