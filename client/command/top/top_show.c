/*
 * top_show.c - what perseas top prints.
 */
#include "top.h"

#include "../ask/owner_report.h"
#include "../../../proto/base/json.h"

#include <math.h>

enum { NUMBER_TEXT = PS_DURATION_TEXT };

static const char *rate_text(char text[NUMBER_TEXT], double rate)
{
	if (rate < 0)
		return "-";
	snprintf(text, NUMBER_TEXT, rate < 100 ? "%.1f" : "%.0f", rate);
	return text;
}

static void add_owner(struct ps_table *table, const struct ps_top_store *store)
{
	const uint64_t missing = store->figures ? store->figures->missing : 0;
	char size[PS_SIZE_TEXT], reads[PS_SIZE_TEXT + 32] = "";

	if (!store->owner) {
		ps_table_cell(table, 6, "-");
		return;
	}
	if (missing)
		snprintf(reads, sizeof(reads), ", reads %s from mirrors",
		         ps_size_text(size, missing));
	if (store->owner->silent_ms > PS_OWNER_SILENT_MS)
		ps_table_cell(table, 6, "%s, silent for %.0f s%s", store->owner->owner_address,
		              (double)store->owner->silent_ms / 1000, reads);
	else
		ps_table_cell(table, 6, "%s%s", store->owner->owner_address, reads);
}

static void add_store(struct ps_table *table, const struct ps_top_store *store)
{
	char text[NUMBER_TEXT];

	ps_table_cell(table, 0, "%s", store->header->store);
	ps_table_number(table, 1, store->has_slot, store->epoch);
	ps_table_number(table, 2, store->has_slot, store->seq);
	ps_table_cell(table, 3, "%s", rate_text(text, store->rate));
	ps_table_cell(table, 4, "%s",
	              store->has_latency ? ps_duration_text(text, store->p50_ns) : "-");
	ps_table_cell(table, 5, "%s",
	              store->has_latency ? ps_duration_text(text, store->p99_ns) : "-");
	add_owner(table, store);
}

static void print_stores(const struct ps_top *top, FILE *out)
{
	struct ps_table table = { 0 };

	ps_table_heads(&table, "STORE|EPOCH|SEQ|TX/S|P50|P99|OWNER");
	for (unsigned i = 0; i < top->count; i++)
		add_store(&table, &top->stores[i]);
	ps_table_print(&table, out);
}

static void add_mirror(struct ps_table *table, const char *store,
                       const struct ps_top_mirror *mirror)
{
	char total[PS_SIZE_TEXT];

	ps_table_cell(table, 0, "%s", store);
	ps_table_cell(table, 1, "%s", mirror->address);
	ps_table_cell(table, 2, "%s", mirror->state);
	ps_table_number(table, 3, mirror->has_seq, mirror->lag);
	ps_table_cell(table, 4, "%s", *mirror->fabric ? mirror->fabric : "-");
	if (mirror->total)
		ps_table_cell(table, 5, "%u%% of %s", ps_percent(mirror->done, mirror->total),
		              ps_size_text(total, mirror->total));
	else
		ps_table_cell(table, 5, "-");
	ps_table_cell(table, 6, "%s", mirror->trouble);
}

static void print_mirrors(const struct ps_top *top, FILE *out)
{
	struct ps_table table = { 0 };

	ps_table_heads(&table, "STORE|MIRROR|STATE|LAG|FABRIC|RESYNC|");
	for (unsigned i = 0; i < top->count; i++)
		for (unsigned k = 0; k < top->stores[i].mirror_count; k++)
			add_mirror(&table, top->stores[i].header->store,
			           &top->stores[i].mirrors[k]);
	ps_table_print(&table, out);
}

void ps_top_print(const struct ps_top *top, const struct ps_panel *panel, FILE *out)
{
	for (unsigned i = 0; i < panel->count; i++)
		if (!panel->replies[i])
			fprintf(out, "%s\n", panel->errors[i].text);
	if (!top->count) {
		fprintf(out, "no stores are seen\n");
		return;
	}
	print_stores(top, out);
	fputc('\n', out);
	print_mirrors(top, out);
}

