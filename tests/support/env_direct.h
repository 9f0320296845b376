/*
 * env_direct.h - mirrors and owners in one process and one thread, without delays: a request is
 * packed, handled by the store logic of a mirror that lies in the heap, and answered, all before
 * send returns; a posted write is in the mirror's memory when post returns. Completions, or
 * the writes themselves, can be held back, connections refused, cut, or broken at a chosen
 * write or request. Everything that reaches a mirror can be watched.
 *
 * The clock is not real: each reading advances it by a microsecond, and a thread that pauses or
 * waits moves it to the end of its wait.
 */
#ifndef PERSEAS_TESTS_ENV_DIRECT_H
#define PERSEAS_TESTS_ENV_DIRECT_H

#include "../../client/core/env.h"
#include "../../server/store/control.h"
#include "memory_heap.h"

#include <stdbool.h>

/* The part of a chain that a write belongs to. */
enum direct_part {
	DIRECT_UNDO, /* the record of a transaction */
	DIRECT_DATA, /* its after-images */
	DIRECT_SLOT, /* of a transaction, or of an adoption */
	DIRECT_COPY, /* contents of a segment or a log, outside of transactions */
};

struct direct_write {
	unsigned mirror, session;
	enum direct_part part;
	uint64_t chain; /* counts the chains of all links; its writes share it */
	uint32_t region;
	uint32_t length;
	uint64_t offset;
	const uint8_t *bytes;
};

/* Functions that a watcher gets called, in the order of events; NULL ones are skipped. */
struct direct_tap {
	void *arg;
	void (*request)(void *arg, unsigned mirror, unsigned session, const uint8_t *bytes,
	                size_t len);
	void (*write)(void *arg, const struct direct_write *write);
	void (*ended)(void *arg, unsigned mirror, unsigned session);
};

enum direct_hold {
	DIRECT_HOLD_NOTHING,
	DIRECT_HOLD_COMPLETIONS, /* of transactions: their writes are there */
	DIRECT_HOLD_WRITES,      /* of transactions: nothing is there; staged only */
};

struct direct_mirror {
	struct memory *memory;
	struct stores *stores; /* NULL: the daemon does not run */
	enum direct_hold hold;
	bool hung;           /* it takes connections and requests, and answers none of them */
	long writes_left;    /* after so many writes its data paths break; -1: never */
	uint32_t torn;       /* bytes of the write that broke them that arrived */
	int break_at;        /* the kind of request that breaks its connection, 0: none */
	unsigned break_skip; /* so many of these are let through first */
	bool reply_lost;     /* the request is handled before its connection breaks */
	int slow_at;         /* the kind of request that takes long, 0: none */
	uint64_t slow_ns;    /* how long it takes */
	unsigned version;    /* of the protocol, that its connections speak; 0: the present one */
	struct ps_expiries expiries; /* of its TLS files, which it tells and shows */
};

struct direct {
	struct direct_mirror mirrors[PS_MIRRORS_MAX];
	unsigned count;
	/* The mirror to which each address leads: its own, unless a test says otherwise, for
	 * instance for an owner on another host. */
	unsigned leads[PS_MIRRORS_MAX];
	bool staged;                 /* the fabric takes note of sources only */
	int cut_code;                /* what a link that its mirror cut off says: PS_LINK_… */
	bool no_threads;             /* spawn fails */
	uint64_t now;                /* ns */
	uint64_t clock;              /* ns since 1970, when `now` was 0; an operator may set it */
	struct ps_expiries expiries; /* of the owners' TLS files */
	uint64_t seed;               /* of what owners draw */
	const struct direct_tap *tap;
	/* Called in every pause, before the time has passed. May be NULL. */
	void (*on_pause)(void *arg);
	void *on_pause_arg;
	/* on_wait is called without the lock in every wait for another thread; NULL: there is no
	 * other thread. on_broadcast, which may be NULL, is called when the waiters of `cond` are
	 * woken. */
	void (*on_wait)(struct direct *d);
	void (*on_broadcast)(struct direct *d, const pthread_cond_t *cond);
	const pthread_cond_t *waits_for; /* in on_wait */
	uintptr_t thread;                /* that calls the library from now on */
	/* counts how often the waiters of this condition are woken: */
	const pthread_cond_t *watched;
	unsigned broadcasts;
	unsigned woken;                       /* enum ps_sleeper, a bit for each */
	const struct ps_pager_ops *pager;     /* of owners that open from now on; may be NULL */
	const struct ps_written_ops *written; /* the same */
	/* Told each line that an owner traces. May be NULL. */
	void (*on_trace)(void *arg, const char *line);
	void *on_trace_arg;
	unsigned complaints; /* things that were wrong when a daemon started */

	char list[PS_MIRRORS_MAX * 12];
	unsigned session_count;
	uint64_t chain_count;
	struct ps_control *controls;
	struct ps_link *links;
};

/* More than 0 while the calls of this file are at work: memory that they ask for is not
 * the library's. volatile, for compilers know that an allocator looks at nothing of ours. */
extern volatile unsigned direct_inside;

/* `count` mirrors without stores, sim://0 and so on. NULL: out of memory. */
struct direct *direct_new(unsigned count, uint64_t seed);

/* Frees everything. All handles must be closed. */
void direct_free(struct direct *d);

/* Returns the list of all mirrors for the library. */
const char *direct_list(const struct direct *d);

/* Returns an env for one handle, which owns it. */
struct ps_env *direct_env(struct direct *d);

/* perseas_create and perseas_open over all mirrors. The message is in *error. */
int direct_create(struct direct *d, const char *store, const struct perseas_options *options,
                  struct ps_error *error);
int direct_open(struct direct *d, const char *store, const struct perseas_options *options,
                perseas_t **p, struct ps_error *error);

/* The daemon of a mirror dies; its memory stays. */
void direct_crash(struct direct *d, unsigned mirror);

/* Starts the daemon with what is in its memory. */
void direct_start(struct direct *d, unsigned mirror);

/* The network drops every connection to the mirror, and both ends see it. */
void direct_cut(struct direct *d, unsigned mirror);

/* Makes the mirror hang, like a stopped process: it answers nothing on old or new connections. */
void direct_hang(struct direct *d, unsigned mirror);

/* Lets the mirror go on. It ends the connections on which it owes an answer. */
void direct_unhang(struct direct *d, unsigned mirror);

/* Up to `count` chains that were held back come through, the oldest first. */
void direct_release(struct direct *d, unsigned mirror, unsigned count);

/* Runs one round of the handle's collector, which must have begun. */
void direct_collect(perseas_t *p);

/* Runs one round of the handle's keeper, with every retry due; or, after this much time, the
 * next. */
void direct_keep(struct direct *d, perseas_t *p);
void direct_keep_after(struct direct *d, perseas_t *p, uint64_t ns);

#endif
