/*
 * forger.c - the schedules of forger.h: a small ring, and transactions of two lengths, so that
 * positions and seqs of the next lap can be told in advance. application.c calls it for each step.
 */
#include "forger.h"

#include "../../client/core/handle.h"
#include "../support/forge.h"
#include "aim.h"
#include "grown.h"
#include "mistakes.h"
#include "schedule.h"

#include <string.h>

enum {
	RING = 4096,
	LARGE = 300,        /* bytes that hold the stored record */
	SMALL = 8,          /* bytes of the transactions that follow */
	VICTIM = LARGE + 4, /* what the stored record names: no transaction changes it */
	LEAST = VICTIM + FORGED_LENGTH,
};

static_assert(sizeof(((struct sim_forger *)0)->bytes) == LARGE, "it holds the bytes");

/* The stages, in order. */
enum { STORES, OVERWRITES, FOLLOWS };

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	*mirrors = 1 + (unsigned)(w->seed / SIM_AIM_TURNS % 3);
	*spares = 0;
	w->acks = *mirrors / 2 + 1;
	s->forges = s->steady = true;
	s->log_size = RING;
	s->left = 400;
	s->think = SIM_MS;
	s->calm = s->heap = s->apart = s->demand = s->direct_link = s->disks = false;
	s->threads = s->nowait = s->gather_us = s->tracks = s->destroys = s->grows = 0;
	s->losses = s->changes = s->stops = s->work = s->jumps = s->trims = s->poor = 0;
}

/* The segment that it stores to: the first that is large enough, or SIM_SEGMENTS. */
static unsigned find_segment(const struct sim_application *a)
{
	unsigned i = 0;

	while (i < SIM_SEGMENTS &&
	       (!a->mapped[i].base || !a->at->segments[i].present || a->mapped[i].size < LEAST))
		i++;
	return i;
}

/* Puts a record among the bytes that the log, where it is in its next lap, would take for the next
 * one; some are of the epoch that the next owner is likely to have. Returns false if no place of it
 * can be told. */
static bool plan(struct sim_application *a)
{
	struct perseas *p = a->p;
	struct forge_log log = { p->commit.next_position, p->commit.seq, p->commit.last_position,
		                 p->log_size };
	struct sim_forger *f = &a->forger;
	uint64_t position, at;

	forge_commit(&log, LARGE);
	position = forge_commit(&log, LARGE);
	at = forge_find(&log, position, LARGE, SMALL);
	if (at >= LARGE)
		return false;
	forge_record(f->bytes + at, &log, p->epoch + sim_chance(a->world, 25),
	             sim_grown_segment(a, f->segment)->id, VICTIM);
	f->goal = log.seq;
	return true;
}

/* The stored record is where the next one is looked for: some owners end there. */
static int reach_goal(struct sim_application *a)
{
	sim_count(a->world, SIM_FORGED, 1);
	if (sim_chance(a->world, 20))
		sim_owner_kill(a->owner, false);
	return a->owner->dead || sim_chance(a->world, 20) ? LEAVE : GO_ON;
}

/* The transaction is committed. */
static int go_on(struct sim_application *a)
{
	struct sim_forger *f = &a->forger;
	const uint64_t seq = a->p->commit.seq;

	if (f->phase != FOLLOWS)
		f->phase++;
	if (f->phase != FOLLOWS || seq < f->goal)
		return GO_ON;
	f->phase = STORES;
	return seq == f->goal ? reach_goal(a) : GO_ON;
}

int sim_forger_step(struct sim_application *a)
{
	const uint64_t before = a->p->commit.seq;
	struct sim_forger *f = &a->forger;
	bool planned = true;
	int rc;

	f->segment = find_segment(a);
	if (f->segment == SIM_SEGMENTS)
		return sim_work_one(a);
	sim_fill(a->world, f->bytes, sizeof(f->bytes));
	if (f->phase == STORES)
		planned = plan(a);
	f->length = f->phase == FOLLOWS || !planned ? SMALL : LARGE;
	rc = sim_work_one(a);
	f->length = 0;
	if (rc != GO_ON || a->owner->dead || !planned || a->p->commit.seq == before)
		return rc;
	return go_on(a);
}

const struct sim_aim sim_forger_aim = {
	.turn = 10,
	.mistakes = { SIM_MISTAKE_UNTERMINATED },
	.shape = shape,
};
