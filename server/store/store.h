/*
 * store.h - the stores of a mirror and the rules that it follows (I5 to I9), without I/O: no
 * sockets, no clock, and files only through memory.h.
 *
 * Every function that can refuse returns 0, or a negative Perseas__Status with a sentence in `why`,
 * having changed nothing.
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
	char text[768];          /* a sentence, for the reply */
	uint64_t promised_epoch; /* the store's promised epoch, for STALE_EPOCH and BUSY */
};

/* A control connection, as the store logic sees it. A claim makes the connection the session of a
 * store's owner. A release, a later claim, or the end of the connection ends the session. */
struct session;

/* A process that was given the memory of an image, and may outlive its session. */
struct holder {
	/* Returns false only if the process is known to be dead, so that it cannot write. */
	bool (*may_write)(struct holder *holder);
	/* If the process is about to end, waits until it has ended: a killed process keeps its
	 * memory until the kernel has unmapped it. Does not wait for a process that continues, even
	 * a stopped one. Waits at most *left_ms, which it reduces, and only until the job is
	 * cancelled. Runs outside of the loop and uses only the holder. NULL: there is no way to
	 * wait. */
	void (*await_end)(struct holder *holder, uint32_t *left_ms);
	void (*free)(struct holder *holder);
};

struct session_ops {
	/* Ends the session's data paths (I5): tcp closes the connection with everything buffered;
	 * rdma destroys the queue pair and makes sure that it is gone. After it returns, no data of
	 * the session reaches the image over them. The control connection stays open. */
	void (*cut)(struct session *session);
	/* shm: returns false only if the process at the other end is known to be dead (by its
	 * pidfd), so that it cannot write to memory that it was given. */
	bool (*may_write)(struct session *session);
	/* shm: returns the process at the other end, for the time after the session. NULL, or a
	 * NULL result: the process is unknown and assumed to be alive. */
	struct holder *(*get_holder)(struct session *session);
	/* Returns for how many milliseconds nothing was received on the control connection, or
	 * UINT64_MAX if the process at the other end is dead. NULL: an owner is alive as long as it
	 * is connected. */
	uint64_t (*silent_ms)(struct session *session);
	/* Returns this host's clock in ns since 1970, for replies only. NULL: replies have no
	 * clock. */
	uint64_t (*clock_ns)(struct session *session);
	/* Returns the expiry dates of the certificates in use, valid until the reply is packed.
	 * NULL: none. */
	const struct ps_expiries *(*expiries)(struct session *session);
	/* Fills in how busy this host is. NULL: unknown. */
	void (*load)(struct session *session, Perseas__HostReply *reply);
	/* Adds to a grant what the daemon's fabrics offer the session. The data must stay valid
	 * until the reply is packed. NULL: nothing to add. */
	void (*grant)(struct session *session, Perseas__Grant *grant);
	/* Returns true if the session could use RDMA. Otherwise `why` has the reason. NULL means
	 * false. */
	bool (*offers_rdma)(struct session *session, char *why, size_t size);
	/* Returns true if the daemon has capacity for one more owner. NULL means true. */
	bool (*has_room_for_owner)(const struct session *session);
};

/* The connection sets ops, local, peer, identity and fabric; the store logic sets the rest.
 * Initialize to zero. */
struct standby;

struct session {
	const struct session_ops *ops;
	struct store *store;       /* the store that it has claimed, or NULL */
	uint64_t epoch;            /* epoch of the claim */
	uint8_t owner[PS_ID_SIZE]; /* id of the owner */
	uint8_t token[PS_ID_SIZE]; /* names the session on its data path; random for each claim */
	bool shared;               /* the owner was given descriptors of the memory */
	bool rdma;                 /* the owner asked for RDMA keys of the memory */
	bool opened;               /* the token has opened a data path, which is allowed once */
	bool is_rebuilding;        /* the data path leads to store->rebuilt */
	unsigned version;          /* protocol version that the peer speaks; 0: the newest */
	/* The peer is on a Unix socket, over which descriptors can be sent. */
	bool local;
	/* Identity of the peer, for access rules and quotas. The data connection must have the same
	 * identity. */
	struct identity identity;
	char peer[128];              /* address of the peer, for messages */
	const char *fabric;          /* name of the target of the data path; NULL: no data path */
	struct standby *standby;     /* says for which store the peer waits; NULL: for none */
	struct copy_turn *copy_turn; /* its owner's copy has its turn here; NULL: it has none */
	/* Token of the session that ends when this connection ends, or zeros. Only for a connection
	 * without a claim. */
	uint8_t lifeline[PS_ID_SIZE];
};

