/*
 * cmd_status.c - perseas status: shows a store as each mirror has it.
 */
#include "command.h"
#include "ask/ask.h"
#include "ask/advice.h"
#include "ask/level.h"
#include "ask/next_loss.h"
#include "ask/owner_report.h"
#include "ask/set_aside.h"
#include "ask/standbys.h"
#include "ask/tls_expiry.h"
#include "ask/verdict.h"
#include "ask/weak_acks.h"
#include "fleet/fleet.h"
#include "../../proto/control/envelope.h"
#include "../../proto/control/segment_parts.h"

#include <inttypes.h>
#include <string.h>

/* Sets *lag to the transactions by which the image is behind the newest one. Returns false if it
 * has no slot, or one of another history. */
static bool find_image_lag(const struct ps_images *images, unsigned i, uint64_t *lag)
{
	const Perseas__Slot *newest = images->newest ? images->newest->slot : NULL;
	const Perseas__Slot *slot;

	if (!ps_images_is_of_store(images, i) || !images->told[i]->slot || !newest)
		return false;
	slot = images->told[i]->slot;
	*lag = newest->seq > slot->seq ? newest->seq - slot->seq : 0;
	return true;
}

/* Returns what to print about an image besides its state, or "" if the image counts. */
static const char *image_note(const struct ps_images *images, unsigned i)
{
	if (!ps_images_is_of_store(images, i))
		return "another store of this name";
	if (ps_images_is_second_of_member(images, i))
		return "a spill of a member was loaded twice: counts while that member's other "
		       "mirror does not answer, and may be older: drop it";
	if (!ps_images_is_listed(images, i))
		return ps_image_is_forked(images->told[i]->header, images->judged.settled,
		                          images->judged.next)
		               ? "not in the roster, but in one of a fork of this store: what "
		                 "it has may be newer"
		               : "not in the roster, counts for nothing";
	if (images->told[i]->header->state == PERSEAS__STATE__STATE_CREATING)
		return "its making was not finished";
	if (!images->told[i]->slot)
		return "no valid commit slot";
	if (images->told[i]->files_missing[0])
		return "would not survive a restart";
	if (ps_owner_lost_mirror_set(images) >> i & 1)
		return "put back: it does not hold what it acknowledged";
	return ps_images_is_loaded_from_spill(images, i) ? "was spilled, and is back" : "";
}

static const char *absence_text(const struct ps_images *images, const struct ps_set_aside *aside,
                                unsigned i)
{
	if (aside->folders[i])
		return "set aside";
	if (images->errors[i].code == PERSEAS_ENOSTORE)
		return "no such store";
	if (images->errors[i].code == PERSEAS_EDAMAGED)
		return "damaged";
	if (images->duplicates >> i & 1)
		return "not reached";
	return ps_peers_absence_text(images->peers, i);
}

static unsigned roster_claimers(const Perseas__Roster *roster)
{
	return (unsigned)roster->n_members - roster->acks + 1;
}

/* --- for people --- */

/* Prints how far the standby's copy is; nothing if it keeps none. */
static void print_warmth(const Perseas__Standby *standby)
{
	char warm[PS_SIZE_TEXT], memory[PS_SIZE_TEXT];

	if (standby->memory)
		printf(" (its copy has %u %%: %s of %s)",
		       ps_percent(standby->warm, standby->memory),
		       ps_size_text(warm, standby->warm), ps_size_text(memory, standby->memory));
}

/* Prints the standbys; nothing if there are none. */
static void print_standbys(const struct ps_images *images, int live)
{
	const Perseas__Standby *owner = NULL;
	struct ps_standbys standbys;

	ps_standbys_find(&standbys, images);
	if (live >= 0)
		owner = ps_standbys_find_owner(&standbys, images->told[live]);
	for (unsigned i = 0; i < standbys.count; i++) {
		printf("%s%s", i ? ", " : "standbys: ", standbys.list[i]->name);
		if (standbys.list[i] == owner)
			printf(" (has the store)");
		else if (standbys.list[i]->order)
			printf(" (order %u)", standbys.list[i]->order);
		print_warmth(standbys.list[i]);
	}
	if (standbys.count)
		printf("\n");
}

