/*
 * stream.h - a connected non-blocking socket, with or without TLS. All bytes of TCP connections, on
 * both sides, pass through these functions. Without TLS, each is the system call in its name.
 *
 * One thread at a time uses a stream. With TLS, decrypted bytes may wait in this process while the
 * socket has nothing to read: a reader must read until EAGAIN, or ask ps_stream_pending() before it
 * polls. No call blocks, and none raises SIGPIPE.
 */
#ifndef PERSEAS_PROTO_STREAM_H
#define PERSEAS_PROTO_STREAM_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct ps_tls;
struct ps_tls_stream;

struct ps_stream {
	int fd;                    /* -1: closed */
	struct ps_tls_stream *tls; /* NULL: no TLS */
};

/* The cause of a TLS failure. */
enum ps_tls_fault {
	PS_TLS_FAULT_NONE,      /* TLS did not fail; the connection itself may have */
	PS_TLS_FAULT_NO_TLS,    /* the peer does not speak TLS 1.3 */
	PS_TLS_FAULT_PEER_CERT, /* this end rejects the peer's certificate */
	PS_TLS_FAULT_OWN_CERT,  /* the peer rejects this end's certificate */
	PS_TLS_FAULT_OTHER,     /* any other failure, such as corrupted records */
};

/* The first byte of a TLS record: handshake (ClientHello) or alert. No hello of Perseas begins with
 * either. */
#define PS_TLS_HANDSHAKE 0x16
#define PS_TLS_ALERT 0x15
#define PS_TLS_MAJOR 3 /* the second byte of every TLS record */

/* Sends a fatal alert "protocol version" to a peer that speaks TLS to a plain end or the reverse.
 * The alert is not guaranteed to arrive. */
void ps_stream_send_alert(const struct ps_stream *stream);

/* Begins TLS on a stream on which no byte has moved. `host` is the dialed name or number, which the
 * peer's certificate must match; NULL on the accepting end. Returns 0, or -1 if memory is out or no
 * certificate can be issued for `host`. */
int ps_stream_begin_tls(struct ps_stream *stream, struct ps_tls *tls, const char *host);

/* Advances the handshake. Returns 1 if it has succeeded or there is no TLS; 0 if it must wait for
 * ps_stream_events(); -1 if it failed (see ps_stream_fault()) or the connection ended (errno says
 * why; 0: closed by the peer). */
int ps_stream_handshake(struct ps_stream *stream);

/* Returns the events to poll for. During the handshake these are the events that it needs; later
 * POLLIN, and POLLOUT if `unsent` is true. */
short ps_stream_events(const struct ps_stream *stream, bool unsent);

/* Return why TLS failed, and a sentence about the peer that says what to do ("it ...; do this").
 * The sentence is "" if TLS did not fail. */
enum ps_tls_fault ps_stream_fault(const struct ps_stream *stream);
const char *ps_stream_fault_text(const struct ps_stream *stream);

/* Closes the socket, if it is open, and drops unsent bytes. With TLS it sends close_notify and does
 * not wait for the answer. */
void ps_stream_close(struct ps_stream *stream);
/* Closes the socket without telling the peer, because another process also has it. */
void ps_stream_close_silently(struct ps_stream *stream);

/* Implementation in stream_tls.c, for the inline functions below. */
ssize_t ps_tls_recv(struct ps_tls_stream *tls, void *bytes, size_t len);
ssize_t ps_tls_send(struct ps_tls_stream *tls, const struct iovec *parts, size_t count);
bool ps_tls_pending(const struct ps_tls_stream *tls);

/* Receives like recv() with MSG_DONTWAIT. A result below `len` means that no more bytes are there
 * now. */
static inline ssize_t ps_stream_recv(struct ps_stream *stream, void *bytes, size_t len)
{
	if (stream->tls)
		return ps_tls_recv(stream->tls, bytes, len);
	return recv(stream->fd, bytes, len, MSG_DONTWAIT);
}

/* Sends like sendmsg(). A result below the total means that the socket took no more. With TLS, the
 * bytes that were not taken may be encrypted already: the next call must begin with the same bytes,
 * at any address. */
static inline ssize_t ps_stream_send(struct ps_stream *stream, const struct iovec *parts,
                                     size_t count)
{
	/* sendmsg() does not write to the parts. */
	struct msghdr head = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = count };

	if (stream->tls)
		return ps_tls_send(stream->tls, parts, count);
	return sendmsg(stream->fd, &head, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Returns true if bytes wait in this process that poll() on the socket does not report. */
static inline bool ps_stream_pending(const struct ps_stream *stream)
{
	return stream->tls && ps_tls_pending(stream->tls);
}

#endif
