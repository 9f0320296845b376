/*
 * cmd_drop.c - perseas drop: deletes the images of a store from mirrors.
 */
#include "command.h"
#include "ask/drop.h"
#include "change/unfinished.h"
#include "../../proto/base/json.h"
#include "../../proto/control/envelope.h"
#include "../../proto/control/segment_parts.h"

#include <inttypes.h>

static bool is_damaged(const struct ps_images *images, unsigned i)
{
	return !images->told[i] && images->errors[i].code == PERSEAS_EDAMAGED;
}

/* Warns how many mirrors of the roster remain without this image. A change of the roster opens the
 * store as this mirror knows it: if the store went on without this mirror, that would start or
 * continue a fork. */
static void warn_of_listed(const struct ps_images *images, const char *store)
{
	const Perseas__Roster *roster = images->roster;
	const char *mirror = images->peers->addresses[0].text;

	if (images->peers->count > 1 || !ps_images_is_listed(images, 0) || roster->n_members == 0)
		return;
	printf("it is one of the %zu images that the store's roster lists, by version %" PRIu64
	       ", which this mirror has; of them W = %u must hold each transaction\n",
	       roster->n_members, roster->version, roster->acks);
	printf("perseas status %s LIST,%s, where LIST are the store's other mirrors, shows whether "
	       "the store goes on with this image: if so, take it out first with perseas roster "
	       "remove %s LIST %s; if not, it was left behind, or is of a fork, and roster remove "
	       "would open that\n",
	       store, mirror, store, mirror);
}

/* Warns if this image is one side of a fork: a command with the whole list may mean the other one.
 */
static void warn_of_fork(const struct ps_images *images, unsigned i, const char *store)
{
	if (!ps_images_is_of_store(images, i) || ps_images_is_listed(images, i) ||
	    !ps_image_is_forked(images->told[i]->header, images->judged.settled,
	                        images->judged.next))
		return;
	printf("it is of a fork of the store that the other mirrors have, and what it has may be "
	       "newer: perseas status %s LIST shows both; name only the mirrors of the one that is "
	       "of no more use\n",
	       store);
}

static void print_image(const struct ps_images *images, unsigned i, const struct ps_args *args)
{
	const Perseas__StoreStatus *status = images->told[i];
	const char *mirror = images->peers->addresses[i].text;
	char size[PS_SIZE_TEXT], id[PS_HEX_TEXT];
	size_t segments;

	if (!status && args->is_confirmed) {
		printf("%s: deleted the damaged image of store '%s'\n", mirror, args->store);
		return;
	}
	if (!status) {
		printf("would delete: %s\n", images->errors[i].text);
		return;
	}
	segments = ps_count_segments_without_parts(status->header);
	printf("%s: %s the image %s of store '%s': %s, %zu segment%s, %s", mirror,
	       args->is_confirmed ? "deleted" : "would delete",
	       ps_hex_text(id, status->header->image_id.data), args->store,
	       ps_state_text(status->header->state), segments, ps_plural(segments),
	       ps_size_text(size, status->bytes));
	if (status->slot)
		printf(", at epoch %" PRIu64 ", transaction %" PRIu64, status->slot->epoch,
		       status->slot->seq);
	printf("\n");
	if (args->is_confirmed)
		return;
	warn_of_listed(images, args->store);
	warn_of_fork(images, i, args->store);
}

static void image_json(struct ps_json *json, const struct ps_images *images, unsigned i,
                       bool deleted)
{
	const Perseas__StoreStatus *status = images->told[i];
	char id[PS_HEX_TEXT];

	ps_json_text(json, "mirror", images->peers->addresses[i].text);
	if (!status) {
		ps_json_text(json, "state", "damaged");
		ps_json_bool(json, "deleted", deleted);
		return;
	}
	ps_json_text(json, "image_id", ps_hex_text(id, status->header->image_id.data));
	ps_json_text(json, "state", ps_state_text(status->header->state));
	ps_json_bool(json, "listed", ps_images_is_listed(images, i));
	ps_json_number(json, "segments", ps_count_segments_without_parts(status->header));
	ps_json_number(json, "bytes", status->bytes);
	ps_json_slot(json, "slot", status->slot);
	ps_json_bool(json, "deleted", deleted);
}

/* Prints the images of `chosen`, a bit for each mirror, that were deleted or would be. JSON has one
 * object for a single mirror, and an array for a list. */
