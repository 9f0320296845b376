/*
 * segments.c - maps, unmaps, makes and destroys segments as an application does, and compares what
 * is shown with the oracle. application.c calls it.
 */
#include "segments.h"

#include "../../client/core/demand.h"
#include "../../client/core/handle.h"
#include "grown.h"
#include "oracle.h"
#include "rivals.h"
#include "schedule.h"

enum { USUAL_SIZE = 512 };

void sim_segments_compare(struct sim_application *a, unsigned i, const char *when)
{
	const struct sim_segment *s = &a->at->segments[i];
	const struct ps_segment *segment = ps_segment_by_name(a->p, sim_segment_name(i));
	uint32_t at = 0;
	bool here;

	/* A heap may be returning the segment at this moment. */
	if (!a->mapped[i].base || !s->present || !segment || !segment->base)
		return;
	/* Memory that is missing is not looked at. */
	for (uint64_t run; at < s->size; at += (uint32_t)run) {
		run = ps_demand_uniform_run(a->p, segment, at, s->size - at, &here);
		if (here && memcmp(a->mapped[i].base + at, s->bytes + at, run) != 0)
			break;
	}
	if (at >= s->size)
		return;
	while (a->mapped[i].base[at] == s->bytes[at])
		at++;
	sim_fail(a->world, "owner %u, %s: byte %u of segment %s is not as in %s", a->owner->index,
	         when, at, sim_segment_name(i), sim_state(a->world, a->at->epoch, a->at->seq));
}

/* Some owners have some segments elsewhere than recorded, and, when these are mapped again, where
 * they were not. Each owner has a distance of its own: two that published at the same address of
 * this process, one after the other (env_sim.c), must not meet there. */
static int map_somewhere(struct sim_application *a, unsigned i, void **addr)
{
	const struct ps_segment *segment = ps_segment_by_name(a->p, sim_segment_name(i));
	const uint64_t away = ((uint64_t)1 << 30) + ((uint64_t)a->owner->index << 26);

	a->maps++;
	if (!segment || (a->world->seed / 4 + a->owner->index + a->maps) % 3)
		return perseas_map(a->p, sim_segment_name(i), 0, addr);
	sim_count(a->world, SIM_MOVED, 1);
	return perseas_map_at(a->p, sim_segment_name(i), 0,
	                      (void *)(segment->address + away * (1 + a->maps % 2)), addr, NULL);
}

/* Returns true if another owner of this process has mapped something at the segment's address. A
 * publish chooses among free addresses, also ones that another owner unmaps only for a moment. */
static bool another_has_its_place(const struct sim_application *a, unsigned i)
{
	const struct ps_segment *segment = ps_segment_by_name(a->p, sim_segment_name(i));
	const struct sim_world *w = a->world;

	for (unsigned other = 0; segment && other < w->owner_count; other++) {
		const struct perseas *p = w->owners[other]->handle;

		for (unsigned s = 0; p && p != a->p && s < p->segment_count; s++)
			if (p->segments[s].base &&
			    segment->address < p->segments[s].address + p->segments[s].size &&
			    p->segments[s].address < segment->address + SIM_RANGE_MAX)
				return true;
	}
	return false;
}

static int map_published(struct sim_application *a, unsigned i)
{
	void *addr;
	int rc;

	rc = map_somewhere(a, i, &addr);
	if (a->owner->dead || (rc == PERSEAS_EADDRESS && another_has_its_place(a, i)))
		return LEAVE;
	if (rc == PERSEAS_EFENCED || rc == PERSEAS_EUNREACHABLE || rc == PERSEAS_EBLOCKED)
		return LEAVE;
	if (rc)
		return sim_unexpected(a, "map of what is published", rc);
	a->mapped[i] = (struct mapped){ addr, a->at->segments[i].size };
	sim_segments_compare(a, i, "mapped");
	sim_grown_find(a, i);
	for (unsigned k = 0; i < SIM_SEGMENTS && k < SIM_PARTS; k++)
		sim_segments_compare(a, sim_part(i, k), "mapped");
	return GO_ON;
}

/* Checks that the handle knows exactly the segments of the state. */
int sim_segments_map(struct sim_application *a)
{
	struct perseas_segment_info info;
	unsigned shown = 0, expected = 0;
	int outcome = GO_ON;

	while (!perseas_segment_at(a->p, shown, &info))
		shown++;
	for (unsigned i = 0; i < SIM_WHOLE && outcome == GO_ON; i++) {
		if (!a->at->segments[i].present)
			continue;
		expected++;
		outcome = map_published(a, i);
	}
	if (outcome == GO_ON && shown != expected)
		sim_fail(a->world, "owner %u is shown %u segments, and %s has %u", a->owner->index,
		         shown, sim_state(a->world, a->at->epoch, a->at->seq), expected);
	return outcome;
}

