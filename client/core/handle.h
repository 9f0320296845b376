/*
 * handle.h - struct perseas, the handle, and struct perseas_tx, the transaction.
 *
 * Locks: `lock` guards everything that commits touch, and no thread holds it across a call that
 * blocks. Work that talks to mirrors outside the data path (open, map, publish, the keeper) is
 * serialized by admin, a flag rather than a lock because such work sleeps. "Exclusive" work needs
 * the links for itself: it has admin, has raised the gate, which holds commits back, and has waited
 * until nothing is in flight.
 */
#ifndef PERSEAS_CLIENT_HANDLE_H
#define PERSEAS_CLIENT_HANDLE_H

#include "cover.h"
#include "deadlock.h"
#include "env.h"
#include "error.h"
#include "fabric.h"
#include "mirror_struct.h"
#include "ring.h"
#include "section.h"
#include "unwaited.h"
#include "upkeep.h"
#include "wait_line.h"
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
	uint64_t address;              /* where the store records it: the default for every owner */
	uint64_t born;                 /* the seq that published the segment; 0: not published */
	uint8_t random_id[PS_ID_SIZE]; /* drawn when the segment was added; all zero at level 0 */
	/* Where this process maps the segment: `address`, or the application's choice; NULL: not
	 * mapped. */
	uint8_t *base;
	uint64_t last_unmap_seq; /* the seq at which this handle last unmapped the segment */
	/* Copy of the committed contents (shadow.h); NULL: the options ask for none. */
	uint8_t *shadow;
	/* A bit for each page that may differ from the shadow, if there is a shadow. NULL: any page
	 * may. */
	uint64_t *pages_may_differ;
	/* The segment had missing pages when it was last checked (demand.h); kept only with a
	 * shadow. */
	bool has_missing_pages;
	unsigned heap_count; /* number of heaps that use the segment, which prevent its unmap */
	bool memory_outlives_handle; /* the segment's memory outlives the handle (perseas_retain) */
	/* Address range reserved right behind the segment and its parts, into which it grows. */
	uint8_t *growth_range;
	uint64_t growth_range_size;
};

/* The mapped segments, sorted by address, for set_range and for translating pointers. Immutable
 * once published: a change publishes a new layout. Old ones stay until the handle is closed, since
 * threads may still read them. */
struct ps_layout {
	struct ps_layout *older; /* the layout that this one replaced */
	unsigned extent_count;
	uint8_t extents_by_recorded
		[PS_SEGMENTS_MAX]; /* indexes of `extents`, sorted by recorded_start */
	struct ps_mapped_extent {
		uint64_t start, end; /* addresses in this process, end excluded */
		uint32_t segment_id; /* the segment's id */
		/* is_ready: published, and no page is missing, so set_range need not look
		 * further. */
		bool is_published, is_ready;
		/* This extent is a part of the grown segment that the extent before it belongs to,
		 * and follows it. */
		bool is_continuation;
		uint64_t recorded_start; /* the address that the store records for `start` */
	} extents[];
};

/* How far an attempt to open or create the store has come (attempt.c). */
enum ps_attempt_step {
	PS_ATTEMPT_NONE,
	PS_ATTEMPT_PROBED,     /* the mirrors have answered what they have */
	PS_ATTEMPT_CREATED,    /* the store was created: ask the mirrors again */
	PS_ATTEMPT_JUDGED,     /* the store and its rosters are known */
	PS_ATTEMPT_CLAIMED,    /* every mirror that has the store was asked for a claim */
	PS_ATTEMPT_CHOSEN,     /* the newest state among R claimed mirrors is known */
	PS_ATTEMPT_CONFIRMED,  /* the mirrors that determined that state still hold the claim */
	PS_ATTEMPT_ADOPTED,    /* W mirrors hold the state under this owner's epoch */
	PS_ATTEMPT_OPEN,       /* these W mirrors still hold the claim: the store is open */
	PS_ATTEMPT_SUPERSEDED, /* another owner has the store, for good */
};

/* The caller's list of mirrors, while its name is still being looked up and the open uses the
 * mirrors that the name stood for before (env_list.c). */
