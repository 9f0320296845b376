/*
 * main.c - the command `perseas`: creates, lists, inspects, recovers and verifies stores.
 */
#include "command.h"
#include "../perseas.h"

#include <errno.h>
#include <string.h>

const char ps_exit_help[] =
	"Exit status:\n"
	"  0  done, or the answer is yes\n"
	"  1  the answer is no: there is no such store, the mirrors differ, or it is\n"
	"     refused (a live owner, no quorum, a store of that name, no room)\n"
	"  2  the command line is wrong\n"
	"  3  there is an answer, but not from all mirrors, or it is not conclusive\n"
	"  4  the system, the network or a mirror failed\n";

const struct ps_verb ps_verbs[] = {
	{ "create", PS_CREATE, true, "STORE --mirrors LIST [--acks W] [--log-size SIZE]",
	  "makes a store",
	  "Makes an empty store on all of the mirrors, or on none. All must answer, and none may\n"
	  "have a store of that name. An application makes its segments in it.\n",
	  NULL, ps_verb_create },
	{ "status", PS_STATUS, true, "STORE --mirrors LIST [--json]",
	  "shows a store: its owner, its state on each mirror, its segments",
	  "Says for each mirror whether it answers, the state of its image (consistent, joining,\n"
	  "creating), the epoch that it promised, its commit slot (epoch:transaction), how many\n"
	  "transactions it is behind the newest seen (lag), the memory that its image takes,\n"
	  "and a live owner; then the store's roster and its segments.\n"
	  "\n"
	  "It only reads: it fences nobody, and may be run beside a live owner.\n",
	  NULL, ps_verb_status },
	{ "ls", PS_LS, false, "--mirrors LIST [--json]",
	  "lists the stores on each mirror, its memory and version",
	  "It only reads: it fences nobody.\n",
	  NULL, ps_verb_ls },
	{ "recover", PS_RECOVER, true,
	  "STORE --mirrors LIST [--takeover]\n"
	  "                       [--to DIR | --onto LIST [--as NAME] [--acks W]]\n"
	  "                       [--accept-state EPOCH:SEQ]",
	  "opens a store, mends its mirrors, or saves its contents elsewhere",
	  "Claims the store, chooses its newest state, and says what it found on each mirror and\n"
	  "why it chose as it did. A store with a live owner is refused, and nobody is fenced,\n"
	  "but for --takeover. Then:\n"
	  "\n"
	  "  without --to and --onto, makes that state the one of all mirrors that can be\n"
	  "  reached, mends those that differ, and leaves the store without an owner;\n"
	  "  --to reads the contents out into files, and changes nothing on the mirrors;\n"
	  "  --onto makes the store again on other mirrors, and compares what they then hold.\n"
	  "  It needs memory for the whole store and its largest segment once more. The old\n"
	  "  store stays as it is.\n",
	  ps_check_recover, ps_verb_recover },
	{ "verify", PS_VERIFY, true, "STORE --mirrors LIST",
	  "compares the segments on the mirrors, byte for byte",
	  "Prints a line for each mirror and segment that differs. It only reads. While an owner\n"
	  "commits, or when the mirrors stand at different transactions, a difference proves\n"
	  "nothing, and the exit status is 3. After an owner's crash an unfinished transaction\n"
	  "may make a difference: perseas recover rolls it back.\n",
	  NULL, ps_verb_verify },
	{ NULL, 0, false, NULL, NULL, NULL, NULL, NULL },
};

static void help(void)
{
	const struct ps_verb *verb;

	printf("perseas - transactional memory, mirrored on other nodes\n\nUsage:\n");
	for (verb = ps_verbs; verb->name; verb++)
		printf("  perseas %-7s %s\n", verb->name, verb->usage);
	printf("\nCommands (perseas COMMAND --help says more):\n");
	for (verb = ps_verbs; verb->name; verb++)
		printf("  %-9s %s\n", verb->name, verb->summary);
	printf("\nOptions, anywhere on the line, as --name VALUE or --name=VALUE:\n");
	ps_args_help(stdout, PS_EVERY_VERB);
	printf("\n%s", ps_exit_help);
}

static void help_verb(const struct ps_verb *verb)
{
	printf("Usage: perseas %s %s\n\n%s\nOptions, anywhere on the line:\n", verb->name,
	       verb->usage,
	       verb->details);
	ps_args_help(stdout, verb->bit);
	printf("\n%s", ps_exit_help);
}

static enum ps_exit run(const struct ps_args *args)
{
	if (args->help && args->verb)
		help_verb(args->verb);
	else if (args->help)
		help();
	else if (args->version)
		printf("%s\n", perseas_version());
	else
		return args->verb->run(args);
	return PS_EXIT_OK;
}

int main(int argc, char **argv)
{
	struct ps_args args;
	enum ps_exit status = ps_args_parse(argc, argv, &args);

	if (status)
		return status;
	status = run(&args);
	if (fflush(stdout) || ferror(stdout))
		return ps_complain(PS_EXIT_FAILURE, "the output could not be written: %s",
		                   strerror(errno));
	return status;
}