static void print_images(const struct ps_images *images, uint32_t chosen,
                         const struct ps_args *args)
{
	const bool list = images->peers->count > 1;
	struct ps_json json = { .out = stdout };

	if (args->json) {
		ps_json_begin(&json, NULL, '{');
		ps_json_text(&json, "store", args->store);
		if (list)
			ps_json_begin(&json, "mirrors", '[');
	}
	for (unsigned i = 0; i < images->peers->count; i++) {
		if (!(chosen >> i & 1))
			continue;
		if (!args->json) {
			print_image(images, i, args);
			continue;
		}
		if (list)
			ps_json_begin(&json, NULL, '{');
		image_json(&json, images, i, args->is_confirmed);
		if (list)
			ps_json_end(&json, '}');
	}
	if (args->json && list)
		ps_json_end(&json, ']');
	if (args->json)
		ps_json_end(&json, '}');
}

/* Asks the chosen mirrors to delete their image, and clears the bits of those that did not. A
 * damaged image is named by its store only, since its ids cannot be read. */
static enum ps_exit drop_chosen(struct ps_peers *peers, const struct ps_images *images,
                                uint32_t *chosen, const char *store)
{
	enum ps_exit status = PS_EXIT_OK;

	for (unsigned i = 0; i < peers->count; i++) {
		if (!(*chosen >> i & 1))
			continue;
		ps_drop_ask_mirror(peers, store, i,
		                   images->told[i] ? images->told[i]->header : NULL);
		if (peers->replies[i])
			continue;
		*chosen &= ~(UINT32_C(1) << i);
		status = ps_peers_complain(peers, i);
	}
	return status;
}

/* Returns the mirrors that have an image, whole or damaged. Complains about the others; a mirror
 * that did not answer makes the command fail. */
static uint32_t choose_images(const struct ps_images *images, enum ps_exit *status)
{
	uint32_t chosen = 0;

	for (unsigned i = 0; i < images->peers->count; i++) {
		const struct ps_error *error = &images->errors[i];

		if (images->told[i] || is_damaged(images, i))
			chosen |= UINT32_C(1) << i;
		else
			*status = ps_complain(error->code == PERSEAS_ENOSTORE
			                              ? *status
			                              : ps_exit_of_code(error->code),
			                      "%s", error->text);
	}
	return chosen;
}

static enum ps_exit drop_images(struct ps_peers *peers, const struct ps_images *images,
                                const struct ps_args *args)
{
	enum ps_exit status = PS_EXIT_OK, failed;
	bool any = false;
	uint32_t chosen;

	for (unsigned i = 0; i < peers->count; i++) {
		any |= images->told[i] || is_damaged(images, i);
		if (images->told[i] && images->told[i]->live)
			return ps_complain(PS_EXIT_NO,
			                   "store '%s' has a live owner, at %s: take the "
			                   "mirror out of its roster with perseas roster remove, "
			                   "or end the owner",
			                   args->store, images->told[i]->owner_address);
	}
	if (!any)
		return ps_images_complain_absent(images, args->store);
	chosen = choose_images(images, &status);
	if (!args->is_confirmed) {
		print_images(images, chosen, args);
		return ps_complain(PS_EXIT_NO, "nothing is deleted without --yes");
	}
	failed = drop_chosen(peers, images, &chosen, args->store);
	if (chosen)
		print_images(images, chosen, args);
	return failed ? failed : status;
}

static void print_unfinished(const struct ps_args *args)
{
	struct ps_json json = { .out = stdout };

	if (!args->json) {
		printf("store '%s', whose restore was not finished, is deleted from all of its "
		       "mirrors\n",
		       args->store);
		return;
	}
	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "store", args->store);
	ps_json_bool(&json, "restore_unfinished", true);
	ps_json_bool(&json, "deleted", true);
	ps_json_end(&json, '}');
}

/* Removes an unfinished store without asking: it holds nothing that was acknowledged. */
static bool drop_unfinished(const struct ps_args *args)
{
	if (args->is_confirmed ||
	    !ps_unfinished_exists(args->store, args->mirrors, &args->options) ||
	    ps_unfinished_remove(args->store, args->mirrors, NULL, &args->options))
		return false;
	print_unfinished(args);
	return true;
}

enum ps_exit ps_verb_drop(const struct ps_args *args)
{
	struct ps_peers peers;
	struct ps_images images;
	enum ps_exit status = ps_images_open(&images, &peers, args->store, args->mirrors,
	                                     &args->options);

	if (status)
		return status;
	if (!drop_unfinished(args))
		status = drop_images(&peers, &images, args);
	ps_images_close(&images, &peers);
	return status;
}
