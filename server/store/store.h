/*
 * store.h - the stores of a mirror and the rules that it keeps (I5 to I9), as plain logic: no
 * sockets, no clock, no files but through memory.h.
 *
 * Every function that can refuse returns 0 or a negative Perseas__Status, with a sentence in
 * `why`, and has then changed nothing.
 */
#ifndef PERSEAS_SERVER_STORE_H
#define PERSEAS_SERVER_STORE_H

#include "../../proto/base/expiry.h"
#include "../../proto/control/envelope.h"
#include "../../proto/image/image.h"
#include "access.h"
#include "memory.h"

#include <stdbool.h>

struct spill;
struct stores;
struct store;

struct why {
	char text[768];          /* as much as a reply may have */
	uint64_t promised_epoch; /* with STALE_EPOCH and BUSY */
};

/*
 * A control connection, seen by the logic. It becomes the session of a store's owner by a
 * claim, and stops being it by release, by a later claim, or when it ends.
 */
struct session;

/* A process that was given the memory of an image. It outlives its session. */
struct holder {
	/* May it still write? False only when it is known to be dead. */
	bool (*may_write)(struct holder *holder);
	/*
	 * Waits until the process has ended, if it is about to: one that was killed has its memory
	 * until its kernel has taken that down. Not for one that goes on, be it stopped. For
	 * *left_ms at most, off which goes what it waited, and not for longer than the job that
	 * runs this is wanted. Beside the loop: it touches nothing but the holder. NULL: it cannot
	 * be waited for.
	 */
	void (*await_end)(struct holder *holder, uint32_t *left_ms);
	void (*free)(struct holder *holder);
};

struct session_ops {
	/*
	 * I5: ends the session's data paths (tcp: closes the connection with what is buffered;
	 * rdma: destroys the queue pair and is sure that it is gone). After it returns, nothing
	 * more of the session reaches the image over them. The control connection stays.
	 */
	void (*cut)(struct session *session);
	/*
	 * shm: may the process at the other end still write to memory that it was given?
	 * False only when it is known to be dead (its pidfd says so).
	 */
	bool (*may_write)(struct session *session);
	/*
	 * shm: the process at the other end, asked when the session is over. NULL (the
	 * function, or what it returns): not known, so it is taken to be alive.
	 */
	struct holder *(*keep)(struct session *session);
	/*
	 * For how many milliseconds nothing was received on the control connection; UINT64_MAX: the
	 * process at its other end is dead. NULL: an owner lives as long as it is connected.
	 */
	uint64_t (*silent_ms)(struct session *session);
	/* This host's clock in ns since 1970, which peers are told and nothing depends on. NULL:
	 * they are not. */
	uint64_t (*clock_ns)(struct session *session);
	/* Tells when the certificates in use expire; the result lasts until the reply is packed.
	 * NULL: it is not told. */
	const struct ps_expiries *(*expiries)(struct session *session);
	/* Tells how busy this host is (HostReply). NULL: it is not told. */
	void (*load)(struct session *session, Perseas__HostReply *reply);
	/* Adds to a grant what the fabrics of this daemon offer the session. NULL: nothing. What it
	 * adds must last until the reply is packed. */
	void (*grant)(struct session *session, Perseas__Grant *grant);
	/* Could the session go over RDMA? If not, `why` becomes the reason. NULL: it could not. */
	bool (*offers_rdma)(struct session *session, char *why, size_t size);
	/* Is there a place for one more owner? NULL: there is. */
	bool (*fits)(const struct session *session);
};

/* ops, local, peer, identity and fabric are the connection's, the rest is the logic's; zero to
 * begin. */
struct standby;

struct session {
	const struct session_ops *ops;
	struct store *store; /* claimed, or NULL */
	uint64_t epoch;
	uint8_t owner[PS_ID_SIZE];
	uint8_t token[PS_ID_SIZE]; /* of the data connection; random at each claim */
	bool shared;               /* it was given the memory itself */
	bool rdma;                 /* it asked for keys to the memory */
	bool opened;               /* its token has opened a data path, which it may do once */
	bool beside;               /* its data path goes to the image beside */
	unsigned version;          /* of the protocol, that is spoken; 0: the present one */
	bool local;                /* a Unix socket: descriptors can go along */
	struct identity identity;  /* who it is, for rules and quotas; its data connection must be
	                              of the same */
	char peer[128];            /* where it comes from, for people */
	const char *fabric;        /* the target's name, set by it; NULL: there is no data path */
	struct standby *standby;   /* who waits to own a store here; NULL: nobody */
	/* The token of the session that ends when this connection does; zero: there is none. Only
	 * of a connection without a claim. */
	uint8_t lifeline[PS_ID_SIZE];
};

