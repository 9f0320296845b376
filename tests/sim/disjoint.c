/*
 * disjoint.c - the schedules of disjoint.h. Paths are blocked, so that what is under way arrives
 * when they are open again, or never where a connection has ended by then.
 */
#include "disjoint.h"

#include "../../client/keeper/change.h"
#include "../../client/open/open.h"
#include "../../server/store/store_private.h"
#include "aim.h"
#include "creators.h"
#include "mirror.h"
#include "mixed.h"
#include "mistakes.h"
#include "schedule.h"

enum { EVERY = 32, MEMBERS = 4, LEAVES = 3, NEW = 4, ALL = 5 };

/* The mirrors that only one of the two owners reaches; both reach the new one. */
enum { BEFORE_ONLY = 1 << 1 | 1 << 2, OTHER_ONLY = 1 << 0 | 1 << LEAVES };

#define LOOKS (20 * SIM_US)
#define DELAY (50 * SIM_US)    /* of all messages: more than between two looks */
#define WITHIN (1000 * SIM_MS) /* the other owner has adopted */
#define APART (1500 * SIM_MS)  /* enough to make the new mirror anew, to settle and to commit */

struct disjoint {
	struct sim_owner *before, *other;
	uint64_t until;
};

static bool is_for_it(const struct sim_world *w)
{
	return w->mistake == SIM_MISTAKE_JOINT_UNASKED ||
	       (!w->mistake && !sim_is_mixed(w) && w->seed % EVERY == 2 && !sim_creators_count(w));
}

void sim_disjoint_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	if (!is_for_it(w))
		return;
	*mirrors = MEMBERS;
	*spares = 1;
	w->acks = 3;
	s->faults = s->losses = s->jumps = s->slow = s->local = s->changes = s->stops = 0;
	s->work = s->cancels = s->nowait = s->gather_us = 0;
	s->calm = s->near = s->disks = false;
	s->steady = true;
	s->left = 1000;
	s->think = 20 * SIM_MS;
	/* Neither owner gives up what it waits for meanwhile. */
	s->commit_timeout_ms = s->open_timeout_ms = 4000;
	s->mirror_timeout_ms = UINT32_MAX;
}

static void block(struct sim_owner *o, unsigned mirrors, bool blocked)
{
	for (unsigned i = 0; i < ALL; i++) {
		if (!(mirrors >> i & 1))
			continue;
		sim_path_block(&o->paths[i], SIM_OUT, blocked);
		sim_path_block(&o->paths[i], SIM_IN, blocked);
	}
}

static bool is_over(const struct sim_world *w, const struct disjoint *d)
{
	return w->schedule->ending || !sim_aim_is_open(d->before);
}

static void end(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct disjoint *d = arg;

	(void)ticket;
	sim_owner_kill(d->before, false);
	for (unsigned i = 0; i < w->owner_count; i++)
		block(w->owners[i], BEFORE_ONLY | OTHER_ONLY | 1 << NEW, false);
}

/* The new mirror forgets what it promised to the other owner, which is gone. */
static void lose(struct sim_world *w, struct disjoint *d)
{
	sim_trace(w, "mirrors 0 and %u are adopted on, and the new mirror loses its memory",
	          LEAVES);
	sim_count(w, SIM_DISJOINT, 1);
	sim_owner_kill(d->other, false);
	sim_mirror_crash(w->mirrors[NEW], false, true);
	sim_mirror_start(w->mirrors[NEW]);
	block(d->before, BEFORE_ONLY | 1 << NEW, false);
	sim_at(w, w->now + APART, end, d, 0);
}

static bool is_adopted(const struct disjoint *d, const struct sim_mirror *m)
{
	return m->at_epoch > d->before->handle->epoch;
}

static void await_adoption(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct disjoint *d = arg;

	(void)ticket;
	if (is_over(w, d) || w->now > d->until)
		end(w, d, 0);
	else if (is_adopted(d, w->mirrors[0]) && is_adopted(d, w->mirrors[LEAVES]))
		lose(w, d);
	else
		sim_at(w, w->now + LOOKS, await_adoption, d, 0);
}

static void other_opens(void *arg)
{
	struct disjoint *d = arg;
	struct sim_world *w = d->other->world;
	const struct sim_schedule *s = w->schedule;
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct ps_error error = { 0 };
	char list[3 * sizeof(w->mirrors[0]->address)];
	perseas_t *p;
	int rc;

	snprintf(list, sizeof(list), "%s,%s,%s", w->mirrors[0]->address,
	         w->mirrors[LEAVES]->address, w->mirrors[NEW]->address);
	options.flags = PERSEAS_TAKEOVER;
	options.log_size = s->log_size;
	options.ring_size = s->ring_size;
	options.connect_timeout_ms = s->connect_timeout_ms;
	options.open_timeout_ms = s->open_timeout_ms;
	options.spin_us = UINT32_MAX;
	rc = ps_open(&d->other->env, SIM_STORE, list, &options, &p, &error);
	sim_trace(w, "the other owner: open: %s: %s", perseas_error_name(rc), error.text);
	if (!rc)
		perseas_close(p);
	d->other->dead = true;
}

static void start_other(struct sim_world *w, struct disjoint *d)
{
	d->other = sim_owner_new(w, other_opens, d);
	for (unsigned i = 0; i < ALL; i++)
		d->other->paths[i].delay = d->other->paths[i].jitter = DELAY;
	block(d->other, BEFORE_ONLY, true);
	d->until = w->now + WITHIN;
	await_adoption(w, d, 0);
}

/* Only the new mirror hears that both rosters count. */
static void await_joint(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct disjoint *d = arg;
	const struct store *store = store_find(w->mirrors[NEW]->stores, SIM_STORE);
	const struct perseas *p = d->before->handle;

	(void)ticket;
	if (is_over(w, d))
		return;
	if (p->next_roster)
		block(d->before, BEFORE_ONLY | OTHER_ONLY, true);
	if (store && store->header->next_roster) {
		block(d->before, 1 << NEW, true);
		start_other(w, d);
		return;
	}
	if (!p->next_roster && p->upkeep.change.stage == PS_CHANGE_NONE)
		return;
	sim_at(w, w->now + LOOKS, await_joint, d, 0);
}

static void change(struct sim_world *w, void *arg, uint64_t ticket)
{
	const struct perseas_roster_change wanted = {
		.kind = PERSEAS_ROSTER_REPLACE,
		.address = w->mirrors[LEAVES]->address,
		.with = w->mirrors[NEW]->address,
	};
	struct disjoint *d = arg;
	struct perseas *p;

	(void)ticket;
	if (w->schedule->ending)
		return;
	d->before = sim_aim_owner(w, MEMBERS);
	if (!d->before || d->before->handle->admin) {
		sim_at(w, w->now + SIM_MS, change, d, 0);
		return;
	}
	for (unsigned i = 0; i < ALL; i++)
		d->before->paths[i].delay = d->before->paths[i].jitter = DELAY;
	p = d->before->handle;
	p->admin = true;
	if (ps_change_begin(p, &wanted, NULL))
		sim_trace(w, "no change is begun: %s", p->upkeep.change.text);
	p->admin = false;
	p->env->ops->wake(p->env, PS_KEEPER);
	await_joint(w, d, 0);
}

void sim_disjoint_begin(struct sim_world *w)
{
	if (is_for_it(w))
		sim_at(w, w->now + sim_between(w, 100, 2000) * SIM_MS, change,
		       sim_alloc(w, sizeof(struct disjoint)), 0);
}
