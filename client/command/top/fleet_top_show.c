/*
 * fleet_top_show.c - what perseas top --all prints: a line for each store and daemon that needs
 * somebody, and totals for the rest. cmd_top.c calls it. However many daemons are well, or do not
 * answer, it must never print more than a screen of them.
 */
#include "fleet_top.h"

#include "../../../proto/base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SILENT_SHOWN = 8, DAEMONS_SHOWN = 16, NUMBER_TEXT = 32 };

static const char *rate_text(char text[NUMBER_TEXT], double rate)
{
	if (rate < 0)
		return "-";
	snprintf(text, NUMBER_TEXT, rate < 100 ? "%.1f" : "%.0f", rate);
	return text;
}

/* --- stores --- */

static void add_trouble(struct ps_table *table, const struct ps_fleet_store *store,
                        const struct ps_fleet_move *move)
{
	if (move->gone)
		ps_table_cell(table, PS_FLEET_CELLS + 1, "its owner has been gone for %.0f s%s%s",
		              (double)move->gone_ns / 1e9, *store->trouble ? "; " : "",
		              store->trouble);
	else
		ps_table_cell(table, PS_FLEET_CELLS + 1, "%s", store->trouble);
}

static void add_store(struct ps_table *table, const struct ps_fleet_store *store,
                      const struct ps_fleet_move *move)
{
	char text[NUMBER_TEXT];

	ps_fleet_cells(table, store);
	ps_table_cell(table, PS_FLEET_CELLS, "%s", rate_text(text, move->rate));
	add_trouble(table, store, move);
}

static void print_stores(const struct ps_fleet_top *top, FILE *out)
{
	const unsigned well = top->fleet.store_count - top->attention;
	struct ps_table table = { 0 };
	char text[NUMBER_TEXT];

	if (top->attention) {
		ps_table_heads(&table, PS_FLEET_HEADS "|TX/S|TROUBLE");
		for (unsigned i = 0; i < top->fleet.store_count; i++)
			if (top->moves[i].attention)
				add_store(&table, &top->fleet.stores[i], &top->moves[i]);
		ps_table_print(&table, out);
	}
	fprintf(out, "%u store%s %s well", well, ps_plural(well), well == 1 ? "is" : "are");
	if (top->well_free)
		fprintf(out, ", %u of them without an owner", top->well_free);
	if (top->rate >= 0)
		fprintf(out, "; %s transactions a second in all", rate_text(text, top->rate));
	fputc('\n', out);
}

/* --- daemons --- */

/* Which part of its memory is used, 0 to 1; 0 also where it does not tell. */
static double fullness_of(const struct ps_fleet_told *told)
{
	const double used = told->host ? (double)told->host->memory_used : 0;
	const double room = told->host ? (double)told->host->memory_room : 0;

	return used + room > 0 ? used / (used + room) : 0;
}

struct seat {
	double fullness;
	unsigned at;
};

/* The fullest first, else as they stand in the list. */
static int compare_seats(const void *a, const void *b)
{
	const struct seat *one = a, *other = b;

	if (one->fullness != other->fullness)
		return one->fullness < other->fullness ? 1 : -1;
	return (one->at > other->at) - (one->at < other->at);
}

/* Those that answer; the caller's. */
static struct seat *seat_daemons(const struct ps_fleet_top *top, unsigned *count)
{
	struct seat *seats = ps_or_end(calloc(top->fleet.count + 1, sizeof(*seats)));

	*count = 0;
	for (unsigned i = 0; i < top->fleet.count; i++)
		if (top->fleet.daemons[i].reply)
			seats[(*count)++] = (struct seat){ fullness_of(&top->told[i]), i };
	qsort(seats, *count, sizeof(*seats), compare_seats);
	return seats;
}

/* One that speaks an older version tells no more than its stores. */
static void add_host(struct ps_table *table, const Perseas__HostReply *host)
{
	char size[PS_SIZE_TEXT];

	if (!host) {
		for (unsigned column = 2; column < 6; column++)
			ps_table_cell(table, column, "-");
		return;
	}

	ps_table_number(table, 2, true, host->owners);
	ps_table_cell(table, 3, "%s", ps_size_text(size, host->memory_used));
	ps_table_cell(table, 4, "%s", ps_size_text(size, host->memory_room));
	if (host->processors)
		ps_table_cell(table, 5, "%.2f of %u", (double)host->load / 1000, host->processors);
	else
		ps_table_cell(table, 5, "%.2f", (double)host->load / 1000);
}

