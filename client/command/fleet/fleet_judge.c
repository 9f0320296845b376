/*
 * fleet_judge.c - what daemons told of a store, as a census of it, and what is to be said of it in
 * a line. fleet_ask.c and fleet_show.c call it. Its judgement is that of ask/verdict.h and none of
 * its own.
 */
#include "fleet.h"
#include "../ask/owner_report.h"
#include "../ask/verdict.h"
#include "../../../proto/control/envelope.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* --- the census --- */

static const Perseas__StoreStatus *image_at(const struct ps_fleet_entry *entries, unsigned count,
                                            unsigned daemon)
{
	for (unsigned i = 0; i < count; i++)
		if (entries[i].daemon == daemon)
			return entries[i].status;
	return NULL;
}

/* One that does not list an image may have one that is damaged: it is asked, on the connection that
 * it has already. */
static void ask_why(const struct ps_fleet_daemon *daemon, const char *store, struct ps_error *error)
{
	Perseas__StatusRequest ask = PERSEAS__STATUS_REQUEST__INIT;
	const Perseas__Request request = PS_REQUEST(status, STATUS, &ask);
	Perseas__Reply *reply = NULL;

	/* The message has no const; it is only packed. */
	ask.store = (char *)store;
	daemon->peers->errors[daemon->at].code = 0;
	if (ps_peers_send(daemon->peers, daemon->at, &request))
		reply = ps_peers_receive(daemon->peers, daemon->at);
	*error = daemon->peers->errors[daemon->at];
	if (!reply)
		return;
	perseas__reply__free_unpacked(reply, NULL);
	ps_error_set(error, PERSEAS_EROSTER, "%s has another store '%s'", ps_fleet_address(daemon),
	             store);
}

static void census_add(const struct ps_fleet *fleet, unsigned daemon, const char *store,
                       const Perseas__StoreStatus *status, struct ps_peers *peers,
                       struct ps_census *census)
{
	const struct ps_fleet_daemon *it = &fleet->daemons[daemon];
	const unsigned i = peers->count;

	if (i == PS_MIRRORS_MAX)
		return;
	peers->count++;
	peers->given += !it->added;
	peers->addresses[i] = it->peers->addresses[it->at];
	census->told[i] = status;
	census->have += status != NULL;
	if (!status && it->reply)
		ask_why(it, store, &census->errors[i]);
	else if (!status)
		census->errors[i] = it->peers->errors[it->at];
}

static bool is_unseen(const struct ps_census *census, const Perseas__Roster *roster,
                      const char *address)
{
	for (size_t k = 0; roster && k < roster->n_members; k++)
		if (!strcmp(roster->members[k]->address, address) &&
		    !ps_census_image(census, roster->members[k]))
			return true;
	return false;
}

bool ps_fleet_misses(const struct ps_census *census, const char *address)
{
	return is_unseen(census, census->judged.settled, address) ||
	       is_unseen(census, census->judged.next, address);
}

void ps_fleet_census(const struct ps_fleet *fleet, const struct ps_fleet_entry *entries,
                     unsigned count, bool fully, struct ps_peers *peers, struct ps_census *census)
{
	const char *store = entries[0].status->header->store;
	struct ps_peers seen_peers = { 0 };
	struct ps_census seen = { .peers = &seen_peers };

	for (unsigned i = 0; i < count; i++)
		census_add(fleet, entries[i].daemon, store, entries[i].status, &seen_peers, &seen);
	ps_census_judge(&seen);
	*peers = (struct ps_peers){ 0 };
	*census = (struct ps_census){ .peers = peers };
	for (unsigned i = 0; i < fleet->count; i++) {
		const Perseas__StoreStatus *status = image_at(entries, count, i);
		const char *address = ps_fleet_address(&fleet->daemons[i]);

		if (status || (fully && ps_fleet_misses(&seen, address)))
			census_add(fleet, i, store, status, peers, census);
	}
	ps_census_judge(census);
}

/* --- the line --- */

