/*
 * top.c - merges what several mirrors say of the same stores and computes rates from two looks.
 * cmd_top.c feeds it, top_show.c prints what it found. It asks no mirror and prints nothing.
 */
#include "top.h"

#include "../ask/ask.h"
#include "../ask/owner_report.h"
#include "../../../proto/control/envelope.h"
#include "../../../proto/control/judge.h"

#include <stdlib.h>
#include <string.h>

enum { FORGET_LOOKS = 60 }; /* for so long a store may be in no answer */

#define REPEAT_NS ((uint64_t)1200000000) /* what was told longer ago is not repeated */

/* What is kept of a store until the next look. */
struct ps_top_past {
	uint8_t store_id[PS_ID_SIZE];
	unsigned unseen; /* looks since it was in an answer */
	bool has_slot;
	uint64_t seq, at_ns;
	bool has_owner;
	uint64_t epoch;            /* of that owner */
	struct ps_latency latency; /* that it had counted */
	uint64_t told_ns;          /* when it last told of commits */
	struct ps_latency since;   /* what had been counted in the interval before that */
};

/* --- merging --- */

static struct ps_top_store *store_of(struct ps_top *top, const Perseas__Header *header)
{
	struct ps_top_store *store;

	for (unsigned i = 0; i < top->count; i++)
		if (ps_id_equal(header->store_id, top->stores[i].header->store_id.data))
			return &top->stores[i];
	top->stores = ps_or_end(realloc(top->stores, (top->count + 1) * sizeof(*top->stores)));
	store = &top->stores[top->count++];
	memset(store, 0, sizeof(*store));
	store->header = header;
	store->rate = -1;
	return store;
}

static void store_merge(struct ps_top_store *store, const Perseas__StoreStatus *status)
{
	const Perseas__Slot *slot = status->slot;

	if (ps_roster_newer(status->header->roster, store->header->roster))
		store->header = status->header;
	if (status->live && ps_owner_better(status, store->owner))
		store->owner = status;
	if (!slot || !slot->next || status->header->state != PERSEAS__STATE__STATE_CONSISTENT)
		return;
	if (!store->has_slot || slot->epoch > store->epoch ||
	    (slot->epoch == store->epoch && slot->seq > store->seq)) {
		store->has_slot = true;
		store->epoch = slot->epoch;
		store->seq = slot->seq;
	}
}

static bool is_of(const Perseas__StoreStatus *status, const struct ps_top_store *store)
{
	return ps_id_equal(status->header->store_id, store->header->store_id.data);
}

/* An owner tells all mirrors the same, one after the other: of those that it told, the one that it
 * told last. */
static void choose_figures(struct ps_top_store *store, const struct ps_panel *panel)
{
	for (unsigned i = 0; store->owner && i < panel->count; i++)
		for (size_t k = 0; panel->replies[i] && k < panel->replies[i]->list->n_stores;
		     k++) {
			const Perseas__StoreStatus *status = panel->replies[i]->list->stores[k];

			if (is_of(status, store) && status->live && status->figures &&
			    status->header->promised_epoch ==
			            store->owner->header->promised_epoch &&
			    (!store->figures || status->figures->commits > store->figures->commits))
				store->figures = status->figures;
		}
}

/* --- mirrors --- */

/* Is it of this image? A roster may list it as the one that it was loaded from. */
static bool is_report_of(const Perseas__MirrorReport *report, const Perseas__Header *header)
{
	const uint8_t *listed = report->image_id.data;

	return report->image_id.len &&
	       (ps_id_equal(header->image_id, listed) || ps_id_equal(header->parent_id, listed));
}

static bool is_listed(const struct ps_top_store *store, ProtobufCBinaryData image)
{
	return image.len && (ps_roster_member(store->header->roster, image.data) ||
	                     ps_roster_member(store->header->next_roster, image.data));
}

/* Is it of an image that a mirror shows? */
static bool is_shown(const struct ps_top_store *store, const struct ps_panel *panel,
                     const Perseas__MirrorReport *report)
{
	for (unsigned i = 0; i < panel->count; i++)
		for (size_t k = 0; panel->replies[i] && k < panel->replies[i]->list->n_stores; k++)
			if (is_of(panel->replies[i]->list->stores[k], store) &&
			    is_report_of(report, panel->replies[i]->list->stores[k]->header))
				return true;
	return false;
}

/* May an address alone say that the report is of this image? It may be known by another id since
 * the owner reported, or be made anew; a member's report is not another member's. */
