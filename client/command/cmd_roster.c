/*
 * cmd_roster.c - perseas roster: shows which mirrors a store has, and changes them.
 *
 * The live owner of a store makes the change: a mirror passes the order to it, and shows the
 * result. If the store has no owner, the command becomes the owner for the change.
 */
#include "command.h"
#include "../../proto/base/json.h"
#include "ask/ask.h"
#include "ask/shared_hosts.h"
#include "change/roster.h"

#include <inttypes.h>
#include <string.h>

static const struct ps_roster_action actions[] = {
	{ "add", PERSEAS__ORDER_KIND__ORDER_ADD, 1, "NEW" },
	{ "remove", PERSEAS__ORDER_KIND__ORDER_REMOVE, 1, "OLD" },
	{ "replace", PERSEAS__ORDER_KIND__ORDER_REPLACE, 2, "OLD NEW" },
	{ "raise", PERSEAS__ORDER_KIND__ORDER_RAISE, 0, "" },
	{ "cancel", PERSEAS__ORDER_KIND__ORDER_CANCEL, 0, "" },
};

const struct ps_roster_action *ps_roster_action(const char *word)
{
	for (unsigned i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (!strcmp(actions[i].name, word))
			return &actions[i];
	return NULL;
}

enum ps_exit ps_verb_roster_check(const struct ps_args *args)
{
	const struct ps_roster_action *action = args->action;
	unsigned members = action ? action->members : 0;

	if (args->member_count > members)
		return ps_complain(PS_EXIT_USAGE,
		                   "'%.80s' is one word too many; perseas roster "
		                   "--help says what it takes",
		                   args->members[members].text);
	if (args->member_count < members)
		return ps_complain(PS_EXIT_USAGE,
		                   "which mirror? usage: perseas roster %s STORE "
		                   "LIST %s",
		                   action->name, action->address_names);
	if (args->is_gone_for_good && (!action || !ps_roster_old_address(args)))
		return ps_complain(PS_EXIT_USAGE, "--gone goes with roster remove or replace");
	if ((!action || action->members == 0) && args->options.acks)
		return ps_complain(PS_EXIT_USAGE, "--acks goes with a change: roster add, remove "
		                                  "or replace");
	if ((!action || action->members == 0) && args->dry_run)
		return ps_complain(PS_EXIT_USAGE, "--dry-run goes with a change: roster add, "
		                                  "remove or replace");
	return PS_EXIT_OK;
}

/* --- showing --- */

/* Prints the command that records where a member is, if the roster has an old address of it. */
static void print_how_to_record(const struct ps_images *images, const Perseas__Roster *roster,
                                const struct ps_args *args)
{
	for (size_t k = 0; k < roster->n_members; k++) {
		const char *address = ps_images_address_of(images, roster->members[k]);

		if (!ps_images_is_address_old(images, roster->members[k]))
			continue;
		printf("the roster has old addresses; to record the present one, run perseas "
		       "roster replace %s %s %s %s\n",
		       args->store, args->mirrors, address, address);
		return;
	}
}

static void print_roster(const struct ps_images *images, const Perseas__Roster *roster,
                         const char *what)
{
	struct ps_table table = { 0 };

	printf("%s: version %" PRIu64 " of epoch %" PRIu64 ", W = %u of %zu\n", what,
	       roster->version, roster->epoch, roster->acks, roster->n_members);
	for (size_t k = 0; k < roster->n_members; k++) {
		const Perseas__StoreStatus *status = ps_images_find_member(images,
		                                                           roster->members[k]);
		const char *address = ps_images_address_of(images, roster->members[k]);
		char id[PS_HEX_TEXT];

		ps_table_set_cell(&table, 0, "  %s", roster->members[k]->address);
		ps_table_set_cell(&table, 1, "%s",
		                  ps_hex_text(id, roster->members[k]->image_id.data));
		ps_table_set_cell(&table, 2, "%s",
		                  status ? ps_state_text(status->header->state) : PS_NOT_SEEN);
		if (ps_images_is_address_old(images, roster->members[k]))
			ps_table_set_cell(&table, 3, "now at %s", address);
		else if (!status && strcmp(address, roster->members[k]->address) != 0)
			ps_table_set_cell(&table, 3, "probably at %s", address);
	}
	ps_table_print(&table, stdout);
}

static void roster_json(struct ps_json *json, const struct ps_images *images,
                        const Perseas__Roster *roster, const char *key)
{
	char id[PS_HEX_TEXT];

	ps_json_begin(json, key, '{');
	ps_json_number(json, "version", roster->version);
	ps_json_number(json, "epoch", roster->epoch);
	ps_json_number(json, "acks", roster->acks);
	ps_json_begin(json, "members", '[');
	for (size_t k = 0; k < roster->n_members; k++) {
		const Perseas__StoreStatus *status = ps_images_find_member(images,
		                                                           roster->members[k]);

		ps_json_begin(json, NULL, '{');
		ps_json_text(json, "address", roster->members[k]->address);
		ps_json_text(json, "at", ps_images_address_of(images, roster->members[k]));
		ps_json_text(json, "image_id", ps_hex_text(id, roster->members[k]->image_id.data));
		ps_json_text(json, "state", status ? ps_state_text(status->header->state) : NULL);
		ps_json_end(json, '}');
	}
	ps_json_end(json, ']');
	ps_json_end(json, '}');
}

static void print_json(const struct ps_images *images, const char *store)
{
	const struct ps_judgement *judged = &images->judged;
	struct ps_json json = { .out = stdout };

	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "store", store);
	roster_json(&json, images, judged->settled, "roster");
	if (judged->next)
		roster_json(&json, images, judged->next, "next_roster");
	else
		ps_json_text(&json, "next_roster", NULL);
	ps_json_bool(&json, "decided", judged->is_decided);
	ps_json_end(&json, '}');
}

