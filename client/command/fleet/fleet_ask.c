/*
 * fleet_ask.c - asks daemons for their stores: one connection and one List request each, however
 * many stores there are. fleet_show.c calls it. It must never ask a daemon again for each of its
 * stores.
 */
#include "fleet.h"
#include "../../../proto/control/envelope.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *ps_fleet_address(const struct ps_fleet_daemon *daemon)
{
	return daemon->peers->addresses[daemon->peer_index].text;
}

static enum ps_exit ask_part_of_list(struct ps_fleet *fleet, const char *list, bool added,
                                     const struct perseas_options *options)
{
	struct ps_peers *peers = ps_exit_if_null(calloc(1, sizeof(*peers)));
	enum ps_exit status = ps_peers_open(peers, list, options);

	if (status) {
		free(peers);
		return status;
	}
	fleet->peer_sets = ps_exit_if_null(
		realloc(fleet->peer_sets, (fleet->peer_set_count + 1) * sizeof(*fleet->peer_sets)));
	fleet->peer_sets[fleet->peer_set_count++] = peers;
	fleet->daemons = ps_exit_if_null(
		realloc(fleet->daemons, (fleet->count + peers->count) * sizeof(*fleet->daemons)));
	ps_peers_ask_all(peers, ps_peers_list_request());
	for (unsigned i = 0; i < peers->count; i++) {
		fleet->daemons[fleet->count++] = (struct ps_fleet_daemon){ peers, i, added,
			                                                   peers->replies[i] };
		fleet->silent_count += !peers->replies[i];
		peers->replies[i] = NULL;
	}
	return PS_EXIT_OK;
}

static bool was_daemon_asked(const struct ps_fleet *fleet, const char *address)
{
	for (unsigned i = 0; i < fleet->count; i++)
		if (!strcmp(ps_fleet_address(&fleet->daemons[i]), address))
			return true;
	return false;
}

/* --- what the replies have --- */

static int compare_entries(const void *a, const void *b)
{
	const struct ps_fleet_image *one = a, *other = b;
	const Perseas__Header *mine = one->status->header, *theirs = other->status->header;
	int order = strcmp(mine->store, theirs->store);

	if (!order)
		order = memcmp(mine->store_id.data, theirs->store_id.data, PS_ID_SIZE);
	return order ? order : (one->daemon > other->daemon) - (one->daemon < other->daemon);
}

void ps_fleet_sort_images(struct ps_fleet_image *entries, unsigned count)
{
	qsort(entries, count, sizeof(*entries), compare_entries);
}

struct ps_fleet_image *ps_fleet_list_images(const struct ps_fleet *fleet, unsigned *count)
{
	struct ps_fleet_image *entries = ps_exit_if_null(calloc(1, sizeof(*entries)));

	*count = 0;
	for (unsigned i = 0; i < fleet->count; i++) {
		const Perseas__Reply *reply = fleet->daemons[i].reply;
		const size_t more = reply ? reply->list->n_stores : 0;

		entries = ps_exit_if_null(realloc(entries, (*count + more + 1) * sizeof(*entries)));
		for (size_t k = 0; k < more; k++)
			entries[(*count)++] = (struct ps_fleet_image){ i, reply->list->stores[k],
				                                       (unsigned)k };
	}
	ps_fleet_sort_images(entries, *count);
	return entries;
}

unsigned ps_fleet_count_images_of_first_store(const struct ps_fleet_image *entries, unsigned count)
{
	const Perseas__Header *first = entries[0].status->header;
	unsigned run = 1;

	assert(count > 0);
	while (run < count && !strcmp(first->store, entries[run].status->header->store) &&
	       ps_id_equal(first->store_id, entries[run].status->header->store_id.data))
		run++;
	return run;
}

/* --- daemons that rosters name --- */

/* A comma-separated list of addresses. */
struct names {
	char *text;
	size_t length;
	unsigned count;
};

