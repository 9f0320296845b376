/*
 * daemon_peers.h - a daemon under any sequence of what its peers do: connections that come and end
 * and the bytes that they send, over pairs of sockets.
 *
 * A sequence is made of events: a byte with the peer in its two low bits and what happens above
 * them, and what that needs.
 *
 *   0 bytes     a 2-byte length and so many bytes are sent; without a connection, over a new one
 *               of TCP
 *   1 tcp       a new TCP connection; where the daemon has TLS, after the handshake
 *   2 plain     a new TCP connection, without TLS
 *   3 unix      a new connection to a Unix socket
 *   4 data      a byte, the peer that has a session, then as 0: over a new TCP connection, for the
 *               data path; the first 32 bytes are xor the right hello, which so is zeros
 *   5 end       its connection ends
 *
 * A peer has one connection at a time: a new one ends the one before.
 */
#ifndef PERSEAS_TESTS_DAEMON_PEERS_H
#define PERSEAS_TESTS_DAEMON_PEERS_H

#include "../../proto/base/tls.h"

/* The TLS of both ends; the caller keeps them. */
struct daemon_peers_tls {
	struct ps_tls *server;
	struct ps_tls *client;
};

/*
 * Runs the bytes through a new daemon. Aborts if a peer cannot understand an answer, or if the
 * daemon holds anything for a connection after all have ended. `tls` may be NULL.
 */
void daemon_peers_run(const uint8_t *data, size_t size, const struct daemon_peers_tls *tls);

#endif
