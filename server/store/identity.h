/*
 * identity.h - who is at the other end of a control connection, as rules and quotas know it.
 */
#ifndef PERSEAS_SERVER_IDENTITY_H
#define PERSEAS_SERVER_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

enum {
	IDENTITY_MAX = 127,   /* bytes of a name; proto/control/check.c takes no longer creator */
	IDENTITY_GROUPS = 64, /* more groups of a process are not seen */
};

struct identity {
	/* "uid:1000" (of a process on this host), "cert:NAME" (of a certificate that was verified),
	 * "anonymous"; "": nobody has said yet. Printable, without spaces. */
	char name[IDENTITY_MAX + 1];
	uint32_t gids[IDENTITY_GROUPS]; /* of a process on this host */
	unsigned gid_count;
};

/* The process at the other end of a Unix socket, with its groups, as the kernel recorded them when
 * it connected. "anonymous" where the kernel cannot say. */
void identity_of_process(struct identity *identity, int fd);

/* Of the name in a certificate that was verified; NULL: there is none. False: the name is empty,
 * too long, or not printable ASCII without spaces; the identity is then "anonymous". */
bool identity_of_certificate(struct identity *identity, const char *name);

#endif
