/*
 * follow.h - who owns a store, from now on: what its mirrors say, asked once and then told by them.
 * Standbys call it. It must never claim the store, and be wrong only in ways that an open of the
 * store finds out.
 */
#ifndef PERSEAS_CLIENT_FOLLOW_H
#define PERSEAS_CLIENT_FOLLOW_H

#include "images.h"

#include <poll.h>

enum {
	PS_SENTENCE = 512,
	PS_FOLLOW_FDS = PS_MIRRORS_MAX + 1, /* of all mirrors, and of the lookup of their list */
};

enum ps_ownership {
	PS_OWNER_UNKNOWN, /* too few mirrors answer to say, or an open would not succeed */
	PS_OWNER_LIVES,   /* an open without takeover would be refused */
	PS_OWNER_NONE,    /* an open may begin */
};

/* A planned handover that concerns the store's present or last owner. */
struct ps_handing {
	bool asked; /* there is one */
	bool there; /* the standby that is to be next is there */
	uint8_t id[PS_ID_SIZE], to[PS_OWNER_MARK];
	char name[PS_NAME_MAX + 1]; /* of that standby */
};

/* What one look found. */
struct ps_standing_now {
	enum ps_ownership ownership;
	bool ours;    /* the owner that lives is one whose id begins with the mark */
	bool fenced;  /* others hold so many mirrors that such a one cannot commit any more */
	bool found;   /* a mirror has the store */
	bool nowhere; /* all mirrors say that they have none, or none that is good */
	uint32_t last_order; /* the highest of the standbys that there are */
	struct ps_handing handing;
	char text[PS_SENTENCE]; /* all that, in half a sentence */
};

/* One mirror, by its number in both sets of peers. */
struct ps_followed {
	bool asked;                   /* a Watch is under way */
	bool hurried;                 /* the last one was answered soon, with news */
	bool tells;                   /* the last one says how warm the copy is */
	bool parted;                  /* it told of an image when there was a fork */
	bool learnt;                  /* only rosters name it, and it has an image that they list */
	bool live;                    /* what the last one says was seen */
	uint64_t epoch;               /* the same */
	uint8_t handover[PS_ID_SIZE]; /* the same; all zero: none */
	uint64_t asked_ns, until_ns;  /* since when, and until when an answer must have come */
	uint64_t watch_ns;            /* not before then again */
	uint64_t look_ns;             /* the same of its status: it did not answer */
};

struct ps_follow {
	const char *store;
	const uint8_t *mark; /* NULL: none */
	/* As what mirrors tell others of who follows, with the mark, as a standby; the caller's.
	 * name NULL, as at first: as nothing. */
	const char *name;
	uint32_t order;
	/* What mirrors tell of the copy that it keeps, if it does: bytes of the store's memory, 0
	 * while that is not known, and of these, in the copy. The caller sets them before each
	 * look. */
	bool copies;
	uint64_t memory, warm;
	struct ps_peers looks;   /* the mirrors, asked for their status */
	struct ps_peers watches; /* the same, on connections of their own */
	struct ps_followed mirrors[PS_MIRRORS_MAX];
	/* Of the newest roster that any of them ever told, or that was known before; 0: none. */
	uint64_t roster_epoch, roster_version;
	/* The newest that is settled, and of which store: NULL: none was told. */
	Perseas__Roster *settled;
	uint8_t store_id[PS_ID_SIZE];
	bool forked; /* what is told is a store and its fork, or may be one of the two (forks.h) */
	const char *list;              /* of the mirrors, or its name */
	uint64_t named_ns;             /* when the last lookup of the name began */
	struct ps_list_lookup *lookup; /* in flight, of `looks`' env; NULL: none is */
	/* Called with what each look found, before it returns; NULL: nobody wants to know more. */
	void (*seen)(void *arg, const struct ps_images *images, const struct ps_standing_now *now);
	void *seen_arg;
};

/* mark: PS_OWNER_MARK bytes with which the ids of own owners begin, or NULL. It, the store's name
 * the list and the envs are the caller's, and outlive it; the two envs may be one. A list that is
 * given by its name is looked up again while no mirror tells of the store, now and then. 0, or an
 * error of ps_env_list with *error: then there is nothing to close. */
int ps_follow_open(struct ps_follow *follow, const char *store, const char *mirrors,
                   const uint8_t *mark, struct ps_env *looks, struct ps_env *watches,
                   uint32_t timeout_ms, struct ps_error *error);
void ps_follow_close(struct ps_follow *follow);
/* Ends the looks alone, whose env may be freed then. The watches must be ended, too. */
void ps_follow_end_looks(struct ps_follow *follow);

/* Before the first look: follows these mirrors, too. A roster that is told, and does not name one,
 * has it forgotten, unless it is older than theirs. */
void ps_follow_known(struct ps_follow *follow, const struct ps_places *places);

/* Asks the mirrors, for timeout_ms at most, and has them watched from now on. Those that say
 * nothing are not waited for where the others would do for an open (peers.h, `enough`). */
void ps_follow_look(struct ps_follow *follow, struct ps_standing_now *now);

/* What to poll for, and until when at most. The count. */
unsigned ps_follow_fds(struct ps_follow *follow, struct pollfd fds[PS_FOLLOW_FDS],
                       uint64_t *until_ns);
/* After that: is it time for another look? */
bool ps_follow_stirred(struct ps_follow *follow);

/* The connection on which the mirror at this address is looked at, to be used for something else;
 * the caller's. NULL: there is none that is of use. */
struct ps_control *ps_follow_take(struct ps_follow *follow, const char *address);

/* Is the mirror of this number one that only rosters name, and where the last look saw an image
 * that they list? One of a fork, or of a newcomer, is of no use to an open. Who opens the store by
 * the list alone may ask nobody that has it, and make another one. */
bool ps_follow_learnt(const struct ps_follow *follow, unsigned i);

/* Was the mirror at this address asked a moment ago, and did not answer? */
bool ps_follow_silent(const struct ps_follow *follow, const char *address);

uint64_t ps_follow_now(const struct ps_follow *follow); /* monotonic, ns */

#endif
