/*
 * cmd_verify.c - perseas verify: compares the images on the mirrors, once or repeatedly, and has
 * the owner repair them.
 */
#include "command.h"
#include "change/repair_order.h"
#include "live/verify.h"

enum { ROUNDS_MAX = 16 /* rounds that are begun, at most, while images change */ };

static enum ps_exit verify_round(const struct ps_args *args)
{
	bool changed;

	for (unsigned round = 0; round < ROUNDS_MAX; round++) {
		enum ps_exit status = ps_verify_once(args, &changed);

		if (!changed)
			return status;
	}
	return ps_complain(PS_EXIT_PARTLY,
	                   "not conclusive: the images of store '%s' are being "
	                   "mended or replaced; perseas status shows how far that is",
	                   args->store);
}

/* Returns the worse status of two rounds. A difference is worse than no answer. */
static enum ps_exit worse_status(enum ps_exit a, enum ps_exit b)
{
	if (a == PS_EXIT_NO || b == PS_EXIT_NO)
		return PS_EXIT_NO;
	return a > b ? a : b;
}

static enum ps_exit verify_repeatedly(const struct ps_args *args)
{
	enum ps_exit worst = PS_EXIT_OK;

	ps_stop_catch();
	while (!ps_stop_requested()) {
		enum ps_exit status = verify_round(args);

		if (status == PS_EXIT_USAGE)
			return status;
		/* A round that a signal cut short decides nothing. */
		if (status != PS_EXIT_PARTLY || !ps_stop_requested())
			worst = worse_status(worst, status);
		ps_stop_pause(args->repeat_ms);
	}
	return worst;
}

/* Verifies, and has the owner repair the mirrors. Verifies again if the mirrors differed. */
static enum ps_exit verify_and_repair(const struct ps_args *args)
{
	const enum ps_exit found = verify_round(args);
	enum ps_exit status = found;

	if (found == PS_EXIT_OK || found == PS_EXIT_NO)
		status = ps_repair_by_owner(args, found == PS_EXIT_NO);
	return status == PS_EXIT_OK && found == PS_EXIT_NO ? verify_round(args) : status;
}

enum ps_exit ps_verb_verify_check(const struct ps_args *args)
{
	return args->repair && args->repeat_ms
	               ? ps_complain(PS_EXIT_USAGE, "--repair goes without --repeat")
	               : PS_EXIT_OK;
}

enum ps_exit ps_verb_verify(const struct ps_args *args)
{
	ps_bar_show_library_copies();
	if (args->repair)
		return verify_and_repair(args);
	return args->repeat_ms ? verify_repeatedly(args) : verify_round(args);
}
