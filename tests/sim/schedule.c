/*
 * schedule.c - draws and runs one schedule: sizes, owners, faults, the end, and the last checks.
 * main.c calls it for each seed. All chance comes from the world's seed.
 */
#include "schedule.h"

#include "../../client/core/handle.h"
#include "aim.h"
#include "application.h"
#include "creators.h"
#include "heap_work.h"
#include "mirror.h"
#include "mirror_faults.h"
#include "mistakes.h"
#include "mixed.h"
#include "oracle.h"
#include "rosters.h"
#include "stranger.h"

/* The simulated time after which a schedule ends. */
#define TIME_MAX (120000 * SIM_MS)
/* The time after the network's repair within which every process has noticed broken connections. */
#define SETTLING (12000 * SIM_MS)

enum { RUNNING_MAX = 3 }; /* owners at the same time */

/* --- drawing --- */

static void draw_sizes(struct sim_world *w, struct sim_schedule *s)
{
	static const uint64_t windows[] = { 300, 1500, 8000, 65536 };
	static const uint64_t packets[] = { 16, 200, 1400, 1400 };
	static const uint64_t logs[] = { 4096, 4096, 8192, 32768 };

	s->log_size = logs[sim_below(w, 4)];
	s->ring_size = sim_chance(w, 80) ? 65536 : 262144;
	s->window = windows[sim_below(w, 4)];
	s->packet = packets[sim_below(w, 4)];
	s->large = (unsigned)(sim_chance(w, 30) ? sim_between(w, 30, 100) : sim_below(w, 20));
	s->local = sim_chance(w, 40) ? (unsigned)sim_between(w, 10, 70) : 0;
	s->slow = sim_chance(w, 30) ? 30 : 0;
	s->left = (unsigned)sim_between(w, 30, 100);
	s->threads = sim_chance(w, 50) ? 60 : 0;
}

static void draw_times(struct sim_world *w, struct sim_schedule *s)
{
	s->commit_timeout_ms = (uint32_t)sim_between(w, 10, 200);
	s->connect_timeout_ms = (uint32_t)sim_between(w, 60, 300);
	s->open_timeout_ms = (uint32_t)sim_between(w, 500, 3000);
	s->pace_ms = w->mistake || s->ring_size > 65536 ? UINT32_MAX : 1 + w->seed % 20;
	/* These follow from the seed without a draw, so that other schedules keep their course. */
	s->mirror_timeout_ms = w->mistake || w->seed % 4 != 2 ? UINT32_MAX : 100 + w->seed % 300;
	s->alarms = w->mistake || w->seed % 8 != 2 ? 0 : 4;
	s->think = sim_chance(w, 50) ? 2 * SIM_MS : sim_between(w, 1, 60) * SIM_MS;
	s->gap = sim_between(w, 2, 300) * SIM_MS;
	s->takeover = (unsigned)(sim_chance(w, 70) ? 80 : 20);
	s->faults = (unsigned)(sim_chance(w, 10) ? 0 : sim_between(w, 1, 25));
	s->calm = !s->faults && !s->slow && s->commit_timeout_ms >= 50;
	s->splits = sim_chance(w, 30) ? 30 : 3;
	s->uniform = sim_chance(w, 15);
	s->losses = (unsigned)(sim_chance(w, 55) ? 0 : sim_between(w, 1, 2));
	s->disks = w->seed % 4 == 1;
	s->jumps = w->seed % 6 == 0 ? 15 : 0;
}

/* Returns the number of spare mirrors; without any the roster never changes. */
static unsigned draw_changes(struct sim_world *w, struct sim_schedule *s)
{
	s->stops = sim_chance(w, 30) ? (unsigned)sim_between(w, 5, 40) : 0;
	s->changes = sim_chance(w, 40) ? (unsigned)sim_between(w, 1, 6) : 0;
	s->change_gap = (sim_chance(w, 50) ? 20 : 500) * SIM_MS;
	s->cancels = 30;
	return s->changes ? (unsigned)sim_between(w, 1, 2) : 0;
}

