/*
 * written_sim.h - which pages were written, in a schedule: every second owner learns it. The others
 * compare all memory.
 */
#ifndef PERSEAS_SIM_WRITTEN_SIM_H
#define PERSEAS_SIM_WRITTEN_SIM_H

#include "../../client/core/written.h"
#include "process.h"

/* Returns NULL if this owner does not learn which pages were written. */
const struct ps_written_ops *sim_written(const struct sim_owner *o);

/* Called by the pager of an owner that learns this: the range is watched from now on; and these
 * bytes were filled in, which is no store. */
void sim_written_watch(struct sim_owner *o, const uint8_t *base, uint64_t size);
void sim_written_came(struct sim_owner *o, const uint8_t *at, uint64_t length);

#endif
