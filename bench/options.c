/*
 * options.c - the command line of the benchmarks.
 */
#include "options.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void help(const char *program, const char *about, const struct option_row *rows)
{
	printf("usage: %s [option]...\n\n%s\n", program, about);
	for (const struct option_row *row = rows; row->name; row++)
		printf("  --%-14s %s\n", row->name, row->meaning);
	exit(0);
}

static void refuse(const char *program, const char *option, const char *why)
{
	fprintf(stderr, "%s: %s: %s (see --help)\n", program, option, why);
	exit(2);
}

static bool read_number(const char *text, uint64_t *number)
{
	static const char suffixes[] = "KMG";
	unsigned shift = 0;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*number = strtoull(text, &end, 0);
	if (*end) {
		const char *suffix = strchr(suffixes, *end);

		if (!suffix || end[1])
			return false;
		shift = 10 * (unsigned)(suffix - suffixes + 1);
	}
	if (errno || *number > UINT64_MAX >> shift)
		return false;
	*number <<= shift;
	return true;
}

static bool read_real(const char *text, double *number)
{
	char *end;

	*number = strtod(text, &end);
	return end != text && !*end && *number >= 0 && *number < 1e9;
}

static void set(const char *program, const struct option_row *row, const char *option,
                const char *value)
{
	switch (row->kind) {
	case OPTION_TEXT:
		*(const char **)row->value = value;
		break;
	case OPTION_NUMBER:
		if (!read_number(value, row->value))
			refuse(program, option, "takes a whole number, as 64 or 16M");
		break;
	case OPTION_REAL:
		if (!read_real(value, row->value))
			refuse(program, option, "takes a number, as 0.5");
		break;
	case OPTION_FLAG:
		*(bool *)row->value = true;
		break;
	}
}

static const struct option_row *find(const struct option_row *rows, const char *name, size_t len)
{
	for (; rows->name; rows++)
		if (strlen(rows->name) == len && !memcmp(rows->name, name, len))
			return rows;
	return NULL;
}

void options_parse(int argc, char **argv, const char *about, const struct option_row *rows)
{
	const char *slash = strrchr(argv[0], '/');
	const char *program = slash ? slash + 1 : argv[0];

	for (int i = 1; i < argc; i++) {
		const char *name = argv[i] + 2;
		const char *equals = strchr(argv[i], '=');
		const struct option_row *row;

		if (!strcmp(argv[i], "--help"))
			help(program, about, rows);
		if (strncmp(argv[i], "--", 2))
			refuse(program, argv[i], "is not an option");
		row = find(rows, name, equals ? (size_t)(equals - name) : strlen(name));
		if (!row)
			refuse(program, argv[i], "is not an option");
		if (row->kind == OPTION_FLAG) {
			if (equals)
				refuse(program, argv[i], "takes no value");
			set(program, row, argv[i], NULL);
		} else if (equals) {
			set(program, row, argv[i], equals + 1);
		} else if (i + 1 < argc) {
			set(program, row, argv[i], argv[i + 1]);
			i++;
		} else {
			refuse(program, argv[i], "takes a value");
		}
	}
}