/* --- changing them --- */

/* --- segments --- */

int sim_segments_add(struct sim_application *a)
{
	struct sim_world *w = a->world;
	unsigned i = (unsigned)sim_below(w, SIM_SEGMENTS);
	uint32_t size = (uint32_t)sim_between(w, 100, SIM_SEGMENT_MAX);
	void *addr;
	int rc;

	if (w->schedule->rivals || (w->schedule->destroys && sim_chance(w, 60)))
		size = USUAL_SIZE;
	if (w->schedule->grows && i != SIM_SEGMENTS - 1)
		size = SIM_PAGE;
	if (a->mapped[i].base || a->at->segments[i].present)
		return GO_ON;
	if (size == SIM_PAGE && a->owner->index % 2)
		rc = perseas_map_reserve(a->p, sim_segment_name(i), size, SIM_RANGE_MAX, &addr,
		                         NULL);
	else
		rc = sim_rivals_map(a, i, size, &addr);
	if (a->owner->dead || rc == PERSEAS_EFENCED)
		return LEAVE;
	if (rc == PERSEAS_EMIRRORMEM || rc == PERSEAS_EUNREACHABLE || rc == PERSEAS_EBLOCKED)
		return GO_ON;
	if (rc)
		return sim_unexpected(a, "map of a new segment", rc);
	a->mapped[i] = (struct mapped){ addr, size };
	sim_fill(w, addr, size);
	return GO_ON;
}

static int unmap(struct sim_application *a)
{
	unsigned i = (unsigned)sim_below(a->world, SIM_SEGMENTS);
	int rc;

	if (!a->mapped[i].base)
		return GO_ON;
	rc = sim_grown_unmap(a, i);
	if (a->owner->dead)
		return LEAVE;
	if (rc == PERSEAS_ECONFLICT && a->open)
		return GO_ON;
	if (rc)
		return sim_unexpected(a, "unmap", rc);
	return a->at->segments[i].present ? map_published(a, i) : GO_ON;
}

static int destroy(struct sim_application *a)
{
	unsigned i = (unsigned)sim_below(a->world, SIM_SEGMENTS);
	int rc = 0;

	if (!a->at->segments[i].present)
		return GO_ON;
	if (a->mapped[i].base)
		rc = sim_grown_unmap(a, i);
	if (a->owner->dead)
		return LEAVE;
	if (rc == PERSEAS_ECONFLICT && a->open)
		return GO_ON;
	if (rc)
		return sim_unexpected(a, "unmap", rc);
	rc = sim_work_destroy(a, i);
	return rc == GO_ON && a->at->segments[i].present ? map_published(a, i) : rc;
}

/* Segments come and go; one thread at a time is at it. */
int sim_segments_change(struct sim_application *a, uint64_t what)
{
	int rc;

	if (a->mapping || a->world->schedule->steady)
		return GO_ON;
	a->mapping = true;
	if (what == 0)
		rc = sim_segments_add(a);
	else if (what == 3)
		rc = destroy(a);
	else if (what == 4)
		rc = sim_work_grow(a, (unsigned)sim_below(a->world, SIM_SEGMENTS));
	else
		rc = what == 1 ? sim_work_publish(a) : unmap(a);
	a->mapping = false;
	return rc;
}

/* --- looking at them --- */

/* Looks at some memory, which may be missing. sim_segments_compare() looks whether it is right. */
int sim_segments_touch(struct sim_application *a)
{
	struct sim_world *w = a->world;
	const struct mapped *m = &a->mapped[sim_below(w, SIM_SEGMENTS)];
	uint64_t start, end;
	int rc;

	if (!m->base || a->mapping)
		return GO_ON;
	start = (uint64_t)(uintptr_t)m->base + sim_below(w, m->size);
	end = (uint64_t)(uintptr_t)m->base + m->size;
	end = start + sim_between(w, 1, end - start);
	if (sim_chance(w, 20)) {
		perseas_prefetch(a->p, (const void *)start, end - start);
		return GO_ON;
	}
	rc = ps_demand_await(a->p, start, end);
	if (rc == PERSEAS_EFENCED || a->owner->dead)
		return LEAVE;
	return rc ? sim_unexpected(a, "memory", rc) : GO_ON;
}