struct ps_named_list {
	struct ps_list_lookup *lookup; /* the lookup of the name; NULL: not needed, or ended */
	const char *list;              /* the list or name that the caller of open gave */
	uint32_t lookup_limit_ms;      /* how long the lookup may take */
	uint64_t lookup_deadline;      /* when the lookup times out */
};

/* The state of perseas_open. Until it returns, one thread has the handle to itself. A renewal uses
 * `step`, `highest_epoch` and `chosen_position`, too; it has admin. */
struct ps_opening {
	enum ps_attempt_step step;
	uint64_t deadline; /* when the open times out; 0: the store is open */
	/* From CLAIMED on: the highest epoch seen before. The claim asks for the next one. */
	uint64_t highest_epoch;
	struct ps_image_position chosen_position; /* from CHOSEN on: the state that was chosen */
	/* The epoch under which an earlier attempt adopted the state that the operator accepted
	 * (options.accept_epoch). */
	uint64_t accepted_state_epoch;
	bool has_unanswered_claim; /* a claim was sent and never answered */
	bool saw_rivals;           /* other owners claimed the store during this open */
	bool cancelled_change;     /* this open took back a change that another owner had begun */
	bool is_known_ownerless;   /* a standby has already checked that the store has no owner */
	struct ps_named_list named_list;
};

/* Everything that commits touch. Guarded by p->lock. */
struct ps_commit {
	uint64_t seq;           /* the last transaction posted */
	uint64_t next_position; /* log position of the next record */
	uint64_t last_position; /* log position of the last record */
	uint64_t lap_position;  /* log position where the present lap of the log began */
	/* The last seq in doubt: a commit timed out waiting for W mirrors; 0: none. */
	uint64_t in_doubt_seq;
	uint64_t first_in_doubt_at; /* when the first commit in doubt timed out */
	/* The last seq that W mirrors are known to hold, or to have held. It never decreases
	 * (nowait.h). */
	uint64_t durable_seq;
	struct ps_unwaited unwaited;
	struct ps_wait_line wait_line;
	uint32_t fenced_mirrors; /* mirrors that have promised another owner, a bit for each */
	/* Transactions go through the ring; else fabrics copy them straight from memory. */
	bool uses_ring;
	struct ps_ring ring;      /* copies of sent transactions, if `uses_ring` */
	struct ps_slot sent_slot; /* the commit slot as it was sent last */
	struct ps_write *writes;  /* array of write_capacity writes, in which a chain is built */
	unsigned write_capacity;
	/* The change map (change_map.h), by segment id: for each granule, the seq of the last
	 * transaction of this handle that changed it; 0: none did. NULL: the segment was never
	 * mapped here. */
	uint64_t *change_maps[PS_SEGMENTS_MAX];
	bool has_gathered; /* the group `gather` has commits that are not posted yet (gather.h) */
	struct ps_gather *gather; /* the group; NULL until the first commit is gathered */
	struct perseas_tx *open_list, *free_list, *all_list;
	struct perseas_tx *tracked_tx; /* the open tracked transaction, or NULL (track.h) */
	struct perseas_stat stat;      /* counters only; perseas_stat fills in the rest */
	struct ps_events *events;      /* events to deliver; NULL: the application asked for none */
	/* How many more transactions begin untimed before the next timed one (timing.h). */
	uint32_t untimed_left;
	uint64_t random_state;     /* state of the random numbers that choose untimed_left */
	struct ps_latency latency; /* histogram of commit latencies */
};

struct ps_lock;

/* A thread that waits for its turn to run a SERIAL transaction. */
struct ps_turn_waiter {
	struct ps_blocked blocked_thread;
	struct ps_turn_waiter *next;
	bool has_turn; /* the turn has come to this thread */
};

