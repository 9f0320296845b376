/*
 * fleet_judge.c - judges each store of a fleet by the images that daemons listed, as ask/verdict.h
 * does, and collects what is wrong with it. fleet_ask.c and fleet_show.c call it.
 */
#include "fleet.h"
#include "../ask/owner_report.h"
#include "../ask/verdict.h"
#include "../../../proto/control/envelope.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* --- the images --- */

static const Perseas__StoreStatus *image_on_daemon(const struct ps_fleet_image *entries,
                                                   unsigned count, unsigned daemon)
{
	for (unsigned i = 0; i < count; i++)
		if (entries[i].daemon == daemon)
			return entries[i].status;
	return NULL;
}

/* Asks over the connection that the daemon has why it does not serve the image: the image may be
 * damaged. Sets *error to the refusal. Returns false if the daemon shows an image of that name. */
static bool ask_for_error(const struct ps_fleet_daemon *daemon, const char *store,
                          struct ps_error *error)
{
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(status, STATUS, &ask);
	Perseas__Reply *reply = NULL;

	/* The message has no const; it is only packed. */
	ask.store = (char *)store;
	daemon->peers->errors[daemon->peer_index].code = 0;
	if (ps_peers_send(daemon->peers, daemon->peer_index, &request))
		reply = ps_peers_receive(daemon->peers, daemon->peer_index);
	*error = daemon->peers->errors[daemon->peer_index];
	if (reply)
		perseas__reply__free_unpacked(reply, NULL);
	return !reply;
}

/* Returns true if the daemon may list the image although it refuses it: an image that is served has
 * a slot once it is consistent. */
static bool may_daemon_refuse_image(const Perseas__StoreStatus *status)
{
	return status->header->state == PERSEAS__STATE__STATE_CONSISTENT && !status->slot;
}

static void add_peer(const struct ps_fleet *fleet, unsigned daemon, const char *store,
                     const Perseas__StoreStatus *status, struct ps_peers *peers,
                     struct ps_images *images)
{
	const struct ps_fleet_daemon *it = &fleet->daemons[daemon];
	const unsigned i = peers->count;

	if (i == PS_MIRRORS_MAX)
		return;
	peers->count++;
	peers->listed_count += !it->is_from_roster;
	peers->addresses[i] = it->peers->addresses[it->peer_index];
	if (!it->reply)
		images->errors[i] = it->peers->errors[it->peer_index];
	else if ((!status || may_daemon_refuse_image(status)) &&
	         ask_for_error(it, store, &images->errors[i]))
		status = NULL;
	else if (!status)
		ps_error_set(&images->errors[i], PERSEAS_EROSTER, "%s has another store '%s'",
		             ps_fleet_address(it), store);
	images->told[i] = status;
	images->have += status != NULL;
}

static bool has_unseen_member(const struct ps_images *images, const Perseas__Roster *roster,
                              const char *address)
{
	for (size_t k = 0; roster && k < roster->n_members; k++)
		if (!ps_images_find_member(images, roster->members[k]) &&
		    !strcmp(ps_images_address_of(images, roster->members[k]), address))
			return true;
	return false;
}

bool ps_fleet_is_image_unseen(const struct ps_images *images, const char *address)
{
	return has_unseen_member(images, images->judged.settled, address) ||
	       has_unseen_member(images, images->judged.next, address);
}

void ps_fleet_fill_images(const struct ps_fleet *fleet, const struct ps_fleet_image *entries,
                          unsigned count, bool with_unseen_members, struct ps_peers *peers,
                          struct ps_images *images)
{
	const char *store = entries[0].status->header->store;
	struct ps_peers seen_peers = { 0 };
	struct ps_images seen = { .peers = &seen_peers };

	for (unsigned i = 0; i < count; i++)
		add_peer(fleet, entries[i].daemon, store, entries[i].status, &seen_peers, &seen);
	ps_images_judge(&seen);
	*peers = (struct ps_peers){ 0 };
	*images = (struct ps_images){ .peers = peers };
	for (unsigned i = 0; i < fleet->count; i++) {
		const Perseas__StoreStatus *status = image_on_daemon(entries, count, i);
		const char *address = ps_fleet_address(&fleet->daemons[i]);

		if (status || (with_unseen_members && ps_fleet_is_image_unseen(&seen, address)))
			add_peer(fleet, i, store, status, peers, images);
	}
	ps_images_judge(images);
}

/* --- the line of a store --- */

struct line {
	const struct ps_images *images;
	struct ps_fleet_store *store;
	FILE *trouble; /* writes store->trouble */
	bool any;      /* something was noted */
};

__attribute__((format(printf, 2, 3))) static void line_note(struct line *line, const char *format,
                                                            ...)
{
	va_list args;

	if (line->any)
		fputs("; ", line->trouble);
	line->any = true;
	va_start(args, format);
	vfprintf(line->trouble, format, args);
	va_end(args);
}