static void add_address(struct names *names, const char *address)
{
	const size_t size = strlen(address);

	names->text = ps_exit_if_null(realloc(names->text, names->length + size + 2));
	names->length += (size_t)sprintf(names->text + names->length, "%s%s",
	                                 names->count++ ? "," : "", address);
}

/* Adds the members of the roster whose images were not seen and whose daemons were not asked. */
static void add_unseen_members(const struct ps_fleet *fleet, const struct ps_images *images,
                               const Perseas__Roster *roster, struct names *names)
{
	struct ps_address address;

	for (size_t k = 0; roster && k < roster->n_members; k++)
		if (!ps_images_find_member(images, roster->members[k]) &&
		    ps_survey_parse_address(ps_images_address_of(images, roster->members[k]),
		                            &address) &&
		    !was_daemon_asked(fleet, address.text) &&
		    !ps_address_in_list(names->text, address.text) &&
		    fleet->count + names->count < PS_SURVEY_MAX)
			add_address(names, address.text);
}

static void find_unseen_members(const struct ps_fleet *fleet, struct names *names)
{
	struct ps_peers peers;
	struct ps_images images;
	unsigned count, run;
	struct ps_fleet_image *entries = ps_fleet_list_images(fleet, &count);

	for (unsigned i = 0; i < count; i += run) {
		run = ps_fleet_count_images_of_first_store(entries + i, count - i);
		ps_fleet_fill_images(fleet, entries + i, run, false, &peers, &images);
		add_unseen_members(fleet, &images, images.judged.settled, names);
		add_unseen_members(fleet, &images, images.judged.next, names);
	}
	free(entries);
}

/* Asks the mirrors of the list, in parts that fit into one set of peers. Modifies the list. */
static enum ps_exit ask_list(struct ps_fleet *fleet, char *list, bool added,
                             const struct perseas_options *options)
{
	enum ps_exit status = PS_EXIT_OK;

	for (char *rest; list && !status; list = rest) {
		rest = ps_list_cut_after(list, PS_MIRRORS_MAX);
		status = ask_part_of_list(fleet, list, added, options);
	}
	return status;
}

char *ps_fleet_list_unasked(const struct ps_fleet *fleet)
{
	struct names names = { 0 };

	find_unseen_members(fleet, &names);
	return names.text;
}

/* Asks the daemons that rosters in force name, and again those that their replies name, until all
 * were asked. */
static void ask_unseen_members(struct ps_fleet *fleet, const struct perseas_options *options)
{
	bool any = true;

	while (any) {
		char *list = ps_fleet_list_unasked(fleet);

		any = list && !ask_list(fleet, list, true, options);
		free(list);
	}
}

enum ps_exit ps_fleet_ask_daemons(struct ps_fleet *fleet, const char *mirrors,
                                  const struct perseas_options *options)
{
	char *list = ps_exit_if_null(strdup(mirrors));
	enum ps_exit status;

	*fleet = (struct ps_fleet){ 0 };
	status = ps_list_check_length(mirrors);
	if (!status)
		status = ask_list(fleet, list, false, options);
	free(list);
	if (!status)
		ask_unseen_members(fleet, options);
	else
		ps_fleet_free(fleet);
	return status;
}

void ps_fleet_free_stores(struct ps_fleet *fleet)
{
	for (unsigned i = 0; i < fleet->store_count; i++) {
		free(fleet->stores[i].trouble);
		free(fleet->stores[i].next_loss);
	}
	free(fleet->stores);
}

void ps_fleet_free(struct ps_fleet *fleet)
{
	for (unsigned i = 0; i < fleet->count; i++)
		if (fleet->daemons[i].reply)
			perseas__reply__free_unpacked(fleet->daemons[i].reply, NULL);
	for (unsigned i = 0; i < fleet->peer_set_count; i++) {
		ps_peers_close(fleet->peer_sets[i]);
		free(fleet->peer_sets[i]);
	}
	ps_fleet_free_stores(fleet);
	free(fleet->peer_sets);
	free(fleet->daemons);
	*fleet = (struct ps_fleet){ 0 };
}
