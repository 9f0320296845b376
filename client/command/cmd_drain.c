/*
 * cmd_drain.c - perseas drain: moves all images of a mirror elsewhere, one after the other, while
 * their owners work.
 */
#include "command.h"
#include "drain/drain.h"
#include "../../proto/base/json.h"
#include "../../proto/control/envelope.h"

#include <stdlib.h>
#include <string.h>

enum ps_exit ps_verb_drain_check(const struct ps_args *args)
{
	if (args->member_count == 0)
		return ps_complain(PS_EXIT_USAGE, "which mirror? usage: perseas drain %s",
		                   args->verb->usage);
	return PS_EXIT_OK;
}

/* --- the images to move --- */

static void add_members(struct ps_drain_image *image, const Perseas__Roster *roster)
{
	size_t used = strlen(image->mirrors);

	for (size_t k = 0; roster && k < roster->n_members; k++) {
		const char *address = roster->members[k]->address;
		struct ps_address parsed;

		/* Adds each address once: most members are in both rosters. */
		if (!ps_survey_parse_address(address, &parsed) ||
		    ps_address_in_list(image->mirrors, address) ||
		    used + strlen(address) + 2 > sizeof(image->mirrors))
			continue;
		used += (size_t)snprintf(image->mirrors + used, sizeof(image->mirrors) - used,
		                         "%s%s", used ? "," : "", address);
	}
}

/* Complains about a silent mirror. Only --gone may give its place away. */
static enum ps_exit complain_of_silent_mirror(const struct ps_drain *drain)
{
	const enum ps_exit status = ps_peers_complain(&drain->mirror, 0);

	if (drain->mirror.errors[0].code != PERSEAS_EUNREACHABLE)
		return status;
	return ps_complain(status,
	                   "start perseasd there again; if it has died for good, say the same with "
	                   "--gone: other daemons get its place in the rosters");
}

static enum ps_exit ask_list(struct ps_drain *drain, Perseas__Reply **list)
{
	ps_peers_connect(&drain->mirror, 0);
	ps_peers_ask_all(&drain->mirror, ps_peers_list_request());
	if (!drain->mirror.replies[0])
		return complain_of_silent_mirror(drain);
	*list = drain->mirror.replies[0];
	drain->mirror.replies[0] = NULL;
	return PS_EXIT_OK;
}

/* Refuses --gone while the mirror answers: its images would return, without the changes made since.
 */
static enum ps_exit check_gone(struct ps_drain *drain)
{
	ps_peers_connect(&drain->mirror, 0);
	ps_peers_ask_all(&drain->mirror, ps_peers_list_request());
	if (ps_peers_answered(&drain->mirror, 0))
		return ps_complain(PS_EXIT_NO,
		                   "%s answers, so it is not gone: drain it without --gone, or end "
		                   "it for good",
		                   drain->gone);
	return PS_EXIT_OK;
}

static void add_image(struct ps_drain *drain, const struct ps_images *images,
                      const Perseas__StoreStatus *status)
{
	struct ps_drain_image *image;

	drain->images = ps_exit_if_null(
		realloc(drain->images, (drain->count + 1) * sizeof(*drain->images)));
	image = &drain->images[drain->count++];
	*image = (struct ps_drain_image){ .status = images->newest ? images->newest : status };
	add_members(image, images->judged.settled);
	add_members(image, images->judged.next);
}

/* Finds the stores of a mirror that is gone in the rosters of all other mirrors. */
static enum ps_exit find_stores_of_gone(struct ps_drain *drain)
{
	enum ps_exit status = check_gone(drain);
	struct ps_peers peers;
	struct ps_images images;
	unsigned run;

	for (unsigned i = 0; !status && i < drain->entry_count; i += run) {
		run = ps_fleet_count_images_of_first_store(drain->entries + i,
		                                           drain->entry_count - i);
		ps_fleet_fill_images(&drain->fleet, drain->entries + i, run, false, &peers,
		                     &images);
		if (ps_fleet_is_image_unseen(&images, drain->gone))
			add_image(drain, &images, drain->entries[i].status);
	}
	return status;
}

static enum ps_exit list_stores_of_mirror(struct ps_drain *drain)
{
	enum ps_exit status = ask_list(drain, &drain->list);
	const Perseas__ListReply *list;