static void draw(struct sim_world *w)
{
	struct sim_schedule *s = w->schedule = sim_alloc(w, sizeof(*s));
	static const unsigned counts[] = { 1, 2, 2, 3, 3, 3, 3, 3, 5, 3 };
	const bool any = !w->mistake;
	unsigned n = counts[sim_below(w, 10)], spares;

	draw_sizes(w, s);
	draw_times(w, s);
	w->acks = sim_chance(w, 60) ? n / 2 + 1 : (unsigned)sim_between(w, 1, n);
	spares = draw_changes(w, s);
	s->claimers = sim_chance(w, 30) ? (unsigned)sim_between(w, 10, 60) : 0;
	s->work = w->seed % 5 == 2 && !s->calm && !w->mistake ? 8 : 0;
	if (sim_mistake_unwaited(w) || sim_mistake_confirms(w) ||
	    (any && (w->seed % 4 == 1 || w->seed % 16 == 15)))
		s->nowait = 70;
	if (sim_mistake_gathers(w) || (s->nowait && !w->mistake && w->seed % 16 != 5))
		s->gather_us = 1 + w->seed * 7919 % 40000;
	s->confirms = sim_mistake_confirms(w) ? 40 : any && w->seed % 5 == 1 ? 15 : 0;
	s->demand = w->mistake ? sim_mistake_demands(w) : w->seed % 8 == 3;
	s->direct_link = w->mistake ? sim_mistake_straight(w) : w->seed % 16 == 11;
	s->poor = sim_mistake_poor(w) || (!w->mistake && s->demand && w->seed / 16 % 3) ? 30 : 0;
	s->apart = w->mistake ? sim_mistake_apart(w) : w->seed % 8 == 7;
	s->threads = s->apart ? 90 : s->threads;
	if (!s->apart && (sim_mistake_tracks(w) || (any && w->seed % 5 == 3)))
		s->tracks = 50;
	s->destroys = sim_mistake_destroys(w) ? 25 : !w->mistake && w->seed % 3 == 2 ? 5 : 0;
	s->grows = sim_mistake_grows(w) ? 25 : !w->mistake && w->seed % 7 == 4 ? 8 : 0;
	sim_mixed_shape(w);
	sim_heap_shape(w);
	sim_mistake_shape(w, &n, &spares);
	sim_aim_shape(w, &n, &spares);
	w->members = n;
	sim_count(w, SIM_FIVE, n == 5);
	for (unsigned i = 0; i < n + spares; i++) {
		struct sim_mirror *m = sim_mirror_new(w);

		m->window = s->window;
		m->packet = s->packet;
	}
	sim_trace(w, "%u mirrors, %u spare, W %u, log %llu, %u operations, %u faults", n, spares,
	          w->acks, (unsigned long long)s->log_size, s->left, s->faults);
}

/* --- owners --- */

static void draw_path(struct sim_world *w, struct sim_owner *o, unsigned mirror)
{
	struct sim_schedule *s = w->schedule;
	struct sim_path *path = &o->paths[mirror];

	o->local[mirror] = s->near ? mirror == 0 : sim_chance(w, s->local);
	path->delay = sim_between(w, 5, 100) * SIM_US;
	path->jitter = sim_between(w, 1, 200) * SIM_US;
	path->byte_ns = 1;
	if (o->local[mirror]) {
		path->delay = path->jitter = 5 * SIM_US;
	} else if (!s->ending && sim_chance(w, s->slow)) {
		path->delay = sim_between(w, 1, 10) * SIM_MS;
		path->byte_ns = sim_between(w, 1, 2000);
	}
	if (s->unreachable[mirror] && !o->local[mirror])
		path->blocked[SIM_OUT] = path->blocked[SIM_IN] = true;
}

static void start_owner(struct sim_world *w, uint32_t flags, bool last)
{
	struct sim_owner *o = sim_application_start(w, flags, last);

	for (unsigned i = 0; i < w->mirror_count; i++)
		draw_path(w, o, i);
	sim_trace(w, "owner %u starts%s", o->index, flags & PERSEAS_TAKEOVER ? ", takes over" : "");
}

bool sim_schedule_creator(struct sim_world *w)
{
	if (w->schedule->ending || w->owner_count >= SIM_OWNERS_MAX - 1)
		return false;
	start_owner(w, PERSEAS_CREATE, false);
	return true;
}

