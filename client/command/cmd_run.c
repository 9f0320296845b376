/*
 * cmd_run.c - perseas run: runs a program that owns a store, on whichever host no other owner
 * lives.
 */
#include "command.h"
#include "run/runner.h"

enum ps_exit ps_verb_run_check(const struct ps_args *args)
{
	if (args->command)
		return PS_EXIT_OK;
	return ps_complain(PS_EXIT_USAGE,
	                   "which COMMAND? give it behind --, for example: perseas run %s "
	                   "m1:7170,m2:7170 -- /usr/bin/bank --port 80",
	                   args->store);
}

enum ps_exit ps_verb_run(const struct ps_args *args)
{
	struct perseas_options options = args->options;
	const struct ps_run run = {
		.store = args->store,
		.mirrors = args->mirrors,
		.name = args->name,
		.command = args->command,
		.options = &options,
		.order = args->order,
		.restarts = args->restarts,
		.stop_ms = args->stop_ms,
		.patience_ms = args->patience_ms,
	};

	options.warm = args->warm;
	/* This may be an exit status of COMMAND. */
	return (enum ps_exit)ps_runner_run(&run);
}
