/*
 * crowd.h - how many connections there are and whose, which of them goes when there is no room, and
 * how fast each may ask. Plain logic: no sockets, no clock.
 *
 * A connection is an owner's when it holds a claim, or is the data path of one; any other is plain.
 * A part of the room is kept from plain connections over TCP, for owners and for Unix sockets. When
 * there is no room for one more, a plain connection goes: of those over Unix sockets or those over
 * TCP, whichever are more (else of those of the kind that comes), the one that was silent for the
 * longest, of the origin that has the most. So each kind can have half of what owners leave, and an
 * odd one is for Unix sockets. An owner's never goes. An origin is remembered when its last
 * connection has gone, so that a peer that connects anew for each request is held to the same rate.
 */
#ifndef PERSEAS_SERVER_CROWD_H
#define PERSEAS_SERVER_CROWD_H

#include "../host/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A rate limit. Zeroed: nothing was taken yet. */
struct bucket {
	uint64_t next_ns; /* when what is taken next is due, at the rate */
};

/* Takes one of `rate` a second (1 or more; up to a second's worth at once), and says in how many
 * nanoseconds it may be used. Later takers wait longer, so that the turns are kept. */
uint64_t bucket_take(struct bucket *bucket, uint64_t rate, uint64_t now_ns);

/* Gives one back that was taken and not used. */
void bucket_return(struct bucket *bucket, uint64_t rate);

struct crowd;

/* Where connections come from: a user of this host, a certificate, an address. */
struct origin {
	struct origin *next;
	unsigned connections;
	unsigned watching; /* of these, who wait for news of a store (watch_loop.c) */
	bool remembered;   /* it has none, but what it took and what was said of it are kept */
	struct bucket bucket;
	struct log_limit told; /* of what was refused to it */
	char name[];
};

/* A connection. */
struct guest {
	struct guest *next, **link; /* link NULL: it is not in the crowd */
	struct crowd *crowd;
	struct origin *origin;
	bool local;        /* over a Unix socket */
	bool path;         /* a data path: its owner's control connection counts for both */
	uint64_t heard_ms; /* when bytes last came, by any clock that all guests share */
	bool (*owns)(const struct guest *guest);
	void (*evict)(struct guest *guest); /* closes it: it leaves the crowd before this returns */
};

enum { CROWD_REMEMBERED = 1024 }; /* origins without connections, those that took most */

struct crowd {
	struct guest *guests;
	struct origin *origins;
	unsigned remembered;
	unsigned count;
	unsigned max;       /* connections, of all kinds */
	unsigned kept;      /* places that plain ones over TCP do not get */
	unsigned operators; /* places that owners do not get, so that operators come in */
	uint64_t evicted;   /* that had to go since the start */
};

/* Takes a guest in whose owns, evict, local and heard_ms are set. False: there is no room, and
 * nobody who could go, or no memory. */
bool crowd_enter(struct crowd *crowd, struct guest *guest, const char *origin);
/* It turned out to come from somewhere else. False: no memory; it is where it was. */
bool crowd_move(struct guest *guest, const char *origin);
void crowd_leave(struct guest *guest); /* nothing, when it is not in a crowd */
/* Forgets all origins without connections. */
void crowd_forget(struct crowd *crowd);
/* Is there a place for one more owner, with its data path? */
bool crowd_owner_fits(const struct crowd *crowd);
/* Evicts one plain guest. False: there is none. */
bool crowd_make_room(struct crowd *crowd);

#endif
