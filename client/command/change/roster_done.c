/*
 * roster_done.c - tells whether a change of the roster was made before. A command that was killed
 * is repeated, and must then tell success from a mistyped address.
 */
#include "roster.h"

#include <string.h>

bool ps_roster_shows_change(const struct ps_images *images, const struct ps_args *args)
{
	const char *old = ps_roster_old_address(args), *new = ps_roster_new_address(args);
	const Perseas__Roster *roster = images->judged.settled;

	if (args->action->order == PERSEAS__ORDER_KIND__ORDER_RAISE)
		return roster && roster->level > 0;
	return roster && !images->judged.next && (old || new) &&
	       !(old && ps_roster_member_seen_at(images, old)) &&
	       !(new && !ps_roster_lists_address(roster, new)) &&
	       (!args->options.acks || args->options.acks == roster->acks);
}

/* Returns true if no member can be at an address that was not asked. */
static bool are_members_seen(const struct ps_images *images)
{
	const Perseas__Roster *roster = images->judged.settled;

	for (size_t k = 0; k < roster->n_members; k++)
		if (!ps_images_find_member(images, roster->members[k]))
			return false;
	return true;
}

static bool is_in_list(const struct ps_images *images, const char *address)
{
	for (unsigned i = 0; i < images->peers->count; i++)
		if (!strcmp(images->peers->addresses[i].text, address))
			return true;
	return false;
}

bool ps_roster_needs_no_change(const struct ps_images *images, const struct ps_args *args)
{
	const char *old = ps_roster_old_address(args);

	if (images->judged.outlook != PS_OUTLOOK_OPENS)
		return false;
	if (ps_roster_is_cancel(args))
		return !images->judged.next;
	return ps_roster_shows_change(images, args) && (!old || are_members_seen(images)) &&
	       (ps_roster_new_address(args) || !old || is_in_list(images, old));
}

void ps_roster_print_nothing_to_do(const struct ps_images *images, const struct ps_args *args)
{
	static const struct ps_roster_sizes unchanged;
	const Perseas__Roster *roster = images->judged.settled;
	char text[PS_MIRRORS_MAX * sizeof(struct ps_address) + 200];
	size_t used;

	used = (size_t)snprintf(text, sizeof(text),
	                        "nothing to do: the roster of store '%s' has W = %u, level %u: ",
	                        args->store, roster->acks, roster->level);
	for (size_t k = 0; k < roster->n_members && used < sizeof(text); k++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", k ? "," : "",
		                         roster->members[k]->address);
	ps_roster_print_change_done(args, text, &unchanged);
}

static bool was_change_made_before(const struct ps_args *args)
{
	struct ps_peers peers;
	struct ps_images images;
	bool is_done;

	if (ps_images_open(&images, &peers, args->store, args->mirrors, &args->options))
		return false;
	(void)ps_images_fetch_more(&images, &peers, args->store);
	is_done = ps_roster_needs_no_change(&images, args);
	if (is_done)
		ps_roster_print_nothing_to_do(&images, args);
	ps_images_close(&images, &peers);
	return is_done;
}

enum ps_exit ps_roster_report_refused(const struct ps_args *args, int code, const char *text)
{
	if (code != PERSEAS_EINVAL)
		return ps_complain(ps_exit_of_code(code), "%s", text);
	return was_change_made_before(args) ? PS_EXIT_OK : ps_complain(PS_EXIT_NO, "%s", text);
}
