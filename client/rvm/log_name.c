/*
 * log_name.c - parses the name of a log (log_name.h). perseas_open checks the store and the
 * mirrors.
 */
#include "log_name.h"

#include "fail.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SCHEME "perseas:"
#define EXAMPLE "perseas:bank@node1:7170,node2:7170"

static rvm_return_t parse_name(const char *name, struct ps_rvm_parsed_log *place)
{
	const char *store = name + strlen(SCHEME), *at = strchr(store, '@');
	const size_t length = at ? (size_t)(at - store) : 0;

	if (!length || !at[1])
		return ps_rvm_fail(RVM_ELOG,
		                   "the log '%s' names no store, or no mirrors: write it as "
		                   "'%s'",
		                   name, EXAMPLE);
	if (length >= sizeof(place->store) || strlen(at + 1) >= sizeof(place->mirrors))
		return ps_rvm_fail(RVM_ENAME_TOO_LONG,
		                   "the log's store has a name of more than %zu bytes, or a list "
		                   "of mirrors of more than %zu",
		                   sizeof(place->store) - 1, sizeof(place->mirrors) - 1);
	memcpy(place->store, store, length);
	place->store[length] = '\0';
	strcpy(place->mirrors, at + 1);
	return RVM_SUCCESS;
}

/* Reads the first line that is neither empty nor a comment, and trims it. Returns false if the file
 * has none. */
static bool read_first_line(FILE *file, char *line, int size)
{
	char *end;

	while (fgets(line, size, file)) {
		size_t blank = strspn(line, " \t");

		memmove(line, line + blank, strlen(line + blank) + 1);
		end = line + strlen(line);
		while (end > line && strchr(" \t\r\n", end[-1]))
			*--end = '\0';
		if (*line && *line != '#')
			return true;
	}
	return false;
}

rvm_return_t ps_rvm_parse_log_name(const char *log_dev, struct ps_rvm_parsed_log *place)
{
	char line[MAXPATHLEN + 256];
	bool found;
	FILE *file;

	if (strlen(log_dev) >= MAXPATHLEN)
		return ps_rvm_fail(RVM_ENAME_TOO_LONG, "the log's name has more than %d bytes",
		                   MAXPATHLEN - 1);
	if (!strncmp(log_dev, SCHEME, strlen(SCHEME)))
		return parse_name(log_dev, place);
	file = fopen(log_dev, "re");
	if (!file)
		return ps_rvm_fail(RVM_ELOG,
		                   "the log '%s' cannot be read (%s): a log is named as '%s', or "
		                   "by a file with such a line",
		                   log_dev, strerror(errno), EXAMPLE);
	found = read_first_line(file, line, sizeof(line));
	fclose(file);
	if (!found || strncmp(line, SCHEME, strlen(SCHEME)) != 0)
		return ps_rvm_fail(RVM_ELOG,
		                   "the first line of file '%s' names no log: write it as '%s'",
		                   log_dev, EXAMPLE);
	return parse_name(line, place);
}
