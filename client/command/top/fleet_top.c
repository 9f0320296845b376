/*
 * fleet_top.c - see fleet_top.h.
 */
#include "fleet_top.h"

#include "../../../proto/control/envelope.h"

#include <stdlib.h>
#include <string.h>

enum { FORGET_LOOKS = 60 }; /* a store that was not seen for so many is forgotten */

struct ps_fleet_past {
	uint8_t store_id[PS_ID_SIZE];
	bool has_slot, has_owner, had_owner;
	uint64_t seq, at_ns; /* with has_slot */
	uint64_t gone_ns;    /* with had_owner and without has_owner: when it was seen first */
	unsigned unseen;     /* looks */
};

/* --- what was told --- */

void ps_fleet_top_take(struct ps_fleet_top *top, const struct ps_rounds *rounds)
{
	struct ps_fleet *fleet = &top->fleet;

	fleet->daemons = ps_or_end(
		realloc(fleet->daemons, rounds->total * sizeof(*fleet->daemons)));
	top->told = ps_or_end(realloc(top->told, rounds->total * sizeof(*top->told)));
	fleet->count = fleet->silent = 0;
	for (unsigned k = 0; k < rounds->count; k++) {
		struct ps_round *round = rounds->list[k];

		for (unsigned i = 0; i < round->panel.count; i++) {
			Perseas__Reply *host = round->hosts[i];

			top->told[fleet->count] = (struct ps_fleet_told){ host ? host->host : NULL,
				                                          &round->errors[i] };
			fleet->daemons[fleet->count++] = (struct ps_fleet_daemon){
				&round->panel, i, round->added, round->lists[i]
			};
			fleet->silent += !round->lists[i];
		}
	}
	ps_fleet_top_judge(top, ps_rounds_now(rounds));
}

bool ps_fleet_top_is_full(const Perseas__HostReply *host)
{
	return (double)host->memory_room * 9 < (double)host->memory_used;
}

/* --- what changed --- */

static struct ps_fleet_past *past_of(struct ps_fleet_top *top, const uint8_t *store_id)
{
	struct ps_fleet_past *past;

	for (unsigned i = 0; i < top->past_count; i++)
		if (!memcmp(top->past[i].store_id, store_id, PS_ID_SIZE))
			return &top->past[i];
	top->past = ps_or_end(realloc(top->past, (top->past_count + 1) * sizeof(*top->past)));
	past = &top->past[top->past_count++];
	*past = (struct ps_fleet_past){ 0 };
	memcpy(past->store_id, store_id, PS_ID_SIZE);
	return past;
}

/* A seq that fell is that of a mirror which is behind: the others do not answer. */
static double take_rate(struct ps_fleet_past *past, const struct ps_fleet_store *store,
                        uint64_t now_ns)
{
	double rate = -1;

	if (!store->has_slot)
		return rate;
	if (past->has_slot && store->seq >= past->seq && now_ns > past->at_ns)
		rate = (double)(store->seq - past->seq) * 1e9 / (double)(now_ns - past->at_ns);
	past->has_slot = true;
	past->seq = store->seq;
	past->at_ns = now_ns;
	return rate;
}

static void take_owner(struct ps_fleet_past *past, const struct ps_fleet_store *store,
                       struct ps_fleet_move *move, uint64_t now_ns)
{
	const bool has_owner = *store->owner;

	if (past->has_owner && !has_owner)
		past->gone_ns = now_ns;
	past->had_owner |= has_owner;
	past->has_owner = has_owner;
	move->gone = past->had_owner && !has_owner;
	move->gone_ns = move->gone ? now_ns - past->gone_ns : 0;
}

static void take_store(struct ps_fleet_top *top, unsigned i, uint64_t now_ns)
{
	const struct ps_fleet_store *store = &top->fleet.stores[i];
	struct ps_fleet_past *past = past_of(top, store->header->store_id.data);
	struct ps_fleet_move *move = &top->moves[i];

	past->unseen = 0;
	move->rate = take_rate(past, store, now_ns);
	take_owner(past, store, move, now_ns);
	move->attention = store->rank <= PS_FLEET_NOTED || move->gone;
	top->attention += move->attention;
	top->well_free += !move->attention && !*store->owner;
	if (move->rate >= 0)
		top->rate = (top->rate < 0 ? 0 : top->rate) + move->rate;
}

static void forget_old(struct ps_fleet_top *top)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < top->past_count; i++)
		if (top->past[i].unseen++ < FORGET_LOOKS)
			top->past[kept++] = top->past[i];
	top->past_count = kept;
}

void ps_fleet_top_judge(struct ps_fleet_top *top, uint64_t now_ns)
{
	struct ps_fleet *fleet = &top->fleet;

	fleet->hurried = true;
	ps_fleet_forget(fleet);
	ps_fleet_judge(fleet);
	free(top->moves);
	top->moves = ps_or_end(calloc(fleet->store_count + 1, sizeof(*top->moves)));
	top->attention = top->well_free = 0;
	top->rate = -1;
	for (unsigned i = 0; i < fleet->store_count; i++)
		take_store(top, i, now_ns);
	forget_old(top);
}

void ps_fleet_top_free(struct ps_fleet_top *top)
{
	ps_fleet_forget(&top->fleet);
	free(top->fleet.daemons);
	free(top->told);
	free(top->moves);
	free(top->past);
	*top = (struct ps_fleet_top){ 0 };
}
