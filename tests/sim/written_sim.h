/*
 * written_sim.h - which pages were written, in a schedule: every second owner learns it. The others
 * compare all memory.
 */
#ifndef PERSEAS_SIM_WRITTEN_SIM_H
#define PERSEAS_SIM_WRITTEN_SIM_H

#include "../../client/core/written.h"
#include "process.h"

/* NULL: this owner has none. */
const struct ps_written_ops *sim_written(const struct sim_owner *o);

#endif