static enum ps_exit show_roster(const struct ps_images *images, const struct ps_args *args)
{
	const struct ps_judgement *judged = &images->judged;
	enum ps_exit status = PS_EXIT_OK;

	if (args->json) {
		print_json(images, args->store);
	} else if (judged->next) {
		print_roster(images, judged->settled, "the roster that is left");
		print_roster(images, judged->next,
		             judged->is_decided ? "the roster that is decided, and not settled yet"
		                                : "the roster that is not settled yet");
	} else {
		print_roster(images, judged->settled, "the roster");
		print_how_to_record(images, judged->settled, args);
	}
	for (unsigned i = 0; i < images->peers->count; i++)
		if (!ps_peers_answered(images->peers, i))
			status = ps_complain(PS_EXIT_PARTLY, "%s", images->errors[i].text);
	return status;
}

/* --- the verb --- */

/* Does what needs no ownership of the store: shows the roster, previews a change, or orders it from
 * the live owner. owner: the mirror that shows a live owner, or -1. is_done: the change was made
 * before. */
static enum ps_exit roster_by_images(struct ps_peers *peers, const struct ps_images *images,
                                     const struct ps_args *args, int owner, bool is_done)
{
	enum ps_exit status = images->have ? ps_images_check_ambiguous(images, args->store)
	                                   : ps_images_complain_absent(images, args->store);

	if (status)
		return status;
	if (is_done) {
		ps_roster_print_nothing_to_do(images, args);
		return PS_EXIT_OK;
	}
	if (ps_roster_is_cancel(args) && owner < 0 && !images->judged.next)
		return ps_complain(PS_EXIT_NO,
		                   "too few mirrors of store '%s' are seen to know whether it has "
		                   "a change of its roster to take back",
		                   args->store);
	if (!args->action)
		return show_roster(images, args);
	if (args->dry_run)
		return ps_roster_preview_change(images, args);
	return owner >= 0 ? ps_roster_change_by_owner(peers, images, args, NULL)
	                  : ps_roster_check_change(images, args);
}

enum ps_exit ps_verb_roster(const struct ps_args *args)
{
	struct ps_peers peers;
	struct ps_images images;
	bool is_done;
	int owner;
	enum ps_exit status = ps_images_open(&images, &peers, args->store, args->mirrors,
	                                     &args->options);

	if (status)
		return status;
	ps_bar_show_library_copies();
	if (args->action && (args->dry_run || ps_images_find_owner(&images) < 0))
		(void)ps_images_fetch_more(&images, &peers, args->store);
	owner = args->action && images.have ? ps_images_find_owner(&images) : -1;
	/* A live owner decides itself, unless the change is only previewed. */
	is_done = args->action && images.have && (owner < 0 || args->dry_run) &&
	          ps_roster_needs_no_change(&images, args);
	status = roster_by_images(&peers, &images, args, owner, is_done);
	ps_images_close(&images, &peers);
	if (args->dry_run || is_done)
		return status;
	if (!status && args->action && owner < 0)
		status = ps_roster_change_by_open(args, NULL);
	if (!status && args->action && ps_roster_new_address(args))
		ps_shared_hosts_warn(args->store, args->mirrors, &args->options);
	return status;
}
