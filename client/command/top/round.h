/*
 * round.h - the mirrors of lists, asked again and again at the same time without waiting for any:
 * what one answers late, or not at all, holds up neither the others nor the keys. cmd_top.c and
 * fleet_top.c call it. It must never ask one that owes an answer.
 */
#ifndef PERSEAS_COMMAND_ROUND_H
#define PERSEAS_COMMAND_ROUND_H

#include "../ask/ask.h"

/* The mirrors of one panel. */
struct ps_round {
	struct ps_panel panel;
	bool added; /* by a roster, not by the list */
	/* Of each mirror: what it told last, which stays while the next answer is due, until the
	 * connection fails. NULL: there is none. */
	Perseas__Reply *lists[PS_MIRRORS_MAX];
	Perseas__Reply *hosts[PS_MIRRORS_MAX]; /* NULL also where it was not asked, or refused */
	uint64_t heard_ns[PS_MIRRORS_MAX];     /* when its list came */
	bool fresh[PS_MIRRORS_MAX];            /* that was in this round */
	/* Why it has not answered in this round, with its address; code 0 and "": it has, or has
	 * not been asked yet. */
	struct ps_error errors[PS_MIRRORS_MAX];
	uint64_t asked_ns[PS_MIRRORS_MAX]; /* 0: no answer is due */
	unsigned due[PS_MIRRORS_MAX];      /* how many are */
	bool failed[PS_MIRRORS_MAX];       /* in this round: it is asked again in the next */
};

/* All of them. Zero to begin; has_hosts is set before the first is added. */
struct ps_rounds {
	bool has_hosts;      /* they are asked where they run and what they have left, too */
	uint64_t timeout_ns; /* after so long without an answer a connection is given up */
	struct ps_round **list;
	unsigned count;
	struct pollfd *fds; /* room for all of them */
	unsigned total;     /* mirrors */
};

/* The mirrors of a list that is no longer than a panel, or has a name. An error is complained
 * about, and adds none. */
enum ps_exit ps_rounds_add(struct ps_rounds *rounds, const char *list, bool added,
                           const struct perseas_options *options);
void ps_rounds_close(struct ps_rounds *rounds);

uint64_t ps_rounds_now(const struct ps_rounds *rounds);

/* A new round: all are asked that do not yet owe an answer. */
void ps_rounds_ask(struct ps_rounds *rounds);

/* Takes the answers that are there. Have all answered that will in this round? */
bool ps_rounds_collect(struct ps_rounds *rounds);

/* Sleeps until an answer, a key, a signal, or until_ns. Are there keys? */
bool ps_rounds_rest(const struct ps_rounds *rounds, uint64_t until_ns);

/* Fills errors in. What the attempt before came to is kept while the next one goes on. */
void ps_rounds_explain(struct ps_rounds *rounds);

#endif
