/*
 * cmd_run.c - perseas run: runs a program that owns a store, on whichever host no other owner
 * lives.
 */
#include "command.h"
#include "run/runner.h"
#include "../../proto/control/envelope.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum ps_exit ps_verb_run_check(const struct ps_args *args)
{
	if (args->command)
		return PS_EXIT_OK;
	return ps_complain(PS_EXIT_USAGE,
	                   "which COMMAND? give it behind --, for example: perseas run %s "
	                   "m1:7170,m2:7170 -- /usr/bin/bank --port 80",
	                   args->store);
}

/* Sets the standby's name: the given one or the host's, with a dash for each character that a
 * standby's name may not have. */
static void name_standby(char name[PS_NAME_MAX + 1], const char *given)
{
	snprintf(name, PS_NAME_MAX + 1, "%s", given ? given : "");
	if (!given && gethostname(name, PS_NAME_MAX + 1) < 0)
		*name = '\0';
	name[PS_NAME_MAX] = '\0';
	for (char *at = name; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("._-", *at))
			*at = '-';
	if (!ps_name_valid(name))
		name[0] = '-';
}

enum ps_exit ps_verb_run(const struct ps_args *args)
{
	char name[PS_NAME_MAX + 1];
	struct perseas_options options = args->options;
	const struct ps_run run = {
		.store = args->store,
		.mirrors = args->mirrors,
		.name = name,
		.command = args->command,
		.options = &options,
		.order = args->order,
		.restarts = args->restarts,
		.stop_ms = args->stop_ms,
		.patience_ms = args->patience_ms,
	};

	name_standby(name, args->name);
	options.warm = args->warm;
	/* This may be an exit status of COMMAND. */
	return (enum ps_exit)ps_runner_run(&run);
}
