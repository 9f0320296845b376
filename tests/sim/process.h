/*
 * process.h - the process of an owner: its threads (application, keeper) as coroutines, what they
 * wait for, and how a process is stopped, woken and killed.
 */
#ifndef PERSEAS_SIM_PROCESS_H
#define PERSEAS_SIM_PROCESS_H

#include "../../client/core/demand.h"
#include "../../client/core/env.h"
#include "../support/coroutine.h"
#include "net.h"
#include "oracle.h"

struct sim_task;
struct ps_control;
struct ps_link;

/* The first member of everything that has a descriptor number. */
struct sim_endpoint {
	bool (*ready)(const struct sim_endpoint *endpoint, short events);
};

/* A wait of a task: for any of these endpoints, a wake-up, or the time. */
struct sim_wait {
	uint64_t until;
	int sleeper; /* enum ps_sleeper to be woken as, -1: none */
	const struct pollfd *fds;
	unsigned count;
	pthread_cond_t *cond;
	const bool *flag; /* becomes true */
};

struct sim_task {
	struct sim_owner *owner;
	struct coroutine *coroutine;
	void (*fn)(void *arg);
	void *arg;
	bool blocked, signalled, scheduled;
	bool deferred; /* to be resumed when the process is woken */
	bool ended;
	bool confirms;   /* inside perseas_confirm */
	uint64_t ticket; /* of the wait */
	struct sim_wait wait;
	/* Called where the transaction that this task commits takes its seq; NULL: none does. It is
	 * cleared before the call, which may set it again. */
	void (*sealing)(void *arg);
	/* Called instead where it is held back. */
	void (*holding)(void *arg);
	void *sealed;
};

enum sim_stop { SIM_STOP, SIM_CRASH };

/* The fetchers are the lanes of recovery on demand, as in enum ps_lane. The readers read mirrors'
 * memory for the second of them, one each. */
enum {
	SIM_APP,
	SIM_SECOND,
	SIM_OPERATOR,
	SIM_KEEPER,
	SIM_FETCHER,
	SIM_COLLECTOR = SIM_FETCHER + PS_LANES,
	SIM_READER,
	SIM_TASKS = SIM_READER + SIM_MIRRORS_MAX
};

/* The first image that this owner examined, for a mistake. */
struct sim_examined {
	uint64_t epoch, slot_epoch, seq, next, last;
};

/* For a mistake: the bytes read last from a mirror. */
struct sim_reading {
	uint8_t *to;
	uint32_t region;
	uint64_t offset, length;
	uint8_t bytes[SIM_PAGE];
};

/* For a mistake: an answer for a segment that is fetched on demand. */
struct sim_late {
	uint64_t generation, offset;
	uint32_t segment, length; /* 0: no answer */
	uint8_t bytes[SIM_PAGE];
};

/* For a mistake: what the last transaction of a heap applied. */
enum { SIM_APPLIED = 16 };

struct sim_applied {
	bool aborts; /* a transaction is over just now, and was not sent */
	unsigned count;
	uint64_t *at[SIM_APPLIED], set[SIM_APPLIED], clear[SIM_APPLIED];
};

/* A renewal of claims: its epoch, and the epoch of everything that was sent before it. */
struct sim_renewal {
	uint64_t epoch, sealed;
	uint8_t owner[PS_ID_SIZE];
};

struct sim_owner {
	struct ps_env env; /* first: the operations find the owner by it */
	struct sim_world *world;
	unsigned index;
	/* the application's main thread, its other threads, and the library's */
	struct sim_task tasks[SIM_TASKS];
	struct sim_task *running;
	struct sim_task *inside; /* stopped between two stores; the lock may be its own */
	struct sim_task *locks;  /* waits for something else, and the lock is its own; or NULL */
	bool stopped, dead;
	uint64_t dead_ns; /* time goes fast for the dead, so that they end */
	bool woken[PS_SLEEPERS], asleep[PS_SLEEPERS];
	bool local[SIM_MIRRORS_MAX]; /* on the mirror's host: the memory is shared */
	struct sim_path paths[SIM_MIRRORS_MAX];
	bool troubled[SIM_MIRRORS_MAX]; /* creators.c delayed or reset the path */
	struct ps_control *controls;
	struct ps_link *links;

