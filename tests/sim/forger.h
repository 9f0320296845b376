/*
 * forger.h - schedules of an application that stores undo records as data. It has them lie, as
 * before-images, where a claim, an open or a reader looks for the next record in the following lap.
 * The oracle recovers every image whenever it looks, so that a record which is taken for one shows
 * at once.
 */
#ifndef PERSEAS_SIM_FORGER_H
#define PERSEAS_SIM_FORGER_H

#include "work.h"

/* Takes one step of the forging application. Returns GO_ON or LEAVE. */
int sim_forger_step(struct sim_application *a);

#endif
