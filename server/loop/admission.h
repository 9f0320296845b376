/*
 * admission.h - admission control for connections: counts them by origin, chooses which connection
 * is evicted when there are too many, and limits how fast each may send requests. Pure logic: no
 * sockets, no clock.
 *
 * A connection is an owner's if it holds a claim or is the data connection of one; all others are
 * plain. Some places are reserved for owners and Unix sockets. If there is no room for another
 * connection, a plain one is evicted: of the kind (Unix sockets or TCP) that has more, the one that
 * was silent for the longest time among those of the origin with the most connections. So each kind
 * can have half of what owners leave. An owner's connection is never evicted. An origin is
 * remembered after its last connection has ended, so that a peer that reconnects for each request
 * is held to the same rate.
 */
#ifndef PERSEAS_SERVER_ADMISSION_H
#define PERSEAS_SERVER_ADMISSION_H

#include "../host/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A rate limiter (leaky bucket). Initialize to zero. */
struct bucket {
	uint64_t next_ns; /* time at which the next token is available */
};

/* Takes one of `rate` tokens a second (at least 1; at most one second's worth in a burst). Returns
 * in how many nanoseconds the caller may use it. Callers are served in order. */
uint64_t bucket_take_token(struct bucket *bucket, uint64_t rate, uint64_t now_ns);

/* Returns a token that was taken but not used. */
void bucket_return_token(struct bucket *bucket, uint64_t rate);

struct admission;

/* Where connections come from: a user of this host, a certificate, or an address. */
struct origin {
	struct origin *next;
	unsigned connection_count; /* number of its connections */
	unsigned watching_count;   /* number of these that wait in a Watch (watch_loop.c) */
	bool is_idle;              /* the origin has no connections, but its rate limits are kept */
	struct bucket bucket;      /* rate limit of requests on connections without a claim */
	struct log_limit log_limit; /* rate limit of log messages about the origin's refusals */
	char name[];
};

/* A connection that was admitted. */
struct admitted {
	struct admitted *next, **link; /* link NULL: not in the list */
	struct admission *admission;
	struct origin *origin;
	bool is_unix_socket; /* the connection is over a Unix socket */
	bool is_data_path;   /* a data connection: its owner's control connection counts for both */
	uint64_t last_heard_ms; /* time when bytes last arrived, by a clock that all connections
	                           share */
	/* Returns true if the connection must not be evicted, normally because it is an owner's. */
	bool (*is_owner)(const struct admitted *admitted);
	/* Closes the connection, which leaves the list before this returns. */
	void (*evict)(struct admitted *admitted);
};

enum { ORIGINS_REMEMBERED_MAX = 1024 }; /* maximum number of origins kept without connections */

struct admission {
	struct admitted *admitted;
	struct origin *origins;
	unsigned idle_origin_count; /* origins without connections */
	unsigned connection_count;
	unsigned max_connections;              /* maximum number of connections of all kinds */
	unsigned reserved_for_owners_and_unix; /* places that plain TCP connections do not get */
	/* Places that owners do not get, so that operators can connect. */
	unsigned reserved_for_operators;
	uint64_t evicted_count; /* connections evicted since the start */
};

/* Admits a connection whose is_owner, evict, local and heard_ms are set. Returns false if there are
 * too many connections and none can be evicted, or if memory is out. */
bool admission_admit(struct admission *admission, struct admitted *admitted, const char *origin);
/* Moves the connection to another origin, when its identity is known. Returns false and changes
 * nothing if memory is out. */
bool admission_change_origin(struct admitted *admitted, const char *origin);
void admission_remove(struct admitted *admitted); /* does nothing if it was not admitted */
/* Frees all origins without connections. */
void admission_free_origins(struct admission *admission);
/* Returns true if another owner can have a control connection and a data connection. */
bool admission_owner_fits(const struct admission *admission);
/* Evicts one plain connection. Returns false if all connections are owners'. */
bool admission_evict_one(struct admission *admission);

#endif
