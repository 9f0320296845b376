/*
 * main.c - the command `perseas`: creates, lists, inspects, recovers and verifies stores.
 */
#include "command.h"
#include "../perseas.h"
#include "../../proto/base/standard_streams.h"

#include <errno.h>
#include <string.h>

static enum ps_exit verb_run(const struct ps_args *args)
{
	if (args->help && args->verb)
		ps_help_print_verb(args->verb);
	else if (args->help)
		ps_help_print();
	else if (args->version)
		printf("%s\n", perseas_version());
	else
		return args->verb->run(args);
	return PS_EXIT_OK;
}

int main(int argc, char **argv)
{
	struct ps_args args;
	enum ps_exit status;

	if (ps_standard_fds_fill())
		return ps_complain(PS_EXIT_FAILURE,
		                   "a standard stream is closed, and /dev/null cannot be opened in "
		                   "its place: start perseas with all three open");
	status = ps_args_parse(argc, argv, &args);
	if (status)
		return status;
	status = verb_run(&args);
	if (fflush(stdout) || ferror(stdout))
		return ps_complain(PS_EXIT_FAILURE, "the output could not be written: %s",
		                   strerror(errno));
	return status;
}
