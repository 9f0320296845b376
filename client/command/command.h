/*
 * command.h - the command `perseas`: its verbs, what it is told, how it ends.
 */
#ifndef PERSEAS_COMMAND_COMMAND_H
#define PERSEAS_COMMAND_COMMAND_H

#include "../core/address.h"
#include "../perseas.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The exit status, the same for every verb, and what --help, the manual and the README say of
 * it. */
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

struct ps_verb;
struct ps_roster_action;

enum { PS_WORDS_MAX = 6, PS_SIZES_MAX = 16 };

/* The command line. Text points into argv; NULL and 0: not given. */
struct ps_args {
	const struct ps_verb *verb;
	const char *store;
	const char *mirrors;
	const char *words[PS_WORDS_MAX]; /* behind the verb, as they stand */
	const char *topic;               /* help: of what; completion: for which shell */
	uint32_t sizes[PS_SIZES_MAX];    /* bench: bytes of a transaction */
	unsigned size_count;             /* never 0 once it is parsed */
	uint32_t threads;                /* the same */
	uint32_t run_ms;                 /* the same: each size takes so long */
	const char *memory_dir;          /* never NULL once it is parsed */
	unsigned word_count;
	const char *file;                      /* a snapshot */
	const char *from;                      /* one mirror */
	const char *check;                     /* a snapshot */
	const struct ps_roster_action *action; /* roster: NULL: shows it */
	struct ps_address members[2];          /* roster: that come or go */
	unsigned member_count;
	const char *segment;
	uint64_t offset, length; /* within the segment; length 0: not given */
	uint64_t last;           /* 0: not given */
	uint64_t seq;            /* the same */
	const char *to;          /* directory or file */
	const char *onto;        /* list of mirrors */
	const char *as;
	struct perseas_options options; /* what the library is told */
	uint32_t wait_ms;               /* never 0 once it is parsed */
	uint32_t repeat_ms;             /* 0: once */
	uint32_t interval_ms;           /* never 0 once it is parsed */
	bool once;
	bool json;
	bool bytes;
	bool yes;
	bool gone;
	bool takeover;
	bool help;
	bool version;
};

enum ps_verb_bit {
	PS_CREATE = 1,
	PS_STATUS = 2,
	PS_LS = 4,
	PS_RECOVER = 8,
	PS_VERIFY = 16,
	PS_SNAPSHOT = 32,
	PS_RESTORE = 64,
	PS_HISTORY = 128,
	PS_ROSTER = 256,
	PS_DROP = 512,
	PS_SPILL = 1024,
	PS_HELP = 2048,
	PS_DOCTOR = 4096,
	PS_BENCH = 8192,
	PS_COMPLETION = 16384,
	PS_TOP = 32768,
	PS_EVERY_VERB = 65535,
	/* Those that speak with mirrors. */
	PS_ASKING_VERBS = PS_EVERY_VERB & ~(PS_HELP | PS_COMPLETION),
};

struct ps_verb {
	const char *name;
	enum ps_verb_bit bit;
	/* What its words are, in their order: s a store, m mirrors (unless --mirrors has them), f a
	 * file, c a change of the roster (may be left out), a an address, t a topic,
	 * S a shell. */
	const char *words;
	/* Of s, m, f: what must have been given. M: mirrors, which are PERSEAS_MIRRORS or the
	 * daemon of this host unless they were. */
	const char *needs;
	const char *usage;   /* its command line behind its name */
	const char *summary; /* half a sentence; NULL: --help does not list it */
	const char *details; /* paragraphs for --help */
	/* What its options must be together; 0, or PS_EXIT_USAGE with a complaint. May be NULL. */
	enum ps_exit (*check)(const struct ps_args *args);
	enum ps_exit (*run)(const struct ps_args *args);
};

extern const struct ps_verb ps_verbs[]; /* ends with a name of NULL */

enum ps_exit ps_verb_create(const struct ps_args *args);
enum ps_exit ps_verb_status(const struct ps_args *args);
enum ps_exit ps_verb_ls(const struct ps_args *args);
enum ps_exit ps_verb_recover(const struct ps_args *args);
enum ps_exit ps_verb_verify(const struct ps_args *args);
enum ps_exit ps_verb_snapshot(const struct ps_args *args);
enum ps_exit ps_verb_restore(const struct ps_args *args);
enum ps_exit ps_verb_history(const struct ps_args *args);
enum ps_exit ps_verb_roster(const struct ps_args *args);
enum ps_exit ps_verb_drop(const struct ps_args *args);
enum ps_exit ps_verb_spill(const struct ps_args *args);
enum ps_exit ps_verb_top(const struct ps_args *args);
enum ps_exit ps_verb_bench(const struct ps_args *args);
enum ps_exit ps_verb_doctor(const struct ps_args *args);
enum ps_exit ps_verb_completion(const struct ps_args *args);
enum ps_exit ps_verb_help(const struct ps_args *args);
enum ps_exit ps_check_recover(const struct ps_args *args);
enum ps_exit ps_check_snapshot(const struct ps_args *args);
enum ps_exit ps_check_history(const struct ps_args *args);
enum ps_exit ps_check_doctor(const struct ps_args *args);
enum ps_exit ps_check_roster(const struct ps_args *args);

/* cmd_roster.c: add, remove or replace; NULL: the word is none of these. */
const struct ps_roster_action *ps_roster_action(const char *word);

/* stop.c: from now on SIGINT and SIGTERM are only noted. */
void ps_stop_catch(void);
bool ps_stopped(void);

/* args.c: 0, or PS_EXIT_USAGE with a complaint. verb may be NULL where help or version is asked
 * for. */
enum ps_exit ps_args_parse(int argc, char **argv, struct ps_args *args);

/* cmd_help.c: what --help prints, without a verb and with one. */
void ps_help(void);
void ps_help_verb(const struct ps_verb *verb);

/* text.c */

/* "perseas: " and the sentence on stderr. Returns `status`. */
enum ps_exit ps_complain(enum ps_exit status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* How the command ends after this PERSEAS_E… code of the library. */
enum ps_exit ps_exit_of(int code);

enum { PS_SIZE_TEXT = 24 };

/* "17.3 MiB", or "512 bytes". Returns text. */
const char *ps_size_text(char text[PS_SIZE_TEXT], uint64_t size);

enum { PS_TIME_TEXT = 40 };

/* "2026-03-01T12:00:00.123456789Z", of nanoseconds since 1970. Returns text. */
const char *ps_time_text(char text[PS_TIME_TEXT], uint64_t time_ns);

enum { PS_HEX_TEXT = 33 };

/* 16 bytes as 32 digits. Returns text. */
const char *ps_hex_text(char text[PS_HEX_TEXT], const uint8_t *id);

/* Lines of cells, printed in columns that fit. */
enum { PS_COLUMNS_MAX = 8 };

struct ps_table {
	unsigned columns;
	unsigned rows;
	char *(*cells)[PS_COLUMNS_MAX];
};

/* The next cell, printf-like; a row is full with `columns` of them. Out of memory ends the
 * process, with PS_EXIT_FAILURE. */
void ps_table_cell(struct ps_table *table, unsigned column, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void ps_table_print(struct ps_table *table, FILE *out); /* and frees it */

/* bar.c: a progress bar on stderr, where that is a terminal and the work is long. */

/* From now on the library's copies are shown. */
void ps_bar_start(void);
void ps_bar_show(const char *what, uint64_t done, uint64_t total);
/* Wipes it, so that what is printed next stands on a line of its own. */
void ps_bar_clear(void);

#endif