	/* The process is stopped, or dies, after so many bytes more to shared memory. */
	uint64_t stop_after; /* UINT64_MAX: it is not */
	enum sim_stop stop_how;
	uint64_t stop_ns; /* how long it stays stopped */

	/* Called where a thread waits for another, and the process is dead; or NULL. */
	void (*last_wait)(void *arg);
	void *last_wait_arg;

	/* State of mistakes. */
	struct perseas *handle;     /* NULL: not open */
	struct ps_written *written; /* of the handle that was opened last; or NULL */

	bool creates;  /* it asks for the store to be made */
	bool strays;   /* it opens a fork (fork.c) */
	bool opened;   /* an open of its has returned */
	bool told;     /* since its open began, a mirror has told it of an image of the store */
	bool reverted; /* it went back in time (past.h) */
	struct sim_examined examined;
	struct sim_reading read;
	struct sim_late late;
	struct sim_applied heap;
	uint64_t claims;                   /* epoch of its last claim */
	uint64_t granted[SIM_MIRRORS_MAX]; /* epoch that each mirror granted it */
	/* the id of the store that it creates, or created last */
	uint8_t making[PS_ID_SIZE];
	bool decided;                /* the first mirror is believed to have settled it */
	struct sim_moment confirmed; /* when its open asked for the last time */
	struct sim_renewal renewal;  /* in which it finished a whole copy last */
	bool confirming;             /* its keeper is at perseas_confirm's questions */
	struct sim_node *held;       /* what will become of commits that are held back */
};

/* Starts a process whose application is fn(arg). */
struct sim_owner *sim_owner_new(struct sim_world *w, void (*fn)(void *arg), void *arg);

/* Begins another task of the process. */
void sim_task_begin(struct sim_owner *o, int which, void (*fn)(void *arg), void *arg);

/* Makes the running task wait until another one has ended. */
void sim_task_join(struct sim_owner *o, int which);

/* The running task of the process waits. Returns at once for the dead, but never without
 * letting others run. */
void sim_task_block(struct sim_owner *o, const struct sim_wait *wait);

/* Makes the running task wait for a condition. Returns true if it held the handle's lock all along.
 * Then only tasks that never take that lock run before the wait ends. */
bool sim_task_wait(struct sim_owner *o, const struct sim_wait *wait);

void sim_owner_sleep(struct sim_owner *o, uint64_t ns);

/* Something has changed that a task of the process may wait for. */
void sim_owner_poke(struct sim_owner *o);

/* Time as the process sees it. */
uint64_t sim_owner_now(struct sim_owner *o);

/* Sends the process SIGSTOP for some time, or SIGKILL. With `silent` its host ends too, so that no
 * peer is told. */
void sim_owner_stop(struct sim_owner *o, uint64_t ns);
/* Returns true if an owner has opened the store. */
bool sim_owners_opened(const struct sim_world *w);

void sim_owner_kill(struct sim_owner *o, bool silent);

/* Tells how many of `len` bytes the owner may store to shared memory now. If fewer, sim_owner_halt
 * must be called after them; it returns false if the process is dead. */
uint64_t sim_owner_stores(struct sim_owner *o, uint64_t len);
bool sim_owner_halt(struct sim_owner *o);

/* Lets a process that is stopped inside of a write go on for `bytes`: another processor does,
 * while a mirror fences it. */
void sim_owner_lurch(struct sim_owner *o, uint64_t bytes);

/* Returns true if all threads of the process have ended. */
bool sim_owner_ended(const struct sim_owner *o);

#endif
