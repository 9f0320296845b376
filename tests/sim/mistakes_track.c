/*
 * mistakes_track.c - faults in how transactions without set_range are found, and kept from mirrors
 * that are copied meanwhile. work.c and the linker (mistakes_wrapped.c) call these; without its
 * mistake none changes anything.
 */
#include "mistakes.h"

#include "../../client/core/shadow.h"
#include "../../client/core/tx.h"
#include "process.h"

bool sim_mistake_tracks(const struct sim_world *w)
{
	return (w->mistake >= SIM_MISTAKE_FORGOTTEN && w->mistake <= SIM_MISTAKE_UNDECLARED) ||
	       w->mistake == SIM_MISTAKE_UNSETTLED || sim_mistake_poor(w);
}

/* Forgets what the thread wrote, as if it had been looked at already. */
static void forget(struct perseas *p, struct ps_segment *segment)
{
	pthread_mutex_lock(&p->lock);
	ps_shadow_collect_written(p, segment);
	if (segment->pages_may_differ)
		memset(segment->pages_may_differ, 0, segment->size / PS_PAGE / PS_WRITTEN_WORD + 1);
	pthread_mutex_unlock(&p->lock);
}

void sim_mistake_refused(struct sim_owner *o)
{
	struct perseas *p = o->handle;

	for (unsigned i = 0; p && i < p->segment_count; i++) {
		struct ps_segment *segment = &p->segments[i];

		if (!segment->base || !segment->shadow)
			continue;
		if (sim_mistake_is(o->world, SIM_MISTAKE_FORGOTTEN))
			forget(p, segment);
		if (sim_mistake_is(o->world, SIM_MISTAKE_SHADOW_EARLY))
			memcpy(segment->shadow, segment->base, segment->size);
	}
}

void __real_ps_tx_copy_committed(struct perseas *p, const struct ps_segment *segment,
                                 uint64_t offset, uint8_t *bytes, uint64_t length);
void __wrap_ps_tx_copy_committed(struct perseas *p, const struct ps_segment *segment,
                                 uint64_t offset, uint8_t *bytes, uint64_t length);

/* Memory as it is, though a transaction is open that declared nothing of it. */
void __wrap_ps_tx_copy_committed(struct perseas *p, const struct ps_segment *segment,
                                 uint64_t offset, uint8_t *bytes, uint64_t length)
{
	const struct sim_owner *o = (const struct sim_owner *)p->env;

	__real_ps_tx_copy_committed(p, segment, offset, bytes, length);
	if (p->commit.tracked_tx && sim_mistake_is(o->world, SIM_MISTAKE_UNDECLARED))
		memcpy(bytes, segment->base + offset, length);
}

void __real_ps_demand_await_fill(struct perseas *p);
void __wrap_ps_demand_await_fill(struct perseas *p);

/* Looks for stores where memory counts as here, and does not wait for the rest. */
void __wrap_ps_demand_await_fill(struct perseas *p)
{
	if (!sim_mistake_is(((const struct sim_owner *)p->env)->world, SIM_MISTAKE_UNSETTLED))
		__real_ps_demand_await_fill(p);
}