static void print_owner(const struct ps_images *images, int live)
{
	if (live < 0) {
		printf("no live owner is seen\n");
		return;
	}
	printf("live owner: from %s over %s, epoch %" PRIu64, images->told[live]->owner_address,
	       *images->told[live]->fabric ? images->told[live]->fabric : "no data path yet",
	       images->told[live]->header->promised_epoch);
	ps_owner_machine_print(images);
	printf("\n");
}

static void print_summary(const struct ps_images *images, const char *store)
{
	const Perseas__Roster *roster = images->roster;
	int live = ps_images_find_owner(images);
	char weak[PS_WEAK_ACKS_TEXT];

	printf("store '%s': %zu mirror%s, W = %u, R = %u, roster version %" PRIu64 "%s\n", store,
	       roster->n_members, ps_plural(roster->n_members), roster->acks,
	       roster_claimers(roster), roster->version,
	       images->judged.next ? ", being changed" : "");
	if (*ps_weak_acks_text(weak, roster))
		printf("%s\n", weak);
	if (images->newest)
		printf("newest state seen: epoch %" PRIu64 ", transaction %" PRIu64 "\n",
		       images->newest->slot->epoch, images->newest->slot->seq);
	print_owner(images, live);
	print_standbys(images, live);
}

static void print_mirror(struct ps_table *table, const struct ps_images *images,
                         const struct ps_set_aside *aside, unsigned i)
{
	const Perseas__StoreStatus *status = images->told[i];
	char size[PS_SIZE_TEXT];
	uint64_t lag = 0;
	const bool has_lag = find_image_lag(images, i, &lag);

	ps_table_set_cell(table, 0, "%s", images->peers->addresses[i].text);
	if (!status) {
		ps_table_set_cell(table, 1, "%s", absence_text(images, aside, i));
		return;
	}
	ps_table_set_cell(table, 1, "%s", ps_state_text(status->header->state));
	ps_table_set_cell(table, 2, "%" PRIu64, status->header->promised_epoch);
	ps_table_set_slot_cell(table, 3, status->slot);
	ps_table_set_number_cell(table, 4, has_lag, lag);
	ps_table_set_cell(table, 5, "%s", ps_size_text(size, status->bytes));
	ps_table_set_cell(table, 6, status->live ? "%s %s" : "-", status->owner_address,
	                  status->fabric);
	ps_table_set_cell(table, 7, "%s", image_note(images, i));
}

static void print_mirrors(const struct ps_images *images, const struct ps_set_aside *aside)
{
	struct ps_table table = { 0 };

	ps_table_add_heads(&table, "MIRROR|STATE|PROMISED|EPOCH:SEQ|LAG|BYTES|LIVE OWNER|");
	for (unsigned i = 0; i < images->peers->count; i++)
		print_mirror(&table, images, aside, i);
	printf("\n");
	ps_table_print(&table, stdout);
}

/* Prints the members of the roster whose images no mirror showed. */
static void print_missing(const struct ps_images *images)
{
	for (size_t k = 0; k < images->roster->n_members; k++) {
		const Perseas__Member *member = images->roster->members[k];
		const char *address = ps_images_address_of(images, member);

		if (ps_images_find_member(images, member))
			continue;
		printf("the roster lists %s, whose image was " PS_NOT_SEEN, member->address);
		if (strcmp(address, member->address) != 0)
			printf(": that mirror is probably at %s now", address);
		printf("\n");
	}
}

/* Prints the images that the last owner left behind. */
static void print_left_behind(const struct ps_images *images)
{
	for (unsigned i = 0; i < images->peers->count; i++)
		if (ps_images_is_listed(images, i) &&
		    ps_images_is_left_behind(images, images->told[i]))
			printf("the last owner left %s behind; perseas recover brings it up to "
			       "date, or an owner that stays for as long as that takes\n",
			       images->peers->addresses[i].text);
}

/* Prints the images that a restart of their daemons would lose, and why. */
static void print_only_in_memory(const struct ps_images *images)
{
	for (unsigned i = 0; i < images->peers->count; i++)
		if (images->told[i] && images->told[i]->files_missing[0])
			printf("%s would lose its image if its daemon were restarted: %s\n",
			       images->peers->addresses[i].text, images->told[i]->files_missing);
}

static const Perseas__StoreStatus *find_segment_table(const struct ps_images *images)
{
	for (unsigned i = 0; i < images->peers->count && !images->newest; i++)
		if (ps_images_is_of_store(images, i))
			return images->told[i];
	return images->newest;
}