/* Events of a store, for logs and counters. */
enum store_event {
	STORE_CREATED,
	STORE_CLAIMED, /* claimed, or remade, by the session's owner */
	STORE_FENCED,  /* the session lost the store to a claim by another owner */
	/* The session lost the store because it used more memory than its quota. */
	STORE_QUOTA_EXCEEDED,
	STORE_SESSION_ENDED, /* a session ended, also by one of the two events above */
	STORE_RESYNC_BEGUN,  /* the image is about to be changed in place */
	STORE_REBUILD_BEGUN, /* an image is being made, next to the present one or alone */
	STORE_CONSISTENT,    /* a resync or rebuild is complete */
	STORE_DAMAGED,
	STORE_DROPPED,
	STORE_HANDOVER_REQUESTED, /* the owner is asked to hand the store over */
	STORE_FILES_MISSING,      /* a restart of the daemon would not find the image */
	STORE_FILES_RESTORED,     /* a restart would find it again */
	STORE_HANDOVER_WITHDRAWN, /* the handover was withdrawn */
	STORE_EVENTS
};

struct store_event_info {
	enum store_event event;
	const char *store;
	const struct session *session; /* session of the event; NULL: none */
	uint64_t epoch, seq;           /* 0: none */
	const char *restart_loss;      /* as in struct store_view */
};

/* A store, for metrics and the status page. status->header is NULL if the header cannot be read. */
struct store_view {
	const char *name;
	const char *damage; /* why the image is refused; "": the image is sound */
	bool is_unread;     /* the image could not be opened or loaded, and may be sound */
	/* Why a restart would lose the image; "": its files are in place. */
	const char *restart_loss;
	/* Number of events by enum store_event, since the store is served. */
	const uint64_t *events;
	const Perseas__StoreStatus *status;
};

/* Makes an empty table of stores. Returns NULL if memory is out. */
struct stores *stores_new(struct memory *memory);
/* Sets a function that is called for each event, before the function that causes it returns. It
 * must not call any function of this file except session_store(). NULL, the default: no
 * function. */
void stores_on_event(struct stores *stores,
                     void (*on_event)(void *arg, const struct store_event_info *news), void *arg);
/* Sets a function that is called for each piece before its memory is unmapped, so that devices can
 * unregister it. NULL: none. */
void stores_on_unmap(struct stores *stores,
                     void (*before_unmap)(void *arg, const struct piece *piece), void *arg);
/* Sets after how many milliseconds of silence an owner no longer counts as alive. 0, the default:
 * an owner is alive as long as it is connected. */
void stores_set_owner_timeout(struct stores *stores, uint64_t ms);
/* Sets for how long all claims of an image together wait for a process that was given the image's
 * memory and is about to end (default 5,000 ms). */
void stores_set_holder_wait(struct stores *stores, uint32_t ms);
/* Sets how many copies to this daemon's images go on at a time, if their owners ask; urgent ones
 * count apart. Default 1; 0: any number. */
void stores_set_copies(struct stores *stores, uint32_t count);
/* Sets a monotonic clock in ns, for handovers and copies. NULL, the default: time stands still. */
void stores_set_clock(struct stores *stores, uint64_t (*now_ns)(void));
/* Sets the access rules, which must stay valid until the next call. NULL, the default, allows
 * everything. Cuts every session whose identity may no longer own its store: retires its promise,
 * ends its data paths, and, if a process on this host has the image's memory, copies the image as a
 * claim would (if the copy fails, the next claim does it). Gives up the turn (jobs.h); no request
 * may change a store in the meantime. Returns how many sessions were cut. */
