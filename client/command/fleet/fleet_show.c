/*
 * fleet_show.c - perseas status --all: prints a line for each store, those with problems first. It
 * must never print more for a store without problems.
 */
#include "fleet.h"
#include "../../../proto/base/json.h"

#include <inttypes.h>

static void print_summary(const struct ps_fleet *fleet)
{
	const unsigned stuck = fleet->ranks[PS_FLEET_STUCK],
		       bare = fleet->ranks[PS_FLEET_LACKS_REDUNDANCY];

	printf("%u store%s on %u daemon%s", fleet->store_count, ps_plural(fleet->store_count),
	       fleet->count, ps_plural(fleet->count));
	if (fleet->silent_count)
		printf(", of which %u %s not answer", fleet->silent_count,
		       fleet->silent_count == 1 ? "does" : "do");
	if (stuck)
		printf("; %u cannot be used", stuck);
	if (bare)
		printf("; %u bear%s fewer losses than promised", bare, bare == 1 ? "s" : "");
	if (!stuck && !bare && fleet->store_count)
		printf("; all bear the losses that they promise");
	if (fleet->ownerless_count)
		printf("; %u without an owner", fleet->ownerless_count);
	printf("\n");
}

void ps_fleet_add_lag_cell(struct ps_table *table, unsigned column,
                           const struct ps_fleet_store *store)
{
	char left[PS_DURATION_TEXT] = "";

	if (store->left_ms)
		ps_duration_text(left, store->left_ms * 1000000);
	if (store->total)
		ps_table_set_cell(table, column, "resync %u%%%s%s",
		                  ps_percent(store->done, store->total), *left ? ", " : "", left);
	else
		ps_table_set_number_cell(table, column, store->has_lag, store->lag);
}

static void add_store(struct ps_table *table, const struct ps_fleet_store *store)
{
	ps_table_set_cell(table, 0, "%s", store->header->store);
	ps_table_set_cell(table, 1, "%s", *store->owner ? store->owner : "-");
	ps_table_set_cell(table, 2, "%u of %u", store->live, store->members);
	ps_table_set_cell(table, 3, "%u of %u", store->losses_borne, store->losses_promised);
	ps_fleet_add_lag_cell(table, 4, store);
	ps_table_set_cell(table, 5, "%s", store->trouble);
}

static void print_text(const struct ps_fleet *fleet)
{
	struct ps_table table = { 0 };

	print_summary(fleet);
	if (!fleet->store_count)
		return;
	printf("\n");
	ps_table_add_heads(&table, "STORE|OWNER|MIRRORS|BEARS|BEHIND|TROUBLE");
	for (unsigned i = 0; i < fleet->store_count; i++)
		add_store(&table, &fleet->stores[i]);
	ps_table_print(&table, stdout);
}

void ps_fleet_store_json(struct ps_json *json, const struct ps_fleet_store *store)
{
	char id[PS_HEX_TEXT];

	ps_json_text(json, "store", store->header->store);
	ps_json_text(json, "store_id", ps_hex_text(id, store->header->store_id.data));
	ps_can_json(json, "can_commit", store->commit);
	ps_json_bool(json, "can_open", store->open);
	ps_json_number(json, "bears", store->losses_borne);
	ps_json_number(json, "promises", store->losses_promised);
	ps_json_number(json, "mirrors", store->members);
	ps_json_number(json, "mirrors_whole", store->live);
	if (store->has_lag)
		ps_json_number(json, "lag", store->lag);
	else
		ps_json_text(json, "lag", NULL);
	if (ps_json_begin_if(json, "resync", store->total)) {
		ps_json_number(json, "done", store->done);
		ps_json_number(json, "total", store->total);
		ps_json_number_if(json, "left_ms", store->left_ms, store->left_ms);
		ps_json_end(json, '}');
	}
	ps_json_text(json, "next_loss", *store->next_loss ? store->next_loss : NULL);
	ps_json_text(json, "trouble", *store->trouble ? store->trouble : NULL);
}

static void daemon_json(struct ps_json *json, const struct ps_fleet_daemon *daemon)
{
	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "address", ps_fleet_address(daemon));
	ps_json_bool(json, "named", !daemon->is_from_roster);
	ps_json_text(json, "error",
	             daemon->reply ? NULL : daemon->peers->errors[daemon->peer_index].text);
	ps_json_end(json, '}');
}

static void print_json(const struct ps_fleet *fleet)
{
	struct ps_json json = { .out = stdout };

	ps_json_begin(&json, NULL, '{');
	ps_json_number(&json, "stuck", fleet->ranks[PS_FLEET_STUCK]);
	ps_json_number(&json, "bare", fleet->ranks[PS_FLEET_LACKS_REDUNDANCY]);
	ps_json_number(&json, "without_owner", fleet->ownerless_count);
	ps_json_number(&json, "unreachable", fleet->silent_count);
	ps_json_begin(&json, "daemons", '[');
	for (unsigned i = 0; i < fleet->count; i++)
		daemon_json(&json, &fleet->daemons[i]);
	ps_json_end(&json, ']');
	ps_json_begin(&json, "stores", '[');
	for (unsigned i = 0; i < fleet->store_count; i++) {
		const struct ps_fleet_store *store = &fleet->stores[i];

		ps_json_begin(&json, NULL, '{');
		ps_json_text(&json, "owner", *store->owner ? store->owner : NULL);
		ps_fleet_store_json(&json, store);
		ps_json_end(&json, '}');
	}
	ps_json_end(&json, ']');
	ps_json_end(&json, '}');
}

static enum ps_exit exit_status(const struct ps_fleet *fleet, bool tells_all)
{
	if (fleet->silent_count == fleet->count)
		return ps_complain(PS_EXIT_FAILURE, "no daemon answers");
	if (fleet->ranks[PS_FLEET_STUCK] || fleet->ranks[PS_FLEET_LACKS_REDUNDANCY])
		return PS_EXIT_NO;
	return tells_all ? PS_EXIT_OK : PS_EXIT_PARTLY;
}

/* Says that a daemon does not answer, or which images it refuses. Returns true if there is nothing
 * to say. */
static bool complain_of_daemon(const struct ps_fleet_daemon *daemon)
{
	const Perseas__ListReply *list = daemon->reply ? daemon->reply->list : NULL;

	if (!list) {
		ps_peers_complain(daemon->peers, daemon->peer_index);
		return false;
	}
	for (size_t i = 0; i < list->n_refused; i++)
		ps_complain(PS_EXIT_OK, "%s: it does not serve its image of store %s: %s",
		            ps_fleet_address(daemon), list->refused[i]->store,
		            list->refused[i]->why);
	return list->n_refused == 0;
}

enum ps_exit ps_fleet_print_status(const struct ps_args *args)
{
	struct ps_fleet fleet;
	bool tells_all = true;
	enum ps_exit status = ps_fleet_ask_daemons(&fleet, args->mirrors, &args->options);

	if (status)
		return status;
	ps_fleet_judge_stores(&fleet);
	if (args->json)
		print_json(&fleet);
	else
		print_text(&fleet);
	for (unsigned i = 0; i < fleet.count; i++)
		tells_all &= complain_of_daemon(&fleet.daemons[i]);
	status = exit_status(&fleet, tells_all);
	ps_fleet_free(&fleet);
	return status;
}
