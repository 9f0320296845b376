/*
 * mistakes_resync.c - faults in what an owner notes of its changes, and in what it sends to a
 * mirror that was away. The linker puts these functions in front of the library's
 * (mistakes_wrapped.c).
 */
#include "mistakes.h"

#include "../../client/core/change_map.h"
#include "../../client/core/commit.h"
#include "../../client/core/unsent_granules.h"
#include "../../client/core/mirror.h"
#include "../../client/keeper/repair.h"
#include "aim.h"
#include "process.h"

int __real_ps_commit_send(struct perseas *p, const struct ps_outgoing *out);
int __wrap_ps_commit_send(struct perseas *p, const struct ps_outgoing *out);
enum ps_unsent_base __real_ps_unsent_choose_base(const struct perseas *p, const struct ps_mirror *m,
                                                 const Perseas__ClaimReply *claim);
enum ps_unsent_base __wrap_ps_unsent_choose_base(const struct perseas *p, const struct ps_mirror *m,
                                                 const Perseas__ClaimReply *claim);
int __real_ps_unsent_make_set(struct perseas *p, struct ps_mirror *m, enum ps_unsent_base base,
                              const Perseas__ClaimReply *claim, const uint8_t *image_id);
int __wrap_ps_unsent_make_set(struct perseas *p, struct ps_mirror *m, enum ps_unsent_base base,
                              const Perseas__ClaimReply *claim, const uint8_t *image_id);
int __real_ps_mirror_post_bulk(struct perseas *p, struct ps_mirror *m,
                               const struct ps_chain *chain);
int __wrap_ps_mirror_post_bulk(struct perseas *p, struct ps_mirror *m,
                               const struct ps_chain *chain);

int __real_ps_resync_step_comparing(struct perseas *p, struct ps_error *error);
int __wrap_ps_resync_step_comparing(struct perseas *p, struct ps_error *error);

void __real_ps_repair_step(struct perseas *p);
void __wrap_ps_repair_step(struct perseas *p);
int __wrap_ps_unsent_add_wrong_granule(struct perseas *p, struct ps_mirror *m,
                                       const struct ps_segment *segment, uint64_t offset);

enum { AGE = 16 }; /* transactions that may be posted between a begin and its commit */

static struct sim_world *world_of(const struct perseas *p)
{
	return ((const struct sim_owner *)p->env)->world;
}

static bool is(const struct perseas *p, enum sim_mistake mistake)
{
	return sim_mistake_is(world_of(p), mistake);
}

/* Returns the mark of the granule in which the last span ends, or NULL. */
static uint64_t *last_mark(struct perseas *p, const struct ps_outgoing *out)
{
	const struct ps_span *span = out->spans + out->span_count - 1;

	return out->span_count ? p->commit.change_maps[span->segment] +
	                                 ((span->end - 1 - span->base) >> PS_CHANGE_SHIFT)
	                       : NULL;
}

int __wrap_ps_commit_send(struct perseas *p, const struct ps_outgoing *out)
{
	uint64_t *mark = last_mark(p, out);
	const uint64_t before = mark ? *mark : 0;
	const int rc = __real_ps_commit_send(p, out);

	if (rc || !mark)
		return rc;
	if (is(p, SIM_MISTAKE_UNMARKED_SPAN))
		*mark = before;
	/* With the seq at which it may have begun, and declared this. */
	if (is(p, SIM_MISTAKE_MARKED_EARLY))
		*mark = p->commit.seq > AGE && before < p->commit.seq - AGE ? p->commit.seq - AGE
		                                                            : before;
	return 0;
}

enum ps_unsent_base __wrap_ps_unsent_choose_base(const struct perseas *p, const struct ps_mirror *m,
                                                 const Perseas__ClaimReply *claim)
{
	const bool whole = claim->header->state == PERSEAS__STATE__STATE_CONSISTENT;
	const enum ps_unsent_base base = __real_ps_unsent_choose_base(p, m, claim);

	if (claim->slot && whole && is(p, SIM_MISTAKE_ANY_SLOT))
		return PS_UNSENT_CHANGED;
	if (base != PS_UNSENT_ALL && !whole && is(p, SIM_MISTAKE_HALF_IS_BASE))
		return PS_UNSENT_CHANGED;
	return base;
}

