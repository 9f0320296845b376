/*
 * tunnel.h - TLS connections for a lane (fetch_connection.h). A lane must not call OpenSSL, which
 * allocates memory and takes locks of the whole process. So the tunnel's thread does the TLS, and
 * exchanges plain bytes with the lane through a pair of sockets for each connection. Apart from
 * these bytes, neither thread waits for the other.
 */
#ifndef PERSEAS_CLIENT_TUNNEL_H
#define PERSEAS_CLIENT_TUNNEL_H

#include "../core/demand.h"

struct ps_tls;
struct ps_tunnel;

/* Makes a tunnel with these certificates, which must outlive it. Returns NULL if there is no
 * memory. Caller of ps_tunnel_free (NULL is allowed) has joined the tunnel's thread, if there was
 * one. */
struct ps_tunnel *ps_tunnel_new(struct ps_tls *tls);
void ps_tunnel_free(struct ps_tunnel *tunnel);

/* Opens the tunnel's descriptors in the table of the lane, which calls this. Returns 0, or -1 with
 * errno set. ps_tunnel_run is the function of the tunnel's thread, whose arg is the tunnel, and
 * ps_tunnel_quit ends that thread with all connections. */
int ps_tunnel_open(struct ps_tunnel *tunnel);
void *ps_tunnel_run(void *arg);
void ps_tunnel_quit(struct ps_tunnel *tunnel);

/*
 * Begins a connection to address `at` of the way, with a certificate for the way's host. The lane
 * calls this. Returns a non-blocking socket for plain bytes, which the caller closes, or -1 if
 * there are no descriptors or the tunnel's thread does not keep up. Bytes are sent on after the
 * handshake. The socket ends when the handshake fails or the mirror closes the connection. The
 * tunnel has no timeouts.
 */
int ps_tunnel_dial(struct ps_tunnel *tunnel, const struct ps_known_addresses *way, unsigned at);

#endif
