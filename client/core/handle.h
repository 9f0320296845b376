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
#include "deadlock.h"
#include "env.h"
#include "error.h"
#include "fabric.h"
#include "wait_line.h"
#include "ring.h"
#include "section.h"
#include "unwaited.h"
#include "upkeep.h"
#include "../../proto/control/envelope.h"
#include "../../proto/image/image.h"
#include "../../proto/control/judge.h"
#include "../../proto/control/key.h"
#include "../../proto/base/latency.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

struct ps_segment {
	uint32_t id;
	char name[PS_NAME_MAX + 1];
	uint64_t size;
	uint64_t address;              /* where every owner maps it, as the store has it recorded */
	uint64_t born;                 /* seq that published it, 0: none yet */
	uint8_t random_id[PS_ID_SIZE]; /* drawn when it was added; zeros: that was at level 0 */
	uint8_t *base;   /* mapped here, at `address` or where the application asked; else NULL */
	uint64_t left;   /* seq when it was last unmapped here */
	uint8_t *shadow; /* its committed contents, where that is asked for (shadow.h); else NULL */
	uint64_t *unlike; /* with it: pages that may differ, a bit for each; NULL: any may */
	bool lacks;       /* with it: some of it may have been missing at the last look */
	unsigned pins;    /* heaps that rely on it: it is not unmapped */
	bool is_retained; /* its memory outlives the handle (perseas_retain) */
	/* Addresses behind it and its parts that are kept for what it grows by; of none: 0 bytes.
	 * */
	uint8_t *spare;
	uint64_t spare_size;
};

/* The mapped segments by address, for set_range. Never changed once it is seen: a change makes
 * a new one, and the old ones are kept until the handle is closed. */
struct ps_layout {
	struct ps_layout *older;
	unsigned count;
	uint8_t by_record[PS_SEGMENTS_MAX]; /* places among `segments`, by recorded address */
	struct ps_extent_of {
		uint64_t start, end;   /* here */
		uint32_t segment;      /* id */
		bool published, usual; /* usual: it is published, and all of it is here */
		bool goes_on;          /* it is a part behind the extent before (grown_segment.h) */
		uint64_t recorded;     /* where `start` is recorded */
	} segments[];
};

/* Where a mirror's image stands in history. */
struct ps_standing {
	uint64_t epoch, seq, next, last;
	int index; /* the slot that counts */
};

struct perseas;
struct ps_mirror;
struct ps_due;

/* What an attempt to open knows about a mirror. */
struct ps_found {
	int code;                /* 0: it has the store; else PERSEAS_E… */
	struct ps_error error;   /* with code */
	Perseas__Header *header; /* as it was told last */
	struct ps_standing at;
	bool spared;     /* it was not asked, since it was silent before */
	bool live;       /* it has a live owner */
	char owner[128]; /* where that owner is */
	bool claimed;
	bool counts;    /* towards R */
	bool candidate; /* its state may be chosen */
	bool good;      /* holds the chosen state under this epoch */
	bool broke;     /* its session broke while it was adopted on, or mended */
	bool listed;    /* a roster lists its image, or the one it was loaded from */
};

/*
 * Who takes an answer that nobody waits for (due.h): it may keep *reply, and then sets it to NULL.
 * *reply is NULL where the connection is over before the answer, and `why` says so. It only takes
 * note, and disconnects nobody: whoever takes answers may be at work with any mirror. Admin.
 */
typedef void ps_taker(struct perseas *p, struct ps_mirror *m, const struct ps_due *due,
                      Perseas__Reply **reply, const struct ps_error *why);

enum { PS_DUE_MAX = 6 }; /* of one mirror */

struct ps_due {
	ps_taker *take;
	void *arg;
	uint64_t ticket; /* the taker's: what was asked */
};

/* The answers that a mirror owes, and that no thread waits for, the oldest first. */
struct ps_dues {
	unsigned count;
	struct ps_due list[PS_DUE_MAX];
	uint64_t asked_at; /* when the oldest was asked for */
	uint64_t answer_by;
};

