/*
 * perseas_standby.h - a process that waits to own a store, with all that can be done beforehand
 * done. perseas.h includes it; what that says of return values, strings and sentences holds here,
 * too.
 *
 * A standby has a thread of its own, which asks the mirrors who owns the store, and is told by them
 * when that changes (PROTOCOL.md, "Watch"). It claims nothing. perseas_standby_wait opens the store
 * when it has no owner, over connections that are there already: names are resolved, TLS is agreed
 * on, and the addresses of the store's segments are kept free in this process. Where a standby is
 * wrong about the owner, the mirrors refuse it, and it waits on: it never fences an owner that is
 * live (perseasd --owner-timeout), and of several standbys one gets the store. While no mirror
 * tells of the store, a list that was given by its name is looked up again every five seconds.
 *
 * With options.warm it also keeps a copy of the store's memory, which follows the owner's
 * transactions: it reads a mirror's log all the time, and what they change once more, warm_rate
 * bytes a second at most. What the copy has when the store is opened, and what the log shows not to
 * have changed since, perseas_map takes from here and not from a mirror, on demand or first
 * (options.recovery). A copy takes as much memory as the store, and as the log. Where it cannot be
 * shown to be right it is not used, and the report says so; it is begun anew when another process
 * becomes the owner, when the mirror it is read from is copied to or taken up again, and when the
 * log is overwritten before it could be read.
 *
 * Threads: one thread at a time may be in perseas_standby_wait. Any thread may call
 * perseas_standby_stat, perseas_standby_mirror, perseas_standby_fd and perseas_standby_cancel at
 * any time. perseas_standby_close must be the last call.
 *
 * Processes: a child of fork cannot use its parent's standby: its calls change nothing, and return
 * EINVAL (perseas_standby_close: 0). As long as it lives without exec it keeps the connections of
 * its parent open.
 */
#ifndef PERSEAS_STANDBY_H
#define PERSEAS_STANDBY_H

#include "perseas.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct perseas_standby perseas_standby_t;

/*
 * Begins to stand by for a store, and returns at once, or when the name of a list is looked up,
 * after connect_timeout_ms at most. *s is the caller's until perseas_standby_close; NULL on an
 * error.
 *
 * store, mirrors and options are as for perseas_open, which perseas_standby_wait does with them.
 * options.order says who comes first, and options.name what perseas move and perseas status call
 * this standby. PERSEAS_TAKEOVER, PERSEAS_SALVAGE and PERSEAS_CANCEL are refused. With
 * PERSEAS_CREATE the store is made if no mirror has it; otherwise perseas_standby_wait returns
 * ENOSTORE then. A mirror that comes into the store's roster is followed, too, and asked by the
 * open; one that leaves it is not.
 *
 * Errors: EINVAL, ENOMEM, ESYSTEM, ERDMA (an address asks for RDMA, and this host has none), ETLS
 * (a file of the options cannot be used); EUNREACHABLE, EPROTOCOL, ELIMIT (of the name of a list).
 */
int perseas_standby(const char *store, const char *mirrors, const struct perseas_options *options,
                    perseas_standby_t **s);

/*
 * Waits until the store has no owner and opens it, as perseas_open does. *p is the caller's until
 * perseas_close; NULL on an error. timeout_ms: how long it waits at most; negative: for ever; 0: it
 * opens the store if it is time to (perseas_standby_fd), and does not wait otherwise. An open that
 * has begun is neither cut short by that nor by perseas_standby_cancel: it may take
 * options.open_timeout_ms, and usually takes milliseconds.
 *
 * Where an operator hands the store over to another standby (perseas move), be it one with a name
 * or one of perseas run, that one is left 5 s to open it, as long as it is there: also by the
 * program that let go of it and waits again. The one that is meant waits for nobody. While it is
 * idle, also as the store's owner, it is no standby: nothing can be handed over to it then.
 *
 * Whoever finds that another process was faster, or that too few mirrors can be reached, waits on:
 * neither is an error. After an open that failed so, it rests for 100 ms, and each time for twice
 * as long, up to 10 s, unless a live owner is seen meanwhile.
 *
 * After 0 the standby is idle, and holds nothing of *p. The next call, once *p is closed, stands by
 * again. After an error it stands by as before.
 *
 * Errors: ETIMEOUT, ECANCELLED, EINVAL (also: another thread waits), ENOSTORE (all mirrors answered
 * and none has the store), and those of perseas_open but for EBUSY, EFENCED, EQUORUM and
 * EUNREACHABLE. If all mirrors refuse for a reason that only people can change (ETLS, EVERSION,
 * EPROTOCOL, EDENIED, ERDMA), that is returned as well.
 */