/* What happens to a store, told to whoever keeps the books. */
enum store_event {
	STORE_CREATED,
	STORE_CLAIMED,       /* by the session's owner, or made anew by it */
	STORE_FENCED,        /* the session loses it to another's claim */
	STORE_EXCEEDED,      /* the session loses it: it took more memory than its share */
	STORE_SESSION_OVER,  /* follows each of the two, in the end */
	STORE_RESYNC_BEGUN,  /* the image is about to be changed in place */
	STORE_REBUILD_BEGUN, /* an image is made beside, or anew */
	STORE_CONSISTENT,    /* either is over */
	STORE_DAMAGED,
	STORE_DROPPED,
	STORE_HANDOVER,      /* its owner is asked to let go */
	STORE_FILES_MISSING, /* the next daemon would not find the image */
	STORE_FILES_BACK,    /* it would again */
	STORE_HANDOVER_OVER, /* that was taken back */
	STORE_EVENTS
};

struct store_news {
	enum store_event event;
	const char *store;
	const struct session *session; /* whose it is, NULL: nobody's */
	uint64_t epoch, seq;           /* 0: none */
	const char *astray;            /* as in store_view */
};

/* A store as who watches the daemon sees it; of one whose header cannot be read, status->header is
 * NULL. */
struct store_view {
	const char *name;
	const char *damage; /* why it is refused, "": it is sound */
	const char *astray; /* why a restart of the daemon would lose it, "": its files are there */
	const uint64_t *events; /* by enum store_event: how often, since it is served */
	const Perseas__StoreStatus *status;
};

struct stores *stores_new(struct memory *memory);
/* tell() is called for each event, before the function that it happens in returns; it must not
 * call a function of this file but session_store(). NULL, as at first: nobody is told. */
void stores_on_news(struct stores *stores, void (*tell)(void *arg, const struct store_news *news),
                    void *arg);
/* leave() is told of each piece before its memory goes away, while it is still mapped: who
 * registered it with a device takes that back. NULL: nobody is told any more. */
void stores_on_leave(struct stores *stores, void (*leave)(void *arg, const struct piece *piece),
                     void *arg);
/* An owner that was silent for longer than this does not count as live; 0 (as at first): it
 * does as long as it is connected. */
void stores_set_owner_timeout(struct stores *stores, uint64_t ms);
/* For how long claims of an image wait, all together, for the end of a process that was given its
 * memory and is about to end (5,000 at first). */
void stores_set_patience(struct stores *stores, uint32_t ms);
/* A monotonic clock in ns, by which handovers are timed; NULL, as at first: time stands still. */
void stores_set_clock(struct stores *stores, uint64_t (*now_ns)(void));
/*
 * The rules in force from now on, the caller's until others are; NULL, as at first: everybody may
 * do everything. A session whose identity may no longer own its store is cut at once: its promise
 * is retired, its data paths end, and an image whose memory a process on this host has is copied
 * away from it, as by a claim (where that fails, the next claim does it), beside the loop: nothing
 * else may change a store meanwhile. Returns how many were.
 */
unsigned stores_set_access(struct stores *stores, const struct access *access);
/*
 * Cuts off sessions that took more memory than was reserved for their images, while their creator's
 * quota or the limit of the mirror is exceeded, as stores_set_access() does; gives back what all
 * files take beyond that. Returns how many sessions were cut.
 */
unsigned stores_cut_excess(struct stores *stores);
/* Bytes that files take beyond what was reserved for them. */
uint64_t stores_excess(const struct stores *stores);
/* Has any process been given memory of an image, as far as is known? */
bool stores_share_memory(const struct stores *stores);
const struct access *stores_access(const struct stores *stores);
/* A request for the store of that name is worked on by this thread's job from now on, or no
 * longer. */
void stores_begin(struct stores *stores, const char *name);
void stores_end(struct stores *stores, const char *name);
/* Is memory of the store (NULL: of any) being given back beside the loop? Its pieces still have
 * their names: no request that changes the store may begin meanwhile. */
bool stores_burying(const struct stores *stores, const char *name);
/* The memory of this thread's last answer is freed: a thread that ends keeps none. */
void stores_answered(void);
/* Closes all images, which stay in memory. Sessions that still hold a store must not be used
 * after it. */
void stores_free(struct stores *stores);

/*
 * Serves what is in memory: reads every header, opens its image, removes pieces that belong
 * to no image. A damaged store is kept and refused by name. complain() gets a sentence for
 * each thing that was wrong. -1: not all that is there is known, and none may be served.
 */