static const Perseas__StoreStatus *find_owner_status(const struct ps_images *images)
{
	const int at = ps_images_find_owner(images);

	return at < 0 ? NULL : images->told[at];
}

/* Notes why mirror `i` shows no image of the member. */
static void note_absence(struct line *line, unsigned i)
{
	const struct ps_images *images = line->images;
	const char *address = images->peers->addresses[i].text;
	const struct ps_error *error = &images->errors[i];

	if (images->told[i])
		line_note(line, "%s shows another image", address);
	else if (!error->code || error->code == PERSEAS_EUNREACHABLE)
		line_note(line, "%s does not show its image", address);
	else if (error->code != PERSEAS_ENOSTORE)
		line_note(line, "%s", error->text); /* has the address */
	else
		line_note(line, "%s %s", address,
		          images->judged.creation_unfinished ? "was not given one"
		                                             : "has lost its image");
}

static void note_missing_image(struct line *line, const char *address)
{
	const struct ps_peers *peers = line->images->peers;

	for (unsigned i = 0; i < peers->count; i++) {
		if (strcmp(peers->addresses[i].text, address) != 0)
			continue;
		note_absence(line, i);
		return;
	}
	line_note(line, "%s was not asked", address);
}

static void update_lag(struct line *line, const Perseas__StoreStatus *image)
{
	const Perseas__StoreStatus *newest = line->images->newest;
	struct ps_fleet_store *store = line->store;
	uint64_t lag;

	if (!image->slot || !newest || !newest->slot)
		return;
	lag = newest->slot->seq > image->slot->seq ? newest->slot->seq - image->slot->seq : 0;
	if (!store->has_lag || lag > store->lag)
		store->lag = lag;
	store->has_lag = true;
}

/* Counts a member, and notes what is wrong with its image. */
static void count_member(struct line *line, const Perseas__Member *member)
{
	const char *address = ps_images_address_of(line->images, member);
	const Perseas__StoreStatus *image = ps_images_find_member(line->images, member);
	const Perseas__StoreStatus *owner = find_owner_status(line->images);
	const Perseas__MirrorReport *report = owner ? ps_verdict_find_report(line->images, owner,
	                                                                     member)
	                                            : NULL;
	struct ps_fleet_store *store = line->store;

	store->members++;
	if (report && report->total) {
		store->done += report->done;
		store->total += report->total;
		store->left_ms += report->resync ? report->resync->left_ms : 0;
	}
	if (image)
		update_lag(line, image);
	if (!image)
		note_missing_image(line, address);
	else if (image->header->state != PERSEAS__STATE__STATE_CONSISTENT)
		line_note(line, "%s %s", address, ps_state_text(image->header->state));
	else if (report && strcmp(report->state, "live") != 0)
		line_note(line, "%s %s", address, report->state);
	else if (ps_images_is_left_behind(line->images, image))
		line_note(line, "%s was left behind by the last owner", address);
	else
		store->live++;
}

/* Notes what is wrong with the store beyond single members. */
static void note_store_faults(struct line *line, const Perseas__StoreStatus *owner)
{
	const struct ps_images *images = line->images;

	if (images->judged.next)
		line_note(line, "a change of its roster is not settled");
	if (owner && owner->silent_ms > PS_OWNER_SILENT_MS)
		line_note(line, "its owner was last heard %.1f s ago",
		          (double)owner->silent_ms / 1000);
	for (unsigned i = 0; i < images->peers->count; i++)
		if (images->told[i] && ps_images_is_of_store(images, i) &&
		    !ps_images_is_listed(images, i))
			line_note(line, "%s has an image that no roster lists",
			          images->peers->addresses[i].text);
}

/* Sets store->next_loss. Notes it as trouble if several mirrors of one domain would be lost
 * together. */
static void set_next_loss(struct line *line, const struct ps_verdict *verdict)
{
	size_t size;
	FILE *out = ps_exit_if_null(open_memstream(&line->store->next_loss, &size));

	ps_verdict_print_losses(out, verdict, line->images);
	fclose(out);
	ps_exit_if_null(line->store->next_loss);
	if (ps_verdict_loses_whole_domain(verdict))
		line_note(line, "%s", line->store->next_loss);
}

static void judge_and_note_verdict(struct line *line, const Perseas__StoreStatus *owner)
{
	struct ps_fleet_store *store = line->store;
	struct ps_verdict verdict;

	ps_verdict_fill(&verdict, line->images);
	store->commit = verdict.commit;
	store->open = verdict.open;
	store->losses_borne = ps_verdict_count_bearable_losses(line->images);
	store->losses_promised = ps_verdict_count_promised_losses(line->images);
	if (owner && ps_owner_doubt_ms(owner))
		line_note(line, "a commit has been in doubt for %.1f s",
		          (double)ps_owner_doubt_ms(owner) / 1000);
	if (!store->open)
		line_note(line, "it cannot be opened%s",
		          ps_verdict_explain_not_openable(line->images));
	else if (store->commit == PS_CAN_NOT)
		line_note(line, "it cannot commit");
	else if (store->commit == PS_CAN_UNKNOWN)
		line_note(line, "whether it can commit is not known");
	set_next_loss(line, &verdict);
}

