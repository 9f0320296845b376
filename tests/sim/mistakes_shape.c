/*
 * mistakes_shape.c - the schedules that a mistake is looked for with.
 */
#include "mistakes.h"

#include "schedule.h"

/* Rosters change all the time. */
static void change_often(struct sim_schedule *schedule, unsigned *spares)
{
	*spares = 2;
	schedule->changes = 20;
	schedule->change_gap = 5 * SIM_MS;
}

/* Owners take over from each other all the time, cut off from some of the mirrors. */
static void be_busy(struct sim_schedule *schedule)
{
	schedule->takeover = 100;
	schedule->gap = 10 * SIM_MS;
	schedule->think = SIM_MS;
	schedule->faults = 60;
	schedule->splits = 40;
}

/* Makes the schedule busy and its rosters change often, and lets faults fall into those changes. */
static void aim_at_changes(struct sim_schedule *schedule, unsigned *spares)
{
	be_busy(schedule);
	change_often(schedule, spares);
	schedule->aimed = 80;
}

/* Lets owners commit so much that mirrors cannot follow, where one mirror is enough. */
static void hurry(struct sim_schedule *schedule)
{
	schedule->local = 0;
	schedule->left = 500;
	schedule->large = 60;
	schedule->ring_size = 65536;
	schedule->gap = 50 * SIM_MS;
	schedule->think = 20 * SIM_US;
	schedule->faults = 25;
	schedule->slow = 50;
	schedule->losses = 0;
}

/* Many small ones, faster than a mirror that is copied at the same time can follow; not more than
 * the oracle has names for. */
static void flood(struct sim_schedule *schedule)
{
	schedule->near = true;
	schedule->slow = 100;
	schedule->left = 3600;
	schedule->large = 0;
	schedule->steady = true;
	schedule->cancels = 0;
	schedule->ring_size = 1 << 20;
	schedule->think = 150 * SIM_US;
}

static void set_size(struct sim_world *w, unsigned *mirrors, unsigned n, unsigned acks)
{
	*mirrors = n;
	w->acks = acks;
}

/* Owners that begin a change and are gone, and others that take it back. */
static void take_back(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	set_size(w, mirrors, 2, 2);
	aim_at_changes(w->schedule, spares);
	w->schedule->losses = 0;
	w->schedule->cancels = 90;
}

/* Owners that do not know of each other give one id and seq to segments of one size. Nothing else
 * goes wrong, so that they live to copy to each other's mirrors. */
static void be_rivals(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *schedule = w->schedule;

	set_size(w, mirrors, 3, 2);
	*spares = schedule->changes = schedule->faults = 0;
	schedule->local = 0;
	schedule->takeover = 100;
	schedule->think = 60 * SIM_MS;
	schedule->rivals = 30;
	schedule->partings = 8;
	schedule->restless = w->seed % 4 == 0;
}

/* Shapes schedules for mistakes that show while rosters change, or when mirrors stop on purpose. */
static void shape_members(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *schedule = w->schedule;

	switch ((enum sim_mistake)w->mistake) {
	case SIM_MISTAKE_GONE:
		be_busy(schedule);
		change_often(schedule, spares);
		schedule->losses = 6;
		break;
	case SIM_MISTAKE_BEHIND:
		set_size(w, mirrors, 3, 2);
		be_busy(schedule);
		schedule->local = 0;
		schedule->slow = 50;
		schedule->think = 100 * SIM_US;
		change_often(schedule, spares);
		break;
	case SIM_MISTAKE_UNAWAITED:
		set_size(w, mirrors, 1, 1);
		flood(schedule);
		change_often(schedule, spares);
		break;
	case SIM_MISTAKE_UNTOUCHED:
		set_size(w, mirrors, 3, 3);
		aim_at_changes(schedule, spares);
		schedule->cancels = 0;
		break;
	case SIM_MISTAKE_JOINT_ANEW:
		set_size(w, mirrors, 3, 2);
		aim_at_changes(schedule, spares);
		schedule->losses = 6;
		schedule->cancels = 0;
		break;
	case SIM_MISTAKE_PARENT_BACK:
		set_size(w, mirrors, 3, 3);
		be_busy(schedule);
		*spares = schedule->changes = 0;
		schedule->stops = 50;
		schedule->aimed = 90;
		break;
	case SIM_MISTAKE_UNMARKED:
		take_back(w, mirrors, spares);
		break;
	case SIM_MISTAKE_ALONE:
	case SIM_MISTAKE_FEW_SEE:
	case SIM_MISTAKE_OLD_CLAIMS:
	case SIM_MISTAKE_LATE:
	case SIM_MISTAKE_VERSIONS:
		be_busy(schedule);
		schedule->local = 0;
		change_often(schedule, spares);
		break;
	case SIM_MISTAKE_OLD_ACKS:
	case SIM_MISTAKE_VOTES:
	case SIM_MISTAKE_UNFINISHED:
	case SIM_MISTAKE_UNCOMMITTED:
		change_often(schedule, spares);
		break;
	case SIM_MISTAKE_OLD_SPILL:
	case SIM_MISTAKE_TWO_LOADS:
	case SIM_MISTAKE_SPILLED_EARLY:
	case SIM_MISTAKE_SPILL_WINS:
		set_size(w, mirrors, 3, 2);
		*spares = schedule->changes = 0;
		schedule->stops = 50;
		schedule->faults = 60;
		schedule->losses = 6;
		break;
	default:
		break;
	}
}