	if (status)
		return status;
	list = drain->list->list;
	drain->images = ps_exit_if_null(calloc(list->n_stores + 1, sizeof(*drain->images)));
	drain->count = (unsigned)list->n_stores;
	for (unsigned i = 0; i < drain->count; i++) {
		const Perseas__Header *header = list->stores[i]->header;

		drain->images[i].status = list->stores[i];
		add_members(&drain->images[i], header->roster);
		add_members(&drain->images[i], header->next_roster);
	}
	return PS_EXIT_OK;
}

/* Surveys the daemons of LIST as candidates for the images. The drained mirror itself gets none. */
static enum ps_exit survey_candidates(struct ps_drain *drain)
{
	const struct ps_args *args = drain->args;
	enum ps_exit status = ps_survey_ask_daemons(&drain->survey, args->mirrors, &args->options);
	int self;

	if (status)
		return status;
	drain->candidate_count = drain->survey.spot_count;
	self = ps_survey_find(&drain->survey, args->members[0].text);
	if (self >= 0)
		drain->survey.spots[self].closed = true;
	return PS_EXIT_OK;
}

/* --- output --- */

static const char *end_word(const struct ps_drain_image *image)
{
	switch (image->end) {
	case PS_DRAIN_MOVED:
		return "moved";
	case PS_DRAIN_DELETED:
		return "deleted";
	case PS_DRAIN_PLANNED:
		return "planned";
	case PS_DRAIN_LEFT:
		return "left";
	case PS_DRAIN_UNTRIED:
		break;
	}
	return "untried";
}

/* Returns a text with the bytes that the replacement was sent, and why. It follows the size of the
 * image in a sentence. */
static const char *copy_text(const struct ps_replacement_copy *copy, char *text, size_t size)
{
	char sent[PS_SIZE_TEXT];

	*text = '\0';
	if (copy->is_known)
		snprintf(text, size, "; sent %s%s%s%s", ps_size_text(sent, copy->sent_bytes),
		         *copy->whole_reason ? " (copied whole: " : "", copy->whole_reason,
		         *copy->whole_reason ? ")" : "");
	return text;
}

static void print_image(const struct ps_drain *drain, unsigned i)
{
	const struct ps_drain_image *image = &drain->images[i];
	const char *store = image->status->header->store;
	char size[PS_SIZE_TEXT], copied[128];

	if (drain->args->json)
		return;
	printf("%u of %u: store '%s': ", i + 1, drain->count, store);
	ps_size_text(size, image->status->bytes);
	if (image->end == PS_DRAIN_LEFT && *image->to)
		printf("%s took its place, and its image is kept\n", image->to);
	else if (image->end == PS_DRAIN_LEFT)
		printf("not moved\n");
	else if (image->end == PS_DRAIN_MOVED && !*image->to)
		printf("its roster does not name the mirror any more\n");
	else if (image->end == PS_DRAIN_MOVED)
		printf("moved to %s, %s%s\n", image->to, size,
		       copy_text(&image->copy, copied, sizeof(copied)));
	else if (image->end == PS_DRAIN_DELETED)
		printf("its image counted for nothing, and is deleted\n");
	else if (*image->to)
		printf("from %s to %s, %s\n", image->from, image->to, size);
	else
		printf("a change of its roster is under way, or is made: it would be completed, "
		       "and the image deleted\n");
	fflush(stdout);
}

static void print_json(const struct ps_drain *drain, unsigned left, unsigned named)
{
	struct ps_json json = { .out = stdout };
	char id[PS_HEX_TEXT];

	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "mirror", drain->args->members[0].text);
	ps_json_bool(&json, "dry_run", drain->args->dry_run);
	ps_json_number(&json, "left", left);
	ps_json_number(&json, "named", named);
	ps_json_begin(&json, "images", '[');
	for (unsigned i = 0; i < drain->count; i++) {
		const struct ps_drain_image *image = &drain->images[i];
		const Perseas__Header *header = image->status->header;

		ps_json_begin(&json, NULL, '{');
		ps_json_text(&json, "store", header->store);
		ps_json_text(&json, "image_id",
		             drain->gone ? NULL : ps_hex_text(id, header->image_id.data));
		ps_json_number(&json, "bytes", image->status->bytes);
		ps_json_text(&json, "from", *image->from ? image->from : NULL);
		ps_json_text(&json, "to", *image->to ? image->to : NULL);
		ps_json_text(&json, "result", end_word(image));
		ps_json_number_if(&json, "sent", image->copy.is_known, image->copy.sent_bytes);
		ps_json_text(&json, "whole",
		             *image->copy.whole_reason ? image->copy.whole_reason : NULL);
		ps_json_end(&json, '}');
	}
	ps_json_end(&json, ']');
	ps_json_end(&json, '}');
}

