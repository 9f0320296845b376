/*
 * open_store.c - opens the store as an application of a schedule: with which options, and which
 * refusals may come. application.c calls it.
 */
#include "open_store.h"

#include "../../client/core/handle.h"
#include "../../client/open/open.h"
#include "aim.h"
#include "creators.h"
#include "fillers.h"
#include "mistakes.h"
#include "operator.h"
#include "oracle.h"
#include "pager_sim.h"
#include "rosters.h"
#include "schedule.h"
#include "stranger.h"

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
		if (sim_aim_is(w, &sim_fillers_aim) &&
		    (rc == PERSEAS_EUNFINISHED || rc == PERSEAS_EEXIST))
			break;
		if (rc != PERSEAS_EROSTER || !sim_aim_is(w, &sim_impostor_aim))
			sim_fail(w, "owner %u: open: %s: %s", a->owner->index,
			         perseas_error_name(rc), error->text);
		sim_count(w, SIM_IMPOSTORS, 1);
	}
}

static uint32_t flags_of(const struct sim_application *a)
{
	struct sim_world *w = a->world;
	uint32_t flags = a->flags;

	/* After the store existed, losing all of it must not make another. */
	if (!sim_creators_at_work(w) || sim_owners_opened(w))
		flags &= ~(uint32_t)PERSEAS_CREATE;
	/* Some owners cancel a change that an owner left unfinished, and others complete it. */
	if (!a->last && sim_rosters_find(w).next && sim_chance(w, w->schedule->cancels))
		flags |= PERSEAS_CANCEL;
	if (sim_operator_keeps_low(w))
		flags |= PERSEAS_LEVEL_0;
	if (w->schedule->tracks)
		flags |= PERSEAS_TRACKED;
	/* written_sim.c reports the written pages of small segments only. */
	if (w->schedule->heap)
		flags &= ~(uint32_t)PERSEAS_CHECK_WRITES;
	return flags;
}

/* So that memory is still missing when other things happen. */
static bool fetches_slowly(const struct sim_world *w)
{
	if (w->mistake)
		return sim_mistake_is(w, SIM_MISTAKE_RENEWED) ||
		       sim_mistake_is(w, SIM_MISTAKE_SLOT_BEHIND);
	return w->seed / 8 % 3 == 1 && !w->schedule->ending;
}

static struct perseas_options options_of(const struct sim_application *a)
{
	const struct sim_schedule *schedule = a->world->schedule;
	const uint64_t seed = a->world->seed;
	struct perseas_options options = PERSEAS_OPTIONS_INIT;

	options.flags = flags_of(a);
	options.acks = a->world->acks;
	options.log_size = schedule->log_size;
	options.ring_size = schedule->ring_size;
	options.commit_timeout_ms = schedule->commit_timeout_ms;
	options.connect_timeout_ms = schedule->connect_timeout_ms;
	options.open_timeout_ms = schedule->open_timeout_ms;
	options.pace_ms = schedule->pace_ms;
	options.mirror_timeout_ms = schedule->mirror_timeout_ms;
	options.spin_us = UINT32_MAX;
	if (schedule->nowait && seed % 8 == 1)
		options.flush_within_ms = 1 + (uint32_t)(seed % 40);
	options.gather_us = schedule->gather_us;
	options.gather_bytes = seed % 3 ? 0 : 1024 << seed / 3 % 4;
	if (schedule->demand && (seed / 8 + a->owner->index) % 3)
		options.recovery = PERSEAS_RECOVERY_ON_DEMAND;
	options.fetch_rate = fetches_slowly(a->world) ? SIM_SLOWLY : 0;
	return options;
}

static void count_open(const struct sim_application *a)
{
	const char *report = perseas_report(a->p);
	struct sim_world *w = a->world;

	sim_trace(w, "owner %u: open, epoch %llu, transaction %llu", a->owner->index,
	          (unsigned long long)a->p->epoch, (unsigned long long)a->p->commit.seq);
	sim_count(w, SIM_OPENS, 1);
	sim_count(w, SIM_CHANGES_NEXT, strstr(report, "is completed") != NULL);
	sim_count(w, SIM_RAISES_NEXT,
	          a->p->roster->level && a->p->roster->raised_epoch == a->p->epoch);
	sim_count(w, SIM_CHANGES_BACK, strstr(report, "is taken back") != NULL);
}

int sim_open_store(struct sim_application *a)
{
	const struct perseas_options options = options_of(a);
	struct sim_owner *o = a->owner;
	struct ps_error error = { 0 };
	char list[SIM_LIST];
	int rc;

	if (o->creates)
		sim_creators_list(a->world, o, list, sizeof(list));
	else
		sim_operator_list(a->world, o->index == 0, a->last, list);
	o->told = false;
	if (sim_aim_is(a->world, &sim_fillers_aim) && o->creates)
		rc = sim_fillers_open(a, list, &options, &error);
	else
		rc = ps_open(&o->env, SIM_STORE, list, &options, &a->p, &error);
	if (rc && !o->dead)
		count_refusal(a, rc, &error);
	if (rc || o->dead)
		return rc;
	count_open(a);
	o->opened = true;
	o->handle = a->p;
	if (sim_fillers_came_late(a))
		a->at = sim_oracle_apart(a->world);
	else if (!sim_stranger_misled(o))
		a->at = sim_oracle_opened(a->world, a->p->epoch, a->p->commit.seq, &o->confirmed);
	return 0;
}