/* How transactions are serialized (turn.c, locks.c). Guarded by p->lock. */
struct ps_serialization {
	bool is_turn_taken;    /* a SERIAL transaction has the turn */
	uintptr_t turn_thread; /* the thread that has the turn, if is_turn_taken */
	struct ps_turn_waiter *first_waiter,
		**last_waiter; /* queue of the threads that wait for a turn */
	/* Hash table of locks that are held or wanted; NULL until the first lock. */
	struct ps_lock **lock_table;
	/* The age that the last transaction got when it asked for its first lock (tx->lock_age). */
	uint64_t last_age;
	struct ps_blocked *blocked_threads; /* list of the threads that wait for a turn or a lock */
	pthread_cond_t recheck;             /* signaled when a blocked thread should check again */
	struct perseas *next_handle;        /* list of all handles of the process (deadlock.c) */
	/* The process that opened the handle: a child of fork must not wait. */
	pid_t opener_pid;
};

struct perseas {
	/* These members live as long as the handle, and are constant once the store is open. */
	struct ps_env *env;
	char store[PS_NAME_MAX + 1];
	struct perseas_options options; /* defaults are filled in: 0 never means "default" here */
	uint8_t store_id[PS_ID_SIZE];
	/* The store's key, at level 1 or while the store is being raised to it; otherwise
	 * undefined. Guarded by admin. */
	uint8_t key[PS_KEY_SIZE];
	uint8_t owner[PS_ID_SIZE]; /* the id with which this owner claims mirrors */
	uint64_t opened_epoch;     /* the epoch under which this handle opened the store */
	uint64_t log_size;         /* bytes of the log on each mirror */
	bool is_salvage;           /* opened with PERSEAS_SALVAGE: no mirror is adopted */
	/* This handle created the store and fills it, or removes a store that was never filled. */
	bool fills_new_store;
	bool is_open;    /* perseas_open has returned, or is about to */
	bool has_keeper; /* the keeper's thread is running */
	struct ps_report_text {
		char *text;
		size_t length; /* bytes of `text` */
	} report; /* the report of the open, a line for each finding (ps_report_add_line) */
	struct ps_opening opening;
	struct ps_demand *demand; /* fetches missing memory; NULL: recovery is not on demand */
	/* Tells which pages were written; NULL: unknown, so commits compare all. */
	struct ps_written *written;
	struct ps_warm_copy
		*warm_copy; /* the copy of memory that a standby handed over; NULL: none */

	/* Which thread may do what. The flags are guarded by the lock. */
	pthread_mutex_t lock;
	bool is_admin_taken; /* a thread works with mirrors outside of commits */
	bool is_gate_raised; /* raised: commits wait */
	bool is_renewing; /* the owner holds no claims, and sends nothing until it does (renew.c) */
	bool is_superseded; /* another owner has the store, for good */
	bool is_stopping;   /* the handle is being closed */

	/* The epoch of the claims; each attempt to renew them raises it. Guarded by admin. */
	uint64_t epoch;

	/* Changed only with both the lock and admin, so a thread with either may read. fabric.h
	 * says which thread may use a mirror's link. */
	struct ps_mirror mirrors[PS_MIRRORS_MAX];
	unsigned mirror_count;   /* mirrors in use in `mirrors` */
	Perseas__Roster *roster; /* the newest settled roster */
	/* The roster that an unsettled change leads to, which counts together with `roster`; or
	 * NULL. */
	Perseas__Roster *next_roster;
	/* The change to next_roster is decided: some mirror may have been told so. */
	bool is_change_decided;
	struct ps_quorum quorums[2]; /* the quorum of `roster`, and that of `next_roster` */
	unsigned quorum_count;
	unsigned member_count; /* n of the settled roster */
	unsigned acks;         /* W of the settled roster */

	struct ps_commit commit;
	struct ps_serialization serialization;
	struct ps_confirm_calls {
		/* calls of perseas_confirm so far: the number of the last one */
		uint64_t call_count;
		/* R mirrors have confirmed the claim for every call up to this number. */
		uint64_t confirmed_call;
	} confirm_calls;
	_Atomic uint64_t savepoint_count; /* savepoints made so far: the last one's number */

