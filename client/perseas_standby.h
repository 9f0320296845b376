/*
 * perseas_standby.h - a process that waits to own a store, and has prepared for it. perseas.h
 * includes this header. Its rules for return values, strings and sentences apply here, too.
 *
 * A standby has a thread, which asks the mirrors who owns the store; the mirrors tell it when that
 * changes (PROTOCOL.md, "Watch"). It claims nothing. When the store has no owner,
 * perseas_standby_wait opens it over connections that exist already: names are resolved, TLS is
 * agreed on, and the addresses of the store's segments are kept free in this process. If a standby
 * is wrong about the owner, the mirrors refuse it, and it waits on: it never fences a live owner
 * (perseasd --owner-timeout), and only one of several standbys gets the store. While no mirror has
 * the store, a standby that was given a list by name looks the name up again every five seconds. It
 * neither creates a store nor returns ENOSTORE before that succeeds.
 *
 * With options.warm it also keeps a copy of the store's memory. It follows the owner's transactions
 * by reading a mirror's log, and then the bytes that they changed, warm_rate bytes a second at
 * most. When the store is opened, perseas_map takes from this copy whatever the log proves to be
 * unchanged, and the rest from a mirror, first or on demand (options.recovery). A copy takes as
 * much memory as the store and its log. If it cannot be proven right, it is not used, and the
 * report says so. The copy begins anew when another process becomes the owner, when the mirror that
 * it reads is copied to or reconnected, and when the log was overwritten before it was read.
 *
 * Threads: one thread at a time may be in perseas_standby_wait. Any thread may call
 * perseas_standby_stat, perseas_standby_mirror, perseas_standby_fd and perseas_standby_cancel at
 * any time. perseas_standby_close must be the last call.
 *
 * Processes: a child of fork cannot use its parent's standby: its calls change nothing, and return
 * EINVAL (perseas_standby_close: 0). Until it calls exec or ends, it keeps its parent's connections
 * open.
 */
#ifndef PERSEAS_STANDBY_H
#define PERSEAS_STANDBY_H

#include "perseas.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct perseas_standby perseas_standby_t;

/*
 * Begins to stand by for a store, and returns at once. If mirrors names a list, it first looks the
 * name up, for at most connect_timeout_ms. The caller owns *s until perseas_standby_close; *s is
 * NULL on an error.
 *
 * store, mirrors and options are as for perseas_open, to which perseas_standby_wait passes them.
 * options.order says which standby goes first, and options.name how perseas move and perseas status
 * call this one. PERSEAS_TAKEOVER, PERSEAS_SALVAGE and PERSEAS_CANCEL are refused. If no mirror has
 * the store, perseas_standby_wait creates it with PERSEAS_CREATE, and returns ENOSTORE without. It
 * also returns ENOSTORE if this standby ever saw or made the store, because a new one would be
 * empty. The standby also watches mirrors that join the roster later, and does not watch those that
 * leave. As long as it lives, it knows the newest roster that it saw or had as the owner: a mirror
 * that was called gone and comes back alone is not opened as the store.
 *
 * Errors: EINVAL, ENOMEM, ESYSTEM, ERDMA (an address asks for RDMA, and this host has none), ETLS
 * (a file of the options cannot be used); for the name of a list: EUNREACHABLE, EPROTOCOL, ELIMIT.
 */
int perseas_standby(const char *store, const char *mirrors, const struct perseas_options *options,
                    perseas_standby_t **s);

/*
 * Waits until the store has no owner, and opens it as perseas_open does. The caller owns *p until
 * perseas_close; *p is NULL on an error. Waits for at most timeout_ms; negative: without a limit;
 * 0: opens the store only if it can do so now (perseas_standby_fd). Neither the time limit nor
 * perseas_standby_cancel ends an open that has begun: it may take options.open_timeout_ms, and
 * usually takes milliseconds.
 *
 * When an operator hands the store over to a certain standby (perseas move), all others leave that
 * standby 5 s to open it, as long as it runs; so does the program that gave the store up and waits
 * again. The standby itself does not wait. While a standby is idle, for example because it owns the
 * store, nothing can be handed over to it.
 *
 * If another process was faster, or too few mirrors can be reached, the call waits on; neither is
 * an error. After an open that failed so, it pauses for 100 ms, and each time for twice as long, up
 * to 10 s, unless it sees a live owner meanwhile.
 *
 * After 0 the standby is idle, and independent of *p. The next call after *p is closed makes it
 * stand by again. After an error it still stands by.
 *
 * Errors: ETIMEOUT, ECANCELLED, EINVAL (also: another thread waits), ENOSTORE (all mirrors answered
 * and none has the store), and those of perseas_open except EBUSY, EFENCED, EQUORUM and
 * EUNREACHABLE. ETLS, EVERSION, EPROTOCOL, EDENIED and ERDMA are returned if all mirrors refuse for
 * such a reason, which only people can change.
 */