int perseas_standby_wait(perseas_standby_t *s, int64_t timeout_ms, perseas_t **p);

/*
 * A descriptor for poll, select and epoll, which can be read while perseas_standby_wait would not
 * wait: the store has no owner and it is this standby's turn, or there is an error, or somebody
 * cancelled. Do not read from it, and do not close it. It is the same until perseas_standby_close.
 * While the standby is idle it cannot be read: call perseas_standby_wait with 0 to stand by again.
 * Errors: EINVAL.
 */
int perseas_standby_fd(perseas_standby_t *s);

/*
 * Ends the wait that is under way with ECANCELLED, or else the next one. Any thread; also safe in a
 * signal handler. Errors: EINVAL.
 */
int perseas_standby_cancel(perseas_standby_t *s);

enum perseas_standby_state {
	PERSEAS_STANDBY_IDLE,    /* it does not follow the store */
	PERSEAS_STANDBY_UNKNOWN, /* too few mirrors answer to say who owns the store, or an open
	                            would not succeed with them */
	PERSEAS_STANDBY_OWNED,   /* the store has a live owner */
	PERSEAS_STANDBY_FREE,    /* it has none, but others come first, or this one rests */
	PERSEAS_STANDBY_DUE      /* it has none: perseas_standby_wait opens it at once */
};

/* How things stand, as the mirrors said it last. */
struct perseas_standby_stat {
	int state;         /* enum perseas_standby_state */
	uint32_t mirrors;  /* that perseas_standby_mirror tells of */
	uint32_t reached;  /* of these, that answered */
	uint32_t opens;    /* that perseas_standby_wait has begun, since the standby was made */
	uint64_t epoch;    /* OWNED: the owner's */
	char owner[256];   /* OWNED: where it is, as the mirrors see it; else "" */
	char text[512];    /* what it waits for, in half a sentence; never empty */
	char warning[512]; /* what would hinder the open or a map that follows, as an address of a
	                      segment that this process uses already; else "" */
	/* With options.warm. */
	uint64_t memory; /* bytes of the store's segments, as far as they are known */
	uint64_t warm;   /* of these, that the copy has as they are now; an open takes the rest from
	                    mirrors, and what has changed since */
};

/* Fills in *stat. Errors: EINVAL. */
int perseas_standby_stat(perseas_standby_t *s, struct perseas_standby_stat *stat);

struct perseas_standby_mirror {
	char address[256];
	int reached;       /* 1: it answered when it was asked last */
	char trouble[512]; /* why it did not, or why it has no image of use; else "" */
};

/* Fills in *mirror; index is 0 to perseas_standby_stat.mirrors - 1. Errors: EINVAL (also: there is
 * no such mirror). */
int perseas_standby_mirror(perseas_standby_t *s, unsigned index,
                           struct perseas_standby_mirror *mirror);

/* The name of a state, "owned" and so on; "unknown" for one that this version does not know. Never
 * NULL; the text is static. Any thread. */
const char *perseas_standby_state_name(int state);

/*
 * Ends the standby, and frees it. It does not close a handle that perseas_standby_wait gave. A look
 * at the mirrors that is under way is waited for: for options.connect_timeout_ms at most, or twice
 * that where the roster lists mirrors that were not given. s may be NULL. Always returns 0.
 */
int perseas_standby_close(perseas_standby_t *s);

#ifdef __cplusplus
}
#endif

#endif