struct line {
	const struct ps_census *census;
	struct ps_fleet_store *store;
	FILE *trouble;
	bool any;
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

static const Perseas__StoreStatus *owner_of(const struct ps_census *census)
{
	const int at = ps_owner_at(census);

	return at < 0 ? NULL : census->told[at];
}

/* Returns why mirror `i` shows no image of the member. */
static const char *absence_of(const struct ps_census *census, unsigned i)
{
	if (census->told[i])
		return "shows another image";
	if (census->errors[i].code != PERSEAS_ENOSTORE)
		return "does not show its image";
	return census->judged.unfinished ? "was not given one" : "has lost its image";
}

static void note_unseen(struct line *line, const Perseas__Member *member)
{
	const struct ps_census *census = line->census;
	const char *why = "was not asked";

	for (unsigned i = 0; i < census->peers->count; i++)
		if (!strcmp(census->peers->addresses[i].text, member->address))
			why = absence_of(census, i);
	line_note(line, "%s %s", member->address, why);
}

static void take_lag(struct line *line, const Perseas__StoreStatus *image)
{
	const Perseas__StoreStatus *newest = line->census->newest;
	struct ps_fleet_store *store = line->store;
	uint64_t lag;

	if (!image->slot || !newest || !newest->slot)
		return;
	lag = newest->slot->seq > image->slot->seq ? newest->slot->seq - image->slot->seq : 0;
	if (!store->has_lag || lag > store->lag)
		store->lag = lag;
	store->has_lag = true;
}

static void take_member(struct line *line, const Perseas__Member *member)
{
	const Perseas__StoreStatus *image = ps_census_image(line->census, member);
	const Perseas__StoreStatus *owner = owner_of(line->census);
	const Perseas__MirrorReport *report = owner ? ps_verdict_report(line->census, owner, member)
	                                            : NULL;
	struct ps_fleet_store *store = line->store;

	store->members++;
	if (report && report->total) {
		store->done += report->done;
		store->total += report->total;
	}
	if (image)
		take_lag(line, image);
	if (!image)
		note_unseen(line, member);
	else if (image->header->state != PERSEAS__STATE__STATE_CONSISTENT)
		line_note(line, "%s %s", member->address, ps_state_text(image->header->state));
	else if (report && strcmp(report->state, "live") != 0)
		line_note(line, "%s %s", member->address, report->state);
	else
		store->live++;
}

static void note_rest(struct line *line, const Perseas__StoreStatus *owner)
{
	const struct ps_census *census = line->census;

	if (census->judged.next)
		line_note(line, "a change of its roster is not settled");
	if (owner && owner->silent_ms > PS_OWNER_SILENT_MS)
		line_note(line, "its owner was last heard %.1f s ago",
		          (double)owner->silent_ms / 1000);
	for (unsigned i = 0; i < census->peers->count; i++)
		if (census->told[i] && ps_census_belongs(census, i) && !ps_census_listed(census, i))
			line_note(line, "%s has an image that no roster lists",
			          census->peers->addresses[i].text);
}

/* Keeps the clauses on the next loss; notes them if mirrors of one host are lost together. */
static void take_losses(struct line *line, const struct ps_verdict *verdict)
{
	size_t size;
	FILE *out = ps_or_end(open_memstream(&line->store->next_loss, &size));

	ps_verdict_print_losses(out, verdict, line->census);
	fclose(out);
	ps_or_end(line->store->next_loss);
	if (ps_verdict_hurts_together(verdict))
		line_note(line, "%s", line->store->next_loss);
}

static void take_verdict(struct line *line, const Perseas__StoreStatus *owner)
{
	struct ps_fleet_store *store = line->store;
	struct ps_verdict verdict;

	ps_verdict_reach(&verdict, line->census);
	store->commit = verdict.commit;
	store->open = verdict.open;
	store->bears = ps_verdict_bears(line->census);
	store->promise = ps_verdict_promise(line->census);
	if (owner && ps_owner_doubt_ms(owner))
		line_note(line, "a commit has been in doubt for %.1f s",
		          (double)ps_owner_doubt_ms(owner) / 1000);
	if (!store->open)
		line_note(line, "it cannot be opened%s", ps_verdict_why(line->census));
	else if (store->commit == PS_CAN_NOT)
		line_note(line, "it cannot commit");
	else if (store->commit == PS_CAN_UNKNOWN)
		line_note(line, "whether it can commit is not known");
	take_losses(line, &verdict);
}

static enum ps_fleet_rank rank_of(const struct line *line)
{
	const struct ps_fleet_store *store = line->store;

	if (store->commit == PS_CAN_NOT || !store->open)
		return PS_FLEET_STUCK;
	if (store->commit == PS_CAN_UNKNOWN || store->bears < store->promise)
		return PS_FLEET_BARE;
	if (line->any)
		return PS_FLEET_NOTED;
	return *store->owner ? PS_FLEET_GOOD : PS_FLEET_FREE;
}

static void take_slot(struct ps_fleet_store *store, const struct ps_census *census)
{
	const Perseas__Slot *slot = census->newest ? census->newest->slot : NULL;

	store->has_slot = slot != NULL;
	if (!slot)
		return;
	store->epoch = slot->epoch;
	store->seq = slot->seq;
}

/* An owner tells all mirrors the same, one after the other: the highest count is the newest. */
static void take_owner(struct ps_fleet_store *store, const struct ps_census *census)
{
	const Perseas__StoreStatus *owner = owner_of(census);

	store->owner_status = owner;
	if (!owner)
		return;
	snprintf(store->owner, sizeof(store->owner), "%s %s", owner->owner_address, owner->fabric);
	for (unsigned i = 0; i < census->peers->count; i++) {
		const Perseas__StoreStatus *told = census->told[i];

		if (told && told->live && told->figures && ps_census_belongs(census, i) &&
		    told->header->promised_epoch == owner->header->promised_epoch &&
		    (!store->figures || told->figures->commits > store->figures->commits))
			store->figures = told->figures;
	}
}

static void judge_store(struct ps_fleet_store *store, const struct ps_census *census)
{
	const Perseas__Roster *roster = census->judged.settled;
	const Perseas__StoreStatus *owner = owner_of(census);
	struct line line = { .census = census, .store = store };
	size_t size;

	line.trouble = ps_or_end(open_memstream(&store->trouble, &size));
	take_owner(store, census);
	take_slot(store, census);
	take_verdict(&line, owner);
	for (size_t k = 0; roster && k < roster->n_members; k++)
		take_member(&line, roster->members[k]);
	note_rest(&line, owner);
	store->rank = rank_of(&line);
	fclose(line.trouble);
	ps_or_end(store->trouble);
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

void ps_fleet_judge(struct ps_fleet *fleet)
{
	struct ps_peers peers;
	struct ps_census census;
	unsigned count, run;
	struct ps_fleet_entry *entries = ps_fleet_entries(fleet, &count);

	fleet->stores = ps_or_end(calloc(count + 1, sizeof(*fleet->stores)));
	for (unsigned i = 0; i < count; i += run) {
		struct ps_fleet_store *store = &fleet->stores[fleet->store_count++];

		run = ps_fleet_run(entries + i, count - i);
		ps_fleet_census(fleet, entries + i, run, true, &peers, &census);
		store->header = entries[i].status->header;
		judge_store(store, &census);
		fleet->ranks[store->rank]++;
		fleet->free += !*store->owner;
	}
	free(entries);
	qsort(fleet->stores, fleet->store_count, sizeof(*fleet->stores), compare_stores);
}