static void shape_owners(struct sim_world *w, unsigned *mirrors)
{
	struct sim_schedule *schedule = w->schedule;

	switch ((enum sim_mistake)w->mistake) {
	case SIM_MISTAKE_FEW:
		set_size(w, mirrors, 3, 1);
		break;
	case SIM_MISTAKE_OTHER_BOOT:
	case SIM_MISTAKE_PUT_BACK:
		schedule->disks = true;
		set_size(w, mirrors, 3, 2);
		be_busy(schedule);
		schedule->losses = 6;
		break;
	case SIM_MISTAKE_FORGETS:
	case SIM_MISTAKE_KEYLESS:
		set_size(w, mirrors, 3, 2);
		be_busy(schedule);
		schedule->losses = 6;
		break;
	case SIM_MISTAKE_JUMP:
		set_size(w, mirrors, 1, 1);
		schedule->jumps = 50;
		schedule->faults = 20;
		break;
	case SIM_MISTAKE_OWN:
	case SIM_MISTAKE_CHANGED:
	case SIM_MISTAKE_UNCONFIRMED:
	case SIM_MISTAKE_KEPT:
		set_size(w, mirrors, 2, 2);
		be_busy(schedule);
		break;
	case SIM_MISTAKE_BLIND:
		set_size(w, mirrors, 1, 1);
		schedule->local = 100;
		break;
	case SIM_MISTAKE_SIGN:
	case SIM_MISTAKE_UNASKED:
		set_size(w, mirrors, 2, 1);
		be_busy(schedule);
		schedule->losses = 6;
		schedule->work = w->mistake == SIM_MISTAKE_SIGN ? 30 : 0;
		break;
	case SIM_MISTAKE_TOGETHER:
		set_size(w, mirrors, 3, 2);
		be_busy(schedule);
		break;
	case SIM_MISTAKE_PARTED:
		set_size(w, mirrors, 3, 2);
		be_busy(schedule);
		schedule->uniform = true;
		break;
	case SIM_MISTAKE_CONNECTED:
		set_size(w, mirrors, 2, 1);
		schedule->slow = 40;
		break;
	case SIM_MISTAKE_LAPPED:
		set_size(w, mirrors, 2, 1);
		hurry(schedule);
		break;
	case SIM_MISTAKE_DROPPED:
		set_size(w, mirrors, 2, 1);
		hurry(schedule);
		/* The mistake does harm if a mirror is dropped while it is told that its copy is
		 * whole, and the connection has not taken all bytes yet. */
		schedule->window = 1500;
		break;
	default:
		break;
	}
}

/* Memory comes slowly, and others claim all the time and go away. */
static void shape_renewals(struct sim_world *w, unsigned *mirrors)
{
	set_size(w, mirrors, 2, 2);
	be_busy(w->schedule);
	w->schedule->splits = 0;
	w->schedule->slow = 100;
	w->schedule->claimers = 90;
	w->schedule->losses = 4;
}

void sim_mistake_shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *schedule = w->schedule;

	/* Most need neither changes of the roster nor stops on purpose. */
	if (w->mistake && w->mistake <= SIM_MISTAKE_PLAIN)
		*spares = schedule->changes = schedule->stops = schedule->jumps = 0;
	schedule->disks = schedule->disks && !w->mistake;
	/* That a commit is late is no proof. */
	schedule->calm = schedule->calm && !w->mistake;
	shape_members(w, mirrors, spares);
	if (w->mistake == SIM_MISTAKE_UNDECLARED || w->mistake == SIM_MISTAKE_HELD_COPIED)
		change_often(schedule, spares);
	shape_owners(w, mirrors);
	if (w->mistake == SIM_MISTAKE_RENEWED)
		shape_renewals(w, mirrors);
	if (w->mistake == SIM_MISTAKE_ANY_NAME || w->mistake == SIM_MISTAKE_ANY_PUBLISH)
		be_rivals(w, mirrors, spares);
	if (!sim_mistake_creates(w))
		return;
	set_size(w, mirrors, w->seed % 2 ? 2 : 3, 2);
	*spares = schedule->changes = schedule->stops = 0;
	schedule->left = 10;
}
