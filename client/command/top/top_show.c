/*
 * top_show.c - prints the looks of perseas top.
 */
#include "top.h"

#include "../../../proto/base/json.h"

#include <math.h>

/* --- for people --- */

static void add_owner(struct ps_table *table, const struct ps_fleet_store *store)
{
	const uint64_t missing = store->figures ? store->figures->missing : 0;
	char size[PS_SIZE_TEXT];

	if (!*store->owner)
		ps_table_set_cell(table, 7, "-");
	else if (missing)
		ps_table_set_cell(table, 7, "%s, reads %s from mirrors", store->owner,
		                  ps_size_text(size, missing));
	else
		ps_table_set_cell(table, 7, "%s", store->owner);
}

static void add_latency(struct ps_table *table, unsigned column, bool known, uint64_t ns)
{
	char text[PS_DURATION_TEXT];

	ps_table_set_cell(table, column, "%s", known ? ps_duration_text(text, ns) : "-");
}

static void add_store(struct ps_table *table, const struct ps_fleet_store *store,
                      const struct ps_top_change *change)
{
	ps_table_set_cell(table, 0, "%s", store->header->store);
	ps_table_set_number_cell(table, 1, store->has_slot, store->seq);
	if (change->rate < 0)
		ps_table_set_cell(table, 2, "-");
	else
		ps_table_set_cell(table, 2, change->rate < 100 ? "%.1f" : "%.0f", change->rate);
	add_latency(table, 3, change->has_latency, change->p50_ns);
	add_latency(table, 4, change->has_latency, change->p99_ns);
	ps_table_set_cell(table, 5, "%u of %u", store->live, store->members);
	ps_fleet_add_lag_cell(table, 6, store);
	add_owner(table, store);
	ps_table_set_cell(table, 8, "%s", store->trouble);
}

void ps_top_print(const struct ps_top *top, const struct ps_peers *peers, FILE *out)
{
	struct ps_table table = { 0 };

	for (unsigned i = 0; i < peers->count; i++)
		if (!peers->replies[i] && *peers->errors[i].text)
			fprintf(out, "%s\n", peers->errors[i].text);
	if (!top->fleet.store_count) {
		fprintf(out, "no stores are seen\n");
		return;
	}
	ps_table_add_heads(&table, "STORE|SEQ|TX/S|P50|P99|MIRRORS|BEHIND|OWNER|TROUBLE");
	for (unsigned i = 0; i < top->fleet.store_count; i++)
		add_store(&table, &top->fleet.stores[i], &top->changes[i]);
	ps_table_print(&table, out);
}

/* --- for programs --- */

static void addresses_json(struct ps_json *json, const struct ps_peers *peers)
{
	ps_json_begin(json, "addresses", '[');
	for (unsigned i = 0; i < peers->count; i++) {
		const Perseas__Reply *reply = peers->replies[i];

		ps_json_begin(json, NULL, '{');
		ps_json_text(json, "address", peers->addresses[i].text);
		ps_json_bool(json, "answers", reply != NULL);
		ps_json_text(json, "error", reply ? NULL : peers->errors[i].text);
		if (reply) {
			ps_json_text(json, "version", reply->list->version);
			ps_json_number(json, "memory_used", reply->list->memory_used);
			ps_json_number(json, "memory_limit", reply->list->memory_limit);
		}
		ps_json_end(json, '}');
	}
	ps_json_end(json, ']');
}

/* Adds the owner's figures, which count from its open on. */
static void figures_json(struct ps_json *json, const Perseas__OwnerFigures *figures)
{
	if (!ps_json_begin_if(json, "figures", figures))
		return;
	ps_json_number(json, "commits", figures->commits);
	ps_json_number(json, "aborts", figures->aborts);
	ps_json_number(json, "range_bytes", figures->range_bytes);
	ps_json_number(json, "in_doubt", figures->in_doubt);
	ps_json_number(json, "saved_within", figures->saved_within);
	ps_json_number(json, "saved_between", figures->saved_between);
	ps_json_number(json, "missing", figures->missing);
	ps_json_number(json, "resync_bytes", figures->resync_bytes);
	ps_json_end(json, '}');
}

static void change_json(struct ps_json *json, const struct ps_top_change *change)
{
	ps_json_real(json, "tx_per_second", change->rate < 0 ? NAN : change->rate);
	if (!ps_json_begin_if(json, "latency_ns", change->has_latency))
		return;
	ps_json_number(json, "p50", change->p50_ns);
	ps_json_number(json, "p99", change->p99_ns);
	ps_json_number(json, "p999", change->p999_ns);
	ps_json_end(json, '}');
}

static void store_json(struct ps_json *json, const struct ps_fleet_store *store,
                       const struct ps_top_change *change)
{
	const Perseas__StoreStatus *owner = store->owner_status;

	ps_json_begin(json, NULL, '{');
	ps_json_number_if(json, "epoch", store->has_slot, store->epoch);
	ps_json_number_if(json, "seq", store->has_slot, store->seq);
	if (ps_json_begin_if(json, "owner", owner)) {
		ps_json_text(json, "address", owner->owner_address);
		ps_json_text(json, "fabric", owner->fabric);
		ps_json_number(json, "epoch", owner->header->promised_epoch);
		ps_json_number(json, "silent_ms", owner->silent_ms);
		ps_json_end(json, '}');
	}
	change_json(json, change);
	figures_json(json, store->figures);
	ps_fleet_store_json(json, store);
	ps_json_end(json, '}');
}

void ps_top_json(const struct ps_top *top, const struct ps_peers *peers, uint64_t clock_ns,
                 FILE *out)
{
	struct ps_json json = { .out = out, .one_line = true };
	char time[PS_TIME_TEXT];

	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "time", ps_time_text(time, clock_ns));
	addresses_json(&json, peers);
	ps_json_begin(&json, "stores", '[');
	for (unsigned i = 0; i < top->fleet.store_count; i++)
		store_json(&json, &top->fleet.stores[i], &top->changes[i]);
	ps_json_end(&json, ']');
	ps_json_end(&json, '}');
}