/* Returns the next part of the segment that exists, or NULL. */
static const Perseas__Segment *find_next_part(const Perseas__StoreStatus *status,
                                              const Perseas__Segment *segment)
{
	const Perseas__Segment *next = ps_segment_part_next(status->header, segment);

	return next && ps_segment_exists_in_image(next, status) ? next : NULL;
}

/* Lists the transactions that created a segment and made it grow. */
static void born_text(char *text, size_t size, const Perseas__StoreStatus *status,
                      const Perseas__Segment *segment)
{
	const Perseas__Segment *last = segment, *next;
	unsigned times = 0;

	for (; (next = find_next_part(status, last)); times++)
		last = next;
	if (times > 1)
		snprintf(text, size, "%" PRIu64 ", grown %u times, last by %" PRIu64, segment->born,
		         times, last->born);
	else if (times)
		snprintf(text, size, "%" PRIu64 ", grown by %" PRIu64, segment->born, last->born);
	else
		snprintf(text, size, "%" PRIu64, segment->born);
}

static uint64_t whole_bytes(const Perseas__StoreStatus *status, const Perseas__Segment *segment)
{
	uint64_t bytes = segment->size;

	while ((segment = find_next_part(status, segment)))
		bytes += segment->size;
	return bytes;
}

/* Returns true if the segment is an existing part of another one, and so is printed with it. */
static bool is_printed_with_head(const Perseas__StoreStatus *status,
                                 const Perseas__Segment *segment)
{
	return ps_segment_exists_in_image(segment, status) &&
	       ps_segment_part_before(status->header, segment);
}

static void add_segment(struct ps_table *table, const Perseas__StoreStatus *status,
                        const Perseas__Segment *segment)
{
	char born[96];

	born_text(born, sizeof(born), status, segment);
	ps_table_set_cell(table, 0, "%s", segment->name);
	ps_table_set_cell(table, 1, "%" PRIu64, whole_bytes(status, segment));
	ps_table_set_cell(table, 2, "0x%" PRIx64, segment->address);
	if (segment->died && segment->born)
		ps_table_set_cell(table, 3, "%s, %s by %" PRIu64, born,
		                  ps_segment_exists_in_image(segment, status) ? "to be destroyed"
		                                                              : "destroyed",
		                  segment->died);
	else if (ps_segment_exists_in_image(segment, status))
		ps_table_set_cell(table, 3, "%s", born);
	else
		ps_table_set_cell(table, 3, "not yet published");
}

static void print_segments(const Perseas__StoreStatus *status)
{
	struct ps_table table = { 0 };

	if (status->header->n_segments == 0) {
		printf("\nno segments\n");
		return;
	}
	ps_table_add_heads(&table, "SEGMENT|BYTES|ADDRESS|BORN");
	for (size_t k = 0; k < status->header->n_segments; k++) {
		const Perseas__Segment *segment = status->header->segments[k];

		if (!is_printed_with_head(status, segment))
			add_segment(&table, status, segment);
	}
	printf("\n");
	ps_table_print(&table, stdout);
}

static void print_text(const struct ps_images *images, const struct ps_set_aside *aside,
                       const char *store)
{
	struct ps_verdict verdict;

	ps_verdict_fill(&verdict, images);
	ps_verdict_print(&verdict, images);
	print_summary(images, store);
	print_mirrors(images, aside);
	print_missing(images);
	print_left_behind(images);
	print_only_in_memory(images);
	ps_advice_print(images, store);
	if (ps_images_find_owner(images) >= 0)
		ps_owner_print(images->told[ps_images_find_owner(images)]);
	print_segments(find_segment_table(images));
	ps_store_level_print(images);
	ps_tls_expiry_print(images->peers);
}

/* --- for programs --- */

