/*
 * application.c - the life of a simulated owner, from perseas_open to its end. process.c runs it
 * as a coroutine. What it is shown it compares with the oracle, and believes nothing that the
 * oracle does not know.
 */
#include "application.h"

#include "../../client/core/demand.h"
#include "../../client/core/handle.h"
#include "creators.h"
#include "figures.h"
#include "fillers.h"
#include "forger.h"
#include "impostor.h"
#include "grown.h"
#include "heap_work.h"
#include "mirror.h"
#include "mistakes.h"
#include "operator.h"
#include "oracle.h"
#include "past.h"
#include "rivals.h"
#include "rosters.h"
#include "schedule.h"
#include "stranger.h"
#include "work.h"

enum { OPEN_TRIES = 6, FLUSH_TRIES = 8, USUAL_SIZE = 512 };

/* --- what is shown --- */

int sim_unexpected(struct sim_application *a, const char *what, int rc)
{
	if (a->owner->dead)
		return LEAVE;
	sim_fail(a->world, "owner %u: %s: %s (%s)", a->owner->index, what, perseas_error_name(rc),
	         perseas_message(a->p));
}

static void compare(struct sim_application *a, unsigned i, const char *when)
{
	const struct sim_segment *s = &a->at->segments[i];
	const struct ps_segment *segment = ps_segment_find(a->p, sim_segment_name(i));
	uint32_t at = 0;
	bool here;

	/* A heap may be giving it back just now. */
	if (!a->mapped[i].base || !s->present || !segment || !segment->base)
		return;
	/* What is missing is nobody's to look at. */
	for (uint64_t run; at < s->size; at += (uint32_t)run) {
		run = ps_demand_run(a->p, segment, at, s->size - at, &here);
		if (here && memcmp(a->mapped[i].base + at, s->bytes + at, run) != 0)
			break;
	}
	if (at >= s->size)
		return;
	while (a->mapped[i].base[at] == s->bytes[at])
		at++;
	sim_fail(a->world, "owner %u, %s: byte %u of segment %s is not as in %s", a->owner->index,
	         when, at, sim_segment_name(i), sim_state(a->world, a->at->epoch, a->at->seq));
}

/* Some owners have some segments elsewhere than recorded, and, when these are mapped again, where
 * they were not. Each owner has a distance of its own: two that published at the same address of
 * this process, one after the other (env_sim.c), must not meet there. */
static int map_somewhere(struct sim_application *a, unsigned i, void **addr)
{
	const struct ps_segment *segment = ps_segment_find(a->p, sim_segment_name(i));
	const uint64_t away = ((uint64_t)1 << 30) + ((uint64_t)a->owner->index << 26);

	a->maps++;
	if (!segment || (a->world->seed / 4 + a->owner->index + a->maps) % 3)
		return perseas_map(a->p, sim_segment_name(i), 0, addr);
	sim_count(a->world, SIM_MOVED, 1);
	return perseas_map_at(a->p, sim_segment_name(i), 0,
	                      (void *)(segment->address + away * (1 + a->maps % 2)), addr, NULL);
}

/* Who publishes chooses from what is free in this process, which has all owners: also where another
 * one unmapped something, and is held up before it maps that again. */
static bool another_has_its_place(const struct sim_application *a, unsigned i)
{
	const struct ps_segment *segment = ps_segment_find(a->p, sim_segment_name(i));
	const struct sim_world *w = a->world;

	for (unsigned other = 0; segment && other < w->owner_count; other++) {
		const struct perseas *p = w->owners[other]->handle;

		for (unsigned s = 0; p && p != a->p && s < p->segment_count; s++)
			if (p->segments[s].base &&
			    segment->address < p->segments[s].address + p->segments[s].size &&
			    p->segments[s].address < segment->address + SIM_RANGE_MAX)
				return true;
	}
	return false;
}

static int map_published(struct sim_application *a, unsigned i)
{
	void *addr;
	int rc;

	rc = map_somewhere(a, i, &addr);
	if (a->owner->dead || (rc == PERSEAS_EADDRESS && another_has_its_place(a, i)))
		return LEAVE;
	if (rc == PERSEAS_EFENCED || rc == PERSEAS_EUNREACHABLE || rc == PERSEAS_EBLOCKED)
		return LEAVE;
	if (rc)
		return sim_unexpected(a, "map of what is published", rc);
	a->mapped[i] = (struct mapped){ addr, a->at->segments[i].size };
	compare(a, i, "mapped");
	sim_grown_find(a, i);
	for (unsigned k = 0; i < SIM_SEGMENTS && k < SIM_PARTS; k++)
		compare(a, sim_part(i, k), "mapped");
	return GO_ON;
}

