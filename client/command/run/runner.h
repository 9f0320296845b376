/*
 * runner.h - perseas run: waits as a standby until a store has no owner, starts COMMAND to own the
 * store, and waits for its end. cmd_run.c calls it. It never claims the store itself: COMMAND's
 * open does, and the mirrors refuse a wrong claim.
 */
#ifndef PERSEAS_COMMAND_RUNNER_H
#define PERSEAS_COMMAND_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

/* Exit statuses of perseas run itself; child.h has 126, 127 and above. */
enum ps_run_exit {
	PS_RUN_STOPPED = 0,     /* a signal ended it while it was a standby */
	PS_RUN_NO_STORE = 123,  /* the mirrors have no such store */
	PS_RUN_UNREACHED = 124, /* too few mirrors answer */
	PS_RUN_FAILED = 125,    /* the system refuses something */
};

/* The arguments of perseas run. */
struct ps_run {
	const char *store;
	const char *mirrors;
	const char *name;     /* name of the standby */
	char *const *command; /* ends with NULL */
	const struct perseas_options
		*options;     /* with warm: COMMAND inherits a copy of the memory */
	uint32_t order;       /* standbys with a lower order take over first */
	uint32_t restarts;    /* how often COMMAND is restarted in succession, at most */
	uint32_t stop_ms;     /* time from SIGTERM to SIGKILL */
	uint32_t patience_ms; /* time within which mirrors must answer at the start */
};

/* Runs until COMMAND has ended for good, or a signal ends it. Returns the exit status: one of the
 * above, or COMMAND's. */
int ps_runner_run(const struct ps_run *run);

#endif
