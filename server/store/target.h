/*
 * target.h - how a fabric's data path ends at a mirror: one file a fabric (target_tcp.c,
 * target_shm.c, target_verbs.c). The control connection (control_loop.c) owns the
 * targets of its session; store.c reaches them through session_ops.
 */
#ifndef PERSEAS_SERVER_TARGET_H
#define PERSEAS_SERVER_TARGET_H

#include "store.h"

struct event_base;
struct daemon;

/*
 * A fabric at this daemon. Fields that a fabric does not need are NULL.
 */
struct target {
	const char *name; /* "tcp", "shm", "rdma" */
	/* Adds what the owner needs (keys, addresses, the listener) to a grant on its way. */
	void (*grant)(struct daemon *daemon, struct session *session, Perseas__Grant *grant);
	/* Could the session have a data path of this fabric? If not, `why` becomes the reason. */
	bool (*offers)(struct daemon *daemon, struct session *session, char *why, size_t size);
	/* Ends the session's data path; see session_ops.cut. */
	void (*cut)(struct daemon *daemon, struct session *session);
	/* Data paths that paused for daemon_owners_pause() go on. */
	void (*resume)(struct daemon *daemon);
	/* Moves data paths on without waiting, while the loop spins. True: something moved. */
	bool (*spin)(struct daemon *daemon);
	/* Ends all data paths, and gives back what the fabric has: sessions are over, and no other
	 * begins. It may be called again, and where nothing was begun. */
	void (*stop)(struct daemon *daemon);
};

/* The fabrics of the daemon. A row X(NAME) declares target_NAME, and makes daemon.c ask it. */
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
