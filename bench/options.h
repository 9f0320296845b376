/*
 * options.h - long options from a table, and the help that comes with it.
 */
#ifndef PERSEAS_BENCH_OPTIONS_H
#define PERSEAS_BENCH_OPTIONS_H

enum option_kind {
	OPTION_TEXT,   /* const char * */
	OPTION_NUMBER, /* uint64_t; K, M and G multiply by powers of 1024 */
	OPTION_REAL,   /* double, 0 or more */
	OPTION_FLAG,   /* bool; takes no value */
};

struct option_row {
	const char *name; /* without the dashes; NULL ends the table */
	enum option_kind kind;
	void *value;         /* set when the option is given, else left as it is */
	const char *meaning; /* "NAME  what it does" or "what it does" */
};

/*
 * Rows that several programs have in their tables, each with the variables that they set.
 *
 * Of a struct engine_options (engine.h): a store that is made, and how its commits wait.
 */
/* clang-format off */
#define ENGINE_OPTION_ROWS(engine)                                                                 \
	{ "acks", OPTION_NUMBER, &(engine).acks, "W  of a store that is made (majority)" },        \
	{ "log-size", OPTION_NUMBER, &(engine).log_size, "BYTES  of a store that is made" },       \
	{ "spin-us", OPTION_NUMBER, &(engine).spin_us,                                             \
	  "N  microseconds a commit spins before it sleeps (50)" }

/* A double that is 1 at first, and a uint64_t that is 5. */
#define ROUND_OPTION_ROWS(seconds, rounds)                                                         \
	{ "seconds", OPTION_REAL, &(seconds), "S  a round (1)" },                                  \
	{ "rounds", OPTION_NUMBER, &(rounds), "N  (5)" }
/* clang-format on */

/*
 * Reads the command line. `--help` prints `about` and the table, and exits with 0; what
 * is not understood is named on stderr, and ends the program with status 2.
 */
void options_parse(int argc, char **argv, const char *about, const struct option_row *rows);

#endif
