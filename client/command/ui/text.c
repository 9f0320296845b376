/*
 * text.c - prints sentences, sizes and tables for people.
 */
#include "ui.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum ps_exit ps_complain(enum ps_exit status, const char *format, ...)
{
	va_list args;

	ps_bar_clear();
	fflush(stdout);
	fputs("perseas: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return status;
}

void ps_announce(bool json, const char *format, ...)
{
	FILE *out = json ? stderr : stdout;
	va_list args;

	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	fputc('\n', out);
	fflush(out);
}

enum ps_exit ps_library_complain(const perseas_t *p, int rc)
{
	const char *message = perseas_message(p);

	return ps_complain(ps_exit_of_code(rc), "%s", *message ? message : perseas_strerror(rc));
}

/* The switch has no default, so that the compiler reports a code that is missing. */
enum ps_exit ps_exit_of_code(int code)
{
	switch ((enum perseas_error)code) {
	case PERSEAS_OK:
		return PS_EXIT_OK;
	case PERSEAS_EINVAL:
		return PS_EXIT_USAGE;
	case PERSEAS_ENOSTORE:
	case PERSEAS_EEXIST:
	case PERSEAS_EBUSY:
	case PERSEAS_EFENCED:
	case PERSEAS_EQUORUM:
	case PERSEAS_EDAMAGED:
	case PERSEAS_EMIRRORMEM:
	case PERSEAS_ENOSEGMENT:
	case PERSEAS_ESIZE:
	case PERSEAS_EROSTER:
	case PERSEAS_EUNFINISHED:
	case PERSEAS_ELIMIT:
	case PERSEAS_EDENIED:
	case PERSEAS_EHEAP:
		return PS_EXIT_NO;
	case PERSEAS_ENOMEM:
	case PERSEAS_ESYSTEM:
	case PERSEAS_EUNREACHABLE:
	case PERSEAS_EPROTOCOL:
	case PERSEAS_EVERSION:
	case PERSEAS_EINDOUBT:
	case PERSEAS_EBLOCKED:
	case PERSEAS_EADDRESS:
	case PERSEAS_ERANGE:
	case PERSEAS_EUNPUBLISHED:
	case PERSEAS_ETOOBIG:
	case PERSEAS_EENDED:
	case PERSEAS_ECONFLICT:
	case PERSEAS_EUNDECLARED:
	case PERSEAS_ESALVAGE:
	case PERSEAS_ERDMA:
	case PERSEAS_ETLS:
	case PERSEAS_ETIMEOUT:
	case PERSEAS_ECANCELLED:
	case PERSEAS_EEPOCH:
	case PERSEAS_EAGAIN:
	case PERSEAS_EOBJECT:
		return PS_EXIT_FAILURE;
	}
	return PS_EXIT_FAILURE;
}

/* Prints the number in the first unit in which it is below `step` after rounding; the last unit is
 * followed by NULL. */
static void scale_text(char *text, size_t size, double scaled, double step,
                       const char *const *units)
{
	for (; scaled >= step - 0.05 && units[1]; units++)
		scaled /= step;
	snprintf(text, size, "%.1f %s", scaled, *units);
}

const char *ps_size_text(char text[PS_SIZE_TEXT], uint64_t size)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", NULL };

	if (size < 1024)
		snprintf(text, PS_SIZE_TEXT, "%u bytes", (unsigned)size);
	else
		scale_text(text, PS_SIZE_TEXT, (double)size / 1024, 1024, units);
	return text;
}

const char *ps_duration_text(char text[PS_DURATION_TEXT], uint64_t ns)
{
	static const char *const units[] = { "us", "ms", "s", NULL };

	if (ns < 1000)
		snprintf(text, PS_DURATION_TEXT, "%u ns", (unsigned)ns);
	else
		scale_text(text, PS_DURATION_TEXT, (double)ns / 1000, 1000, units);
	return text;
}

const char *ps_time_text(char text[PS_TIME_TEXT], uint64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	struct tm parts;
	size_t len = 0;

	if (gmtime_r(&seconds, &parts))
		len = strftime(text, PS_TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &parts);
	snprintf(text + len, PS_TIME_TEXT - len, ".%09uZ", (unsigned)(time_ns % 1000000000));
	return text;
}

const char *ps_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

unsigned ps_percent(uint64_t done, uint64_t total)
{
	return done >= total ? 100 : (unsigned)((double)done / (double)total * 100);
}

void *ps_exit_if_null(void *memory)
{
	if (!memory)
		exit(ps_complain(PS_EXIT_FAILURE, "out of memory"));
	return memory;
}

void ps_table_set_cell(struct ps_table *table, unsigned column, const char *format, ...)
{
	va_list args;
	char *cell;

	assert(column < PS_COLUMNS_MAX);
	if (column == 0) {
		table->cells = ps_exit_if_null(
			realloc(table->cells, (table->rows + 1) * sizeof(*table->cells)));
		memset(table->cells[table->rows], 0, sizeof(*table->cells));
		table->rows++;
	}
	va_start(args, format);
	if (vasprintf(&cell, format, args) < 0)
		cell = NULL;
	va_end(args);
	table->cells[table->rows - 1][column] = ps_exit_if_null(cell);
	if (column >= table->columns)
		table->columns = column + 1;
}

void ps_table_add_heads(struct ps_table *table, const char *heads)
{
	for (unsigned column = 0;; column++) {
		const size_t len = strcspn(heads, "|");

		ps_table_set_cell(table, column, "%.*s", (int)len, heads);
		if (!heads[len])
			return;
		heads += len + 1;
	}
}

void ps_table_set_number_cell(struct ps_table *table, unsigned column, bool known, uint64_t number)
{
	if (known)
		ps_table_set_cell(table, column, "%" PRIu64, number);
	else
		ps_table_set_cell(table, column, "-");
}

static const char *cell_text(const struct ps_table *table, unsigned row, unsigned column)
{
	const char *cell = table->cells[row][column];

	return cell ? cell : "";
}

void ps_table_print(struct ps_table *table, FILE *out)
{
	int widths[PS_COLUMNS_MAX] = { 0 };

	for (unsigned row = 0; row < table->rows; row++)
		for (unsigned column = 0; column < table->columns; column++) {
			int width = (int)strlen(cell_text(table, row, column));

			if (width > widths[column])
				widths[column] = width;
		}
	for (unsigned row = 0; row < table->rows; row++) {
		unsigned last = table->columns - 1;

		while (last > 0 && !*cell_text(table, row, last))
			last--;
		for (unsigned column = 0; column < last; column++)
			fprintf(out, "%-*s  ", widths[column], cell_text(table, row, column));
		fprintf(out, "%s\n", cell_text(table, row, last));
		for (unsigned column = 0; column < table->columns; column++)
			free(table->cells[row][column]);
	}
	free(table->cells);
	memset(table, 0, sizeof(*table));
}
