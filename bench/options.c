/*
 * options.c - see options.h.
 */
#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void options_parse(int argc, char **argv, const char *about, const struct ps_option *rows,
                   unsigned count, void *into)
{
	const struct ps_options table = {
		.program = program_invocation_short_name,
		.rows = rows,
		.count = count,
	};
	char why[512];
	struct ps_reader reader = {
		.options = &table, .into = into, .why = why, .size = sizeof(why)
	};

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			printf("usage: %s [option]...\n\n%s\n", table.program, about);
			ps_options_help(&table, stdout, UINT_MAX);
			exit(0);
		}
	ps_options_preset(&table, into);
	if (ps_options_read(&reader, argc, argv) == 0)
		return;
	fprintf(stderr, "%s: %s\n", table.program, why);
	exit(2);
}
