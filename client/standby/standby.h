/*
 * standby.h - what a standby inside a process is made of (perseas_standby.h): standby.c is what the
 * application calls, and standby_thread.c the thread that follows the store for it.
 *
 *            began to follow             its turn, and somebody waits
 *     IDLE -------------------> FOLLOWING ---------------------------> HANDED
 *      ^                            |                                    |
 *      +---------- ended -----------+--------- opened, or failed --------+
 *
 * Who waits has the standby to itself while it is IDLE or HANDED: the thread has ended then.
 */
#ifndef PERSEAS_CLIENT_STANDBY_H
#define PERSEAS_CLIENT_STANDBY_H

#include "../core/handle.h"
#include "../core/states.h"
#include "../perseas_standby.h"
#include "follow.h"
#include "turn.h"
#include "warmth.h"
#include "whereabouts.h"

#include <stdatomic.h>
#include <sys/types.h>

enum ps_standby_stage { PS_STANDBY_IDLE, PS_STANDBY_FOLLOWING, PS_STANDBY_HANDED };

extern const struct ps_states ps_standby_stages;

struct perseas_standby {
	pid_t pid;                   /* of the process that it belongs to */
	char store[PS_NAME_MAX + 2]; /* what is too long for a name is cut off, and still is */
	char *mirrors;
	struct perseas_options options; /* its strings are the standby's own */
	struct ps_env *env;             /* of the thread, of its watches, and of who waits */
	int flag;                       /* flag_fd.h */
	_Atomic bool cancelled;         /* the next wait, or that under way, is to end */

	pthread_mutex_t lock; /* guards these: */
	enum ps_standby_stage stage;
	bool inside;           /* a thread is in perseas_standby_wait */
	bool waits;            /* it may be handed the store: not any more while it leaves */
	bool ends;             /* the thread is to end */
	bool unmade;           /* all mirrors say so, or tell of a making that was left */
	struct ps_error fault; /* that waiting does not mend; code 0: none */
	struct perseas_standby_stat stat;
	struct perseas_standby_mirror mirrors_seen[PS_MIRRORS_MAX];

	/* The thread's while it runs. */
	struct perseas *p; /* not open yet, and ready for it; its env has the looks' connections */
	struct ps_follow follow;
	struct ps_turn turn;
	uint64_t until_ns;            /* another look is due then */
	struct ps_whereabouts *known; /* mirrors of the store that the list may not name */
	struct ps_warmth *warmth; /* keeps a copy, with options.warm; it may be ending; or NULL */
};

/* Starts the thread that follows the store; the standby must be IDLE. Returns 0, or a code with
 * *error, after which it still is. */
int ps_standby_thread_begin(struct perseas_standby *s, struct ps_error *error);

/* Returns the handle to open, with the connections that there are; the caller owns it. The standby
 * must be HANDED, and is IDLE then. The mirrors tell others of this standby until
 * ps_standby_thread_leave, which the caller must call after the open: until then, others hold back
 * for this standby. */
struct perseas *ps_standby_thread_take(struct perseas_standby *s);
void ps_standby_thread_leave(struct perseas_standby *s);

/* Ends the thread, and frees all that it had. The standby is IDLE then. */
void ps_standby_thread_end(struct perseas_standby *s);

/* Any thread. */
enum ps_standby_stage ps_standby_stage(struct perseas_standby *s);

/* Locked: the descriptor says whether a wait would wait. */
void ps_standby_signal(struct perseas_standby *s);

#endif
