/*
 * command.h - the verbs of the command `perseas`. commands.c has the table of them, main.c runs
 * one; each cmd_NAME.c is one. No room below may include it.
 */
#ifndef PERSEAS_COMMAND_COMMAND_H
#define PERSEAS_COMMAND_COMMAND_H

#include "ui/args.h"

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
	/* Those that speak with mirrors. */
	PS_ASKING_VERBS = PS_EVERY_VERB & ~(PS_HELP | PS_COMPLETION),
};

struct ps_verb {
	const char *name;
	enum ps_verb_bit bit;
	/* What its words are, in their order: s a store, m mirrors (unless --mirrors has them), f a
	 * file, c a change of the roster (may be left out), a an address (of roster, or the mirror
	 * that drain empties), h a standby's name, n a heap's name, t a topic, S a shell. */
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

/* completion.bash and completion.zsh, as texts. */
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

/* cmd_roster.c: add, remove or replace; NULL: the word is none of these. */
const struct ps_roster_action *ps_roster_action(const char *word);

/* args.c: 0, or PS_EXIT_USAGE with a complaint. verb may be NULL where help or version is asked
 * for. */
enum ps_exit ps_args_parse(int argc, char **argv, struct ps_args *args);

/* cmd_help.c: what --help prints, without a verb and with one. */
void ps_help_print(void);
void ps_help_print_verb(const struct ps_verb *verb);

#endif