/* Calls of perseas_confirm, by their numbers, over the present session; 0: none. */
struct ps_mirror_confirm {
	uint64_t asked;     /* the last call that the mirror was asked for */
	uint64_t confirmed; /* the last call that its answers count for; with the lock */
};

/* Which of a mirror's images this owner has written to. */
struct ps_own_image {
	uint64_t live_epoch; /* under which an image of the mirror was LIVE last, and its id: */
	uint8_t live_id[PS_ID_SIZE];
	/* Epochs whose slot this owner wrote, or may have written, to the present image. */
	uint64_t wrote[2];
};

/* When to connect to a mirror that is DOWN again. */
struct ps_retry {
	uint64_t at;
	uint64_t delay;
};

/* Of the control connection and the data path to a mirror (session.c). */
enum ps_session_state {
	PS_SESSION_NONE,
	PS_SESSION_ASKING,    /* connecting, or connected, and asked what it has */
	PS_SESSION_CLAIMING,  /* it has what it should, and is asked for the claim */
	PS_SESSION_ATTACHING, /* the claim is granted, and the data path is being connected */
	PS_SESSION_PREPARING, /* and the image is made ready for what it lacks */
	PS_SESSION_UP,
};

struct ps_session {
	enum ps_session_state state;
	uint64_t until;   /* ASKING, CLAIMING and PREPARING: its answer must be there by then */
	uint64_t comings; /* PREPARING: the handle's when it was told of its segments */
	Perseas__Reply *granted; /* ATTACHING and PREPARING: the answer to the claim, or NULL */
};

/* A data path that is being connected. */
struct ps_attaching {
	unsigned tried; /* fabrics that did not work */
	uint64_t until; /* this one must be up by then */
};

/* From a detour to the best fabric (detour.c). */
struct ps_way_back {
	uint64_t at; /* when that is asked for next */
	uint64_t delay;
	uint32_t port; /* of the grant; 0: there is no way back before the next grant */
	uint8_t token[PS_ID_SIZE];
	const struct ps_fabric *fabric; /* whose way back is asked for */
	struct ps_link *asking;         /* NULL: it is not being asked */
	uint64_t until;                 /* it must answer by then */
	unsigned breaks; /* of links over the best fabric, each within a minute of the one before */
	uint64_t broke_at;
};

/* A second connection, which ends with this process even while its memory is freed (lifeline.h). */
struct ps_lifeline {
	bool wanted;               /* the session's data path shares no memory: */
	uint8_t token[PS_ID_SIZE]; /* this is the session's */
	uint64_t begin_at;         /* when to ask for it; 0: it is not to be asked for */
	struct ps_control *control;
	uint64_t until; /* then the mirror must have answered */
	bool settled;   /* it has, or has not in time */
};

/* When commits wait for the copy that goes on (pace.h). */
struct ps_copy_wait {
	uint64_t until;     /* they wait until then, if they do */
	uint64_t run_until; /* and run from there until then */
	uint64_t acked;     /* what the mirror had acknowledged when they began to wait last */
};

/* Whole copies to a mirror that broke, since the last one that ended. With the lock. */
struct ps_broken_copies {
	unsigned count;
	uint64_t bytes;    /* that they copied in vain, together */
	uint64_t rate;     /* bytes of transactions a second, during the last of them */
	uint64_t broke_at; /* when the last of them did */
	uint64_t pause;    /* ns from then to the next one, if commits end without the mirror */
	uint64_t begun_at,
		begun_in; /* the copy that goes on: when, and at which byte of the ring */
	struct ps_copy_wait wait;
	uint64_t waited; /* commits that waited for one of these copies, or for that one */
};