unsigned stores_set_access(struct stores *stores, const struct access *access);
/* If the quota of an image's creator or the limit of the mirror is exceeded, cuts sessions that
 * used more memory than was reserved for their images, as stores_set_access() does. Truncates all
 * files to their sizes. Returns how many sessions were cut. */
unsigned stores_cut_excess(struct stores *stores);
/* Returns the bytes that files of images occupy beyond what was reserved for them. */
uint64_t stores_excess(const struct stores *stores);
/* Returns true if any process was given memory of an image, as far as is known. */
bool stores_share_memory(const struct stores *stores);
/* Returns the access rules that stores_set_access() has set. */
const struct access *stores_access(const struct stores *stores);
/* Begin and end a request that works on the store with this name, in the job of this thread. */
void stores_begin_request(struct stores *stores, const char *name);
void stores_end_request(struct stores *stores, const char *name);
/* Returns true if memory of the store (NULL: of any store) is being freed outside of the loop. The
 * freed pieces still have their names, so no request that changes the store may begin. */
bool stores_are_freeing(const struct stores *stores, const char *name);
/* Frees the memory of this thread's last reply. Call it before the thread ends. */
void stores_free_reply(void);
/* Closes all images, which stay in memory. Sessions that hold a store must not be used
 * afterwards. */
void stores_free(struct stores *stores);

/* Loads what is in memory: reads every header, opens its image, and removes pieces that belong to
 * no image. A damaged store is kept and refused by name. Calls complain() with a sentence for each
 * problem. Returns -1 if some stores may be unknown; then none may be served. */
int stores_load(struct stores *stores, void (*complain)(void *arg, const char *text), void *arg);

/* Sets where images are spilled. NULL, the default: nowhere.
 *
 * Call stores_load_spills() after stores_load() and before the first session. An image in memory is
 * newer than its spill, which is removed. A spill without an image in memory is loaded, with a new
 * image id, and then removed. If a spill cannot be removed, its store is not served. A spill that
 * is damaged or does not fit into memory is neither loaded nor removed. Returns how many spills
 * were loaded, or -1 like stores_load().
 *
 * stores_spill() ends all sessions for good and spills every sound image, as far as possible.
 * Returns false if there is no spill directory or store_spill() has spilled the stores. */
struct spill_sum {
	unsigned stores; /* number of stores that were spilled */
	unsigned failed; /* number of stores that could not be spilled */
	uint64_t bytes;
	const char *directory; /* where they were written */
};

struct used_spills;

void stores_set_spill(struct stores *stores, struct spill *spill);
/* Sets where used spills are recorded. Call before stores_load_spills(). NULL: nowhere, so a spill
 * that somebody puts back is loaded again. */
void stores_set_used_spills(struct stores *stores, struct used_spills *used_spills);

/* Failure domains of a daemon: daemons with the same label may fail together. "": unknown. */
struct labels {
	char host[PS_NAME_MAX + 1];
	char rack[PS_NAME_MAX + 1];
	char zone[PS_NAME_MAX + 1];
};

void stores_set_labels(struct stores *stores, const struct labels *labels);
const struct labels *stores_labels(const struct stores *stores);
/* Fills in the labels, boot, memory and counts of a HostReply, which points into the stores. */
void store_host(struct stores *stores, Perseas__HostReply *reply);
/* Returns where this daemon runs, as a message that points into the stores. Returns NULL if labels
 * and boot are unknown or memory is out. */
Perseas__Location *store_location(const struct stores *stores);
int stores_load_spills(struct stores *stores, void (*complain)(void *arg, const char *text),
                       void *arg);
bool stores_spill(struct stores *stores, struct spill_sum *sum,
                  void (*complain)(void *arg, const char *text), void *arg);

/* Handlers of the messages of the same names in control.proto. Their replies point to memory that
 * is valid until this thread's next call or its stores_free_reply(). */
/* Lists only stores that `who` may read; NULL: all. The bytes in use are those of the listed
 * stores, unless `who` may administer all stores. */
