/*
 * figures.c - see figures.h.
 */
#include "figures.h"

#include "../../client/core/handle.h"

void sim_count_figures(struct sim_world *w, const struct perseas *p)
{
	const struct perseas_stat *stat = &p->commit.stat;

	sim_count(w, SIM_LAPS, stat->log_laps);
	sim_count(w, SIM_RECONNECTS, stat->reconnects);
	sim_count(w, SIM_REPLAYED, stat->replayed);
	sim_count(w, SIM_DROPPED, stat->dropped);
	sim_count(w, SIM_PACED, stat->paced);
	sim_count(w, SIM_FORWARD, stat->mended_forward);
	sim_count(w, SIM_DELTAS, stat->mended_delta);
	sim_count(w, SIM_WHOLES, stat->mended_whole);
	sim_count(w, SIM_RESYNCS, stat->resyncs);
	sim_count(w, SIM_RENEWALS, stat->renewals);
}
