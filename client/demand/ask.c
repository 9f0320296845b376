/*
 * ask.c - the calls of applications about memory that comes on demand: perseas_wait_whole and
 * perseas_prefetch. Any thread calls them. Nothing here touches memory that may be missing.
 */
#include "demand.h"

#include "../core/env.h"
#include "../core/mirror.h"
#include "../core/cancel.h"

static int fail_missing(struct perseas *p, uint64_t missing, bool lacks_memory)
{
	if (lacks_memory)
		return ps_fail(p, PERSEAS_EUNREACHABLE,
		               "%llu bytes of memory are not here yet, and this host has no memory "
		               "for them: free some, and call perseas_wait_whole again",
		               (unsigned long long)missing);
	return ps_fail(p, PERSEAS_EUNREACHABLE,
	               "%llu bytes of memory are not here yet: call perseas_wait_whole again; "
	               "perseas_mirror_stat says which mirrors are out of reach",
	               (unsigned long long)missing);
}

/* Returns when the timeout ends, or PS_NEVER if it is negative or ends beyond all times. */
static uint64_t deadline(struct perseas *p, int64_t timeout_ms)
{
	const uint64_t now = ps_now(p);

	if (timeout_ms < 0 || (uint64_t)timeout_ms > (PS_NEVER - now) / ps_ms(1))
		return PS_NEVER;
	return now + ps_ms((uint64_t)timeout_ms);
}

int perseas_wait_whole(perseas_t *p, int64_t timeout_ms)
{
	PS_UNCANCELLED;
	struct ps_demand *d;
	uint64_t until, missing;
	bool any, fenced, lacks_memory;

	if (!p)
		return ps_fail(NULL, PERSEAS_EINVAL, "p is NULL");
	d = p->demand;
	if (!d)
		return 0;
	until = deadline(p, timeout_ms);
	pthread_mutex_lock(&d->lock);
	while ((missing = ps_demand_missing_bytes(d, &any)) && !d->is_fenced && ps_now(p) < until)
		d->env->ops->wait(d->env, &d->all_here, &d->lock, until);
	fenced = d->is_fenced;
	lacks_memory = d->lacks_memory;
	pthread_mutex_unlock(&d->lock);
	if (!missing)
		return 0;
	return fenced ? ps_fail_fenced(p) : fail_missing(p, missing, lacks_memory);
}

/* Returns the end of the mapping that contains `at`, but at most `end`. Returns `at` if nothing is
 * mapped there. Caller holds d->lock. */
static uint64_t mapping_end(struct ps_demand *d, uint64_t at, uint64_t end)
{
	const struct ps_mapping *mapping = ps_mapping_by_address(d, at);
	const uint64_t to = mapping ? (uint64_t)(uintptr_t)mapping->base + mapping->size : at;

	return to < end ? to : end;
}

int perseas_prefetch(perseas_t *p, const void *addr, size_t len)
{
	PS_UNCANCELLED;
	const uint64_t start = (uint64_t)(uintptr_t)addr;
	uint64_t end = start + len, next;
	struct ps_mapping *mapping;
	struct ps_demand *d;

	if (!p)
		return ps_fail(NULL, PERSEAS_EINVAL, "p is NULL");
	d = p->demand;
	if (!d || !len)
		return 0;
	pthread_mutex_lock(&d->lock);
	/* If a part of the range is not mapped, nothing of it is prefetched. */
	for (next = start; next < end && mapping_end(d, next, end) > next;)
		next = mapping_end(d, next, end);
	end = next < end ? start : end;
	for (uint64_t at = start; at < end; at = next) {
		next = mapping_end(d, at, end);
		mapping = ps_mapping_by_address(d, at);
		for (uint64_t g = ps_granule_by_address(d, mapping, at),
		              last = ps_granule_by_address(d, mapping, next - 1);
		     g <= last; g++)
			ps_granule_ask_early(mapping, g);
	}
	pthread_mutex_unlock(&d->lock);
	d->ops->wake(d->pager, PS_BULK_LANE);
	return 0;
}