int store_list(struct stores *stores, const struct identity *who, Perseas__ListReply *reply,
               struct why *why);
/* Adds to the reply the images without known headers that are refused and that `who` may see. */
int store_list_refused(struct stores *stores, const struct identity *who, Perseas__ListReply *reply,
                       struct why *why);
/* Adds to the reply the images that were set aside and that `who` may see. */
int store_list_set_aside(struct stores *stores, const struct identity *who,
                         Perseas__ListReply *reply, struct why *why);
/* Fills in a list of the expiry dates of the daemon's TLS files that have reached `stage`. The list
 * must be empty. Returns 0 or -STATUS_NO_MEMORY. */
int store_tell_expiries(struct session *session, enum ps_expiry_stage stage, size_t *count,
                        Perseas__Expiry ***list, struct why *why);
/* Returns 0, or a refusal if the store exists and has a level above `level`. The level of a store
 * says which features it uses (PROTOCOL.md). */
int store_check_level(const struct stores *stores, const char *name, uint32_t level,
                      struct why *why);
int store_status(struct stores *stores, const char *name, Perseas__StoreStatus *status,
                 struct why *why);
/* Gives the session the turn to copy to the store's image here, or tells its place in the line. */
int store_copy_turn(struct stores *stores, struct session *session,
                    const Perseas__CopyTurnRequest *request, Perseas__CopyTurnReply *reply,
                    struct why *why);
/* The identity `who`, if it is known, becomes the creator, whose quotas count the store. */
int store_create(struct stores *stores, const struct identity *who,
                 const Perseas__CreateRequest *request, struct why *why);
/* Completes the creation of a store. */
int store_settle(struct stores *stores, const Perseas__SettleRequest *request, struct why *why);
/* Removes a store that was created and not settled. */
int store_abandon(struct stores *stores, const Perseas__AbandonRequest *request, struct why *why);
int store_claim(struct stores *stores, struct session *session,
                const Perseas__ClaimRequest *request, Perseas__ClaimReply *reply, struct why *why);
int store_rebuild(struct stores *stores, struct session *session,
                  const Perseas__RebuildRequest *request, Perseas__RebuildReply *reply,
                  struct why *why);
int store_digest(struct stores *stores, const Perseas__DigestRequest *request,
                 Perseas__DigestReply *reply, struct why *why);
/* The reply points into the store's image. */
int store_read(struct stores *stores, const Perseas__ReadRequest *request,
               Perseas__ReadReply *reply, struct why *why);
int store_watch(struct stores *stores, const Perseas__WatchRequest *request,
                Perseas__WatchReply *reply, struct why *why);
int store_order(struct stores *stores, const Perseas__OrderRequest *request, struct why *why);
/* `session` is that of the request's sender, or NULL. */
int store_drop(struct stores *stores, struct session *session, const Perseas__DropRequest *request,
               struct why *why);
/* On success the daemon must exit. A failure with IO may have ended all sessions; the images are
 * still served. */
int store_spill(struct stores *stores, Perseas__SpillReply *reply, struct why *why);

/* Records the sender of the Watch as a standby, if the Watch says that it waits to own the
 * store. */
void standby_record(struct stores *stores, struct session *session,
                    const Perseas__WatchRequest *request);
int store_move(struct stores *stores, const Perseas__MoveRequest *request, struct why *why);

/* Returns true if the session's owner counts as dead after so much silence. */
bool session_silence_exceeds_limit(const struct session *session, uint64_t silent_ms);

/* Returns true if the store is still in the state that the Watch names. Sets *ms to the time after
 * which the passing of time alone may change the state; UINT64_MAX: never. */
bool store_is_unchanged(struct stores *stores, const Perseas__WatchRequest *request, uint64_t *ms);

/* Lists all stores by name, in memory that is valid as long as that of replies. Returns 0, or -1 if
 * memory is out. */
int stores_view(struct stores *stores, const struct store_view **views, size_t *count);
struct memory *stores_memory(const struct stores *stores);
/* Returns the daemon's identity, as bytes in `stores`. */
ProtobufCBinaryData stores_daemon_id(struct stores *stores);

