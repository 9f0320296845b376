/*
 * options.h - command lines of the benchmarks, read by options.c, and their error messages. Each
 * program has a `struct options` and a table of rows that describes it.
 */
#ifndef PERSEAS_BENCH_OPTIONS_H
#define PERSEAS_BENCH_OPTIONS_H

#include "../proto/base/options.h"

#define AT(member) PS_OPTION_AT(struct options, member)

/* Rows that several programs share, and the members of struct options that they need. */
/* clang-format off */

/* Needs `struct engine_options engine` (engine.h): how a store is created and its commits wait. */
#define ENGINE_OPTION_ROWS                                                                         \
	{ "acks", PS_OPTION_NUMBER, AT(engine.acks), "W",                                          \
	  .help = "W of a store that is made. Default: a majority." },                             \
	{ "log-size", PS_OPTION_SIZE, AT(engine.log_size), "BYTES",                                \
	  .help = "Log of a store that is made." },                                                \
	{ "spin-us", PS_OPTION_NUMBER, AT(engine.spin_us), "N",                                    \
	  .help = "Microseconds a commit spins before it sleeps. Default: 50." }

/* Needs `uint32_t round_ms` and `uint64_t rounds`, at most 101 (measure.h). */
#define ROUND_OPTION_ROWS                                                                          \
	{ "seconds", PS_OPTION_SECONDS, AT(round_ms), "S", "1", .help = "Length of a round." },    \
	ROUNDS_OPTION_ROW
#define ROUNDS_OPTION_ROW                                                                          \
	{ "rounds", PS_OPTION_NUMBER, AT(rounds), "N", "5", 1, 101, .help = "How many rounds." }

/* Needs `uint64_t cpu`, initialized with UINT64_MAX. */
#define CPU_OPTION_ROW                                                                             \
	{ "cpu", PS_OPTION_NUMBER, AT(cpu), "N", .high = 1023,                                     \
	  .help = "Pins this process to a processor." }

/* Needs `const char *fabric`. */
#define FABRIC_OPTION_ROW                                                                          \
	{ "fabric", PS_OPTION_TEXT, AT(fabric), "NAME",                                            \
	  .help = "Fails when a mirror is on another." }

/* Needs `bool json`. */
#define JSON_OPTION_ROW                                                                            \
	{ "json", PS_OPTION_FLAG, AT(json), .help = "Prints one JSON object." }
/* clang-format on */

/* Reads the command line into a struct options. Prints `about` and the table for `--help` and exits
 * with status 0. Prints an error on stderr and exits with status 2 if an argument is wrong. */
void options_parse(int argc, char **argv, const char *about, const struct ps_option *rows,
                   unsigned count, void *into);

/* Calls options_parse with the program's own `about`, `rows` and `options`. */
#define OPTIONS_PARSE(argc, argv) \
	options_parse(argc, argv, about, rows, sizeof(rows) / sizeof(rows[0]), &options)

/* Prints "program: what: why" on stderr. Returns 2, the status of a program that could not run. */
int program_fail(const char *what, const char *why);
/* Prints the same message. Returns 1, the status of a program whose check failed. */
int program_refute(const char *what, const char *why);

/* Pins this process to a processor, or to none if `cpu` is UINT64_MAX. Returns 0, or 2 after it
 * printed the reason. */
int program_pin(uint64_t cpu);

/* Pins the calling thread. Returns 0, or -1 with errno set. */
int cpu_pin(int cpu);
/* Returns a processor that this process may use, other than `cpu` if there is another. */
int cpu_other(int cpu);

enum { LIST_WORD = 96 };

/* Copies the next word of a comma-separated list. Returns false at the end of the list. */
bool list_next(const char **list, char word[LIST_WORD]);
bool list_has(const char *list, const char *name);
/* Parses a list of numbers from 1 to `high`, such as 8,4K,1M. Returns how many there are, or 0 if
 * one is invalid or there are more than `most`. */
unsigned list_numbers(const char *list, uint64_t high, unsigned most, uint64_t *numbers);

#endif
