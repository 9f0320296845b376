/*
 * target.h - the mirror's end of a fabric, one file for each: target_tcp.c, target_shm.c,
 * target_verbs.c. daemon.c calls all of them in the order of TARGETS; the store logic reaches them
 * through session_ops (store.h).
 *
 * A target keeps the order of writes (F1 of client/core/fabric.h), and the following rules:
 *
 * - Sessions and images are used only inside the lock, between daemon_lock() and daemon_unlock()
 *   (lanes.h). The members below are called inside; callbacks of the target's own events lock and
 *   unlock by themselves.
 * - A data path shows the token of a grant, and stores_find_session() returns the session with that
 *   token. A path that shows none within HANDSHAKE_SECONDS is closed. If the peer of the path has
 *   an identity, it must be that of the session.
 * - A session has one data path, of any fabric. A second path is refused, or
 * daemon_cut_data_paths() ends the
 *   first before the second is bound. session->fabric is the target's name while there is a path.
 * - session_memory() returns the memory for a write, and refuses what the owner must not touch. It
 *   must be called for each frame, because the session's next request may move the image. A device
 *   that keeps memory registered releases it when stores_on_unmap() says so.
 * - session_is_torn() must be called before anything is acknowledged. If it returns true, nothing
 *   is acknowledged, the path ends, and stores_notice_torn() must be called.
 * - A path counts for admission control (admission.h) as an owner's connection. In a busy loop it
 *   leaves its data unread while daemon_must_pause_owners() returns true, until resume().
 */
#ifndef PERSEAS_SERVER_TARGET_H
#define PERSEAS_SERVER_TARGET_H

#include "store.h"

struct event_base;
struct daemon;

/* A fabric of this daemon. Functions that a fabric does not need are NULL. */
struct target {
	const char *name; /* "tcp", "shm", "rdma" */
	/* Adds what the owner needs (keys, addresses, the listener) to a grant. The data must stay
	 * valid until the reply is packed. A target without options may begin to listen here, at
	 * its first grant; one that has options is started by main.c, as by rdma_start(). */
	void (*grant)(struct daemon *daemon, struct session *session, Perseas__Grant *grant);
	/* Returns true if the session could use this fabric. Otherwise `why` has the reason. */
	bool (*offers)(struct daemon *daemon, struct session *session, char *why, size_t size);
	/* Ends the session's data path (see session_ops.cut). */
	void (*cut)(struct daemon *daemon, struct session *session);
	/* Resumes data paths that paused because of daemon_must_pause_owners(). */
	void (*resume)(struct daemon *daemon);
	/* Moves data on all paths without blocking, while the loop spins. Returns true if anything
	 * moved. */
	bool (*spin)(struct daemon *daemon);
	/* Ends all data paths and frees the fabric's resources. All sessions have ended, and no
	 * other begins. May be called twice, and before anything has begun. */
	void (*stop)(struct daemon *daemon);
};

/* The fabrics of this daemon. A row X(NAME) declares target_NAME and registers it in daemon.c. */
#if PERSEAS_RDMA
#define TARGETS_RDMA(X) X(rdma)
#else
#define TARGETS_RDMA(X)
#endif
#define TARGETS(X) \
	X(tcp)     \
	X(shm)     \
	TARGETS_RDMA(X)

#define TARGET_DECLARED(name) extern const struct target target_##name;
TARGETS(TARGET_DECLARED)
#undef TARGET_DECLARED

#endif