static const char *note_of(const struct ps_fleet_told *told)
{
	if (*told->error->text)
		return told->error->text;
	return told->host && ps_fleet_top_is_full(told->host)
	               ? "less than a tenth of its memory is left"
	               : "";
}

static void add_daemon(struct ps_table *table, const struct ps_fleet_top *top, unsigned i)
{
	const struct ps_fleet_daemon *daemon = &top->fleet.daemons[i];

	ps_table_cell(table, 0, "%s", ps_fleet_address(daemon));
	ps_table_number(table, 1, true, daemon->reply->list->n_stores);
	add_host(table, top->told[i].host);
	ps_table_cell(table, 6, "%s", note_of(&top->told[i]));
}

static void print_silent(const struct ps_fleet_top *top, FILE *out)
{
	unsigned shown = 0;

	for (unsigned i = 0; i < top->fleet.count && shown < SILENT_SHOWN; i++)
		if (!top->fleet.daemons[i].reply) {
			fprintf(out, "%s\n", top->told[i].error->text);
			shown++;
		}
	if (top->fleet.silent > shown)
		fprintf(out, "%u more do not answer\n", top->fleet.silent - shown);
}

static void print_daemons(const struct ps_fleet_top *top, FILE *out)
{
	struct ps_table table = { 0 };
	unsigned count;
	struct seat *seats = seat_daemons(top, &count);

	if (count) {
		ps_table_heads(&table, "DAEMON|STORES|OWNERS|USED|ROOM|LOAD|");
		for (unsigned i = 0; i < count && i < DAEMONS_SHOWN; i++)
			add_daemon(&table, top, seats[i].at);
		fputc('\n', out);
		ps_table_print(&table, out);
	}
	if (count > DAEMONS_SHOWN)
		fprintf(out, "%u more daemons, none of them fuller than %.0f %%\n",
		        count - DAEMONS_SHOWN, 100 * seats[DAEMONS_SHOWN].fullness);
	free(seats);
}

void ps_fleet_top_print(const struct ps_fleet_top *top, FILE *out)
{
	print_silent(top, out);
	if (top->fleet.store_count)
		print_stores(top, out);
	else
		fprintf(out, "no stores are seen\n");
	print_daemons(top, out);
}

/* --- for programs --- */

static void daemons_json(struct ps_json *json, const struct ps_fleet_top *top)
{
	ps_json_begin(json, "daemons", '[');
	for (unsigned i = 0; i < top->fleet.count; i++) {
		const struct ps_fleet_daemon *daemon = &top->fleet.daemons[i];
		const Perseas__HostReply *host = top->told[i].host;

		ps_json_begin(json, NULL, '{');
		ps_fleet_daemon_json(json, daemon, daemon->reply ? NULL : top->told[i].error->text);
		if (host) {
			ps_json_number(json, "stores", host->stores);
			ps_json_number(json, "owners", host->owners);
			ps_json_number(json, "memory_used", host->memory_used);
			ps_json_number(json, "memory_limit", host->memory_limit);
			ps_json_number(json, "memory_room", host->memory_room);
			ps_json_real(json, "load", (double)host->load / 1000);
			ps_json_number_if(json, "processors", host->processors, host->processors);
		}
		ps_json_end(json, '}');
	}
	ps_json_end(json, ']');
}

static void stores_json(struct ps_json *json, const struct ps_fleet_top *top)
{
	ps_json_begin(json, "stores", '[');
	for (unsigned i = 0; i < top->fleet.store_count; i++) {
		const struct ps_fleet_move *move = &top->moves[i];

		ps_json_begin(json, NULL, '{');
		ps_fleet_store_json(json, &top->fleet.stores[i]);
		ps_json_real(json, "tx_per_second", move->rate < 0 ? NAN : move->rate);
		ps_json_number_if(json, "owner_gone_ms", move->gone, move->gone_ns / 1000000);
		ps_json_bool(json, "attention", move->attention);
		ps_json_end(json, '}');
	}
	ps_json_end(json, ']');
}

void ps_fleet_top_json(const struct ps_fleet_top *top, uint64_t clock_ns, FILE *out)
{
	struct ps_json json = { .out = out, .one_line = true };
	char time[PS_TIME_TEXT];

	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "time", ps_time_text(time, clock_ns));
	ps_fleet_json(&json, &top->fleet);
	ps_json_number(&json, "attention", top->attention);
	ps_json_real(&json, "tx_per_second", top->rate < 0 ? NAN : top->rate);
	daemons_json(&json, top);
	stores_json(&json, top);
	ps_json_end(&json, '}');
}
