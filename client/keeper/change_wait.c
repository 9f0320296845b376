/*
 * change_wait.c - perseas_roster: begins or takes back a change of the roster, and waits until the
 * keeper has carried that out. It must not move the change itself: change.c does.
 */
#include "change.h"
#include "exclusive.h"
#include "../core/mirror.h"
#include "../core/cancel.h"

#define FENCE_POLL ps_ms(500) /* a waiting thread checks this often whether the handle is fenced */

/* Waits until the change leaves stage `stage`, or until it is over if `stage` is NONE. Returns the
 * change's result, PERSEAS_ETIMEOUT if it continues, or PERSEAS_EFENCED. */
static int await_change(struct perseas *p, enum ps_change_stage stage, uint64_t until,
                        bool (*stop)(void))
{
	struct ps_change *c = &p->upkeep.change;
	int rc = 0;

	pthread_mutex_lock(&p->lock);
	while (stage == PS_CHANGE_NONE ? c->stage != stage : c->stage == stage) {
		rc = ps_is_fenced(p) ? ps_fail_fenced(p) : 0;
		if (!rc && (ps_now(p) >= until || (stop && stop())))
			rc = ps_fail(p, PERSEAS_ETIMEOUT, "the change is not over: %s", c->text);
		if (rc)
			break;
		p->commit.wait_line.waiting_count++;
		p->env->ops->wait(p->env, &p->commit.wait_line.changed, &p->lock,
		                  ps_now(p) + FENCE_POLL);
		p->commit.wait_line.waiting_count--;
	}
	if (!rc && stage == PS_CHANGE_NONE && c->result_code)
		rc = ps_fail(p, c->result_code, "%s", c->text);
	if (stage == PS_CHANGE_NONE)
		c->has_waiter = false;
	pthread_mutex_unlock(&p->lock);
	return rc;
}

bool ps_change_has_waiter(struct perseas *p)
{
	bool awaited;

	pthread_mutex_lock(&p->lock);
	awaited = p->upkeep.change.has_waiter;
	pthread_mutex_unlock(&p->lock);
	return awaited;
}

/* Takes back the change in progress, which another thread may be waiting for. */
static int cancel_change(struct perseas *p)
{
	char text[sizeof(p->upkeep.change.text)];
	int rc;

	ps_admin_enter(p);
	rc = ps_change_cancel(p, text, sizeof(text));
	if (rc)
		ps_fail(p, rc, "%s", text);
	ps_admin_leave(p);
	return rc ? rc : await_change(p, PS_CHANGE_CANCELLING, PS_NEVER, NULL);
}

/* Begins a change. No other change takes its place until this thread has returned its result. */
static int begin_change(struct perseas *p, const struct perseas_roster_change *change)
{
	struct ps_change *c = &p->upkeep.change;

	if (c->stage != PS_CHANGE_NONE)
		return ps_fail(p, PERSEAS_EBUSY, "another change of the roster is not over: %s",
		               c->text);
	if (ps_change_has_waiter(p))
		return ps_fail(p, PERSEAS_EBUSY,
		               "another thread waits for the end of its change of the roster: try "
		               "again");
	if (ps_change_begin(p, change, NULL))
		return ps_fail(p, c->result_code, "%s", c->text);
	pthread_mutex_lock(&p->lock);
	c->has_waiter = true;
	pthread_mutex_unlock(&p->lock);
	return 0;
}

int ps_roster_change_until(perseas_t *p, const struct perseas_roster_change *change, uint64_t until,
                           bool (*stop)(void))
{
	int rc;

	if (!p || !change)
		return ps_fail(p, PERSEAS_EINVAL, "roster needs a handle and a change");
	pthread_mutex_lock(&p->lock);
	rc = p->is_salvage || ps_is_fenced(p) ? ps_check_may_transact(p) : 0;
	pthread_mutex_unlock(&p->lock);
	if (rc)
		return rc;
	if (change->kind == PERSEAS_ROSTER_CANCEL)
		return cancel_change(p);
	ps_admin_enter(p);
	rc = begin_change(p, change);
	ps_admin_leave(p);
	return rc ? rc : await_change(p, PS_CHANGE_NONE, until, stop);
}

int perseas_roster(perseas_t *p, const struct perseas_roster_change *change)
{
	PS_UNCANCELLED;
	return ps_roster_change_until(p, change, PS_NEVER, NULL);
}
