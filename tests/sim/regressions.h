/*
 * regressions.h - the list of schedules that ever failed (tests/sim/failed).
 */
#ifndef PERSEAS_SIM_REGRESSIONS_H
#define PERSEAS_SIM_REGRESSIONS_H

#include "pool.h"

/*
 * Runs the schedules of the file at `path`. A line is
 *
 *   SEED [WORD] # what the schedule found
 *
 * WORD is a mistake's: the schedule has the shape of those of that mistake, and does not make it.
 * Empty lines and lines that begin with # are skipped. A line that is not understood counts as a
 * failure, and so does a file that has no schedule or cannot be read.
 */
struct sim_sum sim_regressions_run(const char *path);

#endif
