/*
 * options.c - command lines of the benchmarks.
 */
#include "options.h"
#include "../proto/base/number.h"

#include <errno.h>
#include <sched.h>
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

int program_fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
	return 2;
}

int program_refute(const char *what, const char *why)
{
	program_fail(what, why);
	return 1;
}

int cpu_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set);
}

int cpu_other(int cpu)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return cpu;
	for (int i = CPU_SETSIZE - 1; i >= 0; i--)
		if (i != cpu && CPU_ISSET((unsigned)i, &set))
			return i;
	return cpu;
}

int program_pin(uint64_t cpu)
{
	if (cpu != UINT64_MAX && cpu_pin((int)cpu))
		return program_fail("--cpu", strerror(errno));
	return 0;
}

bool list_next(const char **list, char word[LIST_WORD])
{
	size_t len;

	if (!*list)
		return false;
	len = strcspn(*list, ",");
	snprintf(word, LIST_WORD, "%.*s", (int)len, *list);
	*list = (*list)[len] ? *list + len + 1 : NULL;
	return true;
}

bool list_has(const char *list, const char *name)
{
	char word[LIST_WORD];

	while (list_next(&list, word))
		if (!strcmp(word, name))
			return true;
	return false;
}

unsigned list_numbers(const char *list, uint64_t high, unsigned most, uint64_t *numbers)
{
	char word[LIST_WORD];
	unsigned count = 0;

	while (list_next(&list, word)) {
		if (count == most || !ps_size_read(word, &numbers[count]) || !numbers[count] ||
		    numbers[count] > high)
			return 0;
		count++;
	}
	return count;
}
