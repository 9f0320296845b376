/*
 * runner.h - perseas run: waits as a standby until a store has no owner, has COMMAND own it, and
 * sees what becomes of that. cmd_run.c calls it. It never claims the store itself: COMMAND's open
 * does, and the mirrors refuse what would be wrong.
 */
#ifndef PERSEAS_COMMAND_RUNNER_H
#define PERSEAS_COMMAND_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

/* The statuses with which perseas run ends by itself; child.h has 126, 127 and above. */
enum ps_run_exit {
	PS_RUN_STOPPED = 0,     /* it was told to, as a standby */
	PS_RUN_NO_STORE = 123,  /* the mirrors have no such store */
	PS_RUN_UNREACHED = 124, /* too few mirrors answer */
	PS_RUN_FAILED = 125,    /* the system refuses something */
};

struct ps_run {
	const char *store;
	const char *mirrors;
	const char *name;     /* as a standby; NULL: the host's */
	char *const *command; /* ends with NULL */
	const struct perseas_options
		*options; /* with warm: COMMAND inherits a copy of the memory */
	uint32_t order;
	uint32_t restarts;    /* in succession */
	uint32_t stop_ms;     /* from SIGTERM to SIGKILL */
	uint32_t patience_ms; /* until mirrors must have answered at the start */
};

/* The exit status: one of the above, or COMMAND's. */
int ps_runner_run(const struct ps_run *run);

#endif
