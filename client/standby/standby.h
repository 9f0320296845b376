/*
 * standby.h - a standby inside a process (perseas_standby.h). standby.c has the functions that the
 * application calls, standby_thread.c the thread that follows the store.
 *
 *            thread started              its turn, and a thread waits
 *     IDLE -------------------> FOLLOWING ---------------------------> HANDED
 *      ^                            |                                    |
 *      +------ thread ended --------+--------- opened, or failed --------+
 *
 * While the standby is IDLE or HANDED its thread has ended, and the thread in perseas_standby_wait
 * owns all members.
 */
#ifndef PERSEAS_CLIENT_STANDBY_H
#define PERSEAS_CLIENT_STANDBY_H

#include "../core/handle.h"
#include "../core/states.h"
#include "../perseas_standby.h"
#include "follow.h"
#include "turn.h"
#include "warmth.h"
#include "known_store.h"

#include <stdatomic.h>
#include <sys/types.h>

enum ps_standby_stage { PS_STANDBY_IDLE, PS_STANDBY_FOLLOWING, PS_STANDBY_HANDED };

extern const struct ps_states ps_standby_stages;

struct perseas_standby {
	pid_t pid; /* process that made the standby */
	/* One byte more than a name can have, so that a name that is too long stays invalid. */
	char store[PS_NAME_MAX + 2];
	char *mirrors;
	struct perseas_options options; /* copy of the caller's options and their strings */
	/* Env of the thread, of its Watch requests, and of the waiting thread. */
	struct ps_env *env;
	int flag_fd;            /* descriptor that perseas_standby_fd returns (flag_fd.h) */
	_Atomic bool cancelled; /* the present or next perseas_standby_wait must return */

	pthread_mutex_t lock; /* guards these: */
	enum ps_standby_stage stage;
	bool is_waiting;       /* a thread is inside perseas_standby_wait */
	bool can_hand_over;    /* that thread still takes the store; false once it is leaving */
	bool is_ending;        /* the thread that follows the store must end */
	bool is_uncreated;     /* all mirrors report no store, or only an unfinished creation */
	struct ps_error fault; /* an error that waiting cannot cure; code 0: none */
	struct perseas_standby_stat stat;
	struct perseas_standby_mirror mirrors_seen[PS_MIRRORS_MAX];

	/* Owned by the thread while it runs. */
	/* Handle for the next open, not open yet; its env has the connections of
	 * follow.status_peers. */
	struct perseas *p;
	struct ps_follow follow;
	struct ps_turn turn;
	uint64_t next_look_at_ns;     /* when the next look is due */
	struct ps_known_store *known; /* what the next thread will know of the store */
	/* Keeps a copy of the memory (options.warm); may be ending; or NULL. */
	struct ps_warm_thread *warmth;
};

/* Starts the thread that follows the store. The standby must be IDLE, and stays so on an error.
 * Returns 0, or a code with *error. */
int ps_standby_thread_begin(struct perseas_standby *s, struct ps_error *error);

/* Returns the handle to open, with the connections to its mirrors. The caller owns it. The standby
 * must be HANDED, and becomes IDLE. Mirrors keep showing this standby to others, which hold back
 * for it, until the caller calls ps_standby_thread_end_watches after the open. */
struct perseas *ps_standby_thread_take(struct perseas_standby *s);
void ps_standby_thread_end_watches(struct perseas_standby *s);

/* Ends the thread and frees what it has. The standby becomes IDLE. */
void ps_standby_thread_end(struct perseas_standby *s);

/* Returns the stage. Any thread may call it. */
enum ps_standby_stage ps_standby_stage(struct perseas_standby *s);

/* Makes the descriptor readable if a wait would return at once, else unreadable. Caller holds
 * s->lock. */
void ps_standby_signal(struct perseas_standby *s);

#endif
