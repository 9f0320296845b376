/*
 * pool.h - runs many schedules in several processes at once. The result does not depend on their
 * number, apart from the order in which failures are printed.
 */
#ifndef PERSEAS_SIM_POOL_H
#define PERSEAS_SIM_POOL_H

#include "runs.h"

struct sim_range {
	uint64_t first, last;
};

struct sim_plan {
	const struct sim_range *ranges;
	unsigned range_count;
	unsigned jobs;        /* 1 .. SIM_JOBS_MAX */
	struct sim_seeds how; /* its range is not used */
	/* For long runs: prints sums as it goes, and how to keep a seed that failed. Ends early at
	 * SIGTERM or SIGINT, or after `seconds` unless that is 0. */
	bool long_run;
	unsigned seconds;
};

struct sim_sum {
	uint64_t done, failed; /* schedules that ran, including those that failed */
};

/* Runs the schedules of a plan. Those that were done are always the first ones of the plan. It ends
 * early after 20 failures. */
struct sim_sum sim_pool_run(const struct sim_plan *plan);

/* Returns how many schedules a plan has. */
uint64_t sim_pool_size(const struct sim_plan *plan);

#endif