int stores_load(struct stores *stores, void (*complain)(void *arg, const char *text), void *arg);

/*
 * Where images are spilled to; NULL, as at first: nowhere.
 *
 * stores_load_spills() is due after stores_load() and before the first session. An image that is
 * in memory is newer than its spill, which is removed; one that is only spilled is loaded, with a
 * new id. Nothing is served whose spill is still there, and no spill that is damaged, or that finds
 * no memory, is loaded or removed. Returns how many were loaded; -1 as above.
 *
 * stores_spill() ends all sessions for good and writes every sound image, as far as it can. False:
 * there is nowhere to, or store_spill() has done so.
 */
struct spill_sum {
	unsigned stores; /* that were written */
	unsigned failed; /* that were not */
	uint64_t bytes;
};

struct consumed;

void stores_set_spill(struct stores *stores, struct spill *spill);
/* Where it is noted which spills were used up, before stores_load_spills(). NULL: nowhere, and a
 * spill that somebody puts back is loaded again. */
void stores_set_consumed(struct stores *stores, struct consumed *consumed);

/* What a daemon shares with others of the same label, and fails together with. "": not known. */
struct labels {
	char host[PS_NAME_MAX + 1];
	char rack[PS_NAME_MAX + 1];
	char zone[PS_NAME_MAX + 1];
};

void stores_set_labels(struct stores *stores, const struct labels *labels);
const struct labels *stores_labels(const struct stores *stores);
/* Fills in the labels, boot, memory and counts of a HostReply. Texts and bytes last as long as the
 * stores. */
void store_host(struct stores *stores, Perseas__HostReply *reply);
int stores_load_spills(struct stores *stores, void (*complain)(void *arg, const char *text),
                       void *arg);
bool stores_spill(struct stores *stores, struct spill_sum *sum,
                  void (*complain)(void *arg, const char *text), void *arg);

/* The handlers of the messages of the same names in control.proto. Replies are filled in
 * with memory that lives until the next call of the same thread, or its stores_answered(). */
/* Only the stores that `who` may read; NULL: all. So are the bytes that are used, but for who may
 * administer all stores. */
int store_list(struct stores *stores, const struct identity *who, Perseas__ListReply *reply,
               struct why *why);
/* Adds to that list the images that were set aside, and that `who` may see. */
int store_list_aside(struct stores *stores, const struct identity *who, Perseas__ListReply *reply,
                     struct why *why);
/* Fills in the list of a reply, empty so far, with what expires of the daemon's TLS files and has
 * reached this stage. Returns 0, or -NO_MEMORY. */
int store_tell_expiries(struct session *session, enum ps_expiry_stage stage, size_t *count,
                        Perseas__Expiry ***list, struct why *why);
/* 0, or a refusal: the store of this name, if there is one, has a higher level than this. */
int store_check_level(const struct stores *stores, const char *name, uint32_t level,
                      struct why *why);
int store_status(struct stores *stores, const char *name, Perseas__StoreStatus *status,
                 struct why *why);
/* `who`, if it is known, becomes the creator: its quotas count the store. */
int store_create(struct stores *stores, const struct identity *who,
                 const Perseas__CreateRequest *request, struct why *why);
int store_settle(struct stores *stores, const Perseas__SettleRequest *request, struct why *why);
int store_abandon(struct stores *stores, const Perseas__AbandonRequest *request, struct why *why);
int store_claim(struct stores *stores, struct session *session,
                const Perseas__ClaimRequest *request, Perseas__ClaimReply *reply, struct why *why);
int store_rebuild(struct stores *stores, struct session *session,
                  const Perseas__RebuildRequest *request, Perseas__RebuildReply *reply,
                  struct why *why);
int store_digest(struct stores *stores, const Perseas__DigestRequest *request,
                 Perseas__DigestReply *reply, struct why *why);
/* The reply points into the image. */
int store_read(struct stores *stores, const Perseas__ReadRequest *request,
               Perseas__ReadReply *reply, struct why *why);
int store_watch(struct stores *stores, const Perseas__WatchRequest *request,
                Perseas__WatchReply *reply, struct why *why);
int store_order(struct stores *stores, const Perseas__OrderRequest *request, struct why *why);
/* session is the sender's, or NULL if the sender has none. */
int store_drop(struct stores *stores, struct session *session, const Perseas__DropRequest *request,
               struct why *why);
/* When it is granted the daemon is to end. When it fails half way, with IO, sessions were ended,
 * but images are served on. */
