/*
 * grown.c - see grown.h; application.c and work.c call it. It knows where parts must lie and what
 * they must hold, and takes neither from the library.
 */
#include "grown.h"

#include "../../client/core/handle.h"
#include "env_sim.h"

void sim_grown_find(struct sim_application *a, unsigned segment)
{
	uint8_t *at = a->mapped[segment].base + a->mapped[segment].size;

	for (unsigned k = 0; segment < SIM_SEGMENTS && k < SIM_PARTS; k++) {
		const struct sim_segment *s = &a->at->segments[sim_part(segment, k)];

		if (!s->present)
			break;
		a->mapped[sim_part(segment, k)] = (struct mapped){ at, s->size };
		at += s->size;
	}
}

static void forget(struct sim_application *a, unsigned segment)
{
	a->mapped[segment].base = NULL;
	for (unsigned k = 0; segment < SIM_SEGMENTS && k < SIM_PARTS; k++)
		a->mapped[sim_part(segment, k)] = (struct mapped){ NULL, 0 };
}

/* Unmaps the segment. perseas_unmap may wait for a fetch, and other threads look at `unmaps` in the
 * meantime. */
int sim_grown_unmap(struct sim_application *a, unsigned segment)
{
	int rc;

	a->unmaps = segment + 1;
	rc = perseas_unmap(a->p, a->mapped[segment].base);
	a->unmaps = 0;
	if (!rc)
		forget(a, segment);
	return rc;
}

const struct ps_segment *sim_grown_segment(const struct sim_application *a, unsigned i)
{
	const struct ps_segment *segment = ps_segment_by_name(a->p, sim_segment_name(i));

	if (!segment)
		sim_fail(a->world, "owner %u has no segment %s any more", a->owner->index,
		         sim_segment_name(i));
	return segment;
}

uint32_t sim_grown_size(const struct sim_application *a, unsigned segment)
{
	uint32_t size = a->mapped[segment].size;

	for (unsigned k = 0; k < SIM_PARTS; k++)
		if (a->mapped[sim_part(segment, k)].base)
			size += a->mapped[sim_part(segment, k)].size;
	return size;
}

bool sim_grown_can(const struct sim_application *a, unsigned segment)
{
	return a->mapped[segment].base && a->mapped[segment].size == SIM_PAGE &&
	       a->at->segments[segment].present &&
	       !a->at->segments[sim_part(segment, SIM_PARTS - 1)].present;
}

/* Copies bytes from the application's memory into one segment of images; the segment begins at
 * `at`. */
static void edit_part(const struct sim_application *a, struct sim_node *node, unsigned part,
                      uint32_t at, uint32_t start, uint32_t end)
{
	const struct mapped *m = &a->mapped[part];
	const uint32_t from = start > at ? start : at;
	const uint32_t to = end < at + m->size ? end : at + m->size;

	if (m->base && from < to)
		memcpy(sim_node_edit(a->world, node, part) + (from - at), m->base + (from - at),
		       to - from);
}

void sim_grown_edit(const struct sim_application *a, struct sim_node *node, unsigned segment,
                    uint32_t offset, uint32_t length)
{
	uint32_t at = a->mapped[segment].size;

	edit_part(a, node, segment, 0, offset, offset + length);
	for (unsigned k = 0; k < SIM_PARTS; k++) {
		edit_part(a, node, sim_part(segment, k), at, offset, offset + length);
		at += a->mapped[sim_part(segment, k)].size;
	}
}

void sim_grown_seal(struct sim_application *a, struct sim_node *node, unsigned segment)
{
	const struct ps_segment *found;
	unsigned k = 0, part;

	while (node->segments[sim_part(segment, k)].present)
		k++;
	part = sim_part(segment, k);
	found = ps_segment_by_name(a->p, sim_segment_name(part));
	if (!found)
		sim_fail(a->world, "owner %u has no segment %s", a->owner->index,
		         sim_segment_name(part));
	sim_node_bear(a->owner, node, part, found);
	node->segments[part].bytes = sim_alloc(a->world, SIM_PAGE);
	a->mapped[part].base = a->mapped[segment].base + sim_grown_size(a, segment);
	a->mapped[part].size = SIM_PAGE;
}

void sim_grown_end(struct sim_node *node, unsigned segment)
{
	node->segments[segment].present = false;
	for (unsigned k = 0; k < SIM_PARTS; k++)
		node->segments[sim_part(segment, k)].present = false;
}
