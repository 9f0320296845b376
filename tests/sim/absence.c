/*
 * absence.c - schedules in which mirrors are away for longer than the owner's ring reaches, one
 * after the other, while all kinds of transactions go on. Some lose their memory and get
 * everything, the others what changed. Meanwhile a mirror may crash once more, all links may break,
 * and the owner may renew its claims; in a few schedules an owner dies while a mirror is away, and
 * the next one compares the mirror by digests. Only
 * these faults happen, so that most of what is left of a copy is sent by the same owner. In some
 * schedules operators order repairs, which must find nothing wrong. The oracle
 * looks at each image, byte for byte, when it counts again.
 */
#include "aim.h"

#include "../../client/core/handle.h"
#include "../../client/core/mirror.h"
#include "mirror.h"
#include "mistakes.h"
#include "process.h"
#include "schedule.h"

enum { MEMBERS = 3, RARE = 2, KILLS_MAX = 4, MISSED = 4, LOST = 30 };

#define LOOKS (500 * SIM_US)
#define BUSY (10 * SIM_MS)
#define IDLE (400 * SIM_MS) /* think time between a copy that broke and the next one */

enum step { STEP_HERE, STEP_AWAY, STEP_BACK };

struct absence {
	enum step step;
	struct sim_mirror *mirror; /* the one that is away */
	unsigned crashes;          /* while it is brought up to date, at most */
	unsigned kills;            /* of owners so far */
};

static void shape(struct sim_world *w, unsigned *mirrors, unsigned *spares)
{
	struct sim_schedule *s = w->schedule;
	const uint64_t kind = w->mistake ? w->seed : w->seed / (SIM_AIM_TURNS * RARE);

	*mirrors = MEMBERS;
	*spares = 0;
	w->acks = 1 + (kind / 2) % 2;
	sim_aim_quiet(s);
	s->cancels = 0;
	/* A mirror that missed a publish or a destroy is copied whole. */
	s->steady = w->mistake || kind % 3;
	s->left = 2000;
	s->think = BUSY;
	s->ring_size = 65536;
	s->window = 65536;
	s->packet = 1400;
	s->large = 40;
	s->patient = true;
	s->nowait = kind % 4 < 2 ? 0 : 60;
	s->gather_us = kind % 4 == 3 ? 5000 : 0;
	s->tracks = kind % 5 == 1 ? 50 : 0;
	/* A heap grows by publishing segments. */
	s->heap = kind % 5 != 1 && kind % 4 != 2;
	s->destroys = s->steady ? 0 : 4;
	s->grows = s->steady ? 0 : 4;
	s->demand = kind % 7 == 5;
}

/* Returns true if the ring no longer has all that the mirror missed. */
static bool is_behind_ring(const struct sim_owner *o, const struct ps_mirror *m)
{
	const struct ps_commit *commit = &o->handle->commit;

	return m->acked_seq && !ps_ring_can_replay(&commit->ring, m->acked_seq, commit->seq);
}

/* Returns how many owners die while a mirror is away, at most. */
static unsigned kills_of(const struct sim_world *w)
{
	const bool wanted = w->mistake ? w->mistake == SIM_MISTAKE_ANY_SLOT ||
	                                         w->mistake == SIM_MISTAKE_DIGEST_STALE
	                               : w->seed / (SIM_AIM_TURNS * RARE) % 4 == 3;

	return wanted ? KILLS_MAX : 0;
}

bool sim_absence_repairs(const struct sim_world *w)
{
	return w->mistake ? w->mistake == SIM_MISTAKE_REPAIR_UNSETTLED
	                  : sim_aim_is(w, &sim_absence_aim) &&
	                            w->seed / (SIM_AIM_TURNS * RARE) % 9 == 5;
}

/* Has the ring lose what the mirror missed, as if more had been committed meanwhile, if no other
 * mirror needs it. */
