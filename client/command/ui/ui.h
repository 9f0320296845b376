/*
 * ui.h - how the command speaks to people, and how it ends: exit statuses, complaints, sizes and
 * times in words, tables, the progress bar, and signals that say to stop. All of the command calls
 * it. It must know nothing of stores and mirrors.
 */
#ifndef PERSEAS_COMMAND_UI_H
#define PERSEAS_COMMAND_UI_H

#include "../../perseas.h"
#include "../../../proto/base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses of all verbs, with the text of --help and the manual. */
#define PS_EXITS(X)                                                                                \
	X(PS_EXIT_OK, 0, "done, or the answer is yes")                                             \
	X(PS_EXIT_NO, 1,                                                                           \
	  "the answer is no: there is no such store, the mirrors differ, a check fails, or it is " \
	  "refused (a live owner, no quorum, a name that is taken, no room, no --yes)")            \
	X(PS_EXIT_USAGE, 2, "the command line is wrong")                                           \
	X(PS_EXIT_PARTLY, 3,                                                                       \
	  "there is an answer, but not from all mirrors, or it is not conclusive")                 \
	X(PS_EXIT_FAILURE, 4, "the system, the network or a mirror failed")

enum ps_exit {
#define PS_EXIT_ENUM(name, number, text) name = (number),
	PS_EXITS(PS_EXIT_ENUM)
#undef PS_EXIT_ENUM
};

/* --- text.c --- */

/* Prints "perseas: " and the sentence on stderr. Returns `status`. */
enum ps_exit ps_complain(enum ps_exit status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints the sentence before something that may take long: on stderr with --json, else on
 * stdout. */
void ps_announce(bool json, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Complains with the last message of the handle (NULL: of the last open or create). Returns the
 * exit status for rc. */
enum ps_exit ps_library_complain(const perseas_t *p, int rc);

/* Returns the exit status for this PERSEAS_E… code of the library. */
enum ps_exit ps_exit_of_code(int code);

/* Returns "" for 1, and "s" for all other counts. */
const char *ps_plural(uint64_t count);

/* Returns how many percent of `total` are done: 0 to 100. */
unsigned ps_percent(uint64_t done, uint64_t total);

/* Returns memory. If it is NULL, ends the process with PS_EXIT_FAILURE. */
void *ps_exit_if_null(void *memory);

enum { PS_SIZE_TEXT = 24 };

/* Writes a size as "17.3 MiB", or "512 bytes". Returns text. */
const char *ps_size_text(char text[PS_SIZE_TEXT], uint64_t size);

enum { PS_DURATION_TEXT = 32 };

/* Writes a duration as "350 ns", "14.2 us", "3.1 ms" or "5.0 s". Returns text. */
const char *ps_duration_text(char text[PS_DURATION_TEXT], uint64_t ns);

enum { PS_TIME_TEXT = 40 };

/* Writes nanoseconds since 1970 as "2026-03-01T12:00:00.123456789Z". Returns text. */
const char *ps_time_text(char text[PS_TIME_TEXT], uint64_t time_ns);

/* A table whose columns are as wide as their cells. */
enum { PS_COLUMNS_MAX = 9 };

struct ps_table {
	unsigned columns;
	unsigned rows;
	char *(*cells)[PS_COLUMNS_MAX];
};

/* Sets a cell of the last row; column 0 begins a new row. Out of memory ends the process, with
 * PS_EXIT_FAILURE. */
void ps_table_set_cell(struct ps_table *table, unsigned column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds a row of column heads, which are separated by bars in `heads`: "MIRROR|STATE". */
void ps_table_add_heads(struct ps_table *table, const char *heads);

/* Sets a cell to a number, or to "-" if the number is not known. */
void ps_table_set_number_cell(struct ps_table *table, unsigned column, bool known, uint64_t number);

/* Prints the table, and frees it. */
void ps_table_print(struct ps_table *table, FILE *out);

/* --- bar.c --- */

/* Shows on stderr how far the operation `what` is: as a progress bar on a terminal, else as a line
 * every 30 s. */
void ps_bar_show(const char *what, uint64_t done, uint64_t total);

/* From now on, ps_bar_show also shows the copies that the library makes. */
void ps_bar_show_library_copies(void);
/* Does what ps_bar_show does, with the time given (by ps_monotonic). */
void ps_bar_show_at(const char *what, uint64_t done, uint64_t total, uint64_t now_ns);
/* Clears the bar, so that the next output begins on a line of its own. */
void ps_bar_clear(void);

/* --- stop.c --- */
/* From now on, SIGINT, SIGTERM and SIGHUP do not end the process, but make ps_stop_requested()
 * return true. */
void ps_stop_catch(void);
bool ps_stop_requested(void);

/* Sleeps for `ms`, or until a caught signal arrives. */
void ps_stop_pause(uint32_t ms);

#endif
