/*
 * application.c - the life of a simulated owner, from perseas_open to its end. process.c runs it
 * as a coroutine. What it is shown it compares with the oracle, and believes nothing that the
 * oracle does not know.
 */
#include "application.h"

#include "../../client/core/handle.h"
#include "figures.h"
#include "fillers.h"
#include "forger.h"
#include "heap_work.h"
#include "mirror.h"
#include "mistakes.h"
#include "open_store.h"
#include "operator.h"
#include "oracle.h"
#include "pager_sim.h"
#include "past.h"
#include "rosters.h"
#include "schedule.h"
#include "segments.h"

enum { OPEN_TRIES = 6, FLUSH_TRIES = 8 };

int sim_unexpected(struct sim_application *a, const char *what, int rc)
{
	if (a->owner->dead)
		return LEAVE;
	sim_fail(a->world, "owner %u: %s: %s (%s)", a->owner->index, what, perseas_error_name(rc),
	         perseas_message(a->p));
}

/* Another thread waits for a change of the roster: it may be copying, be settled just now, or hold
 * commits up, since they wait for both rosters. */
static void take_change_back(struct sim_application *a, unsigned percent)
{
	const struct perseas_roster_change change = { .kind = PERSEAS_ROSTER_CANCEL };
	struct sim_world *w = a->world;
	int rc;

	if (!w->schedule->cancels || a->p->upkeep.change.stage == PS_CHANGE_NONE)
		return;
	if (!sim_chance(w, percent))
		return;
	rc = perseas_roster(a->p, &change);
	if (a->owner->dead)
		return;
	sim_trace(w, "owner %u takes the change back: %s", a->owner->index, perseas_error_name(rc));
	if (!rc)
		sim_count(w, SIM_CHANGES_BACK, 1);
	else if (rc == PERSEAS_EQUORUM)
		sim_count(w, SIM_CANCELS_REFUSED, 1);
	else if (rc != PERSEAS_EBUSY && rc != PERSEAS_EINVAL && rc != PERSEAS_EFENCED)
		sim_unexpected(a, "cancel", rc);
}

/* Waits for commits in doubt; some owners lose patience. */
static int settle(struct sim_application *a)
{
	struct sim_world *w = a->world;

	for (int tries = 0; (tries < FLUSH_TRIES || w->schedule->patient) && !a->owner->dead;
	     tries++) {
		struct sim_node *at = a->at;
		bool doubt = a->p->commit.in_doubt_seq != 0;
		int rc = perseas_flush(a->p);

		if (a->owner->dead || rc == PERSEAS_EFENCED)
			return LEAVE;
		if (!rc) {
			sim_count(w, SIM_FLUSHED, doubt);
			sim_oracle_acknowledged(w, at);
			return GO_ON;
		}
		if (rc != PERSEAS_EINDOUBT)
			return sim_unexpected(a, "flush", rc);
		take_change_back(a, 40);
		sim_owner_sleep(a->owner, sim_below(w, 500 * SIM_MS));
	}
	return LEAVE;
}

static int step(struct sim_application *a)
{
	uint64_t what = sim_below(a->world, 100);
	const unsigned often = sim_mistake_demands(a->world) ? 10 : 2;

	take_change_back(a, 2);
	if (a->owner->dead)
		return LEAVE;
	if (a->p->commit.in_doubt_seq && sim_chance(a->world, 70))
		return settle(a);
	if (a->world->schedule->forges)
		return sim_forger_step(a);
	if (a->world->schedule->confirms && sim_chance(a->world, a->world->schedule->confirms))
		return sim_work_confirm(a);
	if (a->world->schedule->nowait && sim_chance(a->world, 25))
		return sim_work_ask(a);
	if (a->world->schedule->destroys && sim_chance(a->world, a->world->schedule->destroys))
		return sim_segments_change(a, 3);
	if (a->world->schedule->grows && sim_chance(a->world, a->world->schedule->grows))
		return sim_segments_change(a, 4);
	if (a->world->schedule->trims && sim_chance(a->world, a->world->schedule->trims))
		return sim_work_trim(a);
	if (what < 5)
		return sim_segments_change(a, 0);
	if (what < 12)
		return sim_segments_change(a, 1);
	if (what < 12 + often)
		return sim_segments_change(a, 2);
	if (a->world->schedule->demand && sim_chance(a->world, 30))
		return sim_segments_touch(a);
	if (what < 15 + often)
		return settle(a);
	if (what < 25)
		return sim_work_two(a);
	return sim_work_one(a);
}

/* The loop of each thread of the application. */
static void loop(void *arg)
{
	struct sim_application *a = arg;
	struct sim_world *w = a->world;
	int rc = GO_ON;

	while (rc != LEAVE && !a->leaving && !a->owner->dead && w->schedule->left > 0) {
		w->schedule->left--;
		if (!w->schedule->restless && sim_chance(w, 60))
			sim_owner_sleep(a->owner, sim_below(w, w->schedule->think));
		if (a->owner->dead || sim_past_ends(a->owner))
			break;
		rc = step(a);
		if (sim_past_ends(a->owner))
			break;
		for (unsigned i = 0; i < SIM_NAMED && !a->owner->dead && !a->open; i++)
			sim_segments_compare(a, i, "after a step");
		if (!a->open)
			sim_heap_check(a);
		if (!a->owner->dead)
			sim_pager_discard(a->owner);
		if (!w->schedule->steady && sim_below(w, 200) == 0)
			break;
	}
	a->leaving = true;
}