static void shorten_ring(struct sim_owner *o, const struct ps_mirror *m)
{
	struct perseas *p = o->handle;

	if (p->commit.in_doubt_seq || p->commit.has_gathered || p->is_renewing ||
	    p->commit.seq < m->acked_seq + MISSED)
		return;
	for (unsigned i = 0; i < p->mirror_count; i++)
		if (p->mirrors[i].is_active && p->mirrors[i].acked_seq != p->commit.seq)
			return;
	ps_ring_drop_all(&p->commit.ring, p->commit.seq + 1);
}

static void crash(struct absence *a, bool lost)
{
	sim_mirror_crash(a->mirror, false, lost);
	a->step = STEP_AWAY;
}

/* Something goes wrong while the mirror is brought up to date. */
static void disturb(struct sim_world *w, struct absence *a, struct sim_owner *o)
{
	a->crashes--;
	/* The owner commits nothing from now on: granules that this copy leaves due must not change
	 * again before the next copy. */
	w->schedule->think = IDLE;
	switch (sim_below(w, 4)) {
	case 0:
		o->handle->upkeep.renewal.is_wanted = true;
		crash(a, false);
		break;
	case 1:
		sim_aim_reset(o);
		break;
	default:
		crash(a, false);
		break;
	}
}

static void look_at(struct sim_world *w, struct absence *a, struct sim_owner *o)
{
	const struct ps_mirror *m = a->mirror ? sim_aim_mirror(o, a->mirror) : NULL;

	switch (a->step) {
	case STEP_HERE:
		a->mirror = w->mirrors[sim_below(w, MEMBERS)];
		a->crashes = (unsigned)sim_below(w, 4);
		crash(a, sim_chance(w, LOST));
		break;
	case STEP_AWAY:
		/* The next owner knows nothing of what this one changed. */
		if (w->acks == 2 && a->kills < kills_of(w) && sim_chance(w, 1)) {
			a->kills++;
			sim_owner_kill(o, false);
			break;
		}
		if (sim_chance(w, 50))
			shorten_ring(o, m);
		/* Sometimes the ring has all that it missed. */
		if (!is_behind_ring(o, m) && !sim_chance(w, 1))
			break;
		sim_mirror_start(a->mirror);
		/* A copy takes some milliseconds. */
		o->paths[a->mirror->index].byte_ns = 30;
		a->step = STEP_BACK;
		break;
	case STEP_BACK:
		if (m->state == PERSEAS_MIRROR_LIVE) {
			o->paths[a->mirror->index].byte_ns = 1;
			w->schedule->think = BUSY;
			a->step = STEP_HERE;
		} else if (m->state == PERSEAS_MIRROR_RESYNCING && a->crashes &&
		           o->handle->upkeep.resync.is_in_place &&
		           sim_chance(w, o->handle->upkeep.resync.sent_bytes ? 30 : 3))
			disturb(w, a, o);
		break;
	}
}

static void look(struct sim_world *w, void *arg, uint64_t ticket)
{
	struct absence *a = arg;
	struct sim_owner *o = sim_aim_owner(w, a->step == STEP_HERE ? MEMBERS : 0);

	(void)ticket;
	if (w->schedule->ending)
		return;
	if (o)
		look_at(w, a, o);
	else if (a->step == STEP_AWAY && w->acks == 1 && !sim_aim_owner(w, 0)) {
		/* The next owner needs all. */
		sim_mirror_start(a->mirror);
		a->step = STEP_BACK;
	}
	sim_at(w, w->now + LOOKS, look, a, 0);
}

static void begin(struct sim_world *w)
{
	sim_at(w, w->now + 700 * SIM_MS, look, sim_alloc(w, sizeof(struct absence)), 0);
}

const struct sim_aim sim_absence_aim = {
	.turn = 0,
	.rare = RARE,
	.mistakes = { SIM_MISTAKE_UNMARKED_SPAN, SIM_MISTAKE_MARKED_EARLY, SIM_MISTAKE_ANY_SLOT,
	              SIM_MISTAKE_HALF_IS_BASE, SIM_MISTAKE_LISTED_EARLY, SIM_MISTAKE_DUE_DROPPED,
	              SIM_MISTAKE_DIGEST_STALE, SIM_MISTAKE_REPAIR_UNSETTLED },
	.shape = shape,
	.begin = begin,
};
