/*
 * cmd_recover.c - perseas recover: recovers a store in place, into files, or onto other mirrors.
 */
#include "command.h"
#include "ask/ask.h"
#include "../../proto/base/json.h"
#include "change/lagging.h"
#include "change/recover.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum ps_exit ps_verb_recover_check(const struct ps_args *args)
{
	if (args->to_path && args->onto_mirrors)
		return ps_complain(PS_EXIT_USAGE, "--to and --onto do different things: give one "
		                                  "of them");
	if (!args->onto_mirrors && (args->new_store_name || args->options.acks))
		return ps_complain(PS_EXIT_USAGE,
		                   "--%s goes with --onto: it is about the new store",
		                   args->new_store_name ? "as" : "acks");
	return PS_EXIT_OK;
}

/* Returns true if the mirrors show the newest state, or the state that --accept-state names: such a
 * state can be saved. */
static bool can_recover_from_images(const struct ps_args *args, const struct ps_images *images)
{
	return images->judged.outlook >= PS_OUTLOOK_BELOW_T ||
	       (images->newest && args->options.accept_epoch == images->newest->slot->epoch &&
	        args->options.accept_seq == images->newest->slot->seq);
}

/* Prints the command that saves the state on the mirrors that answer, when it cannot be recovered
 * in place. */
static void advise_saving(const struct ps_args *args)
{
	char onto[PS_MIRRORS_MAX * sizeof(struct ps_address)] = "", accept[60] = "";
	struct ps_images images;
	struct ps_peers peers;

	if (ps_images_open(&images, &peers, args->store, args->mirrors, &args->options))
		return;
	for (unsigned i = 0; i < peers.count; i++)
		if (ps_peers_answered(&peers, i))
			snprintf(onto + strlen(onto), sizeof(onto) - strlen(onto), "%s%s",
			         *onto ? "," : "", peers.addresses[i].text);
	if (args->options.accept_epoch)
		snprintf(accept, sizeof(accept), " --accept-state %" PRIu64 ":%" PRIu64,
		         args->options.accept_epoch, args->options.accept_seq);
	if (can_recover_from_images(args, &images))
		ps_complain(PS_EXIT_NO,
		            "bring the missing mirrors back; or make the store again, "
		            "under another name, on those that answer:\n"
		            "    perseas recover %s %s%s%s --onto %s --as %.*s.saved",
		            args->store, args->mirrors, accept, args->takeover ? " --takeover" : "",
		            onto, PS_NAME_MAX - (int)strlen(".saved"), args->store);
	ps_images_close(&images, &peers);
}

static enum ps_exit open_store(const struct ps_args *args, uint32_t flags, perseas_t **p)
{
	struct perseas_options options = args->options;
	int rc;

	options.flags = flags | (args->takeover ? PERSEAS_TAKEOVER : 0);
	rc = perseas_open(args->store, args->mirrors, &options, p);
	ps_bar_clear();
	if (rc == PERSEAS_EBUSY)
		return ps_complain(PS_EXIT_NO, "%s (--takeover)", perseas_message(NULL));
	if (rc) {
		ps_library_complain(NULL, rc);
		if (rc == PERSEAS_EQUORUM && !(flags & PERSEAS_SALVAGE))
			advise_saving(args);
		return ps_exit_of_code(rc);
	}
	if (!args->json)
		fputs(perseas_report(*p), stdout);
	return PS_EXIT_OK;
}

static void print_live_mirrors(const struct ps_args *args, perseas_t *p)
{
	struct ps_json json = { .out = stdout };
	struct ps_opened opened;
	struct perseas_stat stat;

	if (perseas_stat(p, &stat))
		return;
	ps_opened_read(p, &opened);
	for (unsigned i = 0; i < stat.mirrors; i++) {
		struct perseas_mirror_stat mirror;

		if (!perseas_mirror_stat(p, i, &mirror) && mirror.state != PERSEAS_MIRROR_LIVE &&
		    mirror.state != PERSEAS_MIRROR_REMOVED)
			ps_complain(PS_EXIT_OK, "%s is %s, and not up to date: %s", mirror.address,
			            perseas_mirror_state_name(mirror.state), mirror.trouble);
	}
	if (stat.live <= opened.members - opened.acks)
		ps_complain(PS_EXIT_OK,
		            "%u mirrors must be there to open it again, and %u hold "
		            "it: bring the others back",
		            opened.members - opened.acks + 1, stat.live);
	if (args->json) {
		ps_recover_json(&json, args, p);
		ps_json_number(&json, "mirrors", opened.members);
		ps_json_number(&json, "live", stat.live);
		ps_json_end(&json, '}');
		return;
	}
	printf("store '%s' is recovered at transaction %" PRIu64 ", now of epoch %" PRIu64 ", on "
	       "%u of %u mirrors; it has no owner\n",
	       args->store, stat.seq, stat.epoch, stat.live, opened.members);
}

/* Opens and closes the store, so that W mirrors hold its state, and all that answer unless a signal
 * ends the wait for them. This succeeds even if some mirrors are down. */
static enum ps_exit recover_in_place(const struct ps_args *args)
{
	perseas_t *p;
	enum ps_exit status = open_store(args, 0, &p);

	if (status)
		return status;
	ps_stop_catch();
	ps_lagging_await(p);
	print_live_mirrors(args, p);
	perseas_close(p);
	return PS_EXIT_OK;
}

static enum ps_exit recover_elsewhere(const struct ps_args *args)
{
	perseas_t *p;
	enum ps_exit status = args->to_path ? ps_recover_to_files_check(args)
	                                    : ps_recover_onto_mirrors_check(args);

	if (!status)
		status = open_store(args, PERSEAS_SALVAGE, &p);
	if (status)
		return status;
	status = args->to_path ? ps_recover_to_files(args, p) : ps_recover_onto_mirrors(args, p);
	perseas_close(p);
	return status;
}

enum ps_exit ps_verb_recover(const struct ps_args *args)
{
	ps_bar_show_library_copies();
	return args->to_path || args->onto_mirrors ? recover_elsewhere(args)
	                                           : recover_in_place(args);
}
