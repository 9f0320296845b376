/*
 * cmd_ls.c - perseas ls: lists the stores that each mirror has.
 */
#include "command.h"
#include "ask/ask.h"
#include "fleet/store_notes.h"
#include "../../proto/base/json.h"

/* Returns the state of an image. A consistent image without a slot is refused: perseas status tells
 * whether it is damaged. */
static const char *image_state_text(const Perseas__StoreStatus *status)
{
	if (status->header->state == PERSEAS__STATE__STATE_CONSISTENT && !status->slot)
		return "not served";
	return ps_state_text(status->header->state);
}

static void print_stores(const struct ps_peers *peers, const struct ps_store_notes *notes,
                         unsigned mirror)
{
	const Perseas__ListReply *list = peers->replies[mirror]->list;
	struct ps_table table = { 0 };
	char size[PS_SIZE_TEXT];

	ps_table_add_heads(&table, "  STORE|STATE|EPOCH:SEQ|BYTES|OWNER|");
	for (size_t i = 0; i < list->n_stores; i++) {
		const Perseas__StoreStatus *status = list->stores[i];
		ps_table_set_cell(&table, 0, "  %s", status->header->store);
		ps_table_set_cell(&table, 1, "%s", image_state_text(status));
		ps_table_set_slot_cell(&table, 2, status->slot);
		ps_table_set_cell(&table, 3, "%s", ps_size_text(size, status->bytes));
		ps_table_set_cell(&table, 4, status->live ? "%s %s" : "-", status->owner_address,
		                  status->fabric);
		if (*status->files_missing)
			ps_table_set_cell(&table, 5, "would not survive a restart: %s",
			                  status->files_missing);
		else
			ps_table_set_cell(&table, 5, "%s", notes->of[mirror][i]);
	}
	ps_table_print(&table, stdout);
}

/* Prints the labels of a daemon, which are in the status of each of its stores. */
static void print_labels(const Perseas__ListReply *list)
{
	const Perseas__StoreStatus *status = list->n_stores ? list->stores[0] : NULL;

	if (!status)
		return;
	if (*status->host)
		printf(", host %s", status->host);
	if (*status->rack)
		printf(", rack %s", status->rack);
	if (*status->zone)
		printf(", zone %s", status->zone);
}

static void print_mirror(const struct ps_peers *peers, const struct ps_store_notes *notes,
                         unsigned i)
{
	const Perseas__ListReply *list;
	char used[PS_SIZE_TEXT], limit[PS_SIZE_TEXT];

	if (!peers->replies[i]) {
		printf("%s: %s\n", peers->addresses[i].text, ps_peers_absence_text(peers, i));
		return;
	}
	list = peers->replies[i]->list;
	printf("%s: perseasd %s, %zu store%s, memory %s%s%s", peers->addresses[i].text,
	       list->version, list->n_stores, ps_plural(list->n_stores),
	       ps_size_text(used, list->memory_used),
	       list->memory_limit ? " of " : ", no --max-memory",
	       list->memory_limit ? ps_size_text(limit, list->memory_limit) : "");
	print_labels(list);
	printf("\n");
	if (list->n_stores > 0)
		print_stores(peers, notes, i);
	for (size_t k = 0; k < list->n_refused; k++)
		printf("  %s is not served: %s\n", list->refused[k]->store, list->refused[k]->why);
	for (size_t k = 0; k < list->n_set_aside; k++)
		printf("  set aside, since it may be old: %s\n", list->set_aside[k]->folder);
}

static void store_json(struct ps_json *json, const Perseas__StoreStatus *status, const char *note)
{
	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "store", status->header->store);
	ps_json_text(json, "host", *status->host ? status->host : NULL);
	ps_json_text(json, "rack", *status->rack ? status->rack : NULL);
	ps_json_text(json, "zone", *status->zone ? status->zone : NULL);
	ps_json_text(json, "state", image_state_text(status));
	ps_json_slot(json, "slot", status->slot);
	ps_json_number(json, "bytes", status->bytes);
	ps_json_bool(json, "live", status->live);
	ps_json_text(json, "owner_address", status->live ? status->owner_address : NULL);
	ps_json_text(json, "fabric", status->live ? status->fabric : NULL);
	ps_json_text(json, "files_missing", *status->files_missing ? status->files_missing : NULL);
	ps_json_text(json, "note", *note ? note : NULL);
	ps_json_end(json, '}');
}

static void refused_json(struct ps_json *json, const Perseas__RefusedImage *refused)
{
	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "store", refused->store);
	ps_json_text(json, "error", refused->why);
	ps_json_end(json, '}');
}

static void mirror_json(struct ps_json *json, const struct ps_peers *peers,
                        const struct ps_store_notes *notes, unsigned i)
{
	const Perseas__ListReply *list;

	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "address", peers->addresses[i].text);
	ps_json_bool(json, "reachable", ps_peers_answered(peers, i));
	ps_peers_daemon_json(json, peers, i);
	ps_json_text(json, "error", peers->replies[i] ? NULL : peers->errors[i].text);
	if (peers->replies[i]) {
		list = peers->replies[i]->list;
		ps_json_text(json, "version", list->version);
		ps_json_number(json, "memory_used", list->memory_used);
		ps_json_number(json, "memory_limit", list->memory_limit);
		ps_json_begin(json, "stores", '[');
		for (size_t k = 0; k < list->n_stores; k++)
			store_json(json, list->stores[k], notes->of[i][k]);
		ps_json_end(json, ']');
		ps_json_begin(json, "refused", '[');
		for (size_t k = 0; k < list->n_refused; k++)
			refused_json(json, list->refused[k]);
		ps_json_end(json, ']');
		ps_json_begin(json, "set_aside", '[');
		for (size_t k = 0; k < list->n_set_aside; k++)
			ps_json_text(json, NULL, list->set_aside[k]->folder);
		ps_json_end(json, ']');
	}
	ps_json_end(json, '}');
}

static void print_json(const struct ps_peers *peers, const struct ps_store_notes *notes)
{
	struct ps_json json = { .out = stdout };

	ps_json_begin(&json, NULL, '{');
	ps_json_begin(&json, "mirrors", '[');
	for (unsigned i = 0; i < peers->count; i++)
		mirror_json(&json, peers, notes, i);
	ps_json_end(&json, ']');
	ps_json_end(&json, '}');
}

enum ps_exit ps_verb_ls(const struct ps_args *args)
{
	struct ps_peers peers;
	struct ps_store_notes notes;
	unsigned silent = 0;
	enum ps_exit status = ps_peers_open(&peers, args->mirrors, &args->options);

	if (status)
		return status;
	ps_peers_ask_all(&peers, ps_peers_list_request());
	ps_store_notes_take(&notes, &peers);
	if (args->json)
		print_json(&peers, &notes);
	for (unsigned i = 0; i < peers.count; i++) {
		if (!args->json)
			print_mirror(&peers, &notes, i);
		if (!peers.replies[i]) {
			ps_complain(PS_EXIT_OK, "%s", peers.errors[i].text);
			silent++;
		}
	}
	if (silent)
		status = silent < peers.count ? PS_EXIT_PARTLY : PS_EXIT_FAILURE;
	ps_store_notes_free(&notes, &peers);
	ps_peers_close(&peers);
	return status;
}