struct ps_mirror {
	struct ps_address address;
	enum perseas_mirror_state state;
	struct ps_control *control;
	uint8_t daemon[PS_ID_SIZE]; /* the identity of the daemon that answers on `control`; all
	                               zero: it told none */
	uint8_t shown[PS_ID_SIZE];  /* the image of the store that it told of last there; all zero:
	                               it told of none */
	struct ps_session session;  /* once the store is open */
	struct ps_lifeline lifeline;
	struct ps_attaching attaching;
	struct ps_dues dues;
	struct ps_mirror_confirm confirm;
	uint64_t told;             /* the round of the rosters that it was told last (telling.c) */
	uint8_t order[PS_ID_SIZE]; /* that it passed on last; all zero: none (orders.c) */
	const struct ps_fabric *fabric;
	struct ps_link *link; /* NULL: not connected */
	bool active;          /* the link takes transactions: LIVE or REPLAYING */
	bool known;           /* a roster lists it: as the image that image_id names */
	uint8_t image_id[PS_ID_SIZE];
	unsigned slot;        /* index of the slot that counts once all that was posted is there */
	uint64_t posted;      /* seq of the last transaction posted */
	uint64_t acked;       /* seq of the last one completed; also while the mirror is down */
	unsigned outstanding; /* chains posted and not completed */
	unsigned bulk;        /* completions until that of a resync's chunk is among them; 0:
	                         none is under way */
	bool votes;           /* the roster lists it: its acknowledgements count */
	bool loaded;          /* from a spill, and its own id is not yet recorded */
	uint8_t loaded_id[PS_ID_SIZE]; /* its own id, if it was loaded so */
	bool added;                    /* it was not given: the roster has its address */
	bool joins;                    /* a change of the roster brings it in: no vote yet */
	bool warm;                     /* a standby connected to it, and claimed nothing */
	bool silent;                   /* whoever waited before this open had no answer from it */
	struct ps_retry retry;         /* DOWN */
	struct ps_broken_copies broken;
	struct ps_own_image own;
	bool denied;    /* its access rules refused this owner's last claim */
	bool unarrived; /* its last link was PS_LINK_LOST, and this one acknowledged nothing yet */
	bool lost_memory;  /* as it answered to the last claim: it is to be made anew */
	uint64_t paced_at; /* when a commit waited last for it to keep up */
	uint64_t stuck_at, stuck_acked; /* in the way since then, with this acknowledged; 0: not */
	char trouble[256];
	char detour[256];            /* why the link is not over the best fabric, "" when it is */
	struct ps_way_back way_back; /* with `detour` */
	struct ps_found found;
};

/* How far an attempt to have the store, or to make it, has come (attempt.c). */
enum ps_attempt_step {
	PS_ATTEMPT_NONE,
	PS_ATTEMPT_PROBED,     /* the mirrors told what they have */
	PS_ATTEMPT_MADE,       /* the store was made, and the mirrors must be asked again */
	PS_ATTEMPT_JUDGED,     /* which store is meant is known, and its rosters */
	PS_ATTEMPT_CLAIMED,    /* all that have it were asked for a claim */
	PS_ATTEMPT_CHOSEN,     /* the newest state of R is known */
	PS_ATTEMPT_CONFIRMED,  /* those that it was chosen from are still claimed */
	PS_ATTEMPT_ADOPTED,    /* W hold it as this owner's */
	PS_ATTEMPT_OPEN,       /* and are still claimed */
	PS_ATTEMPT_SUPERSEDED, /* another owner has the store, for good */
};

/* The list of mirrors, while the mirrors are those that its name stood for before (env_list.c). */
struct ps_named_list {
	struct ps_list_lookup *lookup; /* of the name; NULL: the mirrors are those of the list */
	const char *list;              /* the caller's */
	uint32_t limit_ms;             /* of the lookup, */
	uint64_t until;                /* which ends it then */
};

/* While perseas_open is at work one thread has the handle, and tries until its time is up. A
 * renewal uses the step, the epoch and the state, with admin. */
struct ps_opening {
	enum ps_attempt_step step;
	uint64_t until;            /* its time is over then; 0: the store is open */
	uint64_t above;            /* CLAIMED and later: the epoch that it claimed above */
	struct ps_standing chosen; /* CHOSEN and later */
	uint64_t accepted_as;      /* the epoch under which an attempt adopted its state */
	bool unanswered;           /* a claim was sent, and its answer did not come */
	bool rivals;               /* others claimed the store meanwhile */
	bool cancelled;            /* it took back a change of the roster that another began */
	bool warm;                 /* a standby looked before, and saw no owner */
	struct ps_named_list named;
};

