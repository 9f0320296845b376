/*
 * pager_sim.h - missing memory in a schedule: it is filled with what no mirror has, and nobody is
 * held up who touches it. So whoever reads it without having asked for it is found by the oracle.
 */
#ifndef PERSEAS_SIM_PAGER_SIM_H
#define PERSEAS_SIM_PAGER_SIM_H

#include "../../client/core/demand.h"
#include "process.h"

struct ps_mapping;

enum { SIM_SMALL_PAGE = 16, SIM_GRANULE = 128, SIM_RUN = 2 };

#define SIM_LATE (20 * SIM_MS)
#define SIM_SLOWLY (SIM_GRANULE * UINT64_C(100)) /* bytes a second: a granule every 10 ms */

extern const struct ps_pager_ops sim_pager_ops;

/* The running task touches these bytes: it waits until they can be seen, which may be before they
 * count as here. 0, or PERSEAS_EFENCED: they never will be. */
int sim_pager_touch(struct sim_owner *o, const uint8_t *at, uint64_t length);

/* The application discards all memory that counts as here. Its contents stay, for who reads them
 * next, but the kernel would take other bytes. */
void sim_pager_discard(struct sim_owner *o);

/* For a mistake: copies a granule in, without looking whether it is missing. The kernel keeps the
 * pages that it has. */
void sim_pager_copy(struct ps_pager *pager, const struct ps_mapping *mapping, uint64_t granule,
                    const uint8_t *bytes);

#endif
