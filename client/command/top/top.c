/*
 * top.c - see top.h.
 */
#include "top.h"

#include "../../../proto/control/envelope.h"

#include <stdlib.h>
#include <string.h>

enum { FORGET_LOOKS = 60 }; /* looks after which a store that none of them saw is forgotten */

#define REPEAT_NS ((uint64_t)1200000000) /* older latencies are not shown again */

/* A store's figures that perseas top remembers until the next look. */
struct ps_top_past {
	uint8_t store_id[PS_ID_SIZE];
	unsigned unseen; /* looks since a mirror reported the store */
	bool has_slot;
	uint64_t seq, at_ns;
	bool has_owner;
	uint64_t epoch; /* epoch of that owner */
	/* The owner's latencies at the last look, counted since its open. */
	struct ps_latency latency;
	uint64_t told_ns;        /* when a look last found new commits */
	struct ps_latency since; /* latencies of these new commits */
};

/* Returns the remembered figures of the store. Sets *is_new if no earlier look saw the store. */
static struct ps_top_past *find_or_add_past(struct ps_top *top, const uint8_t *store_id,
                                            bool *is_new)
{
	struct ps_top_past *past;

	*is_new = false;
	for (unsigned i = 0; i < top->past_count; i++)
		if (!memcmp(top->past[i].store_id, store_id, PS_ID_SIZE))
			return &top->past[i];
	*is_new = true;
	top->past = ps_exit_if_null(realloc(top->past, (top->past_count + 1) * sizeof(*top->past)));
	past = &top->past[top->past_count++];
	memset(past, 0, sizeof(*past));
	memcpy(past->store_id, store_id, PS_ID_SIZE);
	return past;
}

/* Sets the rate. A seq that fell is that of a mirror that is behind, while the others do not
 * answer. */
static void compare_seq(struct ps_top_change *change, const struct ps_fleet_store *store,
                        struct ps_top_past *past, uint64_t now_ns)
{
	change->rate = -1;
	if (!store->has_slot)
		return;
	if (past->has_slot && store->seq >= past->seq && now_ns > past->at_ns)
		change->rate = (double)(store->seq - past->seq) * 1e9 /
		               (double)(now_ns - past->at_ns);
	past->has_slot = true;
	past->seq = store->seq;
	past->at_ns = now_ns;
}

/* Subtracts an earlier count from `counted`. Returns false if `before` is of another owner, or is
 * newer. */
static bool latency_subtract(struct ps_latency *counted, const struct ps_latency *before)
{
	for (unsigned i = 0; i < PS_LATENCY_BUCKETS; i++) {
		if (counted->counts[i] < before->counts[i])
			return false;
		counted->counts[i] -= before->counts[i];
	}
	return true;
}

/* Remembers the owner's counts, and the difference to the last look. Returns false if the counts
 * are older than those of the last look. */
static bool take_new_figures(const struct ps_fleet_store *store, struct ps_top_past *past,
                             bool is_new, uint64_t now_ns)
{
	const uint64_t epoch = store->owner_status->header->promised_epoch;
	struct ps_latency counted, since;

	ps_latency_load(&counted, store->figures->commit);
	since = counted;
	/* An owner that came since the last look counted nothing before it. */
	if (past->has_owner && past->epoch == epoch) {
		if (!latency_subtract(&since, &past->latency))
			return false;
	} else if (is_new) {
		memset(&since, 0, sizeof(since));
	}
	past->has_owner = true;
	past->epoch = epoch;
	past->latency = counted;
	if (ps_latency_total(&since) > 0) {
		past->told_ns = now_ns;
		past->since = since;
	}
	return true;
}

static void compare_figures(struct ps_top_change *change, const struct ps_fleet_store *store,
                            struct ps_top_past *past, bool is_new, uint64_t now_ns)
{
	if (!store->figures || !take_new_figures(store, past, is_new, now_ns))
		return;
	change->has_latency = past->told_ns && now_ns < past->told_ns + REPEAT_NS;
	if (!change->has_latency)
		return;
	change->p50_ns = ps_latency_percentile(&past->since, 50);
	change->p99_ns = ps_latency_percentile(&past->since, 99);
	change->p999_ns = ps_latency_percentile(&past->since, 99.9);
}

static void compare_store(struct ps_top *top, unsigned i, uint64_t now_ns)
{
	const struct ps_fleet_store *store = &top->fleet.stores[i];
	bool is_new;
	struct ps_top_past *past = find_or_add_past(top, store->header->store_id.data, &is_new);

	past->unseen = 0;
	compare_seq(&top->changes[i], store, past, now_ns);
	compare_figures(&top->changes[i], store, past, is_new, now_ns);
}

static void forget_unseen_stores(struct ps_top *top)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < top->past_count; i++)
		if (top->past[i].unseen++ < FORGET_LOOKS)
			top->past[kept++] = top->past[i];
	top->past_count = kept;
}

void ps_top_take_look(struct ps_top *top, struct ps_peers *peers, uint64_t asked_ns)
{
	struct ps_fleet *fleet = &top->fleet;

	ps_fleet_free_stores(fleet);
	free(fleet->daemons);
	*fleet = (struct ps_fleet){ .count = peers->count };
	fleet->daemons = ps_exit_if_null(calloc(peers->count, sizeof(*fleet->daemons)));
	for (unsigned i = 0; i < peers->count; i++)
		fleet->daemons[i] = (struct ps_fleet_daemon){ peers, i, false, peers->replies[i] };
	ps_fleet_judge_stores(fleet);
	free(top->changes);
	top->changes = ps_exit_if_null(calloc(fleet->store_count + 1, sizeof(*top->changes)));
	for (unsigned i = 0; i < fleet->store_count; i++)
		compare_store(top, i, asked_ns);
	forget_unseen_stores(top);
}

void ps_top_free(struct ps_top *top)
{
	ps_fleet_free_stores(&top->fleet);
	free(top->fleet.daemons);
	free(top->changes);
	free(top->past);
	*top = (struct ps_top){ 0 };
}
