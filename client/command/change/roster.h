/*
 * roster.h - a change of the roster that the command line asks for: perseas roster makes one, and
 * perseas drain one for each store.
 */
#ifndef PERSEAS_COMMAND_ROSTER_H
#define PERSEAS_COMMAND_ROSTER_H

#include "../ui/args.h"
#include "../ask/ask.h"

/* A kind of change. */
struct ps_roster_action {
	const char *name; /* the word on the command line: "add" */
	Perseas__OrderKind order;
	unsigned members;          /* number of addresses that follow the word */
	const char *address_names; /* names of these addresses, for the usage: "OLD NEW" */
};

/* Returns true if the command line asks to cancel a change. */
bool ps_roster_is_cancel(const struct ps_args *args);

/* Return the address of the mirror that leaves or joins, or NULL if none does. */
const char *ps_roster_old_address(const struct ps_args *args);
const char *ps_roster_new_address(const struct ps_args *args);

/* Prints which change is about to be made. If the list of mirrors comes from the environment, a
 * command line with a word too few is valid, and names other mirrors than were meant. Prints
 * nothing if no mirror joins or leaves. */
void ps_roster_announce_change(const struct ps_args *args);

/* The number of mirrors, and W, before and after a change of the roster. All 0: not known. */
struct ps_roster_sizes {
	unsigned members_before, acks_before;
	unsigned members, acks;
};

/* Sums up the copies to a mirror that joined by a change. */
struct ps_replacement_copy {
	bool is_known;       /* the owner told the other two members */
	uint64_t sent_bytes; /* by all copies, broken ones included */
	/* name of the reason why the last copy sent the whole store; "": it did not */
	char whole_reason[32];
};

/* Prints that the change was made. told: the sentence of the store's owner about it, or "". */
void ps_roster_print_change_done(const struct ps_args *args, const char *told,
                                 const struct ps_roster_sizes *sizes);

/* The following functions are in roster_done.c. */

/* Returns true if the settled roster is what the change leads to. */
bool ps_roster_shows_change(const struct ps_images *images, const struct ps_args *args);

/* Returns true if the mirrors show that the change was made before, or that there is nothing to
 * cancel. A mirror that should leave must not be a member under another address, either, and
 * `remove` must name one of LIST: a mistyped address would be in no roster. */
bool ps_roster_needs_no_change(const struct ps_images *images, const struct ps_args *args);

/* Prints that there is nothing to do, and the roster. */
void ps_roster_print_nothing_to_do(const struct ps_images *images, const struct ps_args *args);

/* Reports a change that the library or the owner refused with this code and sentence. Asks the
 * mirrors again, and returns PS_EXIT_OK if they show that the change was made before: the open may
 * have completed it. Returns PS_EXIT_NO if the roster does not fit the change. */
enum ps_exit ps_roster_report_refused(const struct ps_args *args, int code, const char *text);

/* The following functions are in roster_sizes.c. */

/* Returns true if the roster lists a mirror at this address, as written or as owners reach it. */
bool ps_roster_lists_address(const Perseas__Roster *roster, const char *text);

/* Returns the member at this address, or NULL. The address in the roster counts, too, if no peer
 * has it: a list may have another name of the mirror. */
const Perseas__Member *ps_roster_member_seen_at(const struct ps_images *images, const char *text);

/* Prints W and R before and after the change. */
void ps_roster_sizes_print(const struct ps_roster_sizes *sizes);

/* Prints the JSON object that reports a change that was made. */
void ps_roster_change_json(const struct ps_args *args, const char *told,
                           const struct ps_roster_sizes *sizes);

/* Implements --dry-run: prints the sizes (W, R) that the change would give by this version's rule,
 * or why it would be refused. */
enum ps_exit ps_roster_preview_change(const struct ps_images *images, const struct ps_args *args);

/* Complains about a change that would be refused, before the command claims a store without an
 * owner. Asks no mirror. Finds nothing while too few images are seen or another change is not
 * settled: then the open refuses. */
enum ps_exit ps_roster_check_change(const struct ps_images *images, const struct ps_args *args);

/* Sends the change to the live owner and follows it for at most args->wait_ms. Fills in *copy
 * unless it is NULL. Returns PS_EXIT_PARTLY if a signal stopped it first. */
enum ps_exit ps_roster_change_by_owner(struct ps_peers *peers, const struct ps_images *images,
                                       const struct ps_args *args,
                                       struct ps_replacement_copy *copy);

/* Changes the roster of a store that has no owner: opens the store, changes the roster, and closes
 * the store. Fills in *copy unless it is NULL; on failure *copy stays. */
enum ps_exit ps_roster_change_by_open(const struct ps_args *args, struct ps_replacement_copy *copy);

#endif