	/* set_range reads these without the lock. Segments change only while commits are held
	 * back. */
	struct ps_segment segments[PS_SEGMENTS_MAX];
	unsigned segment_count; /* segments in use in `segments` */
	/* Segments destroyed by transaction `seq`, whose memory some mirrors still keep
	 * (segment_destroy.c). */
	struct ps_destroyed_segments {
		uint64_t destroyed_by_seq;
		unsigned count;
		uint32_t ids[PS_SEGMENTS_MAX];
	} destroyed;
	/* Address ranges that a standby reserves for segments that are not mapped yet. */
	struct ps_reserved {
		unsigned count;
		struct ps_reserved_range {
			uint64_t address, size;
		} list[PS_SEGMENTS_MAX];
	} reserved_ranges;
	struct ps_layout *_Atomic layout;
	/* Threads that read other threads' open transactions (ps_tx_observe_begin). */
	struct ps_observing {
		_Atomic bool has_observers; /* set_range must take the lock */
		unsigned observer_count;    /* observing threads. Guarded by the lock. */
		/* The env's barrier works: set_range may do without the lock. */
		bool has_barrier;
	} observing;

	struct ps_upkeep upkeep; /* guarded by admin */

	struct ps_handle_attachment *attachments; /* objects of other rooms; guarded by the lock */
};

/* An object of another room, such as a heap, that lives as long as the handle. */
struct ps_handle_attachment {
	struct ps_handle_attachment *next;
	/* Frees the object. No thread uses the handle any more, but its rosters are still there. */
	void (*free)(struct ps_handle_attachment *attachment);
};

/* The last lock that a transaction was refused. */
struct ps_refused {
	uint64_t key;
	bool is_exclusive;
	bool has_refused_lock; /* true if a lock was refused */
};

/* Traits that few transactions have. One test of tx->traits for 0 covers all of them. */
enum ps_tx_trait {
	PS_TX_SERIAL = 1, /* SERIAL, and it is the transaction's turn */
	PS_TX_LOCKS = 2,
	PS_TX_SAVEPOINTS = 4,  /* the transaction has savepoints */
	PS_TX_TRACKED = 8,     /* commit finds the changes by comparing memory (track.h) */
	PS_TX_REDECLARED = 16, /* set_range was called again for bytes that were covered */
};

/* A transaction. While it is open, its undo record grows in the form that the mirrors will get. */
struct perseas_tx {
	struct perseas *p;
	bool is_open;   /* begun, and neither committed nor aborted */
	uint8_t traits; /* set of enum ps_tx_trait */
	uint8_t timing; /* enum ps_timed: whether the commit is timed */
	/* Entered while the transaction's thread is inside set_range without the lock. */
	struct ps_section set_range_section;
	uint8_t *record; /* the undo record: struct ps_record, then its entries */
	uint64_t record_capacity;
	/* A record up to this length fits into `record`, the log and the ring
	 * (ps_tx_update_room). */
	uint64_t record_room;
	/* what record_room would be if no space were reserved for deferred stores */
	uint64_t undeferred_room;
	uint64_t record_length; /* bytes of `record` in use */
	uint64_t begun_seq;     /* the last seq posted when the transaction began */
	uint32_t range_count;
	uint64_t redeclared_bytes; /* bytes for which set_range was called again */
	/* Offset of the last entry in `record`, for extending it; 0: none to extend. */
	uint64_t last_entry_offset;
	struct ps_cover cover; /* all bytes that the transaction has declared */
	/* The extent of the last range: the next range is likely in it, too. */
	const struct ps_mapped_extent *last_extent;
	/* Segments that have ranges, a bit for each id. Other threads may read it at any time. */
	_Atomic uint64_t touched_segments[PS_SEGMENTS_MAX / 64];
	const struct ps_layout *layout;     /* the layout that last_extent points into */
	struct perseas_tx *next, *previous; /* links of the open list or the free list */
	struct perseas_tx *next_in_pool;    /* list of every transaction of the handle */