static void roster_json(struct ps_json *json, const struct ps_images *images)
{
	const Perseas__Roster *roster = images->roster;
	char id[PS_HEX_TEXT], weak[PS_WEAK_ACKS_TEXT];

	ps_json_begin(json, "roster", '{');
	ps_json_number(json, "version", roster->version);
	ps_json_bool(json, "settled", !images->judged.next);
	ps_json_number(json, "mirrors", roster->n_members);
	ps_json_number(json, "acks", roster->acks);
	ps_json_number(json, "claims", roster_claimers(roster));
	ps_json_text(json, "warning", *ps_weak_acks_text(weak, roster) ? weak : NULL);
	ps_json_begin(json, "members", '[');
	for (size_t k = 0; k < roster->n_members; k++) {
		ps_json_begin(json, NULL, '{');
		ps_json_text(json, "address", roster->members[k]->address);
		ps_json_text(json, "image_id", ps_hex_text(id, roster->members[k]->image_id.data));
		ps_json_bool(json, "seen",
		             ps_images_find_member(images, roster->members[k]) != NULL);
		ps_json_end(json, '}');
	}
	ps_json_end(json, ']');
	ps_json_end(json, '}');
}

static void image_json(struct ps_json *json, const struct ps_images *images, unsigned i)
{
	const Perseas__StoreStatus *status = images->told[i];
	char id[PS_HEX_TEXT];
	uint64_t lag = 0;
	const bool has_lag = find_image_lag(images, i, &lag);

	ps_json_text(json, "state", ps_state_text(status->header->state));
	ps_json_bool(json, "same_store", ps_images_is_of_store(images, i));
	ps_json_bool(json, "listed", ps_images_is_listed(images, i));
	ps_json_text(json, "image_id", ps_hex_text(id, status->header->image_id.data));
	ps_json_number(json, "promised_epoch", status->header->promised_epoch);
	ps_json_slot(json, "slot", status->slot);
	ps_json_number_if(json, "lag", has_lag, lag);
	ps_json_bool(json, "live", status->live);
	ps_json_text(json, "owner_address", status->live ? status->owner_address : NULL);
	ps_json_text(json, "fabric", status->live ? status->fabric : NULL);
	ps_json_number(json, "bytes", status->bytes);
	ps_json_text(json, "files_missing", *status->files_missing ? status->files_missing : NULL);
}

static void warmth_json(struct ps_json *json, const Perseas__Standby *standby)
{
	const bool copies = standby->memory > 0;

	ps_json_number_if(json, "memory", copies, standby->memory);
	ps_json_number_if(json, "warm", copies, standby->warm);
	ps_json_number_if(json, "warm_percent", copies,
	                  copies ? ps_percent(standby->warm, standby->memory) : 0);
}

static void standbys_json(struct ps_json *json, const struct ps_images *images, int live)
{
	const Perseas__Standby *owner = NULL;
	struct ps_standbys standbys;

	ps_standbys_find(&standbys, images);
	if (live >= 0)
		owner = ps_standbys_find_owner(&standbys, images->told[live]);
	ps_json_begin(json, "standbys", '[');
	for (unsigned i = 0; i < standbys.count; i++) {
		ps_json_begin(json, NULL, '{');
		ps_json_text(json, "name", standbys.list[i]->name);
		ps_json_number(json, "order", standbys.list[i]->order);
		ps_json_bool(json, "owns", standbys.list[i] == owner);
		warmth_json(json, standbys.list[i]);
		ps_json_end(json, '}');
	}
	ps_json_end(json, ']');
}

static void beside_owner_json(struct ps_json *json, const struct ps_images *images)
{
	const uint32_t beside = ps_mirror_set_on_owner_machine(images);

	ps_json_begin(json, "beside_owner", '[');
	for (unsigned i = 0; i < images->peers->count; i++)
		if (beside >> i & 1)
			ps_json_text(json, NULL, images->peers->addresses[i].text);
	ps_json_end(json, ']');
}

static void mirrors_json(struct ps_json *json, const struct ps_images *images,
                         const struct ps_set_aside *aside)
{
	ps_json_begin(json, "mirrors", '[');
	for (unsigned i = 0; i < images->peers->count; i++) {
		ps_json_begin(json, NULL, '{');
		ps_json_text(json, "address", images->peers->addresses[i].text);
		ps_json_bool(json, "reachable",
		             ps_peers_answered(images->peers, i) && !(images->duplicates >> i & 1));
		ps_peers_daemon_json(json, images->peers, i);
		ps_json_bool(json, "has_store", images->told[i] != NULL);
		ps_json_text(json, "error", images->told[i] ? NULL : images->errors[i].text);
		ps_json_text(json, "set_aside", aside->folders[i]);
		if (images->told[i])
			image_json(json, images, i);
		ps_json_end(json, '}');
	}
	ps_json_end(json, ']');
}