/* What commits touch, with the lock. */
struct ps_commit {
	uint64_t seq;      /* last posted */
	uint64_t next;     /* log position after it */
	uint64_t last;     /* its record's */
	uint64_t lap;      /* log position where its present lap began */
	uint64_t in_doubt; /* seq that a commit gave up waiting for; 0: none */
	uint64_t doubt_at; /* when the first commit gave up */
	uint64_t durable;  /* W mirrors hold, or held, all up to this (nowait.h) */
	struct ps_unwaited unwaited;
	struct ps_wait_line line;
	uint32_t fenced;         /* the mirrors that promised another owner, a bit for each */
	bool staged;             /* transactions go through the ring */
	struct ps_ring ring;     /* these, when they do */
	struct ps_slot slot;     /* what is sent when nothing is staged */
	struct ps_write *writes; /* writes_max of them, for the chain that is being made */
	unsigned writes_max;
	bool gathering; /* a group of commits is held back, to be sent as one (gather.h) */
	struct ps_gather *gather; /* the group; NULL: there never was one */
	struct perseas_tx *open_list, *free_list, *all_list;
	struct perseas_tx *tracking; /* the tracked transaction, which is open alone, or NULL */
	struct perseas_stat stat;    /* counters only */
	struct ps_events *events;    /* to be told; NULL: nobody wants to know */
	uint32_t untimed;            /* transactions to begin before one is timed (timing.h) */
	uint64_t dice;               /* of how many these are */
	struct ps_latency latency;   /* of commits */
};

struct ps_lock;

/* Who waits for a SERIAL transaction's turn. */
struct ps_queued {
	struct ps_blocked blocked;
	struct ps_queued *next;
	bool came;
};

/* How transactions are kept apart, with the lock (turn.c, locks.c). */
struct ps_apart {
	bool taken;                      /* it is the turn of a SERIAL transaction, */
	uintptr_t thread;                /* which this thread began */
	struct ps_queued *first, **last; /* those that wait for theirs */
	struct ps_lock **locks;     /* those that are held or wanted, by key; NULL: none ever was */
	uint64_t ages;              /* transactions that had locks so far */
	struct ps_blocked *blocked; /* threads that wait for a turn, or a lock */
	pthread_cond_t changed;     /* they are to look again */
	struct perseas *next_handle; /* of the process (deadlock.c) */
	pid_t process;               /* whose handle it is */
};

struct perseas {
	/* What lives as long as the handle, and stays as it is once the store is open. */
	struct ps_env *env;
	char store[PS_NAME_MAX + 1];
	struct perseas_options options; /* no zeros: defaults are filled in */
	uint8_t store_id[PS_ID_SIZE];
	/* Of a store of level 1, or that is being raised to it; with admin. Else undefined. */
	uint8_t key[PS_KEY_SIZE];
	uint8_t owner[PS_ID_SIZE];
	uint64_t opened_as; /* the epoch with which the store was opened */
	uint64_t log_size;  /* bytes of the ring on the mirrors */
	bool salvage;
	bool fills;  /* it made the store, and fills it; or it removes one that was not filled */
	bool open;   /* perseas_open has returned, or is about to */
	bool keeper; /* runs */
	struct ps_report_text {
		char *text;
		size_t length;
	} report; /* of the open (ps_report) */
	struct ps_opening opening;
	struct ps_demand *demand;   /* fetches memory that is missing; NULL: none ever is */
	struct ps_written *written; /* says which pages were written; NULL: nobody does */
	struct ps_warm *warm; /* a standby's copy, proven from the open on; NULL: there is none */

	/* Who may do what now. The lock guards these and all that commits touch. */
	pthread_mutex_t lock;
	bool admin;      /* a thread is at the mirrors outside of commits */
	bool gate;       /* commits wait */
	bool renewing;   /* it holds no claims, and sends no transaction until it does (renew.c) */
	bool superseded; /* another owner has the store, for good */
	bool stopping;

