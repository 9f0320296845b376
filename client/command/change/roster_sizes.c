/*
 * roster_sizes.c - how many mirrors a roster has, and W and R, before and after a change: prints
 * these sizes for perseas roster, and computes them for a change that is only planned. It must
 * never change a store.
 */
#include "roster.h"
#include "../../../proto/base/json.h"

#include <string.h>

/* Returns R of a roster of this size. */
static unsigned claims_to_open(unsigned members, unsigned acks)
{
	return members - acks + 1;
}

/* Returns the member at this address, as the roster writes it or as owners reach it, or NULL. */
static const Perseas__Member *member_at(const Perseas__Roster *roster, const char *text)
{
	const Perseas__Member *member = ps_roster_member_at(roster, text);
	struct ps_address address;
	struct ps_error ignored;

	if (member || ps_address_parse(text, &address, &ignored))
		return member;
	return ps_roster_member_at(roster, address.text);
}

bool ps_roster_lists_address(const Perseas__Roster *roster, const char *text)
{
	return member_at(roster, text) != NULL;
}

void ps_roster_sizes_print(const struct ps_roster_sizes *sizes)
{
	printf("W %u of %u -> %u of %u; R %u -> %u\n", sizes->acks_before, sizes->members_before,
	       sizes->acks, sizes->members,
	       claims_to_open(sizes->members_before, sizes->acks_before),
	       claims_to_open(sizes->members, sizes->acks));
	if (sizes->members == 2 && sizes->acks == 2)
		printf("with two mirrors and W = 2 the loss of either stops commits, until a third "
		       "mirror is added\n");
}

static void size_json(struct ps_json *json, const char *key, unsigned members, unsigned acks)
{
	if (!ps_json_begin_if(json, key, members))
		return;
	ps_json_number(json, "mirrors", members);
	ps_json_number(json, "acks", acks);
	ps_json_number(json, "claims", claims_to_open(members, acks));
	ps_json_end(json, '}');
}

void ps_roster_change_json(const struct ps_args *args, const char *told,
                           const struct ps_roster_sizes *sizes)
{
	struct ps_json json = { .out = stdout };

	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "store", args->store);
	ps_json_text(&json, "change", args->action->name);
	ps_json_text(&json, "address", ps_roster_old_address(args));
	ps_json_text(&json, "with", ps_roster_new_address(args));
	ps_json_bool(&json, "dry_run", args->dry_run);
	ps_json_text(&json, "told", *told ? told : NULL);
	size_json(&json, "before", sizes->members_before, sizes->acks_before);
	size_json(&json, "after", sizes->members, sizes->acks);
	ps_json_end(&json, '}');
}

/* --- planned changes --- */

const Perseas__Member *ps_roster_member_seen_at(const struct ps_images *images, const char *text)
{
	const Perseas__Member *member = ps_images_member_at(images, text);

	for (unsigned i = 0; i < images->peers->count && !member; i++)
		if (!strcmp(images->peers->addresses[i].text, text) &&
		    !(images->duplicates >> i & 1))
			return NULL;
	return member ? member : member_at(images->judged.settled, text);
}

/* Returns true if the change can only record the address of the member that is there. */
static bool records_address(const struct ps_images *images, const char *old, const char *added)
{
	const Perseas__Member *member = old ? ps_roster_member_seen_at(images, old) : NULL;

	return member && added && !strcmp(old, added) && strcmp(member->address, added) != 0;
}

/* Returns true if it is not known which member OLD means. */
static bool is_old_address_unclear(const struct ps_images *images, const char *old)
{
	return !ps_images_find_member(images, ps_roster_member_seen_at(images, old)) &&
	       ps_images_are_addresses_unclear(images);
}

static enum ps_exit check_change(const struct ps_images *images, const struct ps_args *args)
{
	const char *old = ps_roster_old_address(args), *added = ps_roster_new_address(args);

	if (old && !ps_roster_member_seen_at(images, old))
		return ps_complain(PS_EXIT_NO,
		                   "the roster has no mirror %s: perseas roster shows it", old);
	if (old && is_old_address_unclear(images, old))
		return ps_complain(PS_EXIT_NO, "store '%s': " PS_UNCLEAR_ADDRESSES, args->store);
	if (added && ps_roster_lists_address(images->judged.settled, added) &&
	    !records_address(images, old, added))
		return ps_complain(PS_EXIT_NO, "%s is in the roster already", added);
	return PS_EXIT_OK;
}