/* The segments that the handle knows are those of the state. */
static int map_all(struct sim_application *a)
{
	struct perseas_segment_info info;
	unsigned shown = 0, expected = 0;
	int outcome = GO_ON;

	while (!perseas_segment_at(a->p, shown, &info))
		shown++;
	for (unsigned i = 0; i < SIM_WHOLE && outcome == GO_ON; i++) {
		if (!a->at->segments[i].present)
			continue;
		expected++;
		outcome = map_published(a, i);
	}
	if (outcome == GO_ON && shown != expected)
		sim_fail(a->world, "owner %u is shown %u segments, and %s has %u", a->owner->index,
		         shown, sim_state(a->world, a->at->epoch, a->at->seq), expected);
	return outcome;
}

static void count_refusal(struct sim_application *a, int rc, const struct ps_error *error)
{
	struct sim_world *w = a->world;

	sim_trace(w, "owner %u: open refused: %s: %s", a->owner->index, perseas_error_name(rc),
	          error->text);
	sim_count(w, SIM_BUSY, rc == PERSEAS_EBUSY);
	sim_count(w, SIM_QUORUM, rc == PERSEAS_EQUORUM);
	switch (rc) {
	case PERSEAS_EBUSY:
	case PERSEAS_EQUORUM:
	case PERSEAS_EUNREACHABLE:
	case PERSEAS_EFENCED:
	case PERSEAS_ENOSTORE:
	case PERSEAS_EMIRRORMEM:
	case PERSEAS_ESYSTEM:
		break;
	default:
		if (sim_fillers_come(w) && (rc == PERSEAS_EUNFINISHED || rc == PERSEAS_EEXIST))
			break;
		if (rc != PERSEAS_EROSTER || !sim_impostor_comes(w))
			sim_fail(w, "owner %u: open: %s: %s", a->owner->index,
			         perseas_error_name(rc), error->text);
		sim_count(w, SIM_IMPOSTORS, 1);
	}
}

static int try_open(struct sim_application *a)
{
	const struct sim_schedule *schedule = a->world->schedule;
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct ps_error error = { 0 };
	char list[SIM_LIST];
	int rc;

	options.flags = a->flags;
	/* Once the store was there, a loss of all that it was is no reason to make another. */
	if (!sim_creators_at_work(a->world) || sim_owners_opened(a->world))
		options.flags &= ~(uint32_t)PERSEAS_CREATE;
	/* What another left is taken back by some, and completed by others. */
	if (!a->last && sim_rosters_find(a->world).next && sim_chance(a->world, schedule->cancels))
		options.flags |= PERSEAS_CANCEL;
	options.flags |= sim_operator_keeps_low(a->world) ? PERSEAS_LEVEL_0 : 0;
	options.acks = a->world->acks;
	options.log_size = schedule->log_size;
	options.ring_size = schedule->ring_size;
	options.commit_timeout_ms = schedule->commit_timeout_ms;
	options.connect_timeout_ms = schedule->connect_timeout_ms;
	options.open_timeout_ms = schedule->open_timeout_ms;
	options.pace_ms = schedule->pace_ms;
	options.mirror_timeout_ms = schedule->mirror_timeout_ms;
	options.spin_us = UINT32_MAX;
	if (schedule->nowait && a->world->seed % 8 == 1)
		options.flush_within_ms = 1 + (uint32_t)(a->world->seed % 40);
	options.gather_us = schedule->gather_us;
	options.gather_bytes = a->world->seed % 3 ? 0 : 1024 << a->world->seed / 3 % 4;
	if (schedule->tracks)
		options.flags |= PERSEAS_TRACKED;
	/* What is written is told of small segments only (written_sim.c). */
	if (schedule->heap)
		options.flags &= ~(uint32_t)PERSEAS_CHECK_WRITES;
	if (schedule->demand && (a->world->seed / 8 + a->owner->index) % 3)
		options.recovery = PERSEAS_RECOVERY_ON_DEMAND;
	if (a->owner->creates)
		sim_creators_list(a->world, a->owner, list, sizeof(list));
	else
		sim_operator_list(a->world, a->owner->index == 0, a->last, list);
	a->owner->told = false;
	if (sim_fillers_come(a->world) && a->owner->creates)
		rc = sim_fillers_open(a, list, &options, &error);
	else
		rc = ps_open(&a->owner->env, SIM_STORE, list, &options, &a->p, &error);
	if (rc && !a->owner->dead)
		count_refusal(a, rc, &error);
	if (rc || a->owner->dead)
		return rc;
	sim_trace(a->world, "owner %u: open, epoch %llu, transaction %llu", a->owner->index,
	          (unsigned long long)a->p->epoch, (unsigned long long)a->p->commit.seq);
	sim_count(a->world, SIM_OPENS, 1);
	sim_count(a->world, SIM_CHANGES_NEXT, strstr(perseas_report(a->p), "is completed") != NULL);
	sim_count(a->world, SIM_RAISES_NEXT,
	          a->p->roster->level && a->p->roster->raised_epoch == a->p->epoch);
	sim_count(a->world, SIM_CHANGES_BACK,
	          strstr(perseas_report(a->p), "is taken back") != NULL);
	a->owner->opened = true;
	a->owner->handle = a->p;
	if (sim_fillers_came_late(a))
		a->at = sim_oracle_apart(a->world);
	else if (!sim_stranger_misled(a->owner))
		a->at = sim_oracle_opened(a->world, a->p->epoch, a->p->commit.seq,
		                          &a->owner->confirmed);
	return 0;
}

