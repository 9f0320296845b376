/*
 * handle.h - what a handle is made of, for the files of the library.
 *
 * Locks: `lock` guards everything that commits touch, and is never held across a call that
 * blocks. Work that talks to mirrors outside the data path (open, map, publish, the
 * keeper) is serialised by `admin`, a flag rather than a lock since such work sleeps; work that
 * also needs the links for itself raises `gate`, which holds commits back.
 */
#ifndef PERSEAS_CLIENT_HANDLE_H
#define PERSEAS_CLIENT_HANDLE_H

#include "cover.h"
#include "env.h"
#include "error.h"
#include "fabric.h"
#include "ring.h"
#include "../proto/envelope.h"
#include "../proto/image.h"
#include "../proto/latency.h"

#include <pthread.h>
#include <stdbool.h>

struct ps_segment {
	uint32_t id;
	char name[PS_NAME_MAX + 1];
	uint64_t size;
	uint64_t address; /* where every owner maps it */
	uint64_t born;    /* seq that published it, 0: none yet */
	uint8_t *base;    /* mapped here, else NULL */
	uint64_t left;    /* seq when it was last unmapped here */
	uint8_t *shadow;  /* its committed contents (PERSEAS_CHECK_WRITES), else NULL */
};

/* The mapped segments by address, for set_range. Never changed once it is seen: a change makes
 * a new one, and the old ones are kept until the handle is closed. */
struct ps_layout {
	struct ps_layout *older;
	unsigned count;
	struct ps_extent_of {
		uint64_t start, end;
		uint32_t segment; /* id */
		bool published;
	} segments[];
};

/* Where a mirror's image stands in history. */
struct ps_standing {
	uint64_t epoch, seq, next, last;
	int index; /* the slot that counts */
};

/* What an attempt to open knows about a mirror. */
struct ps_found {
	int code;                /* 0: it has the store; else PERSEAS_E… */
	struct ps_error error;   /* with code */
	Perseas__Header *header; /* as it was told last */
	struct ps_standing at;
	bool live;       /* it has a live owner */
	char owner[128]; /* where that owner is */
	bool claimed;
	bool counts;    /* towards R */
	bool candidate; /* its state may be chosen */
	bool good;      /* holds the chosen state under this epoch */
	bool listed;    /* a roster lists its image, or the one it was loaded from */
};

/* The mirror that is being copied whole while transactions go on: one at a time (resync.c). */
struct ps_resync {
	struct ps_mirror *mirror; /* NULL: none */
	uint64_t seq;             /* where it began: what is born later comes with its publish */
	uint32_t segment;         /* id that the next chunk is of .. */
	uint64_t offset;          /* .. and where */
	uint64_t done, total;     /* bytes */
	bool ours;                /* the image was this owner's already */
	bool begun;               /* a chunk was posted, and with it the slot */
	uint64_t until;           /* seq up to which the last chunk may hold transactions */
	bool awaited;             /* all is copied, and completions are waited for */
	uint64_t next_at;         /* not before, for the rate's sake */
};

enum ps_change_stage {
	PS_CHANGE_NONE,
	PS_CHANGE_COPYING,  /* the new mirror is made, without a vote */
	PS_CHANGE_JOINT,    /* both rosters count, and the mirrors are told so */
	PS_CHANGE_SETTLING, /* the new one counts, and the mirrors are told so */
};

/* The change of the roster that goes on, or that was the last (change.c). */
struct ps_change {
	enum ps_change_stage stage;
	uint8_t id[PS_ID_SIZE];      /* of the order that asks for it; all zero: asked for here */
	struct ps_mirror *old, *new; /* that leaves, that joins; or NULL */
	bool gone;                   /* .. for good: no open can be through it */
	bool leaves;       /* a member leaves, which need not be a mirror of this handle */
	char address[256]; /* its address */
	uint32_t acks;     /* W afterwards */
	uint64_t seq;      /* what W of the new roster must hold before it counts alone */
	uint64_t until;    /* the new mirror must be at work by then */
	uint64_t next_at;  /* mirrors are told again */
	int code;          /* stage NONE: 0 or why it was refused */
	char text[256];    /* how far it is, or why it was refused */
};

/* A roster in terms of the handle's mirrors. */
struct ps_quorum {
	uint32_t set;           /* bit i: mirrors[i] is a member */
	unsigned members, acks; /* n, W */
};

struct ps_mirror {
	struct ps_address address;
	enum perseas_mirror_state state;
	struct ps_control *control;
	bool asked; /* the answer to a sign of life is due first */
	const struct ps_fabric *fabric;
	struct ps_link *link; /* NULL: not connected */
	bool active;          /* the link takes transactions: LIVE or REPLAYING */
	bool known;           /* a roster lists it: as the image that image_id names */
	uint8_t image_id[PS_ID_SIZE];
	int slot;             /* index of the slot that counts once all that was posted is there */
	uint64_t posted;      /* seq of the last transaction posted */
	uint64_t acked;       /* .. completed; also while the mirror is down */
	unsigned outstanding; /* chains posted and not completed */
	unsigned bulk;        /* completions until that of a resync's chunk is among them; 0:
	                         none is under way */
	bool votes;           /* the roster lists it: its acknowledgements count */
	bool loaded;          /* from a spill, and its own id is not yet recorded .. */
	uint8_t loaded_id[PS_ID_SIZE]; /* .. which is this */
	bool added;                    /* it was not given: the roster has its address */
	bool joins;                    /* a change of the roster brings it in: no vote yet */
	uint64_t retry_at;             /* DOWN: when to connect again */
	uint64_t retry_delay;
	char trouble[256];
	char detour[256]; /* why the link is not over the best fabric, "" when it is */
	struct ps_found found;
};

