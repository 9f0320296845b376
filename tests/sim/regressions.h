/*
 * regressions.h - the list of schedules that ever failed (tests/sim/failed).
 */
#ifndef PERSEAS_SIM_REGRESSIONS_H
#define PERSEAS_SIM_REGRESSIONS_H

#include "pool.h"

/*
 * Runs the schedules of the file at `path`. A line is
 *   SEED [WORD] # what the schedule found
 * WORD names a mistake: the schedule has the shape of that mistake's schedules, but does not make
 * it. Empty lines and lines that begin with # are skipped. A line that cannot be read counts as a
 * failure, and so does a file that cannot be read or has no schedule.
 */
struct sim_sum sim_regressions_run(const char *path);

#endif
