/*
 * socket.h - getting a connected socket to a mirror, and what else the files that use sockets
 * share. Sockets are non-blocking and close on exec.
 */
#ifndef PERSEAS_CLIENT_SOCKET_H
#define PERSEAS_CLIENT_SOCKET_H

#include "../core/address.h"
#include "../core/error.h"

#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>

enum { PS_DIAL_MAX = 8 }; /* addresses of one host that are tried */

/* A connection being made: the host's addresses are tried in turn. */
struct ps_dial {
	struct ps_address address;
	struct sockaddr_storage to[PS_DIAL_MAX];
	socklen_t to_len[PS_DIAL_MAX];
	unsigned count;
	unsigned at;    /* the one being tried */
	int fd;         /* -1: none */
	int error;      /* errno of the last that failed */
	uint64_t until; /* then the next one is tried, or this one once more */
};

/* Looks the host up (which may take the resolver's time) and begins nothing yet. 0 or a code.
 * What is begun must be ended, but for one whose fd has been taken. */
int ps_dial_begin(struct ps_dial *dial, const struct ps_address *address, struct ps_error *error);

/* Moves on without waiting; the time until_ns is shared out among the addresses that are left.
 * 1: dial->fd is connected, and the caller's to take; 0: not yet; else a code. */
int ps_dial_step(struct ps_dial *dial, uint64_t until_ns, struct ps_error *error);

/* Says that time is up. Returns PERSEAS_EUNREACHABLE. */
int ps_dial_late(const struct ps_dial *dial, struct ps_error *error);

/* Waits for a connection until until_ns. Returns its fd, the caller's, or a code. */
int ps_dial(const struct ps_address *address, uint64_t until_ns, struct ps_error *error);

void ps_dial_end(struct ps_dial *dial);

/* CLOCK_MONOTONIC in ns. */
uint64_t ps_monotonic(void);

/* As poll; until_ns may be PS_NEVER. Interrupted: 0, as when time is up. */
int ps_poll(struct pollfd *fds, unsigned count, uint64_t until_ns);

/* Is this errno one after which to wait and try again? */
int ps_would_block(int error);

void ps_close_all(const int *fds, unsigned count);

#endif