static unsigned count_running(const struct sim_world *w)
{
	unsigned running = 0;

	for (unsigned i = 0; i < w->owner_count; i++)
		running += !w->owners[i]->dead;
	return running;
}

static uint32_t some_checks(struct sim_world *w)
{
	return (sim_chance(w, 10) ? PERSEAS_CHECK_OVERLAP : 0) |
	       (sim_chance(w, 10) ? PERSEAS_CHECK_WRITES : 0);
}

static bool another_owner(struct sim_world *w)
{
	bool takeover = sim_chance(w, w->schedule->takeover);

	if (w->owner_count >= SIM_OWNERS_MAX - 1 || count_running(w) >= RUNNING_MAX)
		return false;
	sim_count(w, SIM_TAKEOVERS, takeover && count_running(w) > 0);
	start_owner(w, (takeover ? PERSEAS_TAKEOVER : 0) | some_checks(w), false);
	return true;
}

/* --- faults --- */

/* Returns a drawn owner, or NULL if it does not live. */
static struct sim_owner *some_owner(struct sim_world *w)
{
	struct sim_owner *o = w->owners[sim_below(w, w->owner_count)];

	return o->dead ? NULL : o;
}

static struct sim_mirror *some_mirror(struct sim_world *w)
{
	return w->mirrors[sim_below(w, w->mirror_count)];
}

/* Longer than anybody waits for anything, and than mirrors take a silent owner for live. */
static uint64_t long_time(struct sim_world *w)
{
	return sim_between(w, 6000, 20000) * SIM_MS;
}

static void reset(struct sim_world *w, struct sim_owner *o, struct sim_mirror *m, uint64_t which)
{
	sim_trace(w, "connections of owner %u to mirror %u break (%llu)", o->index, m->index,
	          (unsigned long long)which);
	sim_count(w, SIM_RESETS, 1);
	for (struct ps_link *link = o->links; link && which != 1; link = link->next)
		if (link->mirror == m)
			sim_link_reset(link);
	for (struct ps_control *c = o->controls; c && which != 0; c = c->next)
		if (c->mirror == m)
			sim_control_reset(c);
}

static void block(struct sim_world *w, struct sim_owner *o, struct sim_mirror *m, uint64_t which,
                  uint64_t time)
{
	struct sim_path *path = &o->paths[m->index];

	if (o->local[m->index])
		return;
	sim_trace(w, "owner %u and mirror %u are apart (%llu) for %llu us", o->index, m->index,
	          (unsigned long long)which, (unsigned long long)(time / SIM_US));
	sim_count(w, SIM_BLOCKS, 1);
	sim_path_block(path, which & 1, which & 2);
	sim_at(w, w->now + time, sim_path_unblock, path, 0);
}

void sim_schedule_split(struct sim_world *w, struct sim_owner *o, uint64_t without, uint64_t time)
{
	if (!another_owner(w))
		return;
	for (unsigned i = 0; i < w->mirror_count; i++)
		block(w, without >> i & 1 ? o : w->owners[w->owner_count - 1], w->mirrors[i], 3,
		      time);
}

static void split(struct sim_world *w, struct sim_owner *o)
{
	uint64_t time = sim_some_time(w);

	sim_schedule_split(w, o, sim_draw(w), time);
}

static void reachable(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_mirror *m = arg;

	(void)ticket;
	w->schedule->unreachable[m->index] = 0;
	for (unsigned i = 0; i < w->owner_count; i++)
		sim_path_block(&w->owners[i]->paths[m->index], false, false);
}

static void unreachable(struct sim_world *w, struct sim_mirror *m)
{
	uint64_t time = sim_between(w, 500, 20000) * SIM_MS;

	if (w->schedule->unreachable[m->index])
		return;
	sim_trace(w, "nobody reaches mirror %u for %llu ms", m->index,
	          (unsigned long long)(time / SIM_MS));
	sim_count(w, SIM_BLOCKS, 1);
	w->schedule->unreachable[m->index] = w->now + time;
	for (unsigned i = 0; i < w->owner_count; i++)
		if (!w->owners[i]->local[m->index])
			sim_path_block(&w->owners[i]->paths[m->index], true, true);
	sim_at(w, w->now + time, reachable, m, 0);
}

