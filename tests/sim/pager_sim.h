/*
 * pager_sim.h - missing memory in a schedule: it is filled with what no mirror has, and nobody is
 * held up who touches it. So whoever reads it without having asked for it is found by the oracle.
 */
#ifndef PERSEAS_SIM_PAGER_SIM_H
#define PERSEAS_SIM_PAGER_SIM_H

#include "../../client/core/demand.h"
#include "process.h"

struct ps_wanted;

enum { SIM_SMALL_PAGE = 16, SIM_GRANULE = 128, SIM_RUN = 2 };

#define SIM_LATE (20 * SIM_MS)
#define SIM_SLOWLY (SIM_GRANULE * UINT64_C(100)) /* bytes a second: a granule every 10 ms */

extern const struct ps_pager_ops sim_pager_ops;

/* The running task touches these bytes: it waits until they can be seen, which may be before they
 * count as here. 0, or PERSEAS_EFENCED: they never will be. */
int sim_pager_touch(struct sim_owner *o, const uint8_t *at, uint64_t length);

#endif
