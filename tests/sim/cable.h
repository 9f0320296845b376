/*
 * cable.h - a better fabric beside the stream, as RDMA is beside TCP: `direct`, over a cable of
 * each mirror's own. It can be out, so that nothing comes up over it, or lose so much that links
 * come up and then break. Control connections and the stream know nothing of that.
 */
#ifndef PERSEAS_SIM_CABLE_H
#define PERSEAS_SIM_CABLE_H

#include "fabric_sim.h"

/* The fabric to try first with this mirror; NULL: there is no cable. */
const struct ps_fabric *sim_cable_fabric(struct sim_mirror *m);

/* Adds the mirror's cable to a grant. */
void sim_cable_grant(const struct sim_mirror *m, Perseas__Grant *grant);

/* Takes the cable out; or makes a percentage of chains and reads break their link; or, with 0,
 * repairs it. */
void sim_cable_out(struct sim_mirror *m);
void sim_cable_lose(struct sim_mirror *m, unsigned percent);

#endif
