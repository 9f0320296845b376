/*
 * deposed.c - schedules in which an owner that was replaced reaches a mirror that lost its memory.
 * The owner of three mirrors (W = 2) is stopped. Another one reaches two of them, takes the store
 * over, and commits. Then one of the two loses its memory. From then on only the owner before,
 * which wakes up, reaches it, next to the mirror that the other owner never reached. The owner asks
 * again and again whether it still is one, and R would say yes if the mirror without memory counted
 * while it is copied to. Only faults of this file happen in these schedules.
 */
#include "aim.h"

#include "../../client/core/handle.h"
#include "mirror.h"
#include "mistakes.h"
#include "oracle.h"
#include "schedule.h"

enum { MEMBERS = 3, OWN = 0, LOST = 1, OTHER = 2 };

#define LOOKS SIM_MS
#define STOPPED (1000 * SIM_MS) /* the other owner has committed by then */
#define APART (6000 * SIM_MS)   /* both owners are */

struct deposed {
	struct sim_owner *before, *other;
	const struct sim_node *acked; /* when the owner was stopped */
	uint64_t until;
};

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	*mirrors = MEMBERS;
	*spares = 0;
	w->acks = 2;
	sim_aim_quiet(s);
	s->confirms = s->cancels = s->nowait = s->gather_us = s->threads = 0;
	s->takeover = 100;
	/* Timeouts are so long that neither owner gives up meanwhile. */
	s->commit_timeout_ms = s->open_timeout_ms = 4000;
	s->mirror_timeout_ms = UINT32_MAX;
}

/* Looks whether the owner is awake and knows that a mirror lost its memory. */
static void look(struct sim_world *w, void *arg, uint64_t ticket)
{
	const struct deposed *d = arg;

	(void)ticket;
	if (w->schedule->ending || !sim_aim_is_open(d->before))
		return;
	if (sim_aim_mirror(d->before, w->mirrors[LOST])->state == PERSEAS_MIRROR_LOST) {
		sim_count(w, SIM_DEPOSED_ALONE, 1);
		return;
	}
	sim_at(w, w->now + LOOKS, look, arg, 0);
}

/* Loses the memory of one of the other owner's mirrors after that owner committed. */
static void await_commit(struct sim_world *w, void *arg, uint64_t ticket)
{
	const struct deposed *d = arg;
	struct sim_mirror *lost = w->mirrors[LOST];

	(void)ticket;
	if (w->schedule->ending || !sim_aim_is_open(d->before) || w->now > d->until)
		return;
	if (sim_oracle_newest(w) == d->acked) {
		sim_at(w, w->now + LOOKS, await_commit, arg, 0);
		return;
	}
	sim_mirror_crash(lost, false, true);
	sim_mirror_start(lost);
	sim_path_block(&d->before->paths[LOST], false, false);
	sim_path_block(&d->other->paths[LOST], true, true);
	w->schedule->confirms = 100;
	look(w, arg, 0);
}

/* Returns true if every mirror acknowledged all that the owner sent. */
static bool is_idle(const struct perseas *p)
{
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].acked_seq != p->commit.seq)
			return false;
	return !p->is_admin_taken && !p->commit.wait_line.waiting_count &&
	       !p->commit.has_gathered && !p->commit.open_list;
}

static void depose(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct deposed *d = arg;

	(void)ticket;
	if (w->schedule->ending)
		return;
	d->before = sim_aim_owner(w, MEMBERS);
	if (!d->before || !is_idle(d->before->handle)) {
		sim_at(w, w->now + LOOKS, depose, arg, 0);
		return;
	}
	d->acked = sim_oracle_newest(w);
	d->until = w->now + STOPPED;
	sim_owner_stop(d->before, STOPPED);
	sim_schedule_split(w, d->before, 1 << LOST | 1 << OTHER, APART);
	d->other = w->owners[w->owner_count - 1];
	await_commit(w, d, 0);
}

static void begin(struct sim_world *w)
{
	sim_at(w, w->now + sim_between(w, 100, 3000) * SIM_MS, depose,
	       sim_alloc(w, sizeof(struct deposed)), 0);
}

const struct sim_aim sim_deposed_aim = {
	.turn = 29,
	.mistakes = { SIM_MISTAKE_CONFIRMED_JOINING },
	.shape = shape,
	.begin = begin,
};