/* Compares everything with the map as it was AGE transactions before any goes to the mirror. */
static void list_early(struct perseas *p, struct ps_mirror *m)
{
	struct ps_unsent_granules *due = m->unsent_granules;
	uint64_t bytes;

	pthread_mutex_lock(&p->lock);
	while (ps_unsent_add_changed(p, m, &bytes))
		;
	for (unsigned i = 0; i < p->segment_count; i++) {
		const struct ps_segment *s = &p->segments[i];

		for (uint64_t at = 0; due->unsent_bits[s->id] && at < ps_change_granules(s->size);
		     at++)
			if (ps_change_map_last_seq(p, s->id, at) + AGE > p->commit.seq)
				due->unsent_bits[s->id][at / 64] &= ~((uint64_t)1 << at % 64);
	}
	pthread_mutex_unlock(&p->lock);
	due->next_segment_to_compare = 0;
}

int __wrap_ps_unsent_make_set(struct perseas *p, struct ps_mirror *m, enum ps_unsent_base base,
                              const Perseas__ClaimReply *claim, const uint8_t *image_id)
{
	static const char *const bases[] = { "all", "what changed", "the rest", "what differs",
		                             "what is wrong" };
	const int rc = __real_ps_unsent_make_set(p, m, base, claim, image_id);

	sim_trace(world_of(p), "%s is to be sent %s%s: %s", m->address.text, bases[base],
	          p->upkeep.resync.is_in_place ? "" : ", not in place",
	          p->upkeep.resync.copy_reason);
	if (!rc && base == PS_UNSENT_CHANGED && is(p, SIM_MISTAKE_LISTED_EARLY))
		list_early(p, m);
	sim_count(world_of(p), SIM_SENT_CHANGED, base == PS_UNSENT_CHANGED);
	sim_count(world_of(p), SIM_SENT_REST, base == PS_UNSENT_REST);
	sim_count(world_of(p), SIM_SENT_DIFFERENT, base == PS_UNSENT_DIFFERENT);
	sim_count(world_of(p), SIM_FORMER_DIFFERENT,
	          base == PS_UNSENT_DIFFERENT && p->upkeep.resync.gets_new_image_id);
	return rc;
}

int __wrap_ps_resync_step_comparing(struct perseas *p, struct ps_error *error)
{
	const int rc = __real_ps_resync_step_comparing(p, error);

	if (rc > 0 && is(p, SIM_MISTAKE_DIGEST_STALE))
		p->upkeep.resync.target->unsent_granules->unadded_changes_since_seq = p->commit.seq;
	return rc;
}

/* A granule is due no more when its chunk is posted. */
int __wrap_ps_mirror_post_bulk(struct perseas *p, struct ps_mirror *m, const struct ps_chain *chain)
{
	const int rc = __real_ps_mirror_post_bulk(p, m, chain);
	const struct ps_write *write = chain->writes + chain->write_count - 1;

	if (!rc && chain->write_count && write->region >= PS_REGION_SEGMENT &&
	    is(p, SIM_MISTAKE_DUE_DROPPED))
		ps_unsent_remove_sent_part(m,
		                           ps_segment_by_id(p, write->region - PS_REGION_SEGMENT),
		                           write->offset, write->offset + write->length,
		                           m->unsent_granules->slot_seq_at_removal);
	return rc;
}

/* Orders a repair again and again. Nothing is ever wrong, so mirrors and owner must agree. */
void __wrap_ps_repair_step(struct perseas *p)
{
	const struct ps_order_result *results = p->upkeep.orders.results;
	struct ps_repair *r = &p->upkeep.repair;
	struct sim_world *w = world_of(p);
	const uint8_t id[PS_ID_SIZE] = { 1 };
	bool under_way;

	if (sim_absence_repairs(w) && r->state == PS_REPAIR_NONE && sim_chance(w, 10)) {
		memset(p->upkeep.orders.results, 0, sizeof(p->upkeep.orders.results));
		ps_repair_begin(p, id);
	}
	under_way = r->state != PS_REPAIR_NONE;
	__real_ps_repair_step(p);
	for (unsigned i = 0; i < PS_ORDERS_SAVED && under_way && !r->state; i++) {
		if (strstr(results[i].text, "agree"))
			sim_fail(w, "a repair ends: %s", results[i].text);
		sim_count(w, SIM_REPAIRS,
		          !memcmp(results[i].id, id, PS_ID_SIZE) && !results[i].code);
	}
	if (is(p, SIM_MISTAKE_REPAIR_UNSETTLED))
		r->common_seq = UINT64_MAX;
}

int __wrap_ps_unsent_add_wrong_granule(struct perseas *p, struct ps_mirror *m,
                                       const struct ps_segment *segment, uint64_t offset)
{
	sim_fail(world_of(p), "%s is called wrong at %llu of %s", m->address.text,
	         (unsigned long long)offset, segment->name);
	return -1;
}
