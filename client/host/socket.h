/*
 * socket.h - makes a connected socket to a mirror, and has what else files share that use sockets.
 * Sockets are non-blocking and close on exec.
 */
#ifndef PERSEAS_CLIENT_SOCKET_H
#define PERSEAS_CLIENT_SOCKET_H

#include "../core/address.h"
#include "../core/error.h"
#include "resolver.h"

#include <poll.h>
#include <stdint.h>
#include <sys/socket.h>

/* Where the addresses of a dial come from. */
enum ps_dial_source {
	PS_DIAL_GIVEN,    /* from the list of mirrors: a number or a path */
	PS_DIAL_RESOLVED, /* from the name service */
	PS_DIAL_LAST,     /* a mirror answered there last; the name service has not confirmed it */
};

/* A connection that is being made. The host's addresses are tried in turn. */
struct ps_dial {
	struct ps_address address; /* address on the list of mirrors */
	struct ps_addresses list;  /* socket addresses to try */
	enum ps_dial_source source;
	/* With PS_DIAL_LAST: identity of the daemon that answered there. */
	uint8_t daemon[PS_ID_SIZE];
	struct ps_lookup *lookup; /* lookup of the host name in flight; NULL: none */
	int lookup_error;         /* error of getaddrinfo with which the lookup ended; 0: none */
	/* Index in `list` of the address that is being tried, or is connected. */
	unsigned current;
	int fd;            /* socket of the present attempt; -1: none */
	int epoll_fd;      /* epoll descriptor for fd and the lookup together; -1: none */
	int error;         /* errno of the last attempt that failed */
	uint64_t began_at; /* when the dial began, or when the name service answered */
	uint64_t until;    /* when the next address, or the same one again, is tried */
};

/*
 * Begins a lookup if the host is a name. The address where a mirror answered last is tried in the
 * meantime; it is dropped if the name service answers otherwise before it is connected. Returns 0
 * or a code. A dial that was begun must be ended, also after its fd has been taken.
 */
int ps_dial_begin(struct ps_dial *dial, const struct ps_address *address, struct ps_error *error);

/* Begins to dial the addresses that are known without a lookup, for a host to which this process
 * has a connection already. Returns 0, or PERSEAS_EUNREACHABLE if none is known. */
int ps_dial_begin_known(struct ps_dial *dial, const struct ps_address *address,
                        struct ps_error *error);

/* Continues without waiting. Divides the time until until_ns among the addresses that are left.
 * Returns 1 if dial->fd is connected, for the caller to take; 0 if not yet; or an error code. */
int ps_dial_step(struct ps_dial *dial, uint64_t until_ns, struct ps_error *error);

/* Fills in what to poll for before the next step. Returns false if no descriptor shows when the
 * step is due. */
bool ps_dial_poll_fd(const struct ps_dial *dial, struct pollfd *fd);

/* Notes that the connection does not lead to a mirror. Returns true if it went to PS_DIAL_LAST: the
 * dial continues with the name service's answer. Returns false if there is nothing else to try. */
bool ps_dial_distrust(struct ps_dial *dial);

/*
 * Judges the daemon that answered on the connection that was made, by its identity (NULL: it told
 * none). Returns 1 if it counts, because it is the daemon that answered at PS_DIAL_LAST, or because
 * the name service leads to that address; the next dial begins there. Returns 0 if the name service
 * must answer first, or PERSEAS_EUNREACHABLE if its answer leads elsewhere, or is an error.
 */
int ps_dial_accept(struct ps_dial *dial, const uint8_t *daemon, struct ps_error *error);

/* Sets the error of a dial that timed out. Returns PERSEAS_EUNREACHABLE, or PERSEAS_ESYSTEM. */
int ps_dial_fail_timeout(const struct ps_dial *dial, struct ps_error *error);

/* Waits for a connection until until_ns. Returns its fd, which the caller owns, or an error
 * code. */
int ps_dial(const struct ps_address *address, uint64_t until_ns, struct ps_error *error);

void ps_dial_end(struct ps_dial *dial);

/* Returns CLOCK_MONOTONIC in ns. */
uint64_t ps_monotonic(void);

/* Works like poll. until_ns may be PS_NEVER. Returns 0 if it timed out or was interrupted. */
int ps_poll(struct pollfd *fds, unsigned count, uint64_t until_ns);

/* Returns true if a call that failed with this errno should be tried again later. */
int ps_would_block(int error);

/* Returns 1 if the socket's connection is up, 0 if it is being made, or -1 with *error set if it
 * failed. */
int ps_connect_result(int fd, int *error);

void ps_close_all(const int *fds, unsigned count);

#endif
