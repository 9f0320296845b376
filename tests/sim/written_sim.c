/*
 * written_sim.c - the means of client/core/written.h in a schedule. What was written is what
 * differs from a copy of before: the kernel's own means would do, but not on every host, and a seed
 * must repeat its schedule everywhere. process.c gives it to owners.
 */
#include "written_sim.h"

#include "oracle.h"

#include <string.h>

enum { WATCHED = (1 + SIM_PARTS) * SIM_SEGMENTS + 1 };

struct ps_written {
	struct range {
		const uint8_t *base;
		uint64_t size;
		uint8_t before[SIM_PAGE];
	} ranges[WATCHED];
	unsigned next; /* to be used again */
};

static struct ps_written *written_begin(struct ps_env *env, struct ps_error *error)
{
	(void)error;
	return sim_alloc(((struct sim_owner *)env)->world, sizeof(struct ps_written));
}

static void written_end(struct ps_written *written)
{
	(void)written;
}

static struct range *find(struct ps_written *written, const uint8_t *base)
{
	for (unsigned i = 0; i < WATCHED; i++)
		if (written->ranges[i].base == base)
			return &written->ranges[i];
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
	return 0;
}

/* -1: it was forgotten, since others came. */
static int written_take(struct ps_written *written, const uint8_t *base, uint64_t size,
                        uint64_t *set)
{
	struct range *range = find(written, base);

	static_assert((int)SIM_PAGE <= (int)PS_PAGE, "a segment is a page");
	if (!range)
		return -1;
	if (memcmp(range->before, base, size) != 0)
		set[0] |= 1;
	memcpy(range->before, base, size);
	return 0;
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