/* Returns the member whose image was seen on that daemon, or NULL. */
static const Perseas__Member *member_on(const struct ps_images *images, const uint8_t *daemon)
{
	for (unsigned i = 0; daemon && i < images->peers->count; i++) {
		const uint8_t *told = ps_peers_daemon_id(images->peers, i);

		if (told && !memcmp(told, daemon, PS_ID_SIZE) && ps_images_is_listed(images, i))
			return ps_roster_member(images->judged.settled,
			                        images->judged.member_ids[i]);
	}
	return NULL;
}

/* Returns true if the change only gives this member another address. */
static bool only_moves_member(const struct ps_images *images, const struct ps_args *args,
                              const Perseas__Member *member)
{
	const char *old = ps_roster_old_address(args);

	return old && member == ps_roster_member_seen_at(images, old) && !args->is_gone_for_good &&
	       !args->options.acks;
}

/* Checks that the new mirror's daemon is not a member's already: a daemon counts once, whatever its
 * addresses are. */
static enum ps_exit check_daemon_of_new_address(const struct ps_images *images,
                                                const struct ps_args *args)
{
	const char *new = ps_roster_new_address(args);
	const Perseas__Member *member;
	struct ps_peers peers;
	enum ps_exit status = ps_peers_open_one(&peers, new, &args->options);

	if (status)
		return status;
	ps_peers_ask_all(&peers, ps_peers_list_request());
	member = member_on(images, ps_peers_daemon_id(&peers, 0));
	if (!peers.replies[0])
		status = ps_peers_complain(&peers, 0);
	else if (member && !only_moves_member(images, args, member))
		status = ps_complain(PS_EXIT_NO,
		                     "%s is the mirror %s of the roster, and counts once", new,
		                     member->address);
	else
		status = ps_peers_check_routes(&peers, args->store);
	ps_peers_close(&peers);
	return status;
}

static enum ps_exit plan_sizes(const Perseas__Roster *roster, const struct ps_args *args,
                               struct ps_roster_sizes *sizes)
{
	const struct ps_quorum before = { .members = (unsigned)roster->n_members,
		                          .acks = roster->acks };
	const unsigned members = before.members + (ps_roster_new_address(args) != NULL) -
	                         (ps_roster_old_address(args) != NULL);
	const unsigned acks = args->options.acks;

	if (!members)
		return ps_complain(PS_EXIT_NO,
		                   "a store needs a mirror: replace the only one instead");
	if (members > PS_MIRRORS_MAX)
		return ps_complain(PS_EXIT_NO, "a store has 16 mirrors at most");
	if (acks > members)
		return ps_complain(PS_EXIT_NO, "%u mirrors cannot give %u acknowledgements",
		                   members, acks);
	*sizes = (struct ps_roster_sizes){
		.members_before = before.members,
		.acks_before = before.acks,
		.members = members,
		.acks = acks ? acks : ps_quorum_acks_after_change(&before, members),
	};
	return PS_EXIT_OK;
}

static void print_plan(const struct ps_args *args, const struct ps_roster_sizes *sizes, bool owned)
{
	ps_roster_announce_change(args);
	printf("the roster of store '%s' would be changed\n", args->store);
	ps_roster_sizes_print(sizes);
	if (owned && !args->options.acks && sizes->acks != sizes->acks_before &&
	    sizes->acks_before <= sizes->members)
		printf("an owner of the version before would keep W = %u\n", sizes->acks_before);
}

enum ps_exit ps_roster_check_change(const struct ps_images *images, const struct ps_args *args)
{
	struct ps_roster_sizes sizes;
	enum ps_exit status;

	if (args->action->members == 0 || images->judged.next ||
	    images->judged.outlook != PS_OUTLOOK_OPENS)
		return PS_EXIT_OK;
	status = check_change(images, args);
	if (!status)
		status = plan_sizes(images->judged.settled, args, &sizes);
	if (!status && ps_roster_new_address(args))
		status = ps_env_check_route(images->peers->env,
		                            &args->members[args->action->members - 1]);
	return status;
}

enum ps_exit ps_roster_preview_change(const struct ps_images *images, const struct ps_args *args)
{
	struct ps_roster_sizes sizes;
	enum ps_exit status;

	if (!images->judged.settled || images->judged.next)
		return ps_complain(PS_EXIT_NO,
		                   "a change of the roster of store '%s' is not settled: perseas "
		                   "roster shows it",
		                   args->store);
	status = check_change(images, args);
	if (!status && ps_roster_new_address(args))
		status = check_daemon_of_new_address(images, args);
	if (!status)
		status = plan_sizes(images->judged.settled, args, &sizes);
	if (status)
		return status;
	if (args->json)
		ps_roster_change_json(args, "", &sizes);
	else
		print_plan(args, &sizes, ps_images_find_owner(images) >= 0);
	return PS_EXIT_OK;
}
