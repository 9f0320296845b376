/*
 * work.c - begins, fills and commits transactions with random ranges. application.c calls it from
 * each of its threads. It declares every byte that it changes, and keeps ranges of open
 * transactions apart, as an application must.
 */
#include "work.h"

#include "../../client/core/handle.h"
#include "schedule.h"

#include <string.h>

enum {
	RANGES_MAX = 8,
	UNIFORM = 80, /* bytes of a transaction where all are alike */
};

struct range {
	unsigned segment;
	uint32_t offset, length;
};

/* A transaction on its way: open, then sent. */
struct work {
	struct work *next; /* of those that are open */
	struct sim_application *application;
	perseas_tx_t *tx;
	struct range ranges[RANGES_MAX];
	unsigned count;
	bool publish;          /* no transaction: the segments that are not published */
	struct sim_node *node; /* what it became; NULL: nothing was sent */
};

int sim_unexpected(struct sim_application *a, const char *what, int rc)
{
	if (a->owner->dead)
		return LEAVE;
	sim_fail(a->world, "owner %u: %s: %s (%s)", a->owner->index, what, perseas_error_name(rc),
	         perseas_message(a->p));
}

static int begin(struct sim_application *a, struct work *work)
{
	int rc = perseas_begin(a->p, 0, &work->tx);

	memset(work->ranges, 0, sizeof(work->ranges));
	work->application = a;
	work->count = 0;
	work->publish = false;
	work->node = NULL;
	if (rc == PERSEAS_EBLOCKED)
		return BLOCKED;
	if (rc)
		return rc == PERSEAS_EFENCED ? LEAVE : sim_unexpected(a, "begin", rc);
	work->next = a->open;
	a->open = work;
	return GO_ON;
}

static void end(struct work *work)
{
	struct work **link = &work->application->open;

	while (*link != work)
		link = &(*link)->next;
	*link = work->next;
}

static bool overlaps(const struct work *work, const struct range *range)
{
	for (unsigned i = 0; i < work->count; i++)
		if (work->ranges[i].segment == range->segment &&
		    work->ranges[i].offset < range->offset + range->length &&
		    range->offset < work->ranges[i].offset + work->ranges[i].length)
			return true;
	return false;
}

static bool taken(const struct work *work, const struct range *range)
{
	const struct work *other = work->application->open;

	for (; other; other = other->next)
		if (other != work && overlaps(other, range))
			return true;
	return false;
}

/* Declares and changes some bytes, apart from those of other open transactions. */
static void change(struct work *work, bool large)
{
	struct sim_application *a = work->application;
	struct sim_world *w = a->world;
	struct range range = { .segment = (unsigned)sim_below(w, SIM_SEGMENTS) };
	const struct mapped *m = &a->mapped[range.segment];
	int rc;

	if (!m->base || !a->at->segments[range.segment].present || work->count == RANGES_MAX)
		return;
	range.length = (uint32_t)sim_between(w, 1, large ? m->size : 1 + m->size / 16);
	if (w->schedule->uniform)
		range.length = UNIFORM;
	range.offset = (uint32_t)sim_below(w, m->size - range.length + 1);
	if (taken(work, &range))
		return;
	/* No other thread takes it while this one waits for memory. */
	work->ranges[work->count++] = range;
	rc = perseas_set_range(work->tx, m->base + range.offset, range.length);
	if (rc)
		work->count--;
	/* Fenced while it waits for memory. */
	if (rc == PERSEAS_ETOOBIG || (rc == PERSEAS_EFENCED && w->schedule->demand))
		return;
	if (rc)
		sim_unexpected(a, "set_range", rc);
	sim_fill(w, m->base + range.offset, range.length);
}

static void fill(struct work *work)
{
	struct sim_world *w = work->application->world;
	bool large = sim_chance(w, w->schedule->large);

	for (uint64_t n = w->schedule->uniform ? 1 : sim_between(w, 1, large ? 3 : 5); n > 0; n--)
		change(work, large);
}

static uint32_t id_of(const struct sim_application *a, unsigned i)
{
	const struct ps_segment *segment = ps_segment_find(a->p, sim_segment_name(i));

	if (!segment)
		sim_fail(a->world, "owner %u has no segment %s any more", a->owner->index,
		         sim_segment_name(i));
	return segment->id;
}

