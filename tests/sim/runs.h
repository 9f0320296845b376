/*
 * runs.h - runs schedules in child processes, so that one that fails ends nothing but its child.
 */
#ifndef PERSEAS_SIM_RUNS_H
#define PERSEAS_SIM_RUNS_H

#include "world.h"

/* Schedules to run, and how. `last` is less than UINT64_MAX. */
struct sim_seeds {
	uint64_t first, last;
	int mistake;   /* enum sim_mistake; 0: none */
	bool sound;    /* the schedules of the mistake, without it */
	bool tracing;  /* keep the hash of the traces */
	bool printing; /* print the traces */
};

enum { SIM_JOBS_MAX = 64 };

/* Allocates what children tell their parents. Returns false without memory. Call it first. */
bool sim_runs_begin(void);

/* Makes this process, and its children, count for worker `worker`, which is less than
 * SIM_JOBS_MAX. Processes that run schedules at the same time must have different ones. */
void sim_runs_be_worker(unsigned worker);

/* Forks a child that dies with this process. Returns as fork() does. */
int sim_runs_fork(void);

/* Runs the schedules in one child. Returns false if one of them failed, which ended the child. */
bool sim_runs_pass(const struct sim_seeds *seeds);

/* Returns the seed that ran last; after a failure, the seed that failed. */
uint64_t sim_runs_seed(void);

/* Prints what all workers counted. Returns how much of it never happened although it is needed:
 * 0 if `needed` is false. */
unsigned sim_runs_print_counts(bool needed);

/* Returns true if some seeds give the same traces when they are run again. */
bool sim_runs_repeat(void);

#endif
