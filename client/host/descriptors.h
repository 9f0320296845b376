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

/* Those of one message. Zeroed for a new connection. */
struct ps_descriptors {
	int fds[PS_REGIONS_MAX];
	unsigned count;
	bool surplus;   /* more came than any reply has */
	bool truncated; /* this process had no room for them */
};

/* As recv() without waiting, and keeps the descriptors that come along. */
ssize_t ps_descriptors_recv(struct ps_descriptors *descriptors, int fd, void *to, size_t len);

/*
 * Hands those out that a reply announced: `due`, at most PS_REGIONS_MAX. They come into fds, and
 * *count says how many; without either of the two all are closed. 0; or a code with *error, where
 * others came from the mirror of this name: PERSEAS_ESYSTEM, this process has no room for so many;
 * PERSEAS_EPROTOCOL. What came is kept then until it is closed.
 */
int ps_descriptors_give(struct ps_descriptors *descriptors, unsigned due, int *fds, unsigned *count,
                        const char *name, struct ps_error *error);

/* How many a reply announces. */
unsigned ps_descriptors_due(const Perseas__Reply *reply);

void ps_descriptors_close(struct ps_descriptors *descriptors);

#endif
