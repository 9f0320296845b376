/*
 * descriptors.h - file descriptors that arrive with replies over a Unix socket. control_socket.c
 * keeps them for each connection until their reply is taken, and closes those that the reply does
 * not announce. It must leave no descriptor open that nobody asked for.
 */
#ifndef PERSEAS_CLIENT_DESCRIPTORS_H
#define PERSEAS_CLIENT_DESCRIPTORS_H

#include "../core/error.h"
#include "../../proto/control/envelope.h"
#include "../../proto/image/layout.h"

#include <stdbool.h>
#include <sys/types.h>

/* The descriptors of one message. Zeroed for a new connection. */
struct ps_descriptors {
	int fds[PS_REGIONS_MAX];
	unsigned count;
	bool surplus;   /* more descriptors arrived than a reply can have */
	bool truncated; /* some descriptors were lost because this process has too many open */
};

/* Works like recv() without waiting, and keeps the descriptors that arrive with the bytes. */
ssize_t ps_descriptors_recv(struct ps_descriptors *descriptors, int fd, void *to, size_t len);

/*
 * Hands out the `due` descriptors that a reply announced, at most PS_REGIONS_MAX, in fds, with
 * their number in *count. Closes all if either is NULL. Returns 0, or a code with *error, and keeps
 * what arrived: PERSEAS_ESYSTEM if this process has no room for so many, PERSEAS_EPROTOCOL if the
 * mirror of this name sent another number.
 */
int ps_descriptors_give(struct ps_descriptors *descriptors, unsigned due, int *fds, unsigned *count,
                        const char *name, struct ps_error *error);

/* Returns how many descriptors a reply announces. */
unsigned ps_descriptors_due(const Perseas__Reply *reply);

void ps_descriptors_close(struct ps_descriptors *descriptors);

#endif
