/*
 * disjoint.c - schedules in which two owners may complete a change of the roster with disjoint
 * mirrors. A mirror of four is replaced, W = 3, and both rosters count. The other owner claims
 * the new mirror and the two members that the owner of the change does not reach, and adopts on
 * those. Then the new mirror loses its memory. What the owner of the change acknowledges through
 * it must be in the state of later opens. Only faults of this file happen in these schedules.
 *
 * Paths are blocked, so that what is under way arrives when they are open again, or never where
 * a connection has ended by then.
 */
#include "aim.h"

#include "../../client/core/handle.h"
#include "../../server/store/store_private.h"
#include "mirror.h"
#include "mistakes.h"
#include "schedule.h"

enum { MEMBERS = 4, LEAVES = 3, NEW = 4, ALL = 5 };

/* The mirrors that only one of the two owners reaches; both reach the new one. */
enum { BEFORE_ONLY = 1 << 1 | 1 << 2, OTHER_ONLY = 1 << 0 | 1 << LEAVES };

#define LOOKS (20 * SIM_US)
#define DELAY (50 * SIM_US)    /* of all messages: more than between two looks */
#define WITHIN (1000 * SIM_MS) /* the other owner has adopted */
/* enough to make the new mirror's image, to settle the roster and to commit */
#define APART (1500 * SIM_MS)

struct disjoint {
	struct sim_owner *before, *other;
	uint64_t until;
};

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;

	*mirrors = MEMBERS;
	*spares = 1;
	w->acks = 3;
	sim_aim_quiet(s);
	s->cancels = s->nowait = s->gather_us = 0;
	/* Timeouts are so long that neither owner gives up meanwhile. */
	s->commit_timeout_ms = s->open_timeout_ms = 4000;
	s->mirror_timeout_ms = UINT32_MAX;
}

static void block(struct sim_owner *o, unsigned mirrors, bool blocked)
{
	for (unsigned i = 0; i < ALL; i++)
		if (mirrors >> i & 1)
			sim_path_block(&o->paths[i], blocked, blocked);
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

/* Lets the new mirror lose the promise that it made to the other owner, which is gone. */
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
	char list[3 * sizeof(w->mirrors[0]->address)];
	perseas_t *p;

	snprintf(list, sizeof(list), "%s,%s,%s", w->mirrors[0]->address,
	         w->mirrors[LEAVES]->address, w->mirrors[NEW]->address);
	if (!sim_aim_take_over(d->other, "the other owner", list, &p))
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

/* Waits until both rosters count; only the new mirror hears that. */
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

	(void)ticket;
	if (w->schedule->ending)
		return;
	d->before = sim_aim_owner(w, MEMBERS);
	if (!d->before || d->before->handle->is_admin_taken) {
		sim_at(w, w->now + SIM_MS, change, d, 0);
		return;
	}
	for (unsigned i = 0; i < ALL; i++)
		d->before->paths[i].delay = d->before->paths[i].jitter = DELAY;
	sim_aim_change(d->before, &wanted);
	await_joint(w, d, 0);
}

static void begin(struct sim_world *w)
{
	sim_at(w, w->now + sim_between(w, 100, 2000) * SIM_MS, change,
	       sim_alloc(w, sizeof(struct disjoint)), 0);
}

const struct sim_aim sim_disjoint_aim = {
	.turn = 2,
	.mistakes = { SIM_MISTAKE_JOINT_UNASKED },
	.shape = shape,
	.begin = begin,
};
