/*
 * settle.c - memory that is fetched and has a shadow (core/shadow.h): what anybody may have stored
 * to before it counts as here. A page can be seen once the kernel has it, which is a moment before
 * its granule is PS_GRANULE_HERE; and where there is no memory for a whole granule, some of its
 * pages can be seen long before. Commit and abort look for stores where memory is here, so whoever
 * calls them waits in this file first, and holds nothing.
 */
#include "demand.h"

#include "../core/env.h"

bool ps_demand_can_watch(const struct perseas *p)
{
	return !p->demand || p->demand->ops->can_watch(p->demand->pager);
}

void ps_settle_note(struct ps_mapping *mapping, const struct ps_want *part, bool filled)
{
	for (uint64_t g = part->granule; g < part->granule + part->count; g++) {
		mapping->torn_count += (uint64_t)!filled - mapping->torn[g];
		mapping->torn[g] = !filled;
	}
}

/* They were given back when they did not come, and so are asked for before the rest. */
static bool is_any_torn(const struct ps_demand *d)
{
	for (unsigned i = 0; i < d->mapping_count; i++)
		if (d->mappings[i].torn_count)
			return true;
	return false;
}

/* A fill is a copy within this host. What is torn comes from mirrors, once there is memory for it,
 * which may be never. Who is fenced sends nothing more. */
bool ps_demand_settle(struct perseas *p, uint64_t until)
{
	struct ps_demand *d = p->demand;
	uint64_t fills;
	bool torn;

	if (!d)
		return true;
	pthread_mutex_lock(&d->lock);
	fills = d->fills;
	while (d->filling && d->fills == fills)
		d->env->ops->wait(d->env, &d->change, &d->lock, PS_NEVER);
	while ((torn = is_any_torn(d) && !d->fenced) && ps_now(p) < until)
		d->env->ops->wait(d->env, &d->change, &d->lock, until);
	pthread_mutex_unlock(&d->lock);
	return !torn;
}