static void bear(struct sim_application *a, struct sim_node *node)
{
	for (unsigned i = 0; i < SIM_SEGMENTS; i++) {
		struct sim_segment *s = &node->segments[i];

		if (!a->mapped[i].base || s->present)
			continue;
		memcpy(sim_node_edit(a->world, node, i), a->mapped[i].base, a->mapped[i].size);
		s->present = true;
		s->size = a->mapped[i].size;
		s->born = node->seq;
		s->id = id_of(a, i);
	}
}

/* It takes its seq: the state is the one before, with what it changes as it is now. */
static void sealing(void *arg)
{
	struct work *work = arg;
	struct sim_application *a = work->application;
	struct sim_node *node = sim_node_new(a->world, a->at, a->p->epoch, a->p->commit.seq + 1);

	if (work->publish)
		bear(a, node);
	for (unsigned i = 0; i < work->count; i++) {
		const struct range *range = &work->ranges[i];

		memcpy(sim_node_edit(a->world, node, range->segment) + range->offset,
		       a->mapped[range->segment].base + range->offset, range->length);
	}
	work->node = node;
	a->at = node;
}

static void expect_seal(struct work *work)
{
	struct sim_task *task = work->application->owner->running;

	task->sealing = sealing;
	task->sealed = work;
}

/* The outcome is known, or known to be unknown. */
static int outcome(struct work *work, int rc)
{
	struct sim_application *a = work->application;
	struct sim_world *w = a->world;

	a->owner->running->sealing = NULL;
	if (a->owner->dead)
		return LEAVE;
	sim_trace(w, "owner %u: %llu:%llu: %s", a->owner->index, (unsigned long long)a->p->epoch,
	          (unsigned long long)(work->node ? work->node->seq : 0), perseas_error_name(rc));
	switch (rc) {
	case 0:
		if (!work->node)
			return sim_unexpected(a, "commit of what was not sent", rc);
		sim_oracle_acknowledged(w, work->node);
		sim_count(w, SIM_COMMITS, 1);
		return GO_ON;
	case PERSEAS_EINDOUBT:
		if (w->schedule->calm)
			sim_fail(w, "a commit is in doubt, and nothing went wrong");
		sim_count(w, SIM_IN_DOUBT, 1);
		return GO_ON;
	case PERSEAS_EFENCED:
		sim_count(w, SIM_FENCED, 1);
		return LEAVE;
	case PERSEAS_EBLOCKED:
	case PERSEAS_EUNREACHABLE:
		return GO_ON;
	default:
		return sim_unexpected(a, "commit", rc);
	}
}

static int commit(struct work *work)
{
	struct sim_application *a = work->application;
	int rc;

	if (!work->count || sim_chance(a->world, 7)) {
		rc = perseas_abort(work->tx);
		end(work);
		sim_count(a->world, SIM_ABORTS, 1);
		return rc ? sim_unexpected(a, "abort", rc) : GO_ON;
	}
	expect_seal(work);
	rc = perseas_commit(work->tx, 0);
	if (!a->owner->dead && rc == PERSEAS_EBLOCKED)
		perseas_abort(work->tx);
	end(work);
	return outcome(work, rc);
}

int sim_work_one(struct sim_application *a)
{
	struct work work;
	int rc = begin(a, &work);

	if (rc != GO_ON)
		return rc;
	fill(&work);
	return commit(&work);
}

/* Two that are open at the same time; the first may end after the second. */
int sim_work_two(struct sim_application *a)
{
	bool backwards = sim_chance(a->world, 50);
	struct work one, two;
	int rc = begin(a, &one), second;

	if (rc != GO_ON)
		return rc;
	fill(&one);
	if (begin(a, &two) != GO_ON)
		return commit(&one);
	fill(&two);
	rc = commit(backwards ? &two : &one);
	/* The other one ends too, whatever became of it. */
	second = commit(backwards ? &one : &two);
	return rc == GO_ON ? second : rc;
}

int sim_work_publish(struct sim_application *a)
{
	struct work work = { .application = a, .publish = true };
	bool any = false;

	for (unsigned i = 0; i < SIM_SEGMENTS; i++)
		any |= a->mapped[i].base && !a->at->segments[i].present;
	if (!any)
		return GO_ON;
	sim_count(a->world, SIM_PUBLISHES, 1);
	expect_seal(&work);
	return outcome(&work, perseas_publish(a->p));
}
