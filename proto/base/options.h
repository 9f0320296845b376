/*
 * options.h - command-line options as rows of a table: the name, type, range and default of an
 * option, the member that its value is stored in, and its help. The daemon, the command and the
 * benchmarks each have one table. Parsing, range errors, suggestions for misspelt names, --help,
 * shell completion and manual pages all come from the rows.
 *
 * The program itself checks which options may be combined. getopt_long() is not used, because it
 * accepts abbreviations, which a new option can make ambiguous, keeps its state in globals, and
 * does not say which values are valid.
 */
#ifndef PERSEAS_PROTO_OPTIONS_H
#define PERSEAS_PROTO_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum ps_option_type {
	PS_OPTION_FLAG,    /* bool: set to true if the option is given; takes no value */
	PS_OPTION_TEXT,    /* const char *: points to the argument; not empty */
	PS_OPTION_PATH,    /* char [PATH_MAX]: a copy of the argument; not empty */
	PS_OPTION_NUMBER,  /* an unsigned integer of 1, 4 or 8 bytes */
	PS_OPTION_SIZE,    /* a number of bytes; the suffixes K, M, G and T are powers of 1024 */
	PS_OPTION_SECONDS, /* a number of milliseconds; written as seconds with up to 3 decimals */
	PS_OPTION_CHOICE,  /* an unsigned integer, enum or bool: the value's index in `choices` */
	PS_OPTION_OWN,     /* any member: `set` parses the value */
};

struct ps_option {
	const char *name; /* without the leading dashes */
	enum ps_option_type type;
	size_t at, width;        /* offset and size of the member: PS_OPTION_AT() */
	const char *placeholder; /* stands for the value in --help; NULL if the option takes none */
	/* The default, as a user would write it; NULL leaves the member unchanged. */
	const char *default_text;
	uint64_t low, high;   /* range in the member's unit; high 0: all that the member can hold */
	const char *unit;     /* unit of a number, such as "milliseconds", or NULL */
	const char *choices;  /* the valid values of a CHOICE: "off|on" */
	const char *must;     /* describes the valid values; NULL derives it from the type */
	const char *variable; /* environment variable that gives a TEXT its default */
	bool (*set)(void *into, const char *value); /* returns false if the value is not valid */
	/* The groups of options to which this one belongs, as a bit mask: the program gives each
	 * bit a meaning, such as a command that takes the option. 0: every group. */
	unsigned groups;
	/* Short form of a flag, such as 'h' for -h; 0: none. */
	char letter;
	const char *help; /* sentences; --help appends the default */
};

#define PS_OPTION_AT(type, member) offsetof(type, member), sizeof(((type *)0)->member)

struct ps_options {
	const char *program; /* name of the program, for error sentences */
	const struct ps_option *rows;
	unsigned count;       /* number of rows; at most 64, the bits of ps_reader.given */
	bool refuses_repeats; /* an option given twice is an error; else the last value counts */
};

/* The state of parsing, with its results. */
struct ps_reader {
	const struct ps_options *options;
	void *into; /* the struct that has the rows' members */
	char *why;  /* buffer of `size` bytes for the error sentence */
	size_t size;
	uint64_t given; /* bit i is set if row i was given */
	/* Takes an argument that is not an option. Returns 0, or -1 with `why` filled in. NULL if
	 * the program takes no such arguments. */
	int (*take_word)(struct ps_reader *reader, const char *word);
	/* Takes all arguments after `--`, ended by NULL. If it is NULL or returns false, these
	 * arguments are passed to take_word. */
	bool (*take_rest)(struct ps_reader *reader, char *const *rest);
};

/* Formats an error sentence into reader->why. Returns -1. */
int ps_reader_fail(struct ps_reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Sets every member that has a default to it. */
void ps_options_preset(const struct ps_options *options, void *into);
/* Parses a command line: --name VALUE, --name=VALUE, --flag, -h, and words between them. If the
 * program takes words, all arguments after `--` are words. Returns 0, or -1 with `why` filled in;
 * options before the faulty one are stored. */
int ps_options_read(struct ps_reader *reader, int argc, char *const *argv);
/* Parses a line "name value" of a configuration file, which may set options of `groups` only.
 * Returns 0, or -1 with `why` filled in. */
int ps_options_read_line(struct ps_reader *reader, unsigned groups, const char *name,
                         const char *value);
/* Sets each PS_OPTION_TEXT member that is still NULL from its environment variable, unless the
 * variable is empty. */
void ps_options_read_environment(const struct ps_options *options, void *into);

/* Prints a paragraph of help for each option that is in one of the groups. */
void ps_options_help(const struct ps_options *options, FILE *out, unsigned groups);

enum { PS_HELP_COLUMN = 28 };

/* Prints words in lines of at most 78 columns. The first word goes to column `at`; later lines are
 * indented to `column`. A newline in the text breaks the line, and spaces after it indent the next
 * one. */
void ps_print_wrapped(FILE *out, const char *text, unsigned at, unsigned column);

/* Returns true if `word` is probably a misspelling or an abbreviation of `name`. */
bool ps_is_spelled_like(const char *word, const char *name);

#endif