int perseas_standby_wait(perseas_standby_t *s, int64_t timeout_ms, perseas_t **p);

/*
 * Returns a descriptor that tells when to open the store (for poll, select and epoll). It is
 * readable while perseas_standby_wait would return or open the store at once: the store has no
 * owner and it is this standby's turn, or there is an error, or the wait was cancelled. Do not read
 * from it, and do not close it. It stays the same until perseas_standby_close. It is not readable
 * while the standby is idle: call perseas_standby_wait with 0 to stand by again. Errors: EINVAL.
 */
int perseas_standby_fd(perseas_standby_t *s);

/*
 * Ends the present wait, or else the next one, with ECANCELLED. Any thread may call this; it is
 * also safe in a signal handler. Errors: EINVAL.
 */
int perseas_standby_cancel(perseas_standby_t *s);

enum perseas_standby_state {
	PERSEAS_STANDBY_IDLE,    /* it does not watch the store */
	PERSEAS_STANDBY_UNKNOWN, /* too few mirrors answer to tell who owns the store, or an open
	                            would not succeed with them */
	PERSEAS_STANDBY_OWNED,   /* the store has a live owner */
	PERSEAS_STANDBY_FREE,    /* it has no owner, but other standbys go first, or this one
	                            pauses */
	PERSEAS_STANDBY_DUE      /* it has no owner: perseas_standby_wait opens it at once */
};

/* What the mirrors told the standby last. */
struct perseas_standby_stat {
	int state;         /* enum perseas_standby_state */
	uint32_t mirrors;  /* number of mirrors, for perseas_standby_mirror */
	uint32_t reached;  /* mirrors that answered */
	uint32_t opens;    /* opens that perseas_standby_wait has begun since perseas_standby */
	uint64_t epoch;    /* OWNED: the owner's epoch */
	char owner[256];   /* OWNED: the owner's address, as the mirrors see it; else "" */
	char text[512];    /* what the standby waits for, in half a sentence; never empty */
	char warning[512]; /* what would prevent the open or a later map, such as an address of a
	                      segment that this process uses already; else "" */
	/* With options.warm. */
	uint64_t memory; /* bytes of the store's segments, as far as they are known */
	uint64_t warm;   /* bytes of them that are up to date in the copy; an open reads the rest,
	                    and what has changed since, from mirrors */
};

/* Fills in *stat with what the standby knows. Errors: EINVAL. */
int perseas_standby_stat(perseas_standby_t *s, struct perseas_standby_stat *stat);

struct perseas_standby_mirror {
	char address[256];
	int reached;       /* 1: it answered the last question */
	char trouble[512]; /* why it did not answer, or why its image is of no use; else "" */
};

/* Fills in *mirror with what the standby knows of one mirror; index is 0 to
 * perseas_standby_stat.mirrors - 1. Errors: EINVAL (also: index is too large). */
int perseas_standby_mirror(perseas_standby_t *s, unsigned index,
                           struct perseas_standby_mirror *mirror);

/* Returns the name of a state, such as "owned"; "unknown" for a state that this version does not
 * know. Never NULL; the text is static. Any thread. */
const char *perseas_standby_state_name(int state);

/*
 * Ends the standby, and frees it. Handles from perseas_standby_wait stay open. If the standby is
 * just asking the mirrors, the call waits for that: for at most options.connect_timeout_ms, or
 * twice that if the roster lists mirrors that were not given. s may be NULL. Always returns 0.
 */
int perseas_standby_close(perseas_standby_t *s);

#ifdef __cplusplus
}
#endif

#endif