/* Handlers for the session that holds the claim. Otherwise they return -STATUS_NO_SESSION. */
int store_confirm(struct session *session, const Perseas__ConfirmRequest *request,
                  Perseas__ConfirmReply *reply, struct why *why);
int store_add_segments(struct session *session, const Perseas__AddSegmentsRequest *request,
                       Perseas__AddSegmentsReply *reply, struct why *why);
int store_drop_segments(struct session *session, const Perseas__DropSegmentsRequest *request,
                        Perseas__DropSegmentsReply *reply, struct why *why);
int store_publish(struct session *session, const Perseas__PublishRequest *request, struct why *why);
int store_destroy(struct session *session, const Perseas__DestroyRequest *request, struct why *why);
/* Completes a rebuild or a resync: the image is consistent from now on. */
int store_finish(struct session *session, Perseas__FinishReply *reply, struct why *why);
/* Begins a resync: the image is about to be changed in place. */
int store_joining(struct session *session, const Perseas__JoiningRequest *request, struct why *why);
int store_roster(struct session *session, const Perseas__RosterRequest *request, struct why *why);
int store_release(struct session *session, struct why *why);

/* An owner on this host that was given an image's memory can truncate it at any time. The memory
 * then reads as zeros (sigbus_guard.h), and nothing read from it may be used: the image is torn.
 * session_is_torn() checks the image of the session's data path, and must be called before any data
 * is acknowledged. stores_notice_torn() finds every image that was torn since its last call, marks
 * it damaged and cuts its session. Returns true if it found such an image. The caller must not be
 * using a session. */
bool session_is_torn(const struct session *session);
bool stores_notice_torn(struct stores *stores);
/* Call after a request that named a store ("": none). Returns a refusal, which replaces the reply,
 * if the store's image was torn in the meantime. */
int store_check_torn(struct stores *stores, const char *name, struct why *why);

/* Other programs may remove or rename files of images while the daemon runs, which continues with
 * its mappings. stores_check_names() looks for such files, and returns true if
 * stores_repair_names() can repair an image. Sets *again if the check must be repeated even if no
 * name changes. stores_repair_names() copies images to new files, which ends their sessions;
 * nothing else may change a store in the meantime. */
bool stores_check_names(struct stores *stores, bool *again);
void stores_repair_names(struct stores *stores);
/* Restores the spill directory if it was removed. Returns false with the reason in `why` if the
 * next daemon would not find new spills. */
bool stores_restore_spill_directory(struct stores *stores, char *why, size_t size);
/* Reports each image that will be lost if the daemon exits now. */
void stores_report_lost(struct stores *stores, void (*complain)(void *arg, const char *text),
                        void *arg);

/* Makes the connection the lifeline of the session with this token: the session ends when the
 * connection ends. */
int store_lifeline(struct stores *stores, struct session *session,
                   const Perseas__LifelineRequest *request, struct why *why);
/* Returns the session whose lifeline this connection is, or NULL if it is no lifeline. */
struct session *stores_find_lifeline_session(struct stores *stores, const struct session *lifeline);

/* Ends the session of a control connection that was closed. Cuts its data paths. */
void store_session_ended(struct session *session);

/* Returns the name of the store that the session holds, or NULL. */
const char *session_store(const struct session *session);

/* Returns the session that a data connection with this token belongs to, or NULL. */
struct session *stores_find_session(struct stores *stores, const uint8_t token[PS_ID_SIZE]);

/* Returns the memory of `length` bytes of a region of the session's image (of store->rebuilt during
 * a rebuild). Returns NULL if the session has no claim, the bytes lie outside of a region, or
 * `write` is true for the promise page. */
uint8_t *session_memory(struct session *session, uint32_t region, uint64_t offset, uint64_t length,
                        bool write);

/* Opens descriptors of the regions in the last grant of this session, in the same order, for shm.
 * The caller closes them. Returns -1 on failure. */
int session_descriptors(struct session *session, int fds[PS_REGIONS_MAX], unsigned *count);

#endif