static void tear(struct sim_world *w, struct sim_owner *o)
{
	o->stop_after = sim_below(w, 2000);
	o->stop_how = sim_chance(w, 70) ? SIM_STOP : SIM_CRASH;
	o->stop_ns = sim_some_time(w) + sim_some_time(w);
}

static void kill_owner(struct sim_world *w, struct sim_owner *o)
{
	bool silent = sim_chance(w, 20);

	/* A host that shares memory with a mirror does not die alone. */
	sim_count(w, SIM_OWNER_CRASHES, 1);
	sim_owner_kill(o, silent && !sim_aim_shares(o));
	if (sim_chance(w, 50))
		another_owner(w);
}

static struct sim_owner *who_changes(const struct sim_world *w)
{
	for (unsigned i = 0; i < w->owner_count; i++) {
		struct sim_owner *o = w->owners[i];

		if (!o->dead && o->handle && o->handle->upkeep.change.stage != PS_CHANGE_NONE)
			return o;
	}
	return NULL;
}

/* The mirror that the change brings in forgets everything while both rosters count. */
static bool lose_new(struct sim_world *w, const struct ps_change *change)
{
	struct sim_mirror *m;

	if (!change->joining || change->stage != PS_CHANGE_JOINT || !w->schedule->losses)
		return false;
	m = sim_mirror_find(w, &change->joining->address);
	if (!m->stores)
		return false;
	w->schedule->losses--;
	sim_mirror_crash(m, false, true);
	sim_at(w, w->now + sim_below(w, 20 * SIM_MS), sim_mirror_faults_start, m, 0);
	return true;
}

/* Disturbs a change of the roster. Returns false if there is none, or nothing to disturb. */
static bool disturb_change(struct sim_world *w)
{
	struct sim_owner *o = who_changes(w);

	if (!o || !sim_chance(w, w->schedule->aimed))
		return false;
	if (lose_new(w, &o->handle->upkeep.change))
		return true;
	if (sim_chance(w, 50))
		split(w, o);
	else
		block(w, o, some_mirror(w), 3, sim_some_time(w));
	return true;
}

/* Disturbs the time in which a loaded image waits until its id is recorded. */
static bool disturb_loaded(struct sim_world *w)
{
	struct sim_owner *o = some_owner(w);

	if (!o || !sim_rosters_any_loaded(w) || !sim_chance(w, w->schedule->aimed))
		return false;
	split(w, o);
	return true;
}

static void dies(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_owner *o = arg;

	(void)ticket;
	if (o->dead)
		return;
	sim_count(w, SIM_OWNER_CRASHES, 1);
	sim_owner_kill(o, false);
}

/* Another owner takes over, and dies wherever it is: when it asked, claimed some, adopted some. The
 * one before lives on. */
static void claimer_dies(struct sim_world *w)
{
	if (w->owner_count >= SIM_OWNERS_MAX - 1 || count_running(w) >= RUNNING_MAX)
		return;
	start_owner(w, PERSEAS_TAKEOVER, false);
	sim_at(w, w->now + sim_below(w, 4000 * SIM_US), dies, w->owners[w->owner_count - 1], 0);
}

static void fault(struct sim_world *w)
{
	struct sim_owner *o = some_owner(w);
	struct sim_mirror *m = some_mirror(w);
	uint64_t what = sim_below(w, 100);

	if (w->schedule->aimed && (disturb_change(w) || disturb_loaded(w)))
		return;
	/* While an owner is stopped inside a write, another one may come. */
	if (o && o->inside && sim_chance(w, 70))
		another_owner(w);
	else if (o && sim_chance(w, w->schedule->splits))
		split(w, o);
	else if (sim_stranger_comes(w, m))
		return;
	else if (sim_chance(w, w->schedule->stops))
		sim_mirror_faults_stop(w, m);
	else if (o && sim_chance(w, w->schedule->claimers))
		claimer_dies(w);
	else if (what < 10)
		sim_mirror_faults_crash(w, m);
	else if (what < 14)
		unreachable(w, m);
	else if (what < 20)
		sim_mirror_faults_limit(w, m);
	else if (what < 32)
		another_owner(w);
	else if (!o)
		return;
	else if (what < 42)
		kill_owner(w, o);
	else if (what < 52)
		sim_owner_stop(o, sim_chance(w, 10) ? long_time(w) : sim_some_time(w));
	else if (what < 74 && sim_aim_shares(o))
		tear(w, o);
	else if (what >= 85)
		block(w, o, m, sim_between(w, 1, 3), sim_some_time(w));
	else if (!o->local[m->index])
		reset(w, o, m, sim_below(w, 3));
}

