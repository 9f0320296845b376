/*
 * hang.c - schedules in which one mirror hangs. Another one loses its memory, and must be copied
 * whole within a bounded time, or leaves the roster, which must be done in such a time: the
 * owner has all that it needs for that. Only faults of this file happen in them, so that nothing
 * else can be the reason for a delay.
 *
 * A mirror that hangs takes what is sent, and answers nothing, as a process that is stopped: in
 * the simulated network, nothing that is sent to it or by it arrives.
 */
#include "aim.h"

#include "../../client/core/handle.h"
#include "mirror.h"
#include "schedule.h"

enum { ALL = 5, ACKS = 3 };

/* Time from the restart of the mirror that lost its memory until it has its image. The owner tries
 * again after at most 80 ms, and the other mirrors have 100 ms to answer, twice; the rest takes a
 * few rounds below 1 ms. */
#define WITHIN (1000 * SIM_MS)
#define LOOKS (20 * SIM_MS)
/* Time for the change: 100 ms for each question and for the mirror that leaves, and the owner looks
 * again after 500 ms whether enough mirrors hold what was acknowledged before. */
#define LEAVES (800 * SIM_MS)
#define LATELY (1200 * SIM_MS) /* as long as a mirror that hangs may not be known to */

struct hang {
	struct sim_owner *owner;
	struct sim_mirror *hung, *wiped;
	uint64_t resyncs; /* that the owner had made before */
	uint64_t until;
};

/* Another mirror leaves the roster meanwhile; else it loses its memory. */
static bool is_of_change(const struct sim_world *w)
{
	return w->seed / SIM_AIM_TURNS % 2;
}

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	*mirrors = ALL;
	*spares = 0;
	w->acks = ACKS;
	sim_aim_quiet(s);
	/* The disk has an older image of the memory that is lost. */
	s->disks = true;
	if (is_of_change(w))
		s->connect_timeout_ms = 3000;
}

static struct ps_mirror *mirror_of(const struct hang *h, const struct sim_mirror *mirror)
{
	return sim_aim_mirror(h->owner, mirror);
}

static void look(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct hang *h = arg;

	(void)ticket;
	if (w->schedule->ending || !sim_aim_is_open(h->owner))
		return;
	if (h->owner->handle->commit.stat.resyncs > h->resyncs &&
	    mirror_of(h, h->wiped)->state == PERSEAS_MIRROR_LIVE) {
		sim_count(w, SIM_BESIDE_HUNG, 1);
		return;
	}
	if (w->now > h->until)
		sim_fail(w, "mirror %u hangs, and mirror %u is not copied", h->hung->index,
		         h->wiped->index);
	sim_at(w, w->now + LOOKS, look, h, 0);
}

/* Checks whether the mirror has left the roster. */
static void look_at_change(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct hang *h = arg;
	const struct ps_change *c;

	(void)ticket;
	if (w->schedule->ending || !sim_aim_is_open(h->owner))
		return;
	c = &h->owner->handle->upkeep.change;
	/* Some applications cancel the change. */
	if (c->stage == PS_CHANGE_NONE && strstr(c->text, "taken back"))
		return;
	if (c->stage == PS_CHANGE_NONE && c->result_code)
		sim_fail(w, "mirror %u hangs, and mirror %u does not leave: %s", h->hung->index,
		         h->wiped->index, c->text);
	if (c->stage == PS_CHANGE_NONE) {
		sim_count(w, SIM_CHANGED_BESIDE, 1);
		return;
	}
	if (w->now > h->until)
		sim_fail(w, "mirror %u hangs, and mirror %u has not left the roster: %s",
		         h->hung->index, h->wiped->index, c->text);
	sim_at(w, w->now + LOOKS, look_at_change, h, 0);
}

/* Takes the mirror that keeps its memory out of the roster, once no other client is at the mirrors
 * and the application has flushed its commits in doubt. */
static void take_out(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct hang *h = arg;
	const struct perseas_roster_change wanted = {
		.kind = PERSEAS_ROSTER_REMOVE,
		.address = h->wiped->address,
		.acks = ACKS,
	};
	struct perseas *p = h->owner->handle;

	(void)ticket;
	if (w->schedule->ending || !sim_aim_is_open(h->owner))
		return;
	if (!h->until)
		h->until = w->now + WITHIN;
	if (p->is_admin_taken || (p->commit.in_doubt_seq && w->now < h->until)) {
		sim_at(w, w->now + SIM_MS, take_out, h, 0);
		return;
	}
	h->until = w->now + LEAVES;
	sim_trace(w, "mirror %u is to leave the roster", h->wiped->index);
	if (!sim_aim_change(h->owner, &wanted))
		sim_fail(w, "no change is begun: %s", p->upkeep.change.text);
	look_at_change(w, h, 0);
}

static void come_back(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct hang *h = arg;

	(void)ticket;
	if (!h->wiped->stores)
		sim_mirror_start(h->wiped);
	h->until = w->now + WITHIN;
	look(w, h, 0);
}

static void wipe(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct hang *h = arg;

	(void)ticket;
	if (w->schedule->ending || !sim_aim_is_open(h->owner))
		return;
	h->resyncs = h->owner->handle->commit.stat.resyncs;
	sim_mirror_crash(h->wiped, false, true);
	sim_at(w, w->now + 50 * SIM_MS, come_back, h, 0);
}

/* Lets the mirror hang until everything heals. The other mirror loses its memory before or after
 * the owner notices. */
static void hang(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct hang *h = arg;

	(void)ticket;
	if (w->schedule->ending)
		return;
	h->owner = sim_aim_owner(w, ALL);
	if (!h->owner) {
		sim_at(w, w->now + LOOKS, hang, h, 0);
		return;
	}
	h->hung = w->mirrors[sim_below(w, ALL)];
	h->wiped = w->mirrors[(h->hung->index + 1 + sim_below(w, ALL - 1)) % ALL];
	sim_trace(w, "mirror %u hangs", h->hung->index);
	sim_aim_hang(w, h->hung, true);
	if (is_of_change(w))
		sim_at(w, w->now + sim_below(w, LATELY), take_out, h, 0);
	else
		sim_at(w, w->now + sim_below(w, 4000 * SIM_MS), wipe, h, 0);
}

static void begin(struct sim_world *w)
{
	sim_at(w, w->now + sim_between(w, 100, 3000) * SIM_MS, hang,
	       sim_alloc(w, sizeof(struct hang)), 0);
}

const struct sim_aim sim_hang_aim = {
	.turn = 5,
	.shape = shape,
	.begin = begin,
};
