/*
 * cmd_help.c - perseas help, and what --help prints.
 */
#include "options.h"

#include <string.h>

enum { STATUS_COLUMN = 5 };

static const struct {
	enum ps_exit status;
	const char *text;
} exits[] = {
#define EXIT_ROW(name, number, text) { name, text },
	PS_EXITS(EXIT_ROW)
#undef EXIT_ROW
};

static void print_exit_statuses(void)
{
	printf("Exit status:\n");
	for (unsigned i = 0; i < sizeof(exits) / sizeof(exits[0]); i++) {
		printf("  %d  ", (int)exits[i].status);
		ps_print_wrapped(stdout, exits[i].text, STATUS_COLUMN, STATUS_COLUMN);
	}
}

void ps_help_print(void)
{
	const struct ps_verb *verb;

	printf("perseas - transactional memory, mirrored on other nodes\n\nUsage:\n");
	for (verb = ps_verbs; verb->name; verb++)
		if (verb->summary)
			printf("  perseas %-8s %s\n", verb->name, verb->usage);
	printf("\nCommands (perseas COMMAND --help says more):\n");
	for (verb = ps_verbs; verb->name; verb++)
		if (verb->summary)
			printf("  %-9s %s\n", verb->name, verb->summary);
	printf("\nLIST is one or more mirrors, MIRROR is one. Each may be given as a word or by "
	       "--mirrors.\n"
	       "Without it LIST is PERSEAS_MIRRORS in the environment, or 127.0.0.1:" PS_PORT ".\n"
	       "\nOptions, anywhere on the line, as --name VALUE or --name=VALUE:\n");
	ps_options_help(&ps_command_options, stdout, PS_EVERY_VERB);
	printf("\n");
	print_exit_statuses();
}

void ps_help_print_verb(const struct ps_verb *verb)
{
	printf("Usage: perseas %s %s\n\n%s\nOptions, anywhere on the line:\n", verb->name,
	       verb->usage, verb->details);
	ps_options_help(&ps_command_options, stdout, verb->bit);
	printf("\n");
	print_exit_statuses();
}

enum ps_exit ps_verb_help(const struct ps_args *args)
{
	const struct ps_verb *verb = ps_verbs;

	if (!args->topic) {
		ps_help_print();
		return PS_EXIT_OK;
	}
	if (!strcmp(args->topic, "exit-codes")) {
		print_exit_statuses();
		return PS_EXIT_OK;
	}
	while (verb->name && strcmp(verb->name, args->topic) != 0)
		verb++;
	if (!verb->name)
		return ps_complain(PS_EXIT_USAGE,
		                   "there is no help on '%.40s'; perseas help lists "
		                   "the commands, and there is perseas help exit-codes",
		                   args->topic);
	ps_help_print_verb(verb);
	return PS_EXIT_OK;
}
