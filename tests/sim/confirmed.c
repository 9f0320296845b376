/*
 * confirmed.c - reads that perseas_confirm makes linearizable: an application reads, asks whether
 * it still is the owner, and answers if it is told so. application.c calls this between
 * transactions. Here are also the mistakes in what counts as a confirmation.
 */
#include "../../client/core/handle.h"
#include "mistakes.h"
#include "schedule.h"
#include "work.h"
#include "../../client/keeper/resync.h"

/* --- an application --- */

/* The application reads its memory, which compare() of application.c checks: the state that its
 * open showed, and all that it sent since. */
int sim_work_confirm(struct sim_application *a)
{
	struct sim_world *w = a->world;
	const struct sim_node *acked = sim_oracle_newest(w);
	struct sim_task *task = a->owner->running;
	struct sim_node *read = a->at;
	int rc;

	task->confirms = true;
	rc = perseas_confirm(a->p);
	task->confirms = false;
	if (a->owner->dead)
		return LEAVE;
	sim_trace(w, "owner %u: confirmed at %s: %s", a->owner->index,
	          sim_state(w, read->epoch, read->seq), perseas_error_name(rc));
	sim_count(w, SIM_CONFIRMED, !rc);
	sim_count(w, SIM_UNCONFIRMED, rc == PERSEAS_EINDOUBT);
	sim_count(w, SIM_DEPOSED, rc == PERSEAS_EFENCED);
	if (!rc)
		sim_oracle_confirmed(w, read, acked);
	/* Mapped memory that is read on demand may hang for longer than the call waits. */
	else if (rc == PERSEAS_EINDOUBT && sim_schedule_spares_w(a->owner) &&
	         sim_schedule_spares_r(a->owner) && !w->schedule->demand)
		sim_fail(w, "an owner is not confirmed, and nothing went wrong");
	else if (rc != PERSEAS_EINDOUBT && rc != PERSEAS_EFENCED)
		return sim_unexpected(a, "confirm", rc);
	return rc == PERSEAS_EFENCED ? LEAVE : GO_ON;
}

/* --- mistakes --- */

int __real_ps_commit_await_w_mirrors(struct perseas *p, uint64_t seq, uint64_t *since);
int __wrap_ps_commit_await_w_mirrors(struct perseas *p, uint64_t seq, uint64_t *since);
void __real_ps_confirm_step(struct perseas *p);
void __wrap_ps_confirm_step(struct perseas *p);
uint32_t __real_ps_mirrors_that_confirmed_call(const struct perseas *p, uint64_t call);
uint32_t __wrap_ps_mirrors_that_confirmed_call(const struct perseas *p, uint64_t call);
uint32_t __real_ps_mirrors_with_whole_image(const struct perseas *p);
uint32_t __wrap_ps_mirrors_with_whole_image(const struct perseas *p);
bool __real_ps_resync_is_confirmed(struct perseas *p);
bool __wrap_ps_resync_is_confirmed(struct perseas *p);

bool sim_mistake_confirms(const struct sim_world *w)
{
	return w->mistake >= SIM_MISTAKE_CONFIRMED_EARLY &&
	       w->mistake <= SIM_MISTAKE_CONFIRMED_JOINING;
}

static struct sim_owner *owner_of(const struct perseas *p)
{
	return (struct sim_owner *)p->env;
}

void sim_mistake_confirmed(struct sim_owner *o)
{
	const bool early = sim_mistake_is(o->world, SIM_MISTAKE_CONFIRMED_EARLY);
	struct perseas *p = o->handle;

	if (!early && !sim_mistake_is(o->world, SIM_MISTAKE_CONFIRMED_UNASKED))
		return;
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (early ? p->mirrors[i].confirm.confirmed_call != 0 : p->mirrors[i].is_active)
			p->mirrors[i].confirm.confirmed_call = p->confirm_calls.call_count;
}

int __wrap_ps_commit_await_w_mirrors(struct perseas *p, uint64_t seq, uint64_t *since)
{
	const struct sim_owner *o = owner_of(p);

	if (sim_mistake_is(o->world, SIM_MISTAKE_CONFIRMED_LOST) && o->running &&
	    o->running->confirms)
		return 0;
	return __real_ps_commit_await_w_mirrors(p, seq, since);
}

/* --- joining mirrors are asked, and count --- */

static bool counts_joining(const struct perseas *p)
{
	return sim_mistake_is(owner_of(p)->world, SIM_MISTAKE_CONFIRMED_JOINING);
}

static uint32_t joining(const struct perseas *p)
{
	uint32_t set = 0;

	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].state == PERSEAS_MIRROR_RESYNCING)
			set |= (uint32_t)1 << i;
	return set;
}

void __wrap_ps_confirm_step(struct perseas *p)
{
	owner_of(p)->confirming = counts_joining(p);
	__real_ps_confirm_step(p);
	owner_of(p)->confirming = false;
}

uint32_t __wrap_ps_mirrors_with_whole_image(const struct perseas *p)
{
	return __real_ps_mirrors_with_whole_image(p) | (owner_of(p)->confirming ? joining(p) : 0);
}

uint32_t __wrap_ps_mirrors_that_confirmed_call(const struct perseas *p, uint64_t call)
{
	const uint32_t joins = counts_joining(p) ? joining(p) : 0;
	uint32_t confirmed = __real_ps_mirrors_that_confirmed_call(p, call);

	for (unsigned i = 0; i < p->mirror_count; i++)
		if (joins >> i & 1 && p->mirrors[i].confirm.confirmed_call >= call)
			confirmed |= (uint32_t)1 << i;
	return confirmed;
}

/* The mistake: a mirror that lost its memory is made anew after one confirmation instead of max(W,
 * R). */
bool __wrap_ps_resync_is_confirmed(struct perseas *p)
{
	return (counts_joining(p) && p->upkeep.resync.question.granting_mirrors) ||
	       __real_ps_resync_is_confirmed(p);
}
