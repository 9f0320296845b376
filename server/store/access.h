/*
 * access.h - access rules and quotas (--access), without I/O: who may do what on which stores, and
 * how much of it.
 *
 * A rule is a line. # begins a comment where a word may begin; words are separated by spaces.
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
	RIGHT_OWN = 2,     /* Claim, and every request of a claimed session */
	RIGHT_READ = 4,    /* to see that a store exists, and all that is in it */
	RIGHT_RECOVER = 8, /* in addition to RIGHT_OWN: a Claim with takeover */
	RIGHT_ADMIN = 16,  /* Drop, Order, Spill */
	/* In addition to RIGHT_OWN: to get the memory itself, over a Unix socket. */
	RIGHT_SHARE = 32,
};

/* A quota of an identity. */
enum limit {
	LIMIT_MEMORY,      /* bytes of the images that the identity created */
	LIMIT_STORES,      /* number of images that the identity created */
	LIMIT_SESSIONS,    /* number of claims that the identity holds */
	LIMIT_CONNECTIONS, /* for anonymous clients: per address */
	LIMIT_REQUESTS,    /* per second; for anonymous clients: per address */
	LIMITS
};

#define LIMIT_NONE UINT64_MAX

enum {
	ACCESS_TEXT_MAX = 1 << 20, /* bytes of rules */
	ACCESS_RULES_MAX = 4096,
};

/* Look up the number of a user or a group of the host. Return false if the name is unknown. */
struct access_names {
	bool (*user)(const char *name, uint32_t *uid);
	bool (*group)(const char *name, uint32_t *gid);
};

struct access_fault {
	unsigned line;  /* from 1; 0: the fault is not in one line */
	char text[240]; /* what is wrong, for people; printable */
};

/* Parsed rules. NULL allows everything, without limits. */
struct access;

/* Parses rules. `text` need not end with a zero. Returns NULL if a rule is faulty, with *fault
 * filled in. */
struct access *access_parse(const char *text, size_t len, const struct access_names *names,
                            struct access_fault *fault);
void access_free(struct access *access);
unsigned access_rule_count(const struct access *access); /* number of rules */

/* Returns why a file of valid rules is probably a mistake, for example because the file was emptied
 * or half written, or NULL. A file that denies everything must say so by "deny *". */
const char *access_likely_mistake(const struct access *access);

/* Returns true if the rules give the identity `who` this right on the store. store NULL: on all
 * stores, which only a line without a store gives. */
bool access_allows(const struct access *access, const struct identity *who, enum right right,
                   const char *store);

/* Returns the quota of the identity with this name, or LIMIT_NONE. */
uint64_t access_limit(const struct access *access, const char *name, enum limit limit);

/* Return the name in rules: "own", "memory". */
const char *right_name(enum right right);
const char *limit_name(enum limit limit);

#endif