	uint64_t epoch; /* grows with each renewal that is tried; changes with admin */

	/* Changed with both the lock and admin, so that either is enough to read them. Who may use
	 * a mirror's link is in fabric.h. */
	struct ps_mirror mirrors[PS_MIRRORS_MAX];
	unsigned mirror_count;        /* that were given */
	Perseas__Roster *roster;      /* the newest that is settled */
	Perseas__Roster *next_roster; /* newer, and not settled: both count; or NULL */
	bool marked;                  /* the change to that one is decided: a mirror may know */
	struct ps_quorum quorums[2];  /* of the one, and of the other */
	unsigned quorum_count;
	unsigned members; /* n */
	unsigned acks;    /* W */

	struct ps_commit commit; /* with the lock */
	struct ps_apart apart;
	struct ps_confirm_calls {
		uint64_t calls;     /* of perseas_confirm so far; the last one has this number */
		uint64_t confirmed; /* calls up to this one: R mirrors confirmed the claim */
	} confirm;
	_Atomic uint64_t savepoints; /* so many were made */

	/* What set_range looks at without the lock. Segments change while commits are held back. */
	struct ps_segment segments[PS_SEGMENTS_MAX];
	unsigned segment_count;
	/* Segments that were destroyed with `seq`, of which mirrors still have the memory
	 * (destroy.c). */
	struct ps_graves {
		uint64_t seq;
		unsigned count;
		uint32_t ids[PS_SEGMENTS_MAX];
	} graves;
	/* Addresses that a standby keeps free for segments that are not mapped yet. */
	struct ps_reserved {
		unsigned count;
		struct ps_reserved_range {
			uint64_t address, size;
		} list[PS_SEGMENTS_MAX];
	} reserved;
	struct ps_layout *_Atomic layout;
	/* Threads that read open transactions (ps_tx_observe_begin). */
	struct ps_observing {
		_Atomic bool active; /* set_range takes the lock */
		unsigned count;      /* with the lock */
		bool has_barrier;    /* the env's barrier works */
	} observing;
	/* Where it may have a mirror's memory of a segment fetched, so that its misses run beside
	 * those of the memory here. By segment id; 0: nowhere. */
	_Atomic uintptr_t hints[PS_SEGMENTS_MAX];

	struct ps_upkeep upkeep; /* with admin */

	struct ps_guest *guests; /* with the lock */
};

/* Something that lives as long as the handle, and is not known in this room. */
struct ps_guest {
	struct ps_guest *next;
	/* Nobody uses the handle any more; what it knows, as its rosters, is there still. */
	void (*free)(struct ps_guest *guest);
};

/* The lock that a transaction was refused. */
struct ps_refused {
	uint64_t key;
	bool exclusive;
	bool is; /* there is one */
};

/* What few transactions have, so that the others need not look for each of these. */
enum ps_more {
	PS_MORE_SERIAL = 1, /* it is its turn */
	PS_MORE_LOCKS = 2,
	PS_MORE_SAVED = 4,  /* it has savepoints */
	PS_MORE_TRACK = 8,  /* what it changes is found (track.c) */
	PS_MORE_AGAIN = 16, /* it declared bytes again */
};

/* The transaction under construction is its undo record, as the mirrors will get it. */
struct perseas_tx {
	struct perseas *p;
	bool open;
	uint8_t more;                /* enum ps_more */
	uint8_t timed;               /* enum ps_timed */
	struct ps_section declaring; /* its thread is inside set_range, without the lock */
	uint8_t *record;             /* struct ps_record, entries */
	uint64_t capacity;
	uint64_t room;       /* a record up to this length fits wherever it goes (tx.h) */
	uint64_t whole_room; /* the same where nothing is kept for late changes */
	uint64_t length;     /* of the record so far */
	uint64_t began;      /* the last transaction that was posted before it began */
	uint32_t ranges;
	uint64_t again; /* bytes that it declared again */
	uint64_t tail;  /* offset of the last entry, 0: none */
	struct ps_cover cover;
	const struct ps_extent_of *hint;                /* the segment of the last range */
	_Atomic uint64_t touched[PS_SEGMENTS_MAX / 64]; /* segments with ranges, a bit for each id:
	                                                   what other threads may look at */
	const struct ps_layout *layout;     /* that it is of: segments come, are born and go */
	struct perseas_tx *next, *previous; /* open or free list */
	struct perseas_tx *all;

