/*
 * cmd_drop.c - perseas drop: deletes the image of a store from one mirror.
 */
#include "drop.h"
#include "json.h"
#include "../../proto/envelope.h"

#include <inttypes.h>

/* header NULL: whatever is damaged under that name. */
static void ask_to_drop(struct ps_panel *panel, const char *store, unsigned i,
                        const Perseas__Header *header)
{
	const Perseas__Request *requests[PS_MIRRORS_MAX] = { NULL };
	Perseas__DropRequest ask = PERSEAS__DROP_REQUEST__INIT;
	Perseas__Request request = PERSEAS__REQUEST__INIT;

	/* The message has no const; it is only packed. */
	ask.store = (char *)store;
	if (header) {
		ask.store_id = header->store_id;
		ask.image_id = header->image_id;
	}
	request.body_case = PERSEAS__REQUEST__BODY_DROP;
	request.drop = &ask;
	requests[i] = &request;
	ps_panel_ask(panel, requests);
}

static enum ps_exit drop_each(struct ps_panel *panel, const struct ps_census *census,
                              const char *store, const uint8_t *store_id)
{
	enum ps_exit status = PS_EXIT_OK;

	for (unsigned i = 0; i < panel->count; i++) {
		if (!census->told[i]) {
			if (census->errors[i].code != PERSEAS_ENOSTORE)
				status = ps_complain(PS_EXIT_FAILURE, "%s", census->errors[i].text);
			continue;
		}
		if (!ps_id_equal(census->told[i]->header->store_id, store_id))
			continue;
		ask_to_drop(panel, store, i, census->told[i]->header);
		if (!panel->replies[i])
			status = ps_complain(PS_EXIT_FAILURE, "%s", panel->errors[i].text);
	}
	return status;
}

enum ps_exit ps_drop_all(const char *store, const char *mirrors, const uint8_t *store_id,
                         uint32_t timeout_ms)
{
	struct ps_panel panel;
	struct ps_census census;
	enum ps_exit status = ps_panel_open(&panel, mirrors, timeout_ms);

	if (status)
		return status;
	ps_census_take(&census, &panel, store);
	status = drop_each(&panel, &census, store, store_id);
	ps_census_free(&census);
	ps_panel_close(&panel);
	return status;
}

/* --- the verb --- */

/* How many mirrors of the roster remain when this image is gone. */
static void warn(const struct ps_census *census, const char *store)
{
	const Perseas__Roster *roster = census->roster;

	if (!ps_census_listed(census, 0) || roster->n_members == 0)
		return;
	printf("it is one of the %zu images that the store's roster lists, by version %" PRIu64
	       ", which this mirror has; of them W = %u must hold each transaction: perseas roster "
	       "%s shows whether there is a newer one, perseas roster remove %s takes it out "
	       "first\n",
	       roster->n_members, roster->version, roster->acks, store, store);
}

static void describe(const struct ps_census *census, const char *store, const char *verb)
{
	const Perseas__StoreStatus *status = census->told[0];
	char size[PS_SIZE_TEXT], id[PS_HEX_TEXT];

	printf("%s: %s the image %s of store '%s': %s, %zu segment%s, %s",
	       census->panel->addresses[0].text, verb,
	       ps_hex_text(id, status->header->image_id.data), store,
	       ps_state_text(status->header->state), status->header->n_segments,
	       status->header->n_segments == 1 ? "" : "s", ps_size_text(size, status->bytes));
	if (status->slot)
		printf(", at epoch %" PRIu64 ", transaction %" PRIu64, status->slot->epoch,
		       status->slot->seq);
	printf("\n");
}

static void print_damaged(const struct ps_census *census, const struct ps_args *args)
{
	const char *mirror = census->panel->addresses[0].text;
	struct ps_json json = { .out = stdout };

	if (!args->json && args->yes)
		printf("%s: deleted the damaged image of store '%s'\n", mirror, args->store);
	else if (!args->json)
		printf("would delete: %s\n", census->errors[0].text);
	if (!args->json)
		return;
	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "store", args->store);
	ps_json_text(&json, "mirror", mirror);
	ps_json_text(&json, "state", "damaged");
	ps_json_bool(&json, "deleted", args->yes);
	ps_json_end(&json, '}');
}

/* Nobody can read its ids, so it goes by its name. */
static enum ps_exit drop_damaged(struct ps_panel *panel, const struct ps_census *census,
                                 const struct ps_args *args)
{
	if (!args->yes) {
		print_damaged(census, args);
		return ps_complain(PS_EXIT_NO, "nothing is deleted without --yes");
	}
	ask_to_drop(panel, args->store, 0, NULL);
	if (!panel->replies[0])
		return ps_complain(ps_exit_of(panel->errors[0].code), "%s", panel->errors[0].text);
	print_damaged(census, args);
	return PS_EXIT_OK;
}

static void print(const struct ps_census *census, const struct ps_args *args)
{
	const Perseas__StoreStatus *status = census->told[0];
	struct ps_json json = { .out = stdout };
	char id[PS_HEX_TEXT];

	if (!args->json) {
		describe(census, args->store, args->yes ? "deleted" : "would delete");
		if (!args->yes)
			warn(census, args->store);
		return;
	}
	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "store", args->store);
	ps_json_text(&json, "mirror", census->panel->addresses[0].text);
	ps_json_text(&json, "image_id", ps_hex_text(id, status->header->image_id.data));
	ps_json_text(&json, "state", ps_state_text(status->header->state));
	ps_json_bool(&json, "listed", ps_census_listed(census, 0));
	ps_json_number(&json, "segments", status->header->n_segments);
	ps_json_number(&json, "bytes", status->bytes);
	ps_json_slot(&json, "slot", status->slot);
	ps_json_bool(&json, "deleted", args->yes);
	ps_json_end(&json, '}');
}

static enum ps_exit drop(struct ps_panel *panel, const struct ps_census *census,
                         const struct ps_args *args)
{
	const Perseas__StoreStatus *status = census->told[0];

	if (!status && census->errors[0].code == PERSEAS_EDAMAGED)
		return drop_damaged(panel, census, args);
	if (!status)
		return ps_census_nobody(census, args->store);
	if (status->live)
		return ps_complain(PS_EXIT_NO,
		                   "store '%s' has a live owner, at %s: take the "
		                   "mirror out of its roster with perseas roster remove, or end "
		                   "the owner",
		                   args->store, status->owner_address);
	if (!args->yes) {
		print(census, args);
		return ps_complain(PS_EXIT_NO, "nothing is deleted without --yes");
	}
	ask_to_drop(panel, args->store, 0, status->header);
	if (!panel->replies[0])
		return ps_complain(ps_exit_of(panel->errors[0].code), "%s", panel->errors[0].text);
	print(census, args);
	return PS_EXIT_OK;
}

enum ps_exit ps_verb_drop(const struct ps_args *args)
{
	struct ps_panel panel;
	struct ps_census census;
	enum ps_exit status = ps_panel_open_one(&panel, args->mirrors, args->connect_timeout_ms);

	if (status)
		return status;
	ps_census_take(&census, &panel, args->store);
	status = drop(&panel, &census, args);
	ps_census_free(&census);
	ps_panel_close(&panel);
	return status;
}
