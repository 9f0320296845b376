/*
 * fork.c - schedules in which a mirror of two is called gone, and comes back with its image and
 * its old roster, which are enough to open the store a second time (n = 2, W = 2). That fork is
 * opened under ever higher epochs, and records ever newer rosters, since the other mirror of its
 * roster loses its memory again and again. Then it wants the mirror that has the store to join
 * it. That must be refused, for what was acknowledged is nowhere else.
 *
 * The oracle knows nothing of the fork: what its mirrors have counts for nothing
 * (sim_mirror.forked), and its owner is no application. So it finds whatever the fork does to
 * the store.
 */
#include "aim.h"

#include "../../client/core/handle.h"
#include "mirror.h"
#include "mistakes.h"
#include "oracle.h"
#include "schedule.h"

enum { OPENS = 8, TRIES = 3 };

#define LOOKS SIM_MS
#define DELAY (50 * SIM_US)

struct fork {
	struct sim_owner *owner, *stray;
	struct sim_mirror *back, *other, *new;
	perseas_t *p; /* the stray's */
};

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	*mirrors = w->acks = 2;
	*spares = 1;
	sim_aim_quiet(s);
	s->cancels = 0;
}

/* --- the fork --- */

static void let_go(void *arg)
{
	struct fork *f = arg;

	f->p->upkeep.change.stage = PS_CHANGE_NONE;
	f->p->upkeep.change.result_code = PERSEAS_EUNREACHABLE;
}

static int open_fork(struct fork *f)
{
	char list[64];

	snprintf(list, sizeof(list), "%s,%s", f->back->address, f->other->address);
	return sim_aim_take_over(f->stray, "the fork", list, &f->p);
}

static void close_fork(struct fork *f)
{
	f->stray->last_wait = NULL;
	perseas_close(f->p);
	f->p = NULL;
}

/* Opens the store again, so that the next owner makes the other mirror's image anew and its roster
 * becomes newer. */
static void raise(struct fork *f)
{
	if (f->other->stores)
		sim_mirror_crash(f->other, false, true);
	sim_mirror_start(f->other);
	if (!open_fork(f))
		close_fork(f);
	sim_owner_sleep(f->stray, sim_below(f->stray->world, 20 * SIM_MS));
}

/* Orders a change that adds the mirror with the forked store, or puts it in the other mirror's
 * place. */
static int change(struct fork *f)
{
	const bool adds = sim_chance(f->stray->world, 50);
	const struct perseas_roster_change wanted = {
		.kind = adds ? PERSEAS_ROSTER_ADD : PERSEAS_ROSTER_REPLACE,
		.address = adds ? NULL : f->other->address,
		.with = f->new->address,
	};
	struct sim_world *w = f->stray->world;
	int rc;

	if (open_fork(f))
		return PERSEAS_EQUORUM;
	f->stray->last_wait = let_go;
	f->stray->last_wait_arg = f;
	rc = perseas_roster(f->p, &wanted);
	sim_trace(w, "the fork: change: %s %s", perseas_error_name(rc), perseas_message(f->p));
	if (!f->stray->dead && !rc && w->mistake != SIM_MISTAKE_FORKED)
		sim_fail(w, "mirror %u has the store, and joins the fork", f->new->index);
	sim_count(w, SIM_FORKED, strstr(perseas_message(f->p), "no image in common") != NULL);
	close_fork(f);
	return rc;
}

static void stray(void *arg)
{
	struct fork *f = arg;

	for (unsigned i = 0; i < OPENS && !f->stray->dead; i++)
		raise(f);
	for (unsigned i = 0; i < TRIES && !f->stray->dead; i++)
		if (!change(f))
			break;
	f->stray->dead = true;
}

static void start_stray(struct sim_world *w, struct fork *f)
{
	f->stray = sim_owner_new(w, stray, f);
	f->stray->strays = true;
	for (unsigned i = 0; i < w->mirror_count; i++) {
		f->stray->paths[i].delay = f->stray->paths[i].jitter = DELAY;
		f->stray->paths[i].byte_ns = 1;
	}
}

/* --- how it comes about --- */

static bool is_over(const struct sim_world *w, const struct fork *f)
{
	return w->schedule->ending || !sim_aim_is_open(f->owner);
}

/* Returns true if no client is at the mirrors, so that a change may begin. */
static bool is_free(const struct fork *f)
{
	const struct perseas *p = f->owner->handle;

	return !p->is_admin_taken && !p->commit.in_doubt_seq &&
	       p->upkeep.change.stage == PS_CHANGE_NONE;
}

/* The store is on one mirror now: from here on the two others are the fork's. */
static void fork_off(struct sim_world *w, struct fork *f)
{
	sim_trace(w, "mirror %u, which was called gone, comes back", f->back->index);
	sim_mirror_crash(f->other, false, true);
	f->other->forked = true;
	sim_mirror_start(f->other);
	sim_mirror_start(f->back);
	start_stray(w, f);
}

static void take_out(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct fork *f = arg;
	const struct perseas_roster_change wanted = {
		.kind = PERSEAS_ROSTER_REMOVE,
		.address = f->other->address,
		.acks = 1,
	};

	(void)ticket;
	if (is_over(w, f))
		return;
	if (is_free(f) && f->owner->handle->member_count == 1) {
		fork_off(w, f);
		return;
	}
	if (is_free(f))
		sim_aim_change(f->owner, &wanted);
	sim_at(w, w->now + LOOKS, take_out, f, 0);
}

static void replace(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct fork *f = arg;
	const struct perseas_roster_change wanted = {
		.kind = PERSEAS_ROSTER_REPLACE,
		.address = f->back->address,
		.with = f->new->address,
		.gone = true,
	};
	struct perseas *p = f->owner->handle;

	(void)ticket;
	if (is_over(w, f))
		return;
	if (p->is_admin_taken || sim_aim_mirror(f->owner, f->back)->state != PERSEAS_MIRROR_DOWN) {
		sim_at(w, w->now + LOOKS, replace, f, 0);
		return;
	}
	sim_trace(w, "mirror %u is called gone", f->back->index);
	sim_oracle_lost(f->back);
	f->back->forked = true;
	sim_aim_change(f->owner, &wanted);
	take_out(w, f, 0);
}

static void go_away(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct fork *f = arg;
	const unsigned back = (unsigned)sim_below(w, w->members);

	(void)ticket;
	if (w->schedule->ending)
		return;
	f->owner = sim_aim_owner(w, w->members);
	if (!f->owner) {
		sim_at(w, w->now + LOOKS, go_away, f, 0);
		return;
	}
	f->back = w->mirrors[back];
	f->other = w->mirrors[!back];
	f->new = w->mirrors[w->members];
	sim_mirror_crash(f->back, false, false);
	replace(w, f, 0);
}

static void begin(struct sim_world *w)
{
	sim_at(w, w->now + sim_between(w, 100, 2000) * SIM_MS, go_away,
	       sim_alloc(w, sizeof(struct fork)), 0);
}

const struct sim_aim sim_fork_aim = {
	.turn = 12,
	.mistakes = { SIM_MISTAKE_FORKED },
	.shape = shape,
	.begin = begin,
};
