/*
 * stuck.c - schedules in which W healthy mirrors answer a living owner, and none that comes back
 * may be copied to (I9): the owner claims all of them again, without a whole copy that cannot
 * count. In half of them the owner before lives on, cut off, and must never claim anything again.
 * It is connected again when its successor lacks W, or the two are cut off in turn afterwards.
 *
 * Of three mirrors one is away when the store changes its owner, and comes back when another one
 * has gone.
 */
#include "aim.h"

#include "../../client/core/handle.h"
#include "mirror.h"
#include "mistakes.h"
#include "schedule.h"

enum { MEMBERS = 3 };

#define LOOKS SIM_MS
#define PARTED (60000 * SIM_MS)
#define TURN (6000 * SIM_MS)
/* A mirror that failed is tried again after at most a second, and a round trip takes a few ms. */
#define WITHIN (5000 * SIM_MS)

struct stuck {
	struct sim_owner *owner, *before;
	struct sim_mirror *away, *lost;
	uint64_t opened_as; /* by the owner before */
	uint64_t epoch, until;
	bool unstuck;
};

/* Returns true if the previous owner lives on, cut off from all others. */
static bool is_of_two(const struct sim_world *w)
{
	return w->seed / SIM_AIM_TURNS % 2;
}

/* Returns true if both owners live on, and are cut off in turn. */
static bool takes_turns(const struct sim_world *w)
{
	return w->seed / SIM_AIM_TURNS % 4 == 3;
}

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	*mirrors = MEMBERS;
	*spares = 0;
	w->acks = 2;
	sim_aim_quiet(s);
	s->cancels = 0;
	s->takeover = 100;
	s->patient = true;
}

static struct sim_mirror *some_member(struct sim_world *w, const struct sim_mirror *but)
{
	const unsigned first = but ? but->index + 1 : 0;

	return w->mirrors[(first + sim_below(w, MEMBERS - (but != NULL))) % MEMBERS];
}

/* --- the store becomes usable again --- */

static bool is_held(const struct sim_owner *o)
{
	return sim_aim_is_open(o) && !o->handle->is_renewing && !o->handle->commit.in_doubt_seq;
}

/* Returns true if the owner before has not closed its handle. */
static bool is_before(const struct stuck *stuck)
{
	const struct sim_owner *o = stuck->before;

	return o && sim_aim_is_open(o) && o->handle->opened_epoch == stuck->opened_as;
}

static void check_before(struct sim_world *w, void *arg, uint64_t ticket)
{
	const struct stuck *stuck = arg;

	(void)ticket;
	if (!is_before(stuck))
		return;
	if (stuck->before->handle->commit.stat.renewals)
		sim_fail(w, "owner %u has a successor, and claimed its mirrors again",
		         stuck->before->index);
	sim_at(w, w->now + LOOKS, check_before, arg, 0);
}

/* Cuts an owner off, and ends its sessions at the mirrors, or connects it again. */
static void cut_off(struct sim_world *w, struct sim_owner *o, bool is_cut)
{
	sim_trace(w, "owner %u is %s", o->index, is_cut ? "cut off" : "connected again");
	for (unsigned i = 0; i < MEMBERS; i++)
		sim_path_block(&o->paths[i], is_cut, is_cut);
	if (is_cut)
		sim_aim_reset(o);
}

static void look(struct sim_world *w, void *arg, uint64_t ticket);

/* Connects the owner that was cut off. It must have W again soon: no other owner claimed its
 * mirrors. */
static void end_turn(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct stuck *stuck = arg;

	(void)ticket;
	if (w->schedule->ending || !sim_aim_is_open(stuck->owner))
		return;
	cut_off(w, stuck->owner, false);
	stuck->until = w->now + WITHIN;
	look(w, arg, 0);
}

/* Connects the owner before, which finds mirrors without an owner. */
static void connect_before(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct stuck *stuck = arg;

	(void)ticket;
	if (w->schedule->ending)
		return;
	if (is_before(stuck)) {
		sim_count(w, SIM_CUT_IN_TURN, 1);
		cut_off(w, stuck->before, false);
	}
	sim_at(w, w->now + TURN, end_turn, arg, 0);
}

/* Goes on when the owner has W again. */
static void go_on(struct sim_world *w, struct stuck *stuck)
{
	stuck->unstuck = true;
	sim_count(w, SIM_UNSTUCK, 1);
	if (stuck->owner->handle->commit.stat.resyncs)
		sim_fail(w, "owner %u copied what could not count", stuck->owner->index);
	if (!stuck->lost->stores)
		sim_mirror_start(stuck->lost);
	if (takes_turns(w)) {
		cut_off(w, stuck->owner, true);
		sim_at(w, w->now + TURN, connect_before, stuck, 0);
	}
}

static void look(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct stuck *stuck = arg;
	const struct sim_owner *o = stuck->owner;

	(void)ticket;
	if (w->schedule->ending || !sim_aim_is_open(o))
		return;
	if (is_held(o) && o->handle->epoch > stuck->epoch) {
		if (!stuck->unstuck)
			go_on(w, stuck);
		return;
	}
	if (w->now > stuck->until)
		sim_fail(w, "owner %u has two mirrors that answer, and does not go on", o->index);
	sim_at(w, w->now + LOOKS, look, stuck, 0);
}

/* --- how the owner gets stuck --- */

static void come_back(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct stuck *stuck = arg;

	(void)ticket;
	if (w->schedule->ending || !sim_aim_is_open(stuck->owner))
		return;
	stuck->epoch = stuck->owner->handle->epoch;
	stuck->until = w->now + WITHIN;
	sim_aim_hang(w, stuck->away, false);
	if (stuck->before)
		cut_off(w, stuck->before, takes_turns(w));
	look(w, stuck, 0);
}

static void lose_another(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct stuck *stuck = arg;

	(void)ticket;
	if (w->schedule->ending)
		return;
	stuck->owner = sim_aim_owner(w, MEMBERS - 1);
	if (!stuck->owner || stuck->owner == stuck->before) {
		sim_at(w, w->now + LOOKS, lose_another, stuck, 0);
		return;
	}
	stuck->lost = some_member(w, stuck->away);
	sim_mirror_crash(stuck->lost, false, false);
	sim_at(w, w->now + sim_below(w, 100 * SIM_MS), come_back, stuck, 0);
}

static void change_owner(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct stuck *stuck = arg;
	struct sim_owner *o = sim_aim_owner(w, MEMBERS);

	(void)ticket;
	if (w->schedule->ending)
		return;
	if (!o) {
		sim_at(w, w->now + LOOKS, change_owner, stuck, 0);
		return;
	}
	stuck->away = some_member(w, NULL);
	sim_trace(w, "mirror %u is away", stuck->away->index);
	sim_aim_hang(w, stuck->away, true);
	if (is_of_two(w)) {
		stuck->before = o;
		stuck->opened_as = o->handle->opened_epoch;
		check_before(w, arg, 0);
		sim_schedule_split(w, o, UINT64_MAX, PARTED);
	} else {
		sim_owner_kill(o, false);
	}
	lose_another(w, stuck, 0);
}

static void begin(struct sim_world *w)
{
	sim_at(w, w->now + sim_between(w, 100, 3000) * SIM_MS, change_owner,
	       sim_alloc(w, sizeof(struct stuck)), 0);
}

const struct sim_aim sim_stuck_aim = {
	.turn = 16,
	.mistakes = { SIM_MISTAKE_UNRENEWED, SIM_MISTAKE_COPIED_ANYHOW, SIM_MISTAKE_SUCCEEDED },
	.shape = shape,
	.begin = begin,
};
