/*
 * schedule.h - what happens in a seed: how many mirrors, how large everything is, and which
 * faults come when.
 */
#ifndef PERSEAS_SIM_SCHEDULE_H
#define PERSEAS_SIM_SCHEDULE_H

#include "world.h"

/* The state of a mirror's cable (cable.h). */
struct sim_cable {
	bool out;
	unsigned loss; /* percent of chains, and of reads, that break their link */
};

struct sim_schedule {
	/* The situation that it aims at (aim.h), or NULL. */
	const struct sim_aim *aim;

	/* Drawn at the beginning. */
	uint64_t log_size, ring_size;
	uint32_t commit_timeout_ms, connect_timeout_ms, open_timeout_ms;
	uint32_t pace_ms;           /* UINT32_MAX: off */
	uint32_t mirror_timeout_ms; /* UINT32_MAX: off */
	unsigned alarms;   /* percent of looks at a mirror that find it silent though it is not */
	unsigned takeover; /* percent of opens that ask for it */
	unsigned local;    /* percent of pairs that share memory */
	bool near;         /* the first mirror does with all owners, and no other */
	unsigned large;    /* percent of transactions that are large */
	unsigned threads;  /* percent of owners with two threads */
	unsigned slow;     /* percent of pairs that are slow */
	uint64_t think;    /* ns between operations, at most */
	uint64_t gap;      /* ns between faults, at most */
	uint64_t window, packet; /* of data connections */
	unsigned losses;         /* of memory, at most */
	unsigned faults;         /* at most */
	bool calm;               /* no faults; creators may meet trouble (creators.h) */
	unsigned splits;         /* percent of them that part two owners, each with its mirrors */
	unsigned claimers;       /* percent of them that are claimers which soon die */
	unsigned stops;          /* percent of them that stop mirrors on purpose */
	bool held;               /* requests wait for sim_long_end */
	unsigned work;           /* percent of requests that take a mirror long */
	unsigned jumps;          /* percent of them that are a stranger's claims */
	bool disks;              /* memory that is lost comes back, as it once was */
	unsigned aimed;          /* percent of faults during a change that aim at it */
	uint64_t change_gap;     /* ns between changes of the roster, at most */
	unsigned cancels;        /* percent of opens that cancel a change */
	bool uniform;            /* transactions are all of one size */
	bool steady;             /* segments neither come nor go, and no owner just leaves */
	bool patient;            /* no owner leaves because a commit stays in doubt */
	bool cabled;             /* mirrors are reached over cables first */
	bool forges;             /* undo records are stored as data (forger.c) */
	bool apart;              /* the library keeps most transactions apart */
	bool demand;             /* memory is fetched on demand, by most owners */
	bool direct_link;        /* live mirrors' memory is fetched by the links of commits */
	unsigned poor;           /* percent of fills for which there is not memory enough, or 0 */
	unsigned confirms;       /* percent of steps in which an owner asks whether it is one */
	unsigned nowait;         /* percent of commits that are not awaited */
	bool heap;               /* applications have one */
	unsigned trims;          /* percent of steps in which it gives segments back, or 0 */
	uint32_t gather_us;      /* for how long these are held back */
	unsigned tracks;         /* percent of transactions that declare nothing, or 0 */
	unsigned destroys;       /* percent of steps that destroy a segment, or 0 */
	unsigned grows;          /* percent of steps in which a segment grows, or 0 */
	unsigned rivals;         /* percent of changes of segments that part their owner */
	bool restless;           /* no owner pauses between operations */

	/* Counters of the running schedule. */
	unsigned changes;                      /* of rosters, at most */
	unsigned left;                         /* operations of owners, over all of them */
	bool ending;                           /* no more of them */
	uint64_t unreachable[SIM_MIRRORS_MAX]; /* until when; 0: it is not */
	struct sim_cable cables[SIM_MIRRORS_MAX];
	unsigned partings;                         /* of rivals, at most */
	uint64_t parted_until;                     /* two rivals are */
	struct sim_mirror *leads[SIM_MIRRORS_MAX]; /* whom its address leads to; NULL: itself */
	bool over;
};

/* Parts the network for `time` ns: one side has the owner, and mirror i unless bit i of `without`
 * is set, the other side has the rest and another owner, which begins now. Does nothing while
 * there are owners enough. */
void sim_schedule_split(struct sim_world *w, struct sim_owner *o, uint64_t without, uint64_t time);

/* Starts an owner that creates the store. Returns false if the schedule is about to end, or has no
 * room for an owner. */
bool sim_schedule_creator(struct sim_world *w);

/* Returns true if the schedule is calm, and every link can carry a ring, its undo records and its
 * data, in the time that a commit waits. A window of bytes takes up to 600 us. */
static inline bool sim_schedule_is_prompt(const struct sim_schedule *s)
{
	return s->calm && s->commit_timeout_ms * s->window / 600 * 1000 >= 2 * s->ring_size;
}

/* sim_schedule_spares_w returns true if the schedule is prompt, and W members of each roster that
 * the owner goes by met no trouble: no commit of the owner may be in doubt. sim_schedule_spares_r
 * asks the same of R members; with both, perseas_confirm must confirm the owner. */
bool sim_schedule_spares_w(const struct sim_owner *o);
bool sim_schedule_spares_r(const struct sim_owner *o);

/* Runs the schedule of a seed to its end. */
void sim_schedule_run(struct sim_world *w, uint64_t seed);

#endif
