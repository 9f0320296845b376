/*
 * fork.c - the schedules of fork.h. The oracle knows nothing of the fork: what its mirrors have
 * counts for nothing (sim_mirror.forked), and its owner is no application. So it finds whatever the
 * fork does to the store.
 */
#include "fork.h"

#include "../../client/keeper/change.h"
#include "../../client/open/open.h"
#include "aim.h"
#include "creators.h"
#include "mirror.h"
#include "mixed.h"
#include "mistakes.h"
#include "oracle.h"
#include "schedule.h"

enum { EVERY = 32, OPENS = 8, TRIES = 3 };

#define LOOKS SIM_MS
#define DELAY (50 * SIM_US)

struct fork {
	struct sim_owner *owner, *stray;
	struct sim_mirror *back, *other, *new;
	perseas_t *p; /* the stray's */
};

static bool is_for_it(const struct sim_world *w)
{
	return w->mistake == SIM_MISTAKE_FORKED ||
	       (!w->mistake && !sim_is_mixed(w) && w->seed % EVERY == 12 && !sim_creators_count(w));
}

void sim_fork_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	if (!is_for_it(w))
		return;
	*mirrors = w->acks = 2;
	*spares = 1;
	s->faults = s->losses = s->jumps = s->slow = s->local = s->changes = s->stops = 0;
	s->work = s->cancels = 0;
	s->calm = s->near = s->disks = false;
	s->steady = true;
	s->left = 1000;
	s->think = 20 * SIM_MS;
}

/* --- the fork --- */

static void let_go(void *arg)
{
	struct fork *f = arg;

	f->p->upkeep.change.stage = PS_CHANGE_NONE;
	f->p->upkeep.change.code = PERSEAS_EUNREACHABLE;
}

static int open_fork(struct fork *f)
{
	const struct sim_schedule *s = f->stray->world->schedule;
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct ps_error error = { 0 };
	char list[64];
	int rc;

	snprintf(list, sizeof(list), "%s,%s", f->back->address, f->other->address);
	options.flags = PERSEAS_TAKEOVER;
	options.log_size = s->log_size;
	options.ring_size = s->ring_size;
	options.connect_timeout_ms = s->connect_timeout_ms;
	options.open_timeout_ms = s->open_timeout_ms;
	options.spin_us = UINT32_MAX;
	rc = ps_open(&f->stray->env, SIM_STORE, list, &options, &f->p, &error);
	sim_trace(f->stray->world, "the fork: open: %s: %s", perseas_error_name(rc), error.text);
	if (rc)
		f->p = NULL;
	return rc;
}

static void close_fork(struct fork *f)
{
	f->stray->last_wait = NULL;
	perseas_close(f->p);
	f->p = NULL;
}

/* Its next owner makes the other mirror anew, and that makes its roster newer. */
static void raise(struct fork *f)
{
	if (f->other->stores)
		sim_mirror_crash(f->other, false, true);
	sim_mirror_start(f->other);
	if (!open_fork(f))
		close_fork(f);
	sim_owner_sleep(f->stray, sim_below(f->stray->world, 20 * SIM_MS));
}

/* The mirror that has the store is to take the other one's place, or to join both. */
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

static void begin(struct sim_world *w, struct fork *f, const struct perseas_roster_change *wanted)
{
	struct perseas *p = f->owner->handle;

	p->admin = true;
	if (ps_change_begin(p, wanted, NULL))
		sim_trace(w, "no change is begun: %s", p->upkeep.change.text);
	p->admin = false;
	p->env->ops->wake(p->env, PS_KEEPER);
}

/* Is nobody at the mirrors, so that a change may be begun? */
static bool is_free(const struct fork *f)
{
	const struct perseas *p = f->owner->handle;

	return !p->admin && !p->commit.in_doubt && p->upkeep.change.stage == PS_CHANGE_NONE;
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
	if (is_free(f) && f->owner->handle->members == 1) {
		fork_off(w, f);
		return;
	}
	if (is_free(f))
		begin(w, f, &wanted);
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
	if (p->admin || sim_aim_mirror(f->owner, f->back)->state != PERSEAS_MIRROR_DOWN) {
		sim_at(w, w->now + LOOKS, replace, f, 0);
		return;
	}
	sim_trace(w, "mirror %u is called gone", f->back->index);
	sim_oracle_lost(f->back);
	f->back->forked = true;
	begin(w, f, &wanted);
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

void sim_fork_begin(struct sim_world *w)
{
	if (is_for_it(w))
		sim_at(w, w->now + sim_between(w, 100, 2000) * SIM_MS, go_away,
		       sim_alloc(w, sizeof(struct fork)), 0);
}
