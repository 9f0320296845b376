/*
 * command.h - the verbs of the command `perseas`. commands.c has their table, main.c runs one, and
 * each cmd_NAME.c implements one. No folder below may include it.
 */
#ifndef PERSEAS_COMMAND_COMMAND_H
#define PERSEAS_COMMAND_COMMAND_H

#include "ui/args.h"

/* A bit for each verb, by which the rows of options.c name the verbs that take them. */
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
	PS_RUN = 65536,
	PS_MOVE = 131072,
	PS_HEAP = 262144,
	PS_PLACE = 524288,
	PS_DRAIN = 1048576,
	PS_EVERY_VERB = 2097151,
	/* Verbs that talk to mirrors. */
	PS_ASKING_VERBS = PS_EVERY_VERB & ~(PS_HELP | PS_COMPLETION),
};

struct ps_verb {
	const char *name;
	enum ps_verb_bit bit;
	/* The arguments of the verb, a letter each: s a store, m mirrors (unless --mirrors has
	 * them), f a file, c a change of the roster (may be left out), a an address (of a member,
	 * or of the mirror that drain empties), h a standby's name, n a heap's name, t a topic, S a
	 * shell. */
	const char *words;
	/* Which of s, m, f must be given. M: mirrors, which default to PERSEAS_MIRRORS and then to
	 * the daemon of this host. */
	const char *required_letters;
	const char *usage;   /* the command line after the verb's name */
	const char *summary; /* half a sentence, or NULL if --help does not list the verb */
	const char *details; /* paragraphs for --help */
	/* Checks the options together. Returns 0, or PS_EXIT_USAGE with a complaint. May be NULL.
	 */
	enum ps_exit (*check)(const struct ps_args *args);
	enum ps_exit (*run)(const struct ps_args *args);
};

extern const struct ps_verb ps_verbs[]; /* ends with a name of NULL */

/* The texts of completion.bash and completion.zsh. */
extern const char ps_completion_bash[], ps_completion_zsh[];

enum ps_exit ps_verb_create(const struct ps_args *args);
enum ps_exit ps_verb_status(const struct ps_args *args);
enum ps_exit ps_verb_ls(const struct ps_args *args);
enum ps_exit ps_verb_recover(const struct ps_args *args);
enum ps_exit ps_verb_verify(const struct ps_args *args);
enum ps_exit ps_verb_snapshot(const struct ps_args *args);
enum ps_exit ps_verb_restore(const struct ps_args *args);
enum ps_exit ps_verb_history(const struct ps_args *args);
enum ps_exit ps_verb_heap(const struct ps_args *args);
enum ps_exit ps_verb_roster(const struct ps_args *args);
enum ps_exit ps_verb_drop(const struct ps_args *args);
enum ps_exit ps_verb_spill(const struct ps_args *args);
enum ps_exit ps_verb_run(const struct ps_args *args);
enum ps_exit ps_verb_move_check(const struct ps_args *args);
enum ps_exit ps_verb_move(const struct ps_args *args);
enum ps_exit ps_verb_drain_check(const struct ps_args *args);
enum ps_exit ps_verb_drain(const struct ps_args *args);
enum ps_exit ps_verb_place(const struct ps_args *args);
enum ps_exit ps_verb_top(const struct ps_args *args);
enum ps_exit ps_verb_bench(const struct ps_args *args);
enum ps_exit ps_verb_doctor(const struct ps_args *args);
enum ps_exit ps_verb_completion(const struct ps_args *args);
enum ps_exit ps_verb_help(const struct ps_args *args);
enum ps_exit ps_verb_recover_check(const struct ps_args *args);
enum ps_exit ps_verb_snapshot_check(const struct ps_args *args);
enum ps_exit ps_verb_history_check(const struct ps_args *args);
enum ps_exit ps_verb_doctor_check(const struct ps_args *args);
enum ps_exit ps_verb_run_check(const struct ps_args *args);
enum ps_exit ps_verb_roster_check(const struct ps_args *args);
enum ps_exit ps_verb_verify_check(const struct ps_args *args);

/* Returns the action add, remove, replace, …, or NULL if the word names none. (cmd_roster.c) */
const struct ps_roster_action *ps_roster_action(const char *word);

/* Reads the command line. Returns 0, or PS_EXIT_USAGE with a complaint. args->verb may be NULL if
 * help or the version is asked for. (args.c) */
enum ps_exit ps_args_parse(int argc, char **argv, struct ps_args *args);

/* Print the text of --help without and with a verb. (cmd_help.c) */
void ps_help_print(void);
void ps_help_print_verb(const struct ps_verb *verb);

#endif