int store_spill(struct stores *stores, Perseas__SpillReply *reply, struct why *why);

/* Notes who waits to own the store, as the Watch says it. */
void standby_note(struct stores *stores, struct session *session,
                  const Perseas__WatchRequest *request);
int store_move(struct stores *stores, const Perseas__MoveRequest *request, struct why *why);

/* Was its owner silent for too long, if for so many milliseconds? */
bool session_was_dead(const struct session *session, uint64_t silent_ms);

/* Is it as who watches has seen it? It may then be otherwise by time alone, in *ms at the earliest;
 * UINT64_MAX: never. */
bool store_is_as_seen(struct stores *stores, const Perseas__WatchRequest *request, uint64_t *ms);

/* All stores, in the order of their names; memory that lives as that of replies. -1: out of
 * memory. */
int stores_view(struct stores *stores, const struct store_view **views, size_t *count);
struct memory *stores_memory(const struct stores *stores);
/* The daemon's identity, as long as the stores last. */
ProtobufCBinaryData stores_daemon(struct stores *stores);

/* For the session that holds the claim; else -STATUS_NO_SESSION. */
int store_confirm(struct session *session, const Perseas__ConfirmRequest *request,
                  Perseas__ConfirmReply *reply, struct why *why);
int store_add_segments(struct session *session, const Perseas__AddSegmentsRequest *request,
                       Perseas__AddSegmentsReply *reply, struct why *why);
int store_drop_segments(struct session *session, const Perseas__DropSegmentsRequest *request,
                        Perseas__DropSegmentsReply *reply, struct why *why);
int store_publish(struct session *session, const Perseas__PublishRequest *request, struct why *why);
int store_destroy(struct session *session, const Perseas__DestroyRequest *request, struct why *why);
int store_finish(struct session *session, Perseas__FinishReply *reply, struct why *why);
int store_joining(struct session *session, const Perseas__JoiningRequest *request, struct why *why);
int store_roster(struct session *session, const Perseas__RosterRequest *request, struct why *why);
int store_release(struct session *session, struct why *why);

/*
 * Memory that an owner on this host was given can be truncated by it at any time; it reads as zeros
 * from then on (sigbus_guard.h), and what was read of it counts for nothing. session_torn() asks
 * that of the image that the session's data path leads to, before anything of it is acknowledged.
 * stores_notice_torn() finds every image that was torn since it was last asked: it is damaged from
 * then on, and its session is cut. True: there was one. Nobody calls it with a session of his own
 * in use.
 */
bool session_torn(const struct session *session);
bool stores_notice_torn(struct stores *stores);
/* After a request that names a store, if any ("": none): has its image been torn meanwhile? Then
 * its answer is this refusal. */
int store_check_torn(struct stores *stores, const char *name, struct why *why);

/*
 * Files of images may be removed or moved under the daemon, which goes on with what it has mapped.
 * stores_check_names() looks for that, and returns true if stores_mend_names() has something to do:
 * it makes images again in new files, which ends their sessions, while nothing else changes a
 * store. *again: this must be looked at again, whether names change or not.
 */
bool stores_check_names(struct stores *stores, bool *again);
void stores_mend_names(struct stores *stores);
/* Tells of each image that will be lost when the daemon ends now. */
void stores_report_lost(struct stores *stores, void (*complain)(void *arg, const char *text),
                        void *arg);

/* From now on the connection is the lifeline of the session whose token it shows. */
int store_lifeline(struct stores *stores, struct session *session,
                   const Perseas__LifelineRequest *request, struct why *why);
/* The session whose lifeline the connection is, if it still goes on; or NULL. */
struct session *stores_kept_by(struct stores *stores, const struct session *lifeline);

/* The control connection ended, with or without a release. Cuts the data paths. */
void store_session_ended(struct session *session);

/* The name of the store that the session holds, or NULL. */
const char *session_store(const struct session *session);

/* The session that a data connection's token opens, or NULL. */
struct session *stores_session(struct stores *stores, const uint8_t token[PS_ID_SIZE]);

/*
 * The memory of `length` bytes of a region of the session's image (beside, when it
 * rebuilds), or NULL: no session, no such region, out of its bounds, or a write to the promise.
 */
uint8_t *session_memory(struct session *session, uint32_t region, uint64_t offset, uint64_t length,
                        bool write);

/* The descriptors of the regions of the grant that was last filled in for this session, in
 * its order, for the caller to close; for shm. -1: they cannot be had. */
int session_descriptors(struct session *session, int fds[PS_REGIONS_MAX], unsigned *count);

#endif