/* --- the end --- */

/* Counts the images that the mirror has now, including images made since the drain began. */
static enum ps_exit count_images_left(struct ps_drain *drain, unsigned *left)
{
	Perseas__Reply *list = NULL;
	enum ps_exit status;

	*left = 0;
	for (unsigned i = 0; i < drain->count; i++)
		*left += drain->images[i].end == PS_DRAIN_LEFT ||
		         drain->images[i].end == PS_DRAIN_UNTRIED;
	if (drain->args->dry_run || drain->gone)
		return PS_EXIT_OK;
	status = ask_list(drain, &list);
	if (status)
		return status;
	if (list->list->n_stores > *left) {
		ps_complain(PS_EXIT_PARTLY,
		            "images came to %s while it was drained: run perseas drain again",
		            drain->args->members[0].text);
		status = PS_EXIT_PARTLY;
	}
	*left = (unsigned)list->list->n_stores;
	perseas__reply__free_unpacked(list, NULL);
	return status;
}

/* Returns the worse of two results: NO if anything cannot be done, PARTLY if another run may do
 * it. */
static enum ps_exit worse_status(enum ps_exit one, enum ps_exit other)
{
	if (one == PS_EXIT_OK || other == PS_EXIT_OK)
		return one == PS_EXIT_OK ? other : one;
	return one == PS_EXIT_PARTLY && other == PS_EXIT_PARTLY ? PS_EXIT_PARTLY : PS_EXIT_NO;
}

static const char *done_text(const struct ps_drain *drain)
{
	if (drain->gone)
		return drain->args->dry_run ? "stores could have another mirror in its place"
		                            : "stores have another mirror in its place";
	return drain->args->dry_run ? "images could be moved" : "images are gone";
}

static enum ps_exit drain_all(struct ps_drain *drain)
{
	enum ps_exit status = PS_EXIT_OK, counted;
	unsigned left, named = 0;

	for (unsigned i = 0; i < drain->count && !ps_stop_requested(); i++) {
		status = worse_status(status, ps_drain_image(drain, &drain->images[i]));
		print_image(drain, i);
	}
	counted = count_images_left(drain, &left);
	if (!ps_stop_requested())
		status = worse_status(status, ps_drain_check_unlisted_members(drain, &named));
	if (drain->args->json)
		print_json(drain, left, named);
	else if (!counted)
		printf("%s: %u of %u %s, %u left\n", drain->args->members[0].text,
		       drain->count - left, drain->count, done_text(drain), left);
	if (ps_stop_requested())
		return ps_complain(PS_EXIT_PARTLY, "stopped by a signal: run perseas drain again "
		                                   "to go on");
	return worse_status(status, counted);
}

enum ps_exit ps_verb_drain(const struct ps_args *args)
{
	struct ps_drain drain = { .args = args,
		                  .gone = args->is_gone_for_good ? args->members[0].text : NULL };
	enum ps_exit status = ps_peers_open_one(&drain.mirror, args->members[0].text,
	                                        &args->options);

	if (status)
		return status;
	status = ps_fleet_ask_daemons(&drain.fleet, args->mirrors, &args->options);
	if (!status)
		drain.entries = ps_fleet_list_images(&drain.fleet, &drain.entry_count);
	if (!status)
		status = args->is_gone_for_good ? find_stores_of_gone(&drain)
		                                : list_stores_of_mirror(&drain);
	if (!status)
		status = survey_candidates(&drain);
	if (!status) {
		ps_stop_catch();
		status = drain_all(&drain);
		ps_survey_free(&drain.survey);
	}
	if (drain.list)
		perseas__reply__free_unpacked(drain.list, NULL);
	free(drain.images);
	free(drain.entries);
	ps_fleet_free(&drain.fleet);
	ps_peers_close(&drain.mirror);
	return status;
}