	struct ps_saved *savepoints; /* savepoints; NULL until the first one (savepoint.c) */
	/* The next members are for transactions with PS_TX_SERIAL or PS_TX_LOCKS. */
	struct ps_lock_hold *lock_holds; /* list of the locks that the transaction holds */
	struct ps_lock_want
		*lock_wants; /* list of the refused locks that the transaction still wants */
	struct ps_refused refused_lock; /* the lock that the transaction was refused last */
	uintptr_t thread; /* the thread that got the turn, or asked for the last lock */
	/* Order of first lock requests: lower is older; 0: no lock requested. */
	uint64_t lock_age;
	uint64_t read_seq; /* the last seq whose changes the transaction may have read */
	struct ps_deferred_stores
		*deferred; /* stores that are made at commit (deferred_stores.h) */
	/* Deferred stores for which record, cover and ring have space reserved. */
	unsigned deferred_store_count;
	/* The deferred stores are in the record, which is about to be sent. */
	bool deferred_applied;
};

/* failure.c: sets the calling thread's last error and its message. Returns `code`. */
int ps_fail(const struct perseas *p, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int ps_fail_error(const struct perseas *p, const struct ps_error *error);
/* Fails with ECONFLICT: waiting would close a cycle of waiting threads (deadlock.h). */
int ps_fail_deadlock(const struct perseas *p);
/* Returns true if ps_fail_deadlock set the calling thread's last error, on this handle. */
bool ps_failed_by_deadlock(const struct perseas *p);

/* handle_lock.c: returns a number for the calling thread that no other thread of this process ever
 * had. */
uintptr_t ps_this_thread(struct perseas *p);

/* handle.c: ps_handle_new returns NULL on failure, with *error set, and then has freed `env`. */
struct perseas *ps_handle_new(struct ps_env *env, const char *store, const char *mirrors,
                              const struct perseas_options *options, struct ps_error *error);
void ps_handle_free(struct perseas *p);
bool ps_handle_has_address(const struct perseas *p, const char *address);
/* Gives a handle that has no mirrors yet those of its list, and those that `perseas run` learned of
 * (ps_inherited_unlisted_mirrors). Returns 0, or an error of has_route (env.h). */
int ps_handle_set_mirrors(struct perseas *p, const char *list, const struct ps_address *addresses,
                          unsigned count, struct ps_error *error);
/* Adds a mirror that is known to have the store, before the handle opens. The open asks it as if
 * the roster had named it, since the list's mirrors may have lost the store. Nothing is created
 * there. */
void ps_handle_add_unlisted_mirror(struct perseas *p, const struct ps_address *address);

/* failure.c: adds a line to the report of the open. */
void ps_report_add_line(struct perseas *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* wait_line.c: wakes every thread that waits for a change of the handle. Caller holds p->lock. */
void ps_wake_waiters(struct perseas *p);

/* handle_lock.c: acquires p->lock while another thread holds it. */
void ps_handle_lock_contended(struct perseas *p);

/* Tells the processor that this is a spin loop. */
static inline void ps_cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Acquires p->lock for a transaction. It spins first, since most holders release the lock sooner
 * than a thread can sleep and wake. */
static inline void ps_lock(struct perseas *p)
{
	if (pthread_mutex_trylock(&p->lock))
		ps_handle_lock_contended(p);
}

/* segment_lookup.c: return NULL if the handle has no such segment. */
struct ps_segment *ps_segment_by_name(struct perseas *p, const char *name);
struct ps_segment *ps_segment_by_id(struct perseas *p, uint32_t id);
/* Fills in the segment's message of the control protocol, which then points into the segment. */
void ps_segment_fill_message(struct ps_segment *segment, Perseas__Segment *message);
void ps_segments_load(struct perseas *p, const Perseas__Header *header);
/* Publishes the mapped segments to set_range. Returns 0, or ENOMEM. */
int ps_layout_refresh(struct perseas *p);

/* Asserts that the caller holds p->lock. Too slow for functions that run in every transaction.
 * Before the store is open, one thread has the handle to itself and needs no lock. */
static inline void ps_assert_locked(struct perseas *p)
{
	assert(!p->is_open || pthread_mutex_trylock(&p->lock) == EBUSY);
}

/* Asserts that a thread has admin, as ps_assert_locked does for the lock. */
static inline void ps_assert_admin(const struct perseas *p)
{
	assert(!p->is_open || p->is_admin_taken);
}

static inline uint64_t ps_now(struct perseas *p)
{
	return p->env->ops->now(p->env);
}

#endif