static bool may_be_of(const struct ps_top_store *store, const struct ps_panel *panel,
                      const Perseas__MirrorReport *report, const Perseas__Header *header)
{
	return !is_listed(store, report->image_id) ||
	       (!is_listed(store, header->image_id) && !is_listed(store, header->parent_id) &&
	        !is_shown(store, panel, report));
}

/* What the owner says of the mirror that has this image and that we know by `address`; NULL:
 * nothing. */
static const Perseas__MirrorReport *report_of(const struct ps_top_store *store,
                                              const struct ps_panel *panel, const char *address,
                                              const Perseas__Header *header)
{
	const size_t count = store->owner ? store->owner->n_mirrors : 0;

	for (size_t k = 0; k < count; k++)
		if (is_report_of(store->owner->mirrors[k], header))
			return store->owner->mirrors[k];
	for (size_t k = 0; k < count; k++) {
		const Perseas__MirrorReport *report = store->owner->mirrors[k];

		if (!strcmp(report->address, address) && may_be_of(store, panel, report, header))
			return report;
	}
	return NULL;
}

static struct ps_top_mirror *add_mirror(struct ps_top_store *store, const char *address)
{
	struct ps_top_mirror *mirror;

	if (store->mirror_count == PS_TOP_MIRRORS_MAX)
		return NULL;
	mirror = &store->mirrors[store->mirror_count++];
	memset(mirror, 0, sizeof(*mirror));
	mirror->address = address;
	mirror->fabric = mirror->trouble = "";
	return mirror;
}

static void fill_from_report(struct ps_top_mirror *mirror, const Perseas__MirrorReport *report)
{
	mirror->reported = true;
	mirror->state = report->state;
	mirror->trouble = report->trouble;
	mirror->has_seq = true;
	mirror->seq = report->seq;
	mirror->done = report->done;
	mirror->total = report->total;
}

static void add_image(struct ps_top_store *store, const struct ps_panel *panel, const char *address,
                      const Perseas__StoreStatus *status, const Perseas__MirrorReport **used)
{
	struct ps_top_mirror *mirror = add_mirror(store, address);
	const Perseas__MirrorReport *report = report_of(store, panel, address, status->header);

	if (!mirror)
		return;
	if (status->live)
		mirror->fabric = status->fabric;
	if (report) {
		fill_from_report(mirror, report);
		*used = report;
		return;
	}
	mirror->state = ps_state_text(status->header->state);
	mirror->has_seq = status->slot && status->slot->next;
	mirror->seq = mirror->has_seq ? status->slot->seq : 0;
}

/* The owner looked at all of its mirrors at the same moment, and that was before the slots were
 * read: so what it reports is compared with what it reports. */
static void fill_lags(struct ps_top_store *store)
{
	uint64_t newest = 0;

	for (unsigned i = 0; i < store->mirror_count; i++)
		if (store->mirrors[i].reported && store->mirrors[i].seq > newest)
			newest = store->mirrors[i].seq;
	for (unsigned i = 0; i < store->mirror_count; i++) {
		struct ps_top_mirror *mirror = &store->mirrors[i];
		uint64_t from = mirror->reported ? newest : store->seq;

		mirror->lag = from > mirror->seq ? from - mirror->seq : 0;
	}
}

static void fill_mirrors(struct ps_top_store *store, const struct ps_panel *panel)
{
	const Perseas__MirrorReport *used[PS_MIRRORS_MAX] = { NULL };

	for (unsigned i = 0; i < panel->count; i++)
		for (size_t k = 0; panel->replies[i] && k < panel->replies[i]->list->n_stores; k++)
			if (is_of(panel->replies[i]->list->stores[k], store))
				add_image(store, panel, panel->addresses[i].text,
				          panel->replies[i]->list->stores[k], &used[i]);
	/* Mirrors that were not asked, or did not answer. */
	for (size_t k = 0; store->owner && k < store->owner->n_mirrors; k++) {
		const Perseas__MirrorReport *report = store->owner->mirrors[k];
		struct ps_top_mirror *mirror;
		bool known = false;

		for (unsigned i = 0; i < panel->count; i++)
			known |= used[i] == report;
		mirror = known ? NULL : add_mirror(store, report->address);
		if (mirror)
			fill_from_report(mirror, report);
	}
	fill_lags(store);
}

/* --- what changed --- */