static void work(struct sim_application *a)
{
	int rc = sim_segments_map(a);

	for (int i = 0; i < 3 && rc == GO_ON; i++)
		rc = sim_segments_add(a);
	if (rc == GO_ON)
		rc = sim_work_publish(a);
	if (rc == GO_ON)
		rc = sim_heap_open(a);
	if (rc != GO_ON)
		return;
	a->owner->last_wait = sim_operator_let_go;
	a->owner->last_wait_arg = a;
	if (sim_chance(a->world, a->world->schedule->threads))
		sim_task_begin(a->owner, SIM_SECOND, loop, a);
	if (a->world->members < a->world->mirror_count)
		sim_task_begin(a->owner, SIM_OPERATOR, sim_operate, a);
	loop(a);
	sim_task_join(a->owner, SIM_SECOND);
	/* Some do not wait for what they have asked for. */
	if (!a->owner->tasks[SIM_OPERATOR].ended && sim_chance(a->world, 50))
		sim_owner_kill(a->owner, false);
	sim_task_join(a->owner, SIM_OPERATOR);
	a->owner->last_wait = NULL;
}

static void leave(struct sim_application *a)
{
	if (!a->owner->dead && sim_chance(a->world, 30))
		perseas_flush(a->p);
	sim_count_figures(a->world, a->p);
	/* The close waits for a keeper that is renewing its claims. */
	sim_work_closed(a, perseas_close(a->p));
	a->owner->handle = a->p = NULL;
	/* The process ends, too. */
	if (!a->owner->dead)
		sim_trace(a->world, "owner %u closes and exits", a->owner->index);
	a->owner->dead = true;
}

static void ordinary(void *arg)
{
	struct sim_application *a = arg;
	int tries = 0;

	while (sim_open_store(a) && !a->owner->dead) {
		if (++tries == OPEN_TRIES || a->world->schedule->ending) {
			a->owner->dead = true;
			return;
		}
		sim_owner_sleep(a->owner, sim_below(a->world, 400 * SIM_MS));
	}
	if (a->p) {
		if (!a->owner->dead)
			work(a);
		leave(a);
	}
}

/* Every mirror of the roster holds the same, under this owner's epoch. */
static void check_all_equal(struct sim_application *a)
{
	struct sim_world *w = a->world;

	sim_owner_sleep(a->owner, 2000 * SIM_MS);
	for (unsigned i = 0; i < w->mirror_count; i++) {
		const struct sim_mirror *m = w->mirrors[i];

		if (!sim_roster_names(a->p->roster, m))
			continue;
		if (m->at != a->at || m->at_epoch != a->p->epoch)
			sim_fail(w, "at the end mirror %u stands at %s, not at %s:\n%s", i,
			         sim_state(w, m->at_epoch, m->at ? m->at->seq : 0),
			         sim_state(w, a->p->epoch, a->at->seq), perseas_report(a->p));
	}
}

/* Checks that all acknowledged data can be read. */
static void wait_whole(struct sim_application *a)
{
	const int rc = perseas_wait_whole(a->p, 20000);

	if (rc)
		sim_fail(a->world, "at the end memory is missing: %s", perseas_message(a->p));
	for (unsigned i = 0; i < SIM_NAMED; i++)
		sim_segments_compare(a, i, "whole");
}

static void last(void *arg)
{
	struct sim_application *a = arg;
	struct sim_world *w = a->world;
	bool expected = sim_rosters_openable(w);
	int rc;

	sim_operator_drop_left(w);
	a->owner->dead = w->schedule->over = sim_fillers_end(a->owner);
	if (a->owner->dead)
		return;
	rc = sim_open_store(a);
	if (!rc && a->owner->dead) { /* it opened a stranger's image, and not the store */
		rc = PERSEAS_ENOSTORE;
		leave(a);
	}
	if (expected != !rc)
		sim_fail(w, "at the end the store %s be opened, and open says %s",
		         expected ? "can" : "cannot", perseas_error_name(rc));
	sim_count(w, SIM_BEYOND, rc != 0);
	if (!rc) {
		if (sim_segments_map(a) != GO_ON)
			sim_fail(w, "at the end the segments cannot be mapped: %s",
			         perseas_message(a->p));
		wait_whole(a);
		if (sim_heap_open(a) != GO_ON)
			sim_fail(w, "at the end the heap cannot be opened: %s",
			         perseas_message(a->p));
		check_all_equal(a);
		for (int i = 0; i < 3; i++)
			if (sim_work_one(a) != GO_ON)
				sim_fail(w, "at the end a commit failed: %s",
				         perseas_message(a->p));
		check_all_equal(a);
		leave(a);
	}
	a->owner->dead = w->schedule->over = true;
}

struct sim_owner *sim_application_start(struct sim_world *w, uint32_t flags, bool is_last)
{
	struct sim_application *a = sim_alloc(w, sizeof(*a));

	a->world = w;
	a->flags = flags;
	a->last = is_last;
	a->fd = -1;
	a->owner = sim_owner_new(w, is_last ? last : ordinary, a);
	a->owner->creates = (flags & PERSEAS_CREATE) != 0;
	return a->owner;
}
