/*
 * loaded.c - schedules in which W = n, and a mirror comes back with what it spilled: before
 * another one has recorded its new id, that one loses its memory. It must be made anew within a
 * bounded time, or another must take its place in such a time, for there is no W without the
 * loaded image. The latter change cannot be taken back while both rosters count, and that must
 * be refused. Only faults of this file happen in them, so that nothing else can be the reason
 * for a delay.
 *
 * The mirror that is to lose its memory hangs first, so that it does not record what it is told:
 * nothing that is sent to it or by it arrives.
 */
#include "aim.h"

#include "../../client/keeper/change.h"
#include "../../client/keeper/roster.h"
#include "mirror.h"
#include "schedule.h"

/* Time from when the owner can know that the other mirror lost its memory: it tries again after at
 * most a second, and the rest takes a few rounds below 1 ms. */
#define WITHIN (2000 * SIM_MS)
#define LOOKS SIM_MS
#define AWAY (20 * SIM_MS)

struct loaded {
	struct sim_owner *owner;
	struct sim_mirror *loaded, *other;
	uint64_t until;
};

/* Another one takes the place of the mirror that lost its memory, and does not come back. */
static bool is_of_change(const struct sim_world *w)
{
	return w->seed / SIM_AIM_TURNS % 2;
}

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	*mirrors = is_of_change(w) ? 3 : 2 + (unsigned)(w->seed / SIM_AIM_TURNS / 2 % 2);
	*spares = is_of_change(w);
	w->acks = *mirrors;
	sim_aim_quiet(s);
	/* The owner does not notice the hanging mirror for this long. */
	s->connect_timeout_ms = 3000;
}

static struct ps_mirror *mirror_of(const struct loaded *l, const struct sim_mirror *mirror)
{
	return sim_aim_mirror(l->owner, mirror);
}

static bool is_over(const struct sim_world *w, const struct loaded *l)
{
	return w->schedule->ending || !sim_aim_is_open(l->owner);
}

/* Checks whether the new id is recorded and the other mirror is whole again. */
static void look_at_copy(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct loaded *l = arg;

	(void)ticket;
	if (is_over(w, l))
		return;
	if (!mirror_of(l, l->loaded)->is_from_spill &&
	    mirror_of(l, l->other)->state == PERSEAS_MIRROR_LIVE) {
		sim_count(w, SIM_BESIDE_LOADED, 1);
		return;
	}
	if (w->now > l->until)
		sim_fail(w, "mirror %u was loaded, and mirror %u is not made anew: %s",
		         l->loaded->index, l->other->index, mirror_of(l, l->other)->trouble_text);
	sim_at(w, w->now + LOOKS, look_at_copy, l, 0);
}

/* Checks that the change cannot be cancelled while both rosters count, since the old roster needs
 * the mirror that is gone. */
static void check_cancel(struct sim_world *w, const struct loaded *l)
{
	struct perseas *p = l->owner->handle;
	char text[256] = "";
	int rc;

	if (p->is_admin_taken || p->upkeep.change.stage != PS_CHANGE_JOINT)
		return;
	p->is_admin_taken = true;
	rc = ps_change_cancel(p, text, sizeof(text));
	p->is_admin_taken = false;
	if (rc != PERSEAS_EQUORUM)
		sim_fail(w, "a change is taken back without mirror %u: %s", l->other->index, text);
	sim_count(w, SIM_CANCELS_REFUSED, 1);
}

static void look_at_change(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct loaded *l = arg;
	const struct ps_change *c;

	(void)ticket;
	if (is_over(w, l))
		return;
	c = &l->owner->handle->upkeep.change;
	/* Some applications cancel the change. */
	if (c->stage == PS_CHANGE_NONE && strstr(c->text, "taken back"))
		return;
	if (c->stage == PS_CHANGE_NONE && c->result_code)
		sim_fail(w, "mirror %u was loaded, and mirror %u is not replaced: %s",
		         l->loaded->index, l->other->index, c->text);
	if (c->stage == PS_CHANGE_NONE && !mirror_of(l, l->loaded)->is_from_spill) {
		sim_count(w, SIM_CHANGED_BESIDE_LOADED, 1);
		return;
	}
	check_cancel(w, l);
	if (w->now > l->until)
		sim_fail(w, "mirror %u was loaded, and mirror %u has not left the roster: %s",
		         l->loaded->index, l->other->index, c->text);
	sim_at(w, w->now + LOOKS, look_at_change, l, 0);
}

/* Orders the change when the owner knows that the other mirror is gone and no other client is at
 * the mirrors. */
static void replace(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct loaded *l = arg;
	const struct perseas_roster_change wanted = {
		.kind = PERSEAS_ROSTER_REPLACE,
		.address = l->other->address,
		.with = w->mirrors[w->members]->address,
	};
	struct perseas *p = l->owner->handle;

	(void)ticket;
	if (is_over(w, l))
		return;
	if (p->is_admin_taken || mirror_of(l, l->other)->state != PERSEAS_MIRROR_DOWN) {
		sim_at(w, w->now + LOOKS, replace, l, 0);
		return;
	}
	l->until = w->now + WITHIN;
	sim_trace(w, "mirror %u is to be replaced", l->other->index);
	if (!sim_aim_change(l->owner, &wanted))
		sim_fail(w, "no change is begun: %s", p->upkeep.change.text);
	look_at_change(w, l, 0);
}

/* The owner has the new id, and W have not recorded it. */
static void wipe(struct sim_world *w, struct loaded *l)
{
	sim_trace(w, "mirror %u has not recorded the id of mirror %u", l->other->index,
	          l->loaded->index);
	sim_mirror_crash(l->other, false, true);
	sim_aim_hang(w, l->other, false);
	if (is_of_change(w)) {
		replace(w, l, 0);
		return;
	}
	sim_mirror_start(l->other);
	l->until = w->now + WITHIN;
	look_at_copy(w, l, 0);
}

static void await_id(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct loaded *l = arg;

	(void)ticket;
	if (is_over(w, l))
		return;
	if (ps_roster_mirrors_to_tell_last(l->owner->handle)) {
		wipe(w, l);
		return;
	}
	if (w->now > l->until)
		sim_fail(w, "mirror %u was loaded, and does not get its own id", l->loaded->index);
	sim_at(w, w->now + LOOKS, await_id, l, 0);
}

static void come_back(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct loaded *l = arg;

	(void)ticket;
	if (!l->loaded->stores)
		sim_mirror_start(l->loaded);
	l->until = w->now + WITHIN;
	await_id(w, l, 0);
}

static void stop(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct loaded *l = arg;

	(void)ticket;
	if (w->schedule->ending)
		return;
	l->owner = sim_aim_owner(w, w->members);
	if (!l->owner) {
		sim_at(w, w->now + LOOKS, stop, l, 0);
		return;
	}
	l->loaded = w->mirrors[sim_below(w, w->members)];
	l->other = w->mirrors[(l->loaded->index + 1 + sim_below(w, w->members - 1)) % w->members];
	sim_trace(w, "mirror %u hangs", l->other->index);
	sim_aim_hang(w, l->other, true);
	sim_mirror_stop(l->loaded, SIM_HOST_ENDS);
	sim_at(w, w->now + AWAY, come_back, l, 0);
}

static void begin(struct sim_world *w)
{
	sim_at(w, w->now + sim_between(w, 100, 3000) * SIM_MS, stop,
	       sim_alloc(w, sizeof(struct loaded)), 0);
}

const struct sim_aim sim_loaded_aim = {
	.turn = 24,
	.shape = shape,
	.begin = begin,
};
