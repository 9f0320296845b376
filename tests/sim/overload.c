/*
 * overload.c - schedules in which an owner commits more than the link of one mirror carries, while
 * that mirror is copied whole. Two copies break, and commits must wait for those after them, so
 * that one ends; it is counted. The owner itself measures the load while the first two copies
 * break, and the link then carries five sixths of that. In half of these schedules the link then
 * carries nothing any more: commits must not go on waiting. Only faults of this file happen in
 * them.
 */
#include "aim.h"

#include "../../client/core/handle.h"
#include "mirror.h"
#include "mistakes.h"
#include "schedule.h"

enum { MEMBERS = 3, RARE = 8 };

/* Copies in a row that break before commits wait for one; and that may while no commit waits. */
enum { UNPACED = 2, COPIES_MAX = 4 };

#define LOOKS SIM_MS
#define FIRST_BYTE_NS 30000 /* of the link that breaks the first copies */
#define PACE_MS 40
#define BUSY (40 * SIM_MS)  /* think time under load */
#define IDLE (400 * SIM_MS) /* between copies, so that no transaction is wasted */

struct overload {
	struct sim_owner *owner;
	struct sim_mirror *slow;
	uint64_t byte_ns;   /* that the link takes after the first copies */
	uint64_t paced_ns;  /* when the link was cut */
	bool began, waited; /* a copy; commits, for one */
};

/* Returns true if the link carries nothing in the end. */
static bool is_cut(const struct sim_world *w)
{
	return w->mistake ? w->mistake == SIM_MISTAKE_PACED_STUCK
	                  : w->seed / (SIM_AIM_TURNS * RARE) % 2;
}

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	*mirrors = MEMBERS;
	*spares = 0;
	w->acks = 2;
	sim_aim_quiet(s);
	s->cancels = s->nowait = s->gather_us = s->tracks = s->trims = 0;
	s->destroys = s->grows = s->confirms = s->threads = s->alarms = 0;
	s->demand = s->direct_link = s->apart = false;
	/* The heap makes the image larger than the part of the ring that a copy may use. */
	s->heap = true;
	s->large = 100;
	s->log_size = 32768;
	s->ring_size = 1 << 20;
	s->window = 65536;
	s->packet = 1400;
	s->left = 3600;
	s->think = BUSY;
	s->pace_ms = PACE_MS;
	s->commit_timeout_ms = s->open_timeout_ms = 4000;
	s->mirror_timeout_ms = UINT32_MAX;
}

static struct ps_mirror *copied(const struct overload *o)
{
	return sim_aim_mirror(o->owner, o->slow);
}

static bool is_over(const struct sim_world *w, const struct overload *o)
{
	return w->schedule->ending || !sim_aim_is_open(o->owner);
}

/* The link carries nothing: commits wait to the end of what they began, and for room once. */
static void look_at_cut(struct sim_world *w, void *arg, uint64_t ticket)
{
	const struct overload *o = arg;
	const struct perseas_stat *stat = &o->owner->handle->commit.stat;

	(void)ticket;
	if (is_over(w, o))
		return;
	if (stat->paced_ns - o->paced_ns > 3 * PACE_MS * SIM_MS)
		sim_fail(w, "commits wait for a copy that makes no progress");
	if (copied(o)->state == PERSEAS_MIRROR_RESYNCING) {
		sim_at(w, w->now + LOOKS, look_at_cut, arg, 0);
		return;
	}
	sim_count(w, SIM_COPIES_STUCK, 1);
	o->owner->paths[o->slow->index].byte_ns = 1;
	sim_aim_hang(w, o->slow, false);
}

static void look_at_copies(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct overload *o = arg;
	const struct ps_mirror *m;

	(void)ticket;
	if (is_over(w, o))
		return;
	m = copied(o);
	w->schedule->think = m->state == PERSEAS_MIRROR_RESYNCING ? BUSY : IDLE;
	/* The first copies break soon; the link carries five sixths of the load after that. */
	if (!o->byte_ns && m->broken_copies.broken_copy_count == UNPACED)
		o->byte_ns = 1000 * SIM_MS * 6 / 5 / m->broken_copies.transaction_bytes_per_s;
	o->owner->paths[o->slow->index].byte_ns = o->byte_ns ? o->byte_ns : FIRST_BYTE_NS;
	if (m->broken_copies.broken_copy_count >= COPIES_MAX &&
	    !m->broken_copies.waited_commit_count)
		sim_fail(w, "%u copies to mirror %u did not end, and no commit waited: %s",
		         m->broken_copies.broken_copy_count, o->slow->index, m->trouble_text);
	if (m->broken_copies.waited_commit_count && is_cut(w)) {
		o->paced_ns = o->owner->handle->commit.stat.paced_ns;
		sim_aim_hang(w, o->slow, true);
		look_at_cut(w, o, 0);
		return;
	}
	o->began |= m->state == PERSEAS_MIRROR_RESYNCING;
	o->waited |= m->broken_copies.waited_commit_count != 0;
	if (o->began && m->state == PERSEAS_MIRROR_LIVE) {
		sim_count(w, SIM_COPIES_PACED, o->waited);
		o->owner->paths[o->slow->index].byte_ns = 1;
		return;
	}
	sim_at(w, w->now + LOOKS, look_at_copies, o, 0);
}

static void wipe(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct overload *o = arg;

	(void)ticket;
	if (w->schedule->ending)
		return;
	o->owner = sim_aim_owner(w, MEMBERS);
	if (!o->owner) {
		sim_at(w, w->now + LOOKS, wipe, o, 0);
		return;
	}
	o->slow = w->mirrors[sim_below(w, MEMBERS)];
	sim_mirror_crash(o->slow, false, true);
	sim_mirror_start(o->slow);
	look_at_copies(w, o, 0);
}

static void begin(struct sim_world *w)
{
	sim_at(w, w->now + 500 * SIM_MS, wipe, sim_alloc(w, sizeof(struct overload)), 0);
}

const struct sim_aim sim_overload_aim = {
	.turn = 26,
	.rare = RARE,
	.mistakes = { SIM_MISTAKE_UNPACED, SIM_MISTAKE_PACED_STUCK },
	.shape = shape,
	.begin = begin,
};
