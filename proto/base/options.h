/*
 * options.h - the options of a program as rows of a table: what an option is called, what its value
 * may be, where that goes, and what --help says of it. The daemon, the command and the benchmarks
 * each have one table, and get parsing, range errors, hints at misspelt names and --help from it;
 * completion and manual pages are made of the same rows.
 *
 * What options must be together is the program's to check. getopt_long() is not beneath this: it
 * takes abbreviations, which the next option can make ambiguous, it keeps its place in globals, and
 * its errors do not say what a value must be.
 */
#ifndef PERSEAS_PROTO_OPTIONS_H
#define PERSEAS_PROTO_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum ps_option_type {
	PS_OPTION_FLAG,    /* bool: it is given; there is no value */
	PS_OPTION_TEXT,    /* const char *: the value, where it stands; not empty */
	PS_OPTION_PATH,    /* char [PATH_MAX]: a copy; not empty */
	PS_OPTION_NUMBER,  /* an unsigned integer of any width */
	PS_OPTION_SIZE,    /* the same in bytes; K, M, G and T are powers of 1024 */
	PS_OPTION_SECONDS, /* the same in milliseconds; written as seconds, with 3 decimals */
	PS_OPTION_CHOICE,  /* an unsigned integer, enum or bool: the value's place in `choices` */
	PS_OPTION_OWN,     /* whatever `set` makes of it */
};

struct ps_option {
	const char *name; /* without the dashes */
	enum ps_option_type type;
	size_t at, width;     /* where the value goes in the program's struct: PS_OPTION_AT */
	const char *value;    /* what --help calls the value; NULL: there is none */
	const char *usual;    /* the default, written as a value; NULL: the member stays as it is */
	uint64_t low, high;   /* of a number, in the member's unit; high 0: what the member holds */
	const char *unit;     /* that a number counts: "milliseconds"; NULL: it is a bare number */
	const char *choices;  /* "off|on" */
	const char *must;     /* what the value must be; NULL: what follows from the type */
	const char *variable; /* of the environment: what a TEXT is that nothing was said of */
	bool (*set)(void *into, const char *value); /* false: it is not what it must be */
	unsigned groups;                            /* bits, the program's own; 0: all */
	char letter;                                /* -h: the short form of a flag; 0: none */
	const char *help;                           /* sentences; the default is told after them */
};

#define PS_OPTION_AT(type, member) offsetof(type, member), sizeof(((type *)0)->member)

struct ps_options {
	const char *program;
	const struct ps_option *rows;
	unsigned count; /* 64 at most */
	bool once;      /* to give a value twice is an error; else the last one counts */
};

/* What is being read, and what came of it. */
struct ps_reader {
	const struct ps_options *options;
	void *into; /* the struct that the rows' members are in */
	char *why;  /* why something failed, in `size` bytes */
	size_t size;
	uint64_t given; /* a bit for each row */
	/* Takes a word that is no option: 0, or -1 with `why`. NULL: there may be none. */
	int (*word)(struct ps_reader *reader, const char *word);
	/* Takes all that is behind `--`, which ends with NULL. False, or NULL: these are words. */
	bool (*rest)(struct ps_reader *reader, char *const *rest);
};

/* Puts the sentence in reader->why. Returns -1. */
int ps_reader_wrong(struct ps_reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Gives all members their defaults, where there are some. */
void ps_options_preset(const struct ps_options *options, void *into);
/*
 * Reads a command line: --name VALUE, --name=VALUE, --flag, -h, and words in between. What is
 * behind `--` are words, where there may be some. 0, or -1 with `why`; what came before is set.
 */
int ps_options_read(struct ps_reader *reader, int argc, char *const *argv);
/* Reads a line "name value" of a file; only rows of one of the groups may stand there. */
int ps_options_read_line(struct ps_reader *reader, unsigned groups, const char *name,
                         const char *value);
/* Takes from the environment what is still NULL, and has a variable that is not empty. */
void ps_options_read_environment(const struct ps_options *options, void *into);

/* Prints a paragraph for each row of one of the groups. */
void ps_options_help(const struct ps_options *options, FILE *out, unsigned groups);

enum { PS_HELP_COLUMN = 28 };

/* Fills lines of 78 columns with words, from column `at` on; later lines begin at `column`. A
 * newline of the text ends a line, and the spaces behind it indent the next one. */
void ps_fill(FILE *out, const char *text, unsigned at, unsigned column);

/* Is the word so like the name that it may be meant? */
bool ps_spelt_like(const char *word, const char *name);

#endif
