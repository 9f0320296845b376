/*
 * identity.h - the identity of the peer of a control connection, for access rules and quotas.
 */
#ifndef PERSEAS_SERVER_IDENTITY_H
#define PERSEAS_SERVER_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

enum {
	IDENTITY_MAX = 127,   /* bytes of a name; proto/control/check.c accepts no longer creator */
	IDENTITY_GROUPS = 64, /* further groups of a process are ignored */
};

struct identity {
	/* "uid:1000" (a process on this host), "cert:NAME" (a verified certificate), "anonymous",
	 * or "" before it is known. Printable, without spaces. */
	char name[IDENTITY_MAX + 1];
	uint32_t gids[IDENTITY_GROUPS]; /* groups of a process on this host */
	unsigned gid_count;
};

/* Sets the identity of the process at the other end of a Unix socket, with its groups, as the
 * kernel recorded them when it connected; "anonymous" if the kernel does not know. */
void identity_of_process(struct identity *identity, int fd);

/* Sets the identity from the name in a verified certificate; NULL stands for "anonymous". Returns
 * false if the name is empty, too long, or not printable ASCII without spaces; the identity is then
 * "anonymous". */
bool identity_of_certificate(struct identity *identity, const char *name);

#endif
