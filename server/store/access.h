/*
 * access.h - who may do what on which stores, and how much of it: the rules of --access, as plain
 * logic.
 *
 * A rule is a line. # begins a comment where a word may begin; words are apart by spaces.
 *
 *     allow WHO RIGHT[,RIGHT]... [store STORES]
 *     limit WHO [memory BYTES] [stores N] [sessions N] [connections N] [requests N/s]
 *
 *   WHO      uid:N, user:NAME, gid:N or group:NAME of a process that comes over a Unix socket (its
 *            groups count too), cert:NAME of a verified certificate, anonymous, or * for everybody,
 *            the anonymous too. In cert:NAME and for uid:*, gid:* a * stands for any characters.
 *            A limit is of an identity, so not of a group. Users and groups are looked up when the
 *            rules are read.
 *   RIGHT    create, own, read, recover, admin, share, or all
 *   STORES   the name of a store, in which * stands for any characters; left out: all stores
 *
 * What no line allows is denied, and no line takes back what another allows: their order does not
 * matter. Of the limits, each figure is that of the first line that matches an identity and names
 * the figure; each identity is counted for itself. What no line names has no limit.
 */
#ifndef PERSEAS_SERVER_ACCESS_H
#define PERSEAS_SERVER_ACCESS_H

#include "identity.h"

#include <stddef.h>

enum right {
	RIGHT_CREATE = 1,  /* Create, Settle, Abandon */
	RIGHT_OWN = 2,     /* Claim, and all that comes in a claimed session */
	RIGHT_READ = 4,    /* to see that a store is there, and all that is in it */
	RIGHT_RECOVER = 8, /* beside RIGHT_OWN: a Claim that takes over */
	RIGHT_ADMIN = 16,  /* Drop, Order, Spill */
	RIGHT_SHARE = 32,  /* beside RIGHT_OWN: to be given the memory itself, over a Unix socket */
};

/* Whose limit is reached. */
enum limit {
	LIMIT_MEMORY,      /* bytes of the images that it created */
	LIMIT_STORES,      /* images that it created */
	LIMIT_SESSIONS,    /* claims that it holds */
	LIMIT_CONNECTIONS, /* of the anonymous: from one address */
	LIMIT_REQUESTS,    /* a second; of the anonymous: from one address */
	LIMITS
};

#define LIMIT_NONE UINT64_MAX

enum {
	ACCESS_TEXT_MAX = 1 << 20, /* bytes of rules */
	ACCESS_RULES_MAX = 4096,
};

/* Finds the number of a user or a group. False: there is none of that name. */
struct access_names {
	bool (*user)(const char *name, uint32_t *uid);
	bool (*group)(const char *name, uint32_t *gid);
};

struct access_fault {
	unsigned line;  /* from 1; 0: not of a line */
	char text[240]; /* what is wrong, for a person; printable */
};

/* NULL, as rules: everybody may do everything, without limits. */
struct access;

/* `text` need not end with a zero. NULL: *fault says why. */
struct access *access_parse(const char *text, size_t len, const struct access_names *names,
                            struct access_fault *fault);
void access_free(struct access *access);
unsigned access_rules(const struct access *access); /* how many there are */

/* Why rules are not what somebody can have meant for a whole file, which may have been emptied, or
 * be half written; else NULL. Rules that deny everybody say so: "deny *". */
const char *access_doubt(const struct access *access);

/* May it do what needs this one right on the store? NULL: on all stores, by a line that is for all
 * of them. */
bool access_allows(const struct access *access, const struct identity *who, enum right right,
                   const char *store);

/* The limit of the identity of this name, or LIMIT_NONE. */
uint64_t access_limit(const struct access *access, const char *name, enum limit limit);

/* "own"; "memory". */
const char *right_name(enum right right);
const char *limit_name(enum limit limit);

#endif
