/*
 * tunnel.h - connections over TLS for a lane (reach.h), which must not call OpenSSL itself: that
 * allocates, and takes locks of the whole process. A thread of its own has the TLS, and the lane
 * has one end of a pair of sockets for each connection, over which plain bytes go. Neither waits
 * for the other in anything else.
 */
#ifndef PERSEAS_CLIENT_TUNNEL_H
#define PERSEAS_CLIENT_TUNNEL_H

#include "../core/demand.h"

struct ps_tls;
struct ps_tunnel;

/* Of connections with these certificates, which outlive it. NULL: there is no memory. When it is
 * freed its thread has ended, if there was one; NULL is allowed then. */
struct ps_tunnel *ps_tunnel_new(struct ps_tls *tls);
void ps_tunnel_free(struct ps_tunnel *tunnel);

/* On the lane's thread, in whose table of descriptors all of it is: 0, or -1 with errno set;
 * then the thread's function, whose arg is the tunnel; and its end, with all connections. */
int ps_tunnel_open(struct ps_tunnel *tunnel);
void *ps_tunnel_run(void *arg);
void ps_tunnel_quit(struct ps_tunnel *tunnel);

/*
 * The lane: a connection to the address `at` of the way, whose certificate must be
 * for the way's host. Returns a socket that does not block, which the caller closes. What is sent
 * is taken when the handshake is over; and the socket ends when that fails, or the mirror ends the
 * connection. The caller says how long it waits for either. -1: there are no descriptors, or the
 * tunnel's thread does not keep up.
 */
int ps_tunnel_dial(struct ps_tunnel *tunnel, const struct ps_known_addresses *way, unsigned at);

#endif
