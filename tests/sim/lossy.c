/*
 * lossy.c - schedules in which each mirror is reached over a better fabric first (cable.h), and
 * one of these fails while control connections work: it is out, or loses so much that its links
 * break. The store must go on within a bounded time, over the other fabric, an open must not
 * begin again for that, and the first one is taken up again when it works. Only faults of this
 * file happen in them.
 *
 * Some owners die just when the cable begins to fail, and a mirror is behind then: the next
 * owner opens with that one to be mended.
 */
#include "aim.h"

#include "../../client/core/handle.h"
#include "cable.h"
#include "mirror.h"
#include "mistakes.h"
#include "schedule.h"

#define LOOKS (20 * SIM_MS)

/* The next owner comes within a second of the last one's end and opens within three; a broken link
 * is noticed in 200 ms, an attempt takes 150 ms, and three attempts must break. If they break in a
 * copy, the pauses after them are 1, 2 and 4 s. */
#define DETOUR (13000 * SIM_MS)
/* The questions come 1, 2, 4, .. s after each other, and it was out for less than 11 s. */
#define BACK (25000 * SIM_MS)

enum stage { FAILS, HEALED };

struct lossy {
	struct sim_mirror *mirror;
	enum stage stage;
	unsigned loss;  /* percent; 0: it is out */
	uint64_t epoch; /* of the owner that died of it, or 0 */
	bool elsewhere; /* another mirror held the same state */
	uint64_t seq;   /* that was sent when the stage began */
	uint64_t until; /* the stage must be over by then */
};

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	*mirrors = 2 + w->seed / SIM_AIM_TURNS % 2;
	*spares = 0;
	w->acks = 1 + (unsigned)(w->seed / SIM_AIM_TURNS / 2 % *mirrors);
	sim_aim_quiet(s);
	s->cabled = true;
	s->takeover = 100;
	s->left = 1500;
	s->think = 60 * SIM_MS;
	s->commit_timeout_ms = 200;
	s->open_timeout_ms = 3000;
}

static bool is_live(const struct sim_owner *o, const struct sim_mirror *mirror, bool direct)
{
	const struct ps_mirror *m = sim_aim_mirror(o, mirror);

	return m->state == PERSEAS_MIRROR_LIVE && m->link && m->link->direct == direct;
}

/* Returns true if another mirror holds all that this one holds. */
static bool is_held_elsewhere(const struct sim_world *w, const struct sim_mirror *mirror)
{
	for (unsigned i = 0; i < w->members; i++) {
		const struct sim_mirror *m = w->mirrors[i];

		if (m != mirror && m->at && mirror->at && m->at_epoch == mirror->at_epoch &&
		    m->at->seq >= mirror->at->seq)
			return true;
	}
	return false;
}

/* Checks how often the open began again. With W mirrors and the state without this one, its
 * breaking links cause no new beginning; else they do until the other fabric is taken. */
static void check_epoch(struct sim_world *w, struct lossy *l, const struct perseas *p)
{
	const uint64_t most = w->acks < w->members && l->elsewhere ? 1 : 5;

	if (l->epoch && p->opened_epoch > l->epoch + most)
		sim_fail(w, "an open took epochs %llu to %llu, and nobody else claimed",
		         (unsigned long long)l->epoch, (unsigned long long)p->opened_epoch);
	l->epoch = 0;
}

static void look(struct sim_world *w, void *arg, uint64_t ticket);

static void heal(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct lossy *l = arg;

	(void)ticket;
	sim_trace(w, "the cable of mirror %u works", l->mirror->index);
	sim_cable_lose(l->mirror, 0);
	l->stage = HEALED;
	l->until = w->now + BACK;
	look(w, l, 0);
}

/* Returns true if the mirror is reached over the working fabric and its writes arrive. */
static bool is_over(const struct sim_world *w, struct lossy *l, const struct sim_owner *o)
{
	const bool direct = l->stage == HEALED;
	const struct perseas *p = o->handle;

	return is_live(o, l->mirror, direct) && !p->commit.in_doubt_seq &&
	       (p->commit.seq > l->seq || !w->schedule->left);
}

static void look(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct lossy *l = arg;
	struct sim_owner *o = sim_aim_owner(w, 0);

	(void)ticket;
	if (w->schedule->ending)
		return;
	if (o)
		check_epoch(w, l, o->handle);
	if (o && is_over(w, l, o)) {
		sim_count(w, l->stage == HEALED ? SIM_WAYS_BACK : SIM_DETOURS, 1);
		l->seq = o->handle->commit.seq;
		if (l->stage == FAILS)
			sim_at(w, w->now + sim_below(w, 3000 * SIM_MS), heal, l, 0);
		return;
	}
	if (w->now > l->until)
		sim_fail(w, "the cable of mirror %u %s, and the mirror is not live over %s",
		         l->mirror->index, l->stage == HEALED ? "works again" : "fails",
		         l->stage == HEALED ? "it" : "the other fabric");
	sim_at(w, w->now + LOOKS, look, l, 0);
}

static void fail(struct sim_world *w, struct lossy *l)
{
	sim_trace(w, "the cable of mirror %u fails (%u %%)", l->mirror->index, l->loss);
	if (l->loss)
		sim_cable_lose(l->mirror, l->loss);
	else
		sim_cable_out(l->mirror);
	l->until = w->now + DETOUR;
	look(w, l, 0);
}

static void takes_over(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct lossy *l = arg;
	struct sim_owner *o = sim_aim_owner(w, 0);

	(void)ticket;
	if (w->schedule->ending)
		return;
	if (o) {
		l->epoch = o->handle->epoch;
		l->elsewhere = is_held_elsewhere(w, l->mirror);
		sim_owner_kill(o, false);
	}
	fail(w, l);
}

static void await_all(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct lossy *l = arg;
	struct sim_owner *o = sim_aim_owner(w, 0);
	unsigned ready = 0;

	(void)ticket;
	for (unsigned i = 0; o && i < w->members; i++)
		ready += is_live(o, w->mirrors[i], true);
	if (w->schedule->ending)
		return;
	if (ready < w->members) {
		sim_at(w, w->now + LOOKS, await_all, l, 0);
		return;
	}
	l->mirror = w->mirrors[sim_below(w, w->members)];
	l->loss = sim_chance(w, 40) ? 0 : (unsigned)sim_between(w, 30, 100);
	l->seq = o->handle->commit.seq;
	if (sim_chance(w, 50)) {
		fail(w, l);
		return;
	}
	sim_path_block(&o->paths[l->mirror->index], true, false);
	sim_at(w, w->now + sim_below(w, 400 * SIM_MS), takes_over, l, 0);
}

static void begin(struct sim_world *w)
{
	sim_at(w, w->now + sim_between(w, 100, 3000) * SIM_MS, await_all,
	       sim_alloc(w, sizeof(struct lossy)), 0);
}

const struct sim_aim sim_lossy_aim = {
	.turn = 14,
	.mistakes = { SIM_MISTAKE_STAYS, SIM_MISTAKE_INSISTS, SIM_MISTAKE_WORN,
	              SIM_MISTAKE_RESTARTS },
	.shape = shape,
	.begin = begin,
};