/* --- for programs --- */

static void addresses_json(struct ps_json *json, const struct ps_panel *panel)
{
	ps_json_begin(json, "addresses", '[');
	for (unsigned i = 0; i < panel->count; i++) {
		const Perseas__ListReply *told = panel->replies[i] ? panel->replies[i]->list : NULL;

		ps_json_begin(json, NULL, '{');
		ps_json_text(json, "address", panel->addresses[i].text);
		ps_json_bool(json, "answers", told != NULL);
		ps_json_text(json, "error", told ? NULL : panel->errors[i].text);
		if (told) {
			ps_json_text(json, "version", told->version);
			ps_json_number(json, "memory_used", told->memory_used);
			ps_json_number(json, "memory_limit", told->memory_limit);
		}
		ps_json_end(json, '}');
	}
	ps_json_end(json, ']');
}

static void mirror_json(struct ps_json *json, const struct ps_top_mirror *mirror)
{
	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "address", mirror->address);
	ps_json_text(json, "state", mirror->state);
	ps_json_bool(json, "reported", mirror->reported);
	ps_json_text(json, "fabric", *mirror->fabric ? mirror->fabric : NULL);
	ps_json_number_if(json, "seq", mirror->has_seq, mirror->seq);
	ps_json_number_if(json, "lag", mirror->has_seq, mirror->lag);
	if (ps_json_begin_if(json, "resync", mirror->total)) {
		ps_json_number(json, "done", mirror->done);
		ps_json_number(json, "total", mirror->total);
		ps_json_end(json, '}');
	}
	ps_json_text(json, "trouble", mirror->trouble);
	ps_json_end(json, '}');
}

/* What was counted since the owner opened the store. */
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
	ps_json_end(json, '}');
}

static void latency_json(struct ps_json *json, const struct ps_top_store *store)
{
	if (!ps_json_begin_if(json, "latency_ns", store->has_latency))
		return;
	ps_json_number(json, "p50", store->p50_ns);
	ps_json_number(json, "p99", store->p99_ns);
	ps_json_number(json, "p999", store->p999_ns);
	ps_json_end(json, '}');
}

static void store_json(struct ps_json *json, const struct ps_top_store *store)
{
	char id[PS_HEX_TEXT];

	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "store", store->header->store);
	ps_json_text(json, "store_id", ps_hex_text(id, store->header->store_id.data));
	ps_json_number_if(json, "epoch", store->has_slot, store->epoch);
	ps_json_number_if(json, "seq", store->has_slot, store->seq);
	if (ps_json_begin_if(json, "owner", store->owner)) {
		ps_json_text(json, "address", store->owner->owner_address);
		ps_json_number(json, "epoch", store->owner->header->promised_epoch);
		ps_json_number(json, "silent_ms", store->owner->silent_ms);
		ps_json_end(json, '}');
	}
	ps_json_real(json, "tx_per_second", store->rate < 0 ? NAN : store->rate);
	latency_json(json, store);
	figures_json(json, store->figures);
	ps_json_begin(json, "mirrors", '[');
	for (unsigned k = 0; k < store->mirror_count; k++)
		mirror_json(json, &store->mirrors[k]);
	ps_json_end(json, ']');
	ps_json_end(json, '}');
}

void ps_top_json(const struct ps_top *top, const struct ps_panel *panel, uint64_t clock_ns,
                 FILE *out)
{
	struct ps_json json = { .out = out, .one_line = true };
	char time[PS_TIME_TEXT];

	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "time", ps_time_text(time, clock_ns));
	addresses_json(&json, panel);
	ps_json_begin(&json, "stores", '[');
	for (unsigned i = 0; i < top->count; i++)
		store_json(&json, &top->stores[i]);
	ps_json_end(&json, ']');
	ps_json_end(&json, '}');
}