struct perseas {
	struct ps_env *env;
	char store[PS_NAME_MAX + 1];
	struct perseas_options options; /* no zeros: defaults are filled in */
	uint8_t store_id[PS_ID_SIZE];
	uint8_t owner[PS_ID_SIZE];
	uint64_t epoch;

	struct ps_mirror mirrors[PS_MIRRORS_MAX];
	unsigned mirror_count;        /* that were given */
	Perseas__Roster *roster;      /* the newest that is settled */
	Perseas__Roster *next_roster; /* newer, and not settled: both count; or NULL */
	struct ps_quorum quorums[2];  /* of the one, and of the other */
	unsigned quorum_count;
	unsigned members; /* n */
	unsigned acks;    /* W */

	pthread_mutex_t lock;
	pthread_cond_t progress; /* something that a waiter looks at has changed */
	unsigned waiters;
	bool leader; /* a committer sleeps on the links, for all of them */
	bool admin;
	bool gate; /* commits wait */
	bool open; /* perseas_open has returned, or is about to */
	bool salvage;
	uint64_t accepted_as; /* open: the epoch under which an attempt adopted its state */
	bool stopping;
	bool keeper; /* runs */

	uint64_t seq;            /* last posted */
	uint64_t next;           /* log position after it */
	uint64_t last;           /* its record's */
	uint32_t fenced;         /* the mirrors that promised another owner, a bit for each */
	uint64_t in_doubt;       /* seq that a commit gave up waiting for, 0: none .. */
	uint64_t doubt_at;       /* .. and when the first one did */
	uint64_t log_size;       /* bytes of the ring on the mirrors */
	uint64_t lap;            /* log position where its present lap began */
	struct ps_slot slot;     /* what is sent when nothing is staged */
	struct ps_write *writes; /* .. */
	unsigned writes_max;
	bool staged; /* transactions go through the ring */
	/* Where set_range may have a mirror's memory of a segment fetched, so that its misses run
	 * beside those of the memory here. By segment id; 0: nowhere. */
	_Atomic uintptr_t hints[PS_SEGMENTS_MAX];
	struct ps_ring ring;

	struct ps_segment segments[PS_SEGMENTS_MAX];
	unsigned segment_count;
	struct ps_layout *_Atomic layout;

	_Atomic bool careful; /* others look into transactions: set_range takes the lock */
	bool fences;          /* env's barrier works */
	struct perseas_tx *open_list, *free_list, *all_list;
	struct perseas_stat stat;  /* counters only */
	struct ps_events *events;  /* to be told; NULL: nobody wants to know */
	uint32_t untimed;          /* transactions to begin before one is timed (timing.h) */
	uint64_t dice;             /* of how many these are */
	struct ps_latency latency; /* of commits */
	struct ps_resync resync;
	struct ps_change change;
	uint64_t pulse_at; /* when the next sign of life is due */
	char *report;
	size_t report_len;
};

/* The transaction under construction is its undo record, as the mirrors will get it. */
struct perseas_tx {
	struct perseas *p;
	bool open;
	uint8_t timed;     /* enum ps_timed */
	_Atomic bool busy; /* its owner is inside set_range, without the lock */
	uint8_t *record;   /* struct ps_record, entries */
	uint64_t capacity;
	uint64_t room;   /* a record up to this length fits wherever it goes (tx.h) */
	uint64_t length; /* of the record so far */
	uint64_t since;  /* when its commit began to wait for its turn */
	uint32_t ranges;
	uint64_t tail; /* offset of the last entry, 0: none */
	struct ps_cover cover;
	const struct ps_extent_of *hint;                /* the segment of the last range */
	_Atomic uint64_t touched[PS_SEGMENTS_MAX / 64]; /* segments with ranges, a bit for each id:
	                                                   what other threads may look at */
	const struct ps_layout *layout;     /* that it is of: segments come, are born and go */
	struct perseas_tx *next, *previous; /* open or free list */
	struct perseas_tx *all;
};

/* error.c of the handle: the calling thread's last message. Returns code. */
int ps_fail(const struct perseas *p, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int ps_fail_error(const struct perseas *p, const struct ps_error *error);

/* handle.c */
struct perseas *ps_handle_new(struct ps_env *env, const char *store, const char *mirrors,
                              const struct perseas_options *options, struct ps_error *error);
void ps_handle_free(struct perseas *p);
void ps_report(struct perseas *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ps_progress(struct perseas *p); /* locked: wakes who waits for a change */
void ps_lock_slowly(struct perseas *p);

/* Tells the processor that this is a loop that waits. */
static inline void ps_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* For transactions: takes the lock, which most hold for less time than it takes to put a thread to
 * sleep and to wake it. */
static inline void ps_lock(struct perseas *p)
{
	if (pthread_mutex_trylock(&p->lock))
		ps_lock_slowly(p);
}

/* exclusive.c */
void ps_admin_enter(struct perseas *p);
void ps_admin_leave(struct perseas *p);
/* Admin, and the links to itself: commits wait, nothing is outstanding. */
void ps_exclusive_enter(struct perseas *p);
void ps_exclusive_leave(struct perseas *p);

/* segment.c */
struct ps_segment *ps_segment_find(struct perseas *p, const char *name);
struct ps_segment *ps_segment_by_id(struct perseas *p, uint32_t id);
/* What the control protocol calls it; the message points into the segment. */
void ps_segment_message(struct ps_segment *segment, Perseas__Segment *message);
void ps_segment_load(struct perseas *p, const Perseas__Header *header);
int ps_layout_renew(struct perseas *p); /* admin: publishes the mapped segments to set_range */

static inline uint64_t ps_now(struct perseas *p)
{
	return p->env->ops->now(p->env);
}
static inline uint64_t ps_ms(uint64_t ms)
{
	return ms * 1000000;
}

#endif