static struct ps_top_past *past_of(struct ps_top *top, const struct ps_top_store *store)
{
	struct ps_top_past *past;

	for (unsigned i = 0; i < top->past_count; i++)
		if (ps_id_equal(store->header->store_id, top->past[i].store_id))
			return &top->past[i];
	top->past = ps_or_end(realloc(top->past, (top->past_count + 1) * sizeof(*top->past)));
	past = &top->past[top->past_count++];
	memset(past, 0, sizeof(*past));
	memcpy(past->store_id, store->header->store_id.data, PS_ID_SIZE);
	return past;
}

/* A seq that fell is that of a mirror which is behind: the others do not answer. */
static void compare_seq(struct ps_top_store *store, struct ps_top_past *past, uint64_t now_ns)
{
	if (!store->has_slot)
		return;
	if (past->has_slot && store->seq >= past->seq && now_ns > past->at_ns)
		store->rate = (double)(store->seq - past->seq) * 1e9 /
		              (double)(now_ns - past->at_ns);
	past->has_slot = true;
	past->seq = store->seq;
	past->at_ns = now_ns;
}

/* Takes what was counted before away. False: those are not of the same owner, or are newer. */
static bool latency_subtract(struct ps_latency *counted, const struct ps_latency *before)
{
	for (unsigned i = 0; i < PS_LATENCY_BUCKETS; i++) {
		if (counted->counts[i] < before->counts[i])
			return false;
		counted->counts[i] -= before->counts[i];
	}
	return true;
}

static void compare_figures(struct ps_top_store *store, struct ps_top_past *past, bool first,
                            uint64_t now_ns)
{
	const uint64_t epoch = store->owner ? store->owner->header->promised_epoch : 0;
	struct ps_latency counted, since;

	if (!store->figures)
		return;
	ps_latency_load(&counted, store->figures->commit);
	since = counted;
	/* One that came since the look before has counted nothing before it. */
	if (past->has_owner && past->epoch == epoch) {
		if (!latency_subtract(&since, &past->latency))
			return;
	} else if (first) {
		memset(&since, 0, sizeof(since));
	}
	past->has_owner = true;
	past->epoch = epoch;
	past->latency = counted;
	if (ps_latency_total(&since) > 0) {
		past->told_ns = now_ns;
		past->since = since;
	}
	store->has_latency = past->told_ns && now_ns < past->told_ns + REPEAT_NS;
	if (!store->has_latency)
		return;
	store->p50_ns = ps_latency_percentile(&past->since, 50);
	store->p99_ns = ps_latency_percentile(&past->since, 99);
	store->p999_ns = ps_latency_percentile(&past->since, 99.9);
}

static void store_compare(struct ps_top *top, struct ps_top_store *store)
{
	const unsigned known = top->past_count;
	struct ps_top_past *past = past_of(top, store);

	past->unseen = 0;
	compare_seq(store, past, top->asked_ns);
	compare_figures(store, past, top->past_count > known, top->asked_ns);
}

static void forget_old(struct ps_top *top)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < top->past_count; i++)
		if (top->past[i].unseen++ < FORGET_LOOKS)
			top->past[kept++] = top->past[i];
	top->past_count = kept;
}

static int by_name(const void *a, const void *b)
{
	const Perseas__Header *one = ((const struct ps_top_store *)a)->header;
	const Perseas__Header *other = ((const struct ps_top_store *)b)->header;
	int order = strcmp(one->store, other->store);

	return order ? order : memcmp(one->store_id.data, other->store_id.data, PS_ID_SIZE);
}

void ps_top_take(struct ps_top *top, const struct ps_panel *panel, uint64_t asked_ns)
{
	top->asked_ns = asked_ns;
	top->count = 0;
	for (unsigned i = 0; i < panel->count; i++)
		for (size_t k = 0; panel->replies[i] && k < panel->replies[i]->list->n_stores;
		     k++) {
			const Perseas__StoreStatus *status = panel->replies[i]->list->stores[k];

			store_merge(store_of(top, status->header), status);
		}
	if (top->count)
		qsort(top->stores, top->count, sizeof(*top->stores), by_name);
	for (unsigned i = 0; i < top->count; i++) {
		choose_figures(&top->stores[i], panel);
		fill_mirrors(&top->stores[i], panel);
		store_compare(top, &top->stores[i]);
	}
	forget_old(top);
}

void ps_top_free(struct ps_top *top)
{
	free(top->stores);
	free(top->past);
	memset(top, 0, sizeof(*top));
}