static void segments_json(struct ps_json *json, const Perseas__StoreStatus *status)
{
	char address[PS_SIZE_TEXT], id[PS_HEX_TEXT];

	ps_json_begin(json, "segments", '[');
	for (size_t k = 0; k < status->header->n_segments; k++) {
		const Perseas__Segment *segment = status->header->segments[k];
		const Perseas__Segment *before = ps_segment_part_before(status->header, segment);

		snprintf(address, sizeof(address), "0x%" PRIx64, segment->address);
		ps_json_begin(json, NULL, '{');
		ps_json_text(json, "name", segment->name);
		ps_json_number(json, "id", segment->id);
		ps_json_number(json, "size", segment->size);
		ps_json_text(json, "address", address);
		ps_json_number(json, "born", segment->born);
		if (segment->random_id.len == PS_ID_SIZE)
			ps_json_text(json, "random_id", ps_hex_text(id, segment->random_id.data));
		if (segment->died)
			ps_json_number(json, "died", segment->died);
		ps_json_bool(json, "published", ps_segment_exists_in_image(segment, status));
		if (before)
			ps_json_text(json, "behind", before->name);
		ps_json_end(json, '}');
	}
	ps_json_end(json, ']');
}

static void print_json(const struct ps_images *images, const struct ps_set_aside *aside,
                       const char *store)
{
	struct ps_json json = { .out = stdout };
	int live = ps_images_find_owner(images);
	struct ps_verdict verdict;
	char id[PS_HEX_TEXT];

	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "store", store);
	ps_json_bool(&json, "found", images->header != NULL);
	if (images->header) {
		ps_verdict_fill(&verdict, images);
		ps_verdict_json(&json, &verdict, images);
		ps_json_text(&json, "store_id", ps_hex_text(id, images->header->store_id.data));
		ps_json_number(&json, "log_size", images->header->log_size);
		ps_json_bool(&json, "restore_unfinished", ps_images_is_unfinished(images));
		ps_json_bool(&json, "live", live >= 0);
		ps_json_slot(&json, "newest", images->newest ? images->newest->slot : NULL);
		roster_json(&json, images);
		ps_store_level_json(&json, images);
	}
	if (live >= 0)
		ps_owner_json(&json, images->told[live]);
	else if (images->header)
		ps_json_text(&json, "owner", NULL);
	beside_owner_json(&json, images);
	standbys_json(&json, images, live);
	ps_tls_expiry_json(&json, images->peers);
	mirrors_json(&json, images, aside);
	if (images->header)
		segments_json(&json, find_segment_table(images));
	ps_json_end(&json, '}');
}

/* --- the verb --- */

static enum ps_exit show_status(const struct ps_images *images, const struct ps_set_aside *aside,
                                const struct ps_args *args)
{
	enum ps_exit status = PS_EXIT_OK;

	if (args->json)
		print_json(images, aside, args->store);
	if (images->have && !args->json)
		print_text(images, aside, args->store);
	ps_set_aside_complain(aside, images, args->store);
	if (!images->have)
		return ps_images_complain_absent(images, args->store);
	(void)ps_images_check_ambiguous(images, args->store);
	for (unsigned i = 0; i < images->peers->count; i++) {
		if (!images->told[i] && !aside->folders[i])
			ps_complain(PS_EXIT_OK, "%s", images->errors[i].text);
		if (!ps_peers_answered(images->peers, i) || images->duplicates >> i & 1)
			status = PS_EXIT_PARTLY;
	}
	return status;
}

enum ps_exit ps_verb_status(const struct ps_args *args)
{
	struct ps_peers peers;
	struct ps_images images;
	struct ps_set_aside aside;
	enum ps_exit status;

	if (args->all_stores)
		return ps_fleet_print_status(args);
	status = ps_images_open(&images, &peers, args->store, args->mirrors, &args->options);
	if (status)
		return status;
	(void)ps_images_fetch_more(&images, &peers, args->store);
	ps_set_aside_ask(&aside, &images, &peers, args->store);
	status = show_status(&images, &aside, args);
	ps_set_aside_free(&aside);
	ps_images_close(&images, &peers);
	return status;
}