static enum ps_fleet_rank choose_rank(const struct line *line)
{
	const struct ps_fleet_store *store = line->store;

	if (store->commit == PS_CAN_NOT || !store->open)
		return PS_FLEET_STUCK;
	if (store->commit == PS_CAN_UNKNOWN || store->losses_borne < store->losses_promised)
		return PS_FLEET_LACKS_REDUNDANCY;
	if (line->any)
		return PS_FLEET_HAS_FAULT;
	return *store->owner ? PS_FLEET_GOOD : PS_FLEET_OWNERLESS;
}

static void set_newest_position(struct ps_fleet_store *store, const struct ps_images *images)
{
	const Perseas__Slot *slot = images->newest ? images->newest->slot : NULL;

	store->has_slot = slot != NULL;
	if (!slot)
		return;
	store->epoch = slot->epoch;
	store->seq = slot->seq;
}

/* Takes the owner's newest figures: it reports to one mirror after the other, and counts its
 * commits. */
static void set_owner_figures(struct ps_fleet_store *store, const struct ps_images *images)
{
	const Perseas__StoreStatus *owner = find_owner_status(images);

	store->owner_status = owner;
	if (!owner)
		return;
	snprintf(store->owner, sizeof(store->owner), "%s %s", owner->owner_address, owner->fabric);
	for (unsigned i = 0; i < images->peers->count; i++) {
		const Perseas__StoreStatus *told = images->told[i];

		if (told && told->live && told->figures && ps_images_is_of_store(images, i) &&
		    told->header->promised_epoch == owner->header->promised_epoch &&
		    (!store->figures || told->figures->commits > store->figures->commits))
			store->figures = told->figures;
	}
}

/* Notes how to tell the store from another one of its name, and how to name it to other commands.
 */
static void note_name(struct line *line)
{
	const Perseas__Roster *roster = line->images->judged.settled;
	char id[PS_HEX_TEXT];

	line_note(line,
	          "another store has this name: this one has the id %s; to use it, name "
	          "only its mirrors",
	          ps_hex_text(id, line->store->header->store_id.data));
	for (size_t k = 0; roster && k < roster->n_members; k++)
		fprintf(line->trouble, "%s%s", k ? "," : " ", roster->members[k]->address);
}

static void judge_store(struct ps_fleet_store *store, const struct ps_images *images)
{
	const Perseas__Roster *roster = images->judged.settled;
	const Perseas__StoreStatus *owner = find_owner_status(images);
	struct line line = { .images = images, .store = store };
	size_t size;

	line.trouble = ps_exit_if_null(open_memstream(&store->trouble, &size));
	if (store->shares_name)
		note_name(&line);
	set_owner_figures(store, images);
	set_newest_position(store, images);
	judge_and_note_verdict(&line, owner);
	for (size_t k = 0; roster && k < roster->n_members; k++)
		count_member(&line, roster->members[k]);
	for (unsigned i = 0; !images->have && i < images->peers->count; i++)
		note_absence(&line, i);
	note_store_faults(&line, owner);
	store->rank = choose_rank(&line);
	fclose(line.trouble);
	ps_exit_if_null(store->trouble);
}

static int compare_stores(const void *a, const void *b)
{
	const struct ps_fleet_store *one = a, *other = b;
	int order = (one->rank > other->rank) - (one->rank < other->rank);

	if (!order)
		order = strcmp(one->header->store, other->header->store);
	return order ? order
	             : memcmp(one->header->store_id.data, other->header->store_id.data, PS_ID_SIZE);
}

static bool have_same_name(const struct ps_fleet_image *one, const struct ps_fleet_image *other)
{
	return !strcmp(one->status->header->store, other->status->header->store);
}

void ps_fleet_judge_stores(struct ps_fleet *fleet)
{
	struct ps_peers peers;
	struct ps_images images;
	unsigned count, run;
	struct ps_fleet_image *entries = ps_fleet_list_images(fleet, &count);

	fleet->stores = ps_exit_if_null(calloc(count + 1, sizeof(*fleet->stores)));
	for (unsigned i = 0; i < count; i += run) {
		struct ps_fleet_store *store = &fleet->stores[fleet->store_count++];

		run = ps_fleet_count_images_of_first_store(entries + i, count - i);
		ps_fleet_fill_images(fleet, entries + i, run, true, &peers, &images);
		store->header = entries[i].status->header;
		store->shares_name = (i && have_same_name(&entries[i - 1], &entries[i])) ||
		                     (i + run < count &&
		                      have_same_name(&entries[i], &entries[i + run]));
		judge_store(store, &images);
		fleet->ranks[store->rank]++;
		fleet->ownerless_count += !*store->owner;
	}
	free(entries);
	qsort(fleet->stores, fleet->store_count, sizeof(*fleet->stores), compare_stores);
}
