/*
 * main.c - the command `perseas`: creates, lists, inspects, recovers and verifies stores.
 */
#include "command.h"
#include "../perseas.h"

#include <errno.h>
#include <string.h>

static void help(void)
{
	const struct ps_verb *verb;

	printf("perseas - transactional memory, mirrored on other nodes\n\nUsage:\n");
	for (verb = ps_verbs; verb->name; verb++)
		printf("  perseas %-8s %s\n", verb->name, verb->usage);
	printf("\nCommands (perseas COMMAND --help says more):\n");
	for (verb = ps_verbs; verb->name; verb++)
		printf("  %-9s %s\n", verb->name, verb->summary);
	printf("\nOptions, anywhere on the line, as --name VALUE or --name=VALUE:\n");
	ps_args_help(stdout, PS_EVERY_VERB);
	printf("\n%s", ps_exit_help);
}

static void help_verb(const struct ps_verb *verb)
{
	printf("Usage: perseas %s %s\n\n%s\nOptions, anywhere on the line:\n", verb->name,
	       verb->usage,
	       verb->details);
	ps_args_help(stdout, verb->bit);
	printf("\n%s", ps_exit_help);
}

static enum ps_exit run(const struct ps_args *args)
{
	if (args->help && args->verb)
		help_verb(args->verb);
	else if (args->help)
		help();
	else if (args->version)
		printf("%s\n", perseas_version());
	else
		return args->verb->run(args);
	return PS_EXIT_OK;
}

int main(int argc, char **argv)
{
	struct ps_args args;
	enum ps_exit status = ps_args_parse(argc, argv, &args);

	if (status)
		return status;
	status = run(&args);
	if (fflush(stdout) || ferror(stdout))
		return ps_complain(PS_EXIT_FAILURE, "the output could not be written: %s",
		                   strerror(errno));
	return status;
}
