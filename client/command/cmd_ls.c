/*
 * cmd_ls.c - perseas ls: what each mirror has.
 */
#include "command.h"
#include "ask/ask.h"
#include "ask/next_loss.h"
#include "../../proto/base/json.h"
#include "../../proto/control/envelope.h"

#include <stdlib.h>
#include <string.h>

static const Perseas__StoreStatus *find_image(const struct ps_peers *peers, unsigned i,
                                              const Perseas__Header *header)
{
	const Perseas__ListReply *list = peers->replies[i] ? peers->replies[i]->list : NULL;

	for (size_t k = 0; list && k < list->n_stores; k++)
		if (!strcmp(list->stores[k]->header->store, header->store) &&
		    ps_id_equal(list->stores[k]->header->store_id, header->store_id.data))
			return list->stores[k];
	return NULL;
}

/* Judges by what all mirrors told: an image without transactions may only be behind. */
static const char *filling_text(const struct ps_images *images, const Perseas__StoreStatus *status)
{
	if (!status->header->roster->filling || (status->slot && status->slot->seq))
		return "";
	if (images->judged.outlook == PS_OUTLOOK_UNFILLED)
		return "restore unfinished";
	return images->judged.outlook == PS_OUTLOOK_UNKNOWN
	               ? "restore unfinished, unless other mirrors have more"
	               : "";
}

/* Names the host that mirror i shares with other mirrors of the store, if it shares one. */
static void print_shared_host(FILE *out, const struct ps_images *images, unsigned i)
{
	const unsigned count = images->peers->count;
	struct ps_spot spots[PS_MIRRORS_MAX];

	ps_images_spots(images, spots);
	for (;;) {
		const struct ps_loss loss = ps_spots_together(spots, count);

		if (loss.spots >> i & 1) {
			ps_loss_print(out, &loss, images);
			fputs(" would be lost together", out);
		}
		if (!loss.spots || loss.spots >> i & 1)
			return;
		for (unsigned k = 0; k < count; k++)
			spots[k].closed = spots[k].closed || loss.spots >> k & 1;
	}
}

/* Returns a note on the image that mirror i shows, or "" if there is nothing to note. The caller
 * frees the text. */
static char *note_of(const struct ps_peers *peers, unsigned i, const Perseas__StoreStatus *status)
{
	struct ps_images images = { .peers = peers };
	size_t size;
	char *text;
	FILE *out = ps_or_end(open_memstream(&text, &size));

	for (unsigned k = 0; k < peers->count; k++)
		images.told[k] = find_image(peers, k, status->header);
	ps_images_judge(&images);
	fputs(filling_text(&images, status), out);
	if (status->header->state == PERSEAS__STATE__STATE_CREATING)
		fputs("its making was not finished", out);
	fflush(out);
	if (!size)
		print_shared_host(out, &images, i);
	fclose(out);
	return ps_or_end(text);
}

static void print_stores(const struct ps_peers *peers, unsigned mirror)
{
	const Perseas__ListReply *list = peers->replies[mirror]->list;
	struct ps_table table = { 0 };
	char size[PS_SIZE_TEXT];

	ps_table_heads(&table, "  STORE|STATE|EPOCH:SEQ|BYTES|OWNER|");
	for (size_t i = 0; i < list->n_stores; i++) {
		const Perseas__StoreStatus *status = list->stores[i];
		char *note = note_of(peers, mirror, status);

		ps_table_cell(&table, 0, "  %s", status->header->store);
		ps_table_cell(&table, 1, "%s", ps_state_text(status->header->state));
		ps_table_slot(&table, 2, status->slot);
		ps_table_cell(&table, 3, "%s", ps_size_text(size, status->bytes));
		ps_table_cell(&table, 4, status->live ? "%s %s" : "-", status->owner_address,
		              status->fabric);
		if (*status->files_missing)
			ps_table_cell(&table, 5, "would not survive a restart: %s",
			              status->files_missing);
		else
			ps_table_cell(&table, 5, "%s", note);
		free(note);
	}
	ps_table_print(&table, stdout);
}

/* Prints the labels of a daemon, which it tells with each store. */
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

static void print_mirror(const struct ps_peers *peers, unsigned i)
{
	const Perseas__ListReply *list;
	char used[PS_SIZE_TEXT], limit[PS_SIZE_TEXT];

	if (!peers->replies[i]) {
		printf("%s: %s\n", peers->addresses[i].text, ps_peers_absence(peers, i));
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
		print_stores(peers, i);
	for (size_t k = 0; k < list->n_set_aside; k++)
		printf("  set aside, since it may be old: %s\n", list->set_aside[k]->folder);
}

static void store_json(struct ps_json *json, const struct ps_peers *peers, unsigned mirror,
                       const Perseas__StoreStatus *status)
{
	char *note = note_of(peers, mirror, status);

	ps_json_begin(json, NULL, '{');
	ps_json_text(json, "store", status->header->store);
	ps_json_text(json, "host", *status->host ? status->host : NULL);
	ps_json_text(json, "rack", *status->rack ? status->rack : NULL);
	ps_json_text(json, "zone", *status->zone ? status->zone : NULL);
	ps_json_text(json, "state", ps_state_text(status->header->state));
	ps_json_slot(json, "slot", status->slot);
	ps_json_number(json, "bytes", status->bytes);
	ps_json_bool(json, "live", status->live);
	ps_json_text(json, "owner_address", status->live ? status->owner_address : NULL);
	ps_json_text(json, "fabric", status->live ? status->fabric : NULL);
	ps_json_text(json, "files_missing", *status->files_missing ? status->files_missing : NULL);
	ps_json_text(json, "note", *note ? note : NULL);
	ps_json_end(json, '}');
	free(note);
}

static void mirror_json(struct ps_json *json, const struct ps_peers *peers, unsigned i)
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
			store_json(json, peers, i, list->stores[k]);
		ps_json_end(json, ']');
		ps_json_begin(json, "set_aside", '[');
		for (size_t k = 0; k < list->n_set_aside; k++)
			ps_json_text(json, NULL, list->set_aside[k]->folder);
		ps_json_end(json, ']');
	}
	ps_json_end(json, '}');
}

static void print_json(const struct ps_peers *peers)
{
	struct ps_json json = { .out = stdout };

	ps_json_begin(&json, NULL, '{');
	ps_json_begin(&json, "mirrors", '[');
	for (unsigned i = 0; i < peers->count; i++)
		mirror_json(&json, peers, i);
	ps_json_end(&json, ']');
	ps_json_end(&json, '}');
}

enum ps_exit ps_verb_ls(const struct ps_args *args)
{
	struct ps_peers peers;
	unsigned silent = 0;
	enum ps_exit status = ps_peers_open(&peers, args->mirrors, &args->options);

	if (status)
		return status;
	ps_peers_ask_all(&peers, ps_peers_list_request());
	if (args->json)
		print_json(&peers);
	for (unsigned i = 0; i < peers.count; i++) {
		if (!args->json)
			print_mirror(&peers, i);
		if (!peers.replies[i]) {
			ps_complain(PS_EXIT_OK, "%s", peers.errors[i].text);
			silent++;
		}
	}
	if (silent)
		status = silent < peers.count ? PS_EXIT_PARTLY : PS_EXIT_FAILURE;
	ps_peers_close(&peers);
	return status;
}
