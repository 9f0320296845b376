/*
 * options.h - the command lines of the benchmarks, read by options.c, and how they say what is
 * wrong. Each program has its options in a `struct options`, and a table of rows for it.
 */
#ifndef PERSEAS_BENCH_OPTIONS_H
#define PERSEAS_BENCH_OPTIONS_H

#include "../proto/base/options.h"

#define AT(member) PS_OPTION_AT(struct options, member)

/* Rows that several programs have, and the members that they are of. */
/* clang-format off */

/* struct engine_options engine (engine.h): a store that is made, and how its commits wait. */
#define ENGINE_OPTION_ROWS                                                                         \
	{ "acks", PS_OPTION_NUMBER, AT(engine.acks), "W",                                          \
	  .help = "W of a store that is made. Default: a majority." },                             \
	{ "log-size", PS_OPTION_SIZE, AT(engine.log_size), "BYTES",                                \
	  .help = "Log of a store that is made." },                                                \
	{ "spin-us", PS_OPTION_NUMBER, AT(engine.spin_us), "N",                                    \
	  .help = "Microseconds a commit spins before it sleeps. Default: 50." }

/* uint32_t round_ms and uint64_t rounds, 101 at most (measure.h). */
#define ROUND_OPTION_ROWS                                                                          \
	{ "seconds", PS_OPTION_SECONDS, AT(round_ms), "S", "1", .help = "Length of a round." },    \
	ROUNDS_OPTION_ROW
#define ROUNDS_OPTION_ROW                                                                          \
	{ "rounds", PS_OPTION_NUMBER, AT(rounds), "N", "5", 1, 101, .help = "How many rounds." }

/* uint64_t cpu, UINT64_MAX at first. */
#define CPU_OPTION_ROW                                                                             \
	{ "cpu", PS_OPTION_NUMBER, AT(cpu), "N", .high = 1023,                                     \
	  .help = "Pins this process to a processor." }

/* const char *fabric. */
#define FABRIC_OPTION_ROW                                                                          \
	{ "fabric", PS_OPTION_TEXT, AT(fabric), "NAME",                                            \
	  .help = "Fails when a mirror is on another." }

/* bool json. */
#define JSON_OPTION_ROW                                                                            \
	{ "json", PS_OPTION_FLAG, AT(json), .help = "Prints one JSON object." }
/* clang-format on */

/* Reads the command line into a struct options. `--help` prints `about` and the table, and exits
 * with 0; what is wrong is said on stderr, and ends the program with status 2. */
void options_parse(int argc, char **argv, const char *about, const struct ps_option *rows,
                   unsigned count, void *into);

/* The same, by the program's own `about`, `rows` and `options`. */
#define OPTIONS_PARSE(argc, argv) \
	options_parse(argc, argv, about, rows, sizeof(rows) / sizeof(rows[0]), &options)

/* Says on stderr what is wrong with what. Returns 2: the program could not run. */
int program_fail(const char *what, const char *why);
/* The same. Returns 1: a check found something wrong. */
int program_refute(const char *what, const char *why);

/* Pins this process to a processor; UINT64_MAX: to none. 0, or 2 and says why not. */
int program_pin(uint64_t cpu);

/* Pins the calling thread. 0 or -1 with errno. */
int cpu_pin(int cpu);
/* A processor that this process may use, other than `cpu` when there is one. */
int cpu_other(int cpu);

enum { LIST_WORD = 96 };

/* Takes the next word from a list that has commas. False: there is none. */
bool list_next(const char **list, char word[LIST_WORD]);
bool list_has(const char *list, const char *name);
/* Numbers from 1 to `high`, as 8,4K,1M. How many; 0: it is no list of up to `most` of these. */
unsigned list_numbers(const char *list, uint64_t high, unsigned most, uint64_t *numbers);

#endif