/* --- segments --- */

static int map_new(struct sim_application *a)
{
	struct sim_world *w = a->world;
	unsigned i = (unsigned)sim_below(w, SIM_SEGMENTS);
	uint32_t size = (uint32_t)sim_between(w, 100, SIM_SEGMENT_MAX);
	void *addr;
	int rc;

	if (w->schedule->rivals || (w->schedule->destroys && sim_chance(w, 60)))
		size = USUAL_SIZE;
	if (w->schedule->grows && i != SIM_SEGMENTS - 1)
		size = SIM_PAGE;
	if (a->mapped[i].base || a->at->segments[i].present)
		return GO_ON;
	if (size == SIM_PAGE && a->owner->index % 2)
		rc = perseas_map_reserve(a->p, sim_segment_name(i), size, SIM_RANGE_MAX, &addr,
		                         NULL);
	else
		rc = sim_rivals_map(a, i, size, &addr);
	if (a->owner->dead || rc == PERSEAS_EFENCED)
		return LEAVE;
	if (rc == PERSEAS_EMIRRORMEM || rc == PERSEAS_EUNREACHABLE || rc == PERSEAS_EBLOCKED)
		return GO_ON;
	if (rc)
		return sim_unexpected(a, "map of a new segment", rc);
	a->mapped[i] = (struct mapped){ addr, size };
	sim_fill(w, addr, size);
	return GO_ON;
}

static int unmap(struct sim_application *a)
{
	unsigned i = (unsigned)sim_below(a->world, SIM_SEGMENTS);
	int rc;

	if (!a->mapped[i].base)
		return GO_ON;
	rc = sim_grown_unmap(a, i);
	if (a->owner->dead)
		return LEAVE;
	if (rc == PERSEAS_ECONFLICT && a->open)
		return GO_ON;
	if (rc)
		return sim_unexpected(a, "unmap", rc);
	sim_grown_forget(a, i);
	return a->at->segments[i].present ? map_published(a, i) : GO_ON;
}

static int destroy(struct sim_application *a)
{
	unsigned i = (unsigned)sim_below(a->world, SIM_SEGMENTS);
	int rc = 0;

	if (!a->at->segments[i].present)
		return GO_ON;
	if (a->mapped[i].base)
		rc = sim_grown_unmap(a, i);
	if (a->owner->dead)
		return LEAVE;
	if (rc == PERSEAS_ECONFLICT && a->open)
		return GO_ON;
	if (rc)
		return sim_unexpected(a, "unmap", rc);
	sim_grown_forget(a, i);
	rc = sim_work_destroy(a, i);
	return rc == GO_ON && a->at->segments[i].present ? map_published(a, i) : rc;
}

/* --- life --- */

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