	struct ps_saved *saved; /* its savepoints; NULL: it never had any (savepoint.c) */
	/* With PS_MORE_SERIAL or PS_MORE_LOCKS. */
	struct ps_hold *holds;     /* its locks */
	struct ps_want *wants;     /* locks that it was refused, where it is SERIAL */
	struct ps_refused refused; /* the lock that it did not get last */
	uintptr_t thread;          /* that asked for its turn, or its last lock */
	uint64_t age;              /* the lower, the older; 0: it has asked for no lock */
	uint64_t saw;              /* the last transaction that it may have read from */
	struct ps_late *late;      /* what it changes only when it is sent (deferred_stores.h) */
	unsigned kept;             /* pieces for which room is kept in record, cover and ring */
	bool applied;              /* these changes are in the record: it is about to be sent */
};

/* failure.c: sets the calling thread's last message. Returns `code`. */
int ps_fail(const struct perseas *p, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int ps_fail_error(const struct perseas *p, const struct ps_error *error);
/* ECONFLICT, for a wait that would deadlock (deadlock.h). */
int ps_fail_deadlock(const struct perseas *p);
/* Returns true if that was the calling thread's last error, on this handle. */
bool ps_failed_by_deadlock(const struct perseas *p);

/* lock.c: the calling thread, as a number that no other thread of this process ever had. */
uintptr_t ps_thread(struct perseas *p);

/* handle.c */
struct perseas *ps_handle_new(struct ps_env *env, const char *store, const char *mirrors,
                              const struct perseas_options *options, struct ps_error *error);
void ps_handle_free(struct perseas *p);
bool ps_handle_has(const struct perseas *p, const char *address);
/* Gives a handle without mirrors those of its list, and those that ps_inherited_learnt adds.
 * Returns 0, or an error of has_route (env.h). */
int ps_handle_name_mirrors(struct perseas *p, const char *list, const struct ps_address *addresses,
                           unsigned count, struct ps_error *error);
/* Before it is opened: the store was seen at this mirror, too. It is asked, as if the roster had
 * named it, since the list may have nothing of the store any more; but no store is made there. */
void ps_handle_add_learnt(struct perseas *p, const struct ps_address *address);

/* failure.c: adds a line to the report of the open. */
void ps_report(struct perseas *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* wait_line.c: wakes every thread that waits for a change of the handle. Caller holds p->lock. */
void ps_progress(struct perseas *p);

/* lock.c: takes p->lock, which another thread holds. */
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

/* segment.c */
struct ps_segment *ps_segment_find(struct perseas *p, const char *name);
struct ps_segment *ps_segment_by_id(struct perseas *p, uint32_t id);
/* What the control protocol calls it; the message points into the segment. */
void ps_segment_message(struct ps_segment *segment, Perseas__Segment *message);
void ps_segment_load(struct perseas *p, const Perseas__Header *header);
int ps_layout_renew(struct perseas *p); /* publishes the mapped segments to set_range */

/* A function that takes the lock for granted says so with this, where it does not run for every
 * transaction. Before the store is open, one thread has the handle to itself. */
static inline void ps_assert_locked(struct perseas *p)
{
	assert(!p->open || pthread_mutex_trylock(&p->lock) == EBUSY);
}

/* The same of admin. */
static inline void ps_assert_admin(const struct perseas *p)
{
	assert(!p->open || p->admin);
}

static inline uint64_t ps_now(struct perseas *p)
{
	return p->env->ops->now(p->env);
}

#endif