/* --- what must be so --- */

static bool spares_w_of(const struct sim_owner *o, const Perseas__Roster *roster)
{
	return sim_creators_spared(o, roster) >= roster->acks;
}

static bool spares_r_of(const struct sim_owner *o, const Perseas__Roster *roster)
{
	return sim_creators_spared(o, roster) > roster->n_members - roster->acks;
}

static bool spares(const struct sim_owner *o,
                   bool (*spares_of)(const struct sim_owner *o, const Perseas__Roster *roster))
{
	const struct perseas *p = o->handle;

	return sim_schedule_is_prompt(o->world->schedule) && spares_of(o, p->roster) &&
	       (!p->next_roster || spares_of(o, p->next_roster));
}

bool sim_schedule_spares_w(const struct sim_owner *o)
{
	return spares(o, spares_w_of);
}

bool sim_schedule_spares_r(const struct sim_owner *o)
{
	return spares(o, spares_r_of);
}

/* --- from beginning to end --- */

static void start_last(struct sim_world *w, void *arg, uint64_t ticket)
{
	(void)arg;
	(void)ticket;
	sim_trace(w, "the end begins");
	for (unsigned i = 0; i < w->mirror_count; i++) {
		memory_heap_set_limit(w->mirrors[i]->memory, 0);
		memory_heap_fail(w->mirrors[i]->memory, 0, 0);
		w->mirrors[i]->window = 65536;
		w->mirrors[i]->packet = 1400;
	}
	start_owner(w, PERSEAS_TAKEOVER, true);
}

/* Repairs everything and ends all processes. */
static void heal(struct sim_world *w)
{
	w->schedule->ending = true;
	memset(w->schedule->cables, 0, sizeof(w->schedule->cables));
	sim_trace(w, "everything heals");
	for (unsigned i = 0; i < w->owner_count; i++)
		sim_owner_kill(w->owners[i], false);
	for (unsigned i = 0; i < w->mirror_count; i++) {
		reachable(w, w->mirrors[i], 0);
		sim_mirror_faults_start(w, w->mirrors[i], 0);
	}
	sim_at(w, w->now + SETTLING, start_last, NULL, 0);
}

static void direct(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct sim_schedule *s = w->schedule;

	(void)arg;
	(void)ticket;
	if (!s->left || w->now > TIME_MAX ||
	    (w->owner_count >= SIM_OWNERS_MAX - 1 && !count_running(w))) {
		heal(w);
		return;
	}
	if (!count_running(w))
		another_owner(w);
	else if (s->faults > 0) {
		s->faults--;
		fault(w);
	}
	sim_at(w, w->now + sim_below(w, s->gap), direct, NULL, 0);
}

static void finish(struct sim_world *w)
{
	for (unsigned i = 0; i < w->owner_count; i++)
		if (!sim_owner_ended(w->owners[i]))
			sim_fail(w, "owner %u does not end", i);
	for (unsigned i = 0; i < w->mirror_count; i++)
		sim_mirror_free(w->mirrors[i]);
	sim_rosters_forget(w);
}

void sim_schedule_run(struct sim_world *w, uint64_t seed)
{
	sim_world_begin(w, seed);
	sim_oracle_begin(w);
	draw(w);
	sim_schedule_creator(w);
	sim_creators_begin(w);
	sim_aim_begin(w);
	sim_at(w, w->now + sim_below(w, w->schedule->gap), direct, NULL, 0);
	while (!w->schedule->over)
		if (!sim_step(w))
			sim_fail(w, "nothing is left to happen");
	while (!sim_owner_ended(w->owners[w->owner_count - 1]) && sim_step(w))
		;
	finish(w);
}