/* Waits for what is in doubt; some owners lose patience. */
static int settle(struct sim_application *a)
{
	struct sim_world *w = a->world;

	for (int tries = 0; tries < FLUSH_TRIES && !a->owner->dead; tries++) {
		struct sim_node *at = a->at;
		bool doubt = a->p->commit.in_doubt != 0;
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

/* Segments come and go; one thread at a time is at it. */
static int change_segments(struct sim_application *a, uint64_t what)
{
	int rc;

	if (a->mapping || a->world->schedule->steady)
		return GO_ON;
	a->mapping = true;
	if (what == 0)
		rc = map_new(a);
	else if (what == 3)
		rc = destroy(a);
	else if (what == 4)
		rc = sim_work_grow(a, (unsigned)sim_below(a->world, SIM_SEGMENTS));
	else
		rc = what == 1 ? sim_work_publish(a) : unmap(a);
	a->mapping = false;
	return rc;
}

/* Looks at some memory, which may be missing. compare() looks whether it is right. */
static int touch(struct sim_application *a)
{
	struct sim_world *w = a->world;
	const struct mapped *m = &a->mapped[sim_below(w, SIM_SEGMENTS)];
	uint64_t start, end;
	int rc;

	if (!m->base || a->mapping)
		return GO_ON;
	start = (uint64_t)(uintptr_t)m->base + sim_below(w, m->size);
	end = (uint64_t)(uintptr_t)m->base + m->size;
	end = start + sim_between(w, 1, end - start);
	if (sim_chance(w, 20)) {
		perseas_prefetch(a->p, (const void *)start, end - start);
		return GO_ON;
	}
	rc = ps_demand_bring(a->p, start, end);
	if (rc == PERSEAS_EFENCED || a->owner->dead)
		return LEAVE;
	return rc ? sim_unexpected(a, "memory", rc) : GO_ON;
}

static int step(struct sim_application *a)
{
	uint64_t what = sim_below(a->world, 100);
	const unsigned often = sim_mistake_demands(a->world) ? 10 : 2;

	take_change_back(a, 2);
	if (a->owner->dead)
		return LEAVE;
	if (a->p->commit.in_doubt && sim_chance(a->world, 70))
		return settle(a);
	if (a->world->schedule->forges)
		return sim_forger_step(a);
	if (a->world->schedule->confirms && sim_chance(a->world, a->world->schedule->confirms))
		return sim_work_confirm(a);
	if (a->world->schedule->nowait && sim_chance(a->world, 25))
		return sim_work_ask(a);
	if (a->world->schedule->destroys && sim_chance(a->world, a->world->schedule->destroys))
		return change_segments(a, 3);
	if (a->world->schedule->grows && sim_chance(a->world, a->world->schedule->grows))
		return change_segments(a, 4);
	if (a->world->schedule->trims && sim_chance(a->world, a->world->schedule->trims))
		return sim_work_trim(a);
	if (what < 5)
		return change_segments(a, 0);
	if (what < 12)
		return change_segments(a, 1);
	if (what < 12 + often)
		return change_segments(a, 2);
	if (a->world->schedule->demand && sim_chance(a->world, 30))
		return touch(a);
	if (what < 15 + often)
		return settle(a);
	if (what < 25)
		return sim_work_two(a);
	return sim_work_one(a);
}

/* What each thread of the application does. */
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
			compare(a, i, "after a step");
		if (!a->open)
			sim_heap_check(a);
		if (!w->schedule->steady && sim_below(w, 200) == 0)
			break;
	}
	a->leaving = true;
}

static void work(struct sim_application *a)
{
	int rc = map_all(a);

	for (int i = 0; i < 3 && rc == GO_ON; i++)
		rc = map_new(a);
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
	/* Its keeper may be renewing the claims, and finishes that first. */
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

	while (try_open(a) && !a->owner->dead) {
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

/* All that was acknowledged can be had. */
static void wait_whole(struct sim_application *a)
{
	const int rc = perseas_wait_whole(a->p, 20000);

	if (rc)
		sim_fail(a->world, "at the end memory is missing: %s", perseas_message(a->p));
	for (unsigned i = 0; i < SIM_NAMED; i++)
		compare(a, i, "whole");
}

static void last(void *arg)
{
	struct sim_application *a = arg;
	struct sim_world *w = a->world;
	bool expected = sim_rosters_openable(w);
	int rc;

	sim_operator_drop_forks(w);
	a->owner->dead = w->schedule->over = sim_fillers_end(a->owner);
	if (a->owner->dead)
		return;
	rc = try_open(a);
	if (!rc && a->owner->dead) { /* it opened a stranger's image, and not the store */
		rc = PERSEAS_ENOSTORE;
		leave(a);
	}
	if (expected != !rc)
		sim_fail(w, "at the end the store %s be opened, and open says %s",
		         expected ? "can" : "cannot", perseas_error_name(rc));
	sim_count(w, SIM_BEYOND, rc != 0);
	if (!rc) {
		if (map_all(a) != GO_ON)
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
