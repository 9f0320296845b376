/*
 * written_sim.c - the means of client/core/written.h in a schedule. A page was written if it
 * differs from a copy of before, or if other contents were committed since. The kernel's own means
 * are not on every host, and a seed must repeat its schedule everywhere. process.c gives it to
 * owners.
 */
#include "written_sim.h"

#include "../../client/core/handle.h"
#include "oracle.h"

enum { WATCHED = (1 + SIM_PARTS) * SIM_SEGMENTS + 1 };

struct ps_written {
	struct sim_owner *owner;
	struct range {
		const uint8_t *base;
		uint64_t size;
		uint8_t before[SIM_PAGE], committed[SIM_PAGE];
	} ranges[WATCHED];
	unsigned next; /* to be used again */
};

static struct ps_written *written_begin(struct ps_env *env, struct ps_error *error)
{
	struct sim_owner *o = (struct sim_owner *)env;

	(void)error;
	o->written = sim_alloc(o->world, sizeof(struct ps_written));
	o->written->owner = o;
	return o->written;
}

static void written_end(struct ps_written *written)
{
	(void)written;
}

/* The one in which the address is. */
static struct range *find(struct ps_written *written, const uint8_t *at)
{
	for (unsigned i = 0; i < WATCHED; i++) {
		const struct range *range = &written->ranges[i];

		if (range->base && at >= range->base && at < range->base + range->size)
			return &written->ranges[i];
	}
	return NULL;
}

static int written_watch(struct ps_written *written, const uint8_t *base, uint64_t size)
{
	struct range *range = find(written, base);

	if (!range)
		range = &written->ranges[written->next++ % WATCHED];
	range->base = base;
	range->size = size;
	memcpy(range->before, base, size);
	memcpy(range->committed, base, size);
	return 0;
}

/* Returns the committed bytes of the range, or NULL if the owner keeps no copy of them. */
static const uint8_t *committed_of(const struct ps_written *written, const struct range *range)
{
	const struct perseas *p = written->owner->handle;

	for (unsigned i = 0; p && i < p->segment_count; i++)
		if (p->segments[i].base == range->base)
			return p->segments[i].shadow;
	return NULL;
}

/* Returns true if other contents were committed since the copies were made: the bytes were written,
 * even if they are as in the copy again. Brings the copy of what was committed up to date. */
static bool was_committed(const struct ps_written *written, struct range *range, uint64_t offset,
                          uint64_t length)
{
	const uint8_t *committed = committed_of(written, range);
	bool was;

	if (!committed)
		return false;
	was = memcmp(range->committed + offset, committed + offset, length) != 0;
	memcpy(range->committed + offset, committed + offset, length);
	return was;
}

/* -1: it was forgotten, since others came. */
static int written_take(struct ps_written *written, const uint8_t *base, uint64_t offset,
                        uint64_t length, uint64_t *set)
{
	struct range *range = find(written, base);

	static_assert((int)SIM_PAGE <= (int)PS_PAGE, "a segment is a page");
	if (!range || range->base != base || offset + length > range->size)
		return -1;
	if (was_committed(written, range, offset, length) ||
	    memcmp(range->before + offset, base + offset, length) != 0)
		set[0] |= 1;
	memcpy(range->before + offset, base + offset, length);
	return 0;
}

void sim_written_watch(struct sim_owner *o, const uint8_t *base, uint64_t size)
{
	(void)written_watch(o->written, base, size);
}

void sim_written_came(struct sim_owner *o, const uint8_t *at, uint64_t length)
{
	struct range *range = find(o->written, at);

	if (!range)
		return;
	memcpy(range->before + (at - range->base), at, length);
	memcpy(range->committed + (at - range->base), at, length);
}

static const struct ps_written_ops ops = {
	.begin = written_begin,
	.end = written_end,
	.watch = written_watch,
	.take = written_take,
};

const struct ps_written_ops *sim_written(const struct sim_owner *o)
{
	return (o->world->seed + o->index) % 2 ? &ops : NULL;
}
