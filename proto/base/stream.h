/*
 * stream.h - a connected, non-blocking socket that carries bytes as they are, or inside TLS: the
 * one place of both sides where the bytes of a TCP connection are moved. Without TLS each function
 * is the system call that it names.
 *
 * A stream is used by one thread at a time. With TLS, bytes may lie decrypted, or in part, in this
 * process while the socket has none: a reader goes on until would-block, or asks
 * ps_stream_pending() before it sleeps. No call waits, and none raises SIGPIPE.
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
	int fd;                    /* -1: none */
	struct ps_tls_stream *tls; /* NULL: bytes as they are */
};

/* Why TLS failed on a stream. */
enum ps_tls_fault {
	PS_TLS_SOUND,  /* it did not; the connection itself may have broken */
	PS_TLS_ABSENT, /* the other end does not speak TLS, or not 1.3 */
	PS_TLS_THEIRS, /* its certificate is not accepted here */
	PS_TLS_OURS,   /* the certificate of this end is not accepted there */
	PS_TLS_BROKEN, /* something else, for example bytes that were changed */
};

/* The first bytes of TLS records: of a ClientHello and of an alert. No hello of ours begins so. */
#define PS_TLS_HANDSHAKE 0x16
#define PS_TLS_ALERT 0x15
#define PS_TLS_MAJOR 3 /* the second byte of either */

/* Tells a peer that wants TLS, or none, and finds the opposite: an alert, "protocol version". The
 * peer may or may not get it. */
void ps_stream_refuse(const struct ps_stream *stream);

/*
 * Puts TLS on the stream, before any byte has moved. host is the name or number that was dialled,
 * for which the peer's certificate must be; NULL: this is the end that was dialled. 0, or -1: out
 * of memory, or host is no name that a certificate can have.
 */
int ps_stream_secure(struct ps_stream *stream, struct ps_tls *tls, const char *host);

/* Moves the handshake on. 1: it is over and was good, or there is none; 0: not yet, wait for
 * ps_stream_events(); -1: it failed, as ps_stream_fault() says, or the connection ended, as errno
 * does (0: without a reason). */
int ps_stream_shake(struct ps_stream *stream);

/* What to poll for: until the handshake is over what that needs, then input, and room where
 * something is unsent. */
short ps_stream_events(const struct ps_stream *stream, bool unsent);

/* Why TLS failed, if it did, and a sentence about the other end ("it …; do this"), else "". */
enum ps_tls_fault ps_stream_fault(const struct ps_stream *stream);
const char *ps_stream_why(const struct ps_stream *stream);

/* Closes the socket, if there is one; what was not sent is not sent any more. With TLS it says so
 * to the other end, and does not wait for its answer. */
void ps_stream_close(struct ps_stream *stream);
/* The same, where somebody else has the socket, too: the other end is told nothing. */
void ps_stream_leave(struct ps_stream *stream);

/* stream_tls.c; for the functions below only. */
ssize_t ps_tls_recv(struct ps_tls_stream *tls, void *bytes, size_t len);
ssize_t ps_tls_send(struct ps_tls_stream *tls, const struct iovec *parts, size_t count);
bool ps_tls_pending(const struct ps_tls_stream *tls);

/* As recv() with MSG_DONTWAIT. Less than `len` bytes: there are no more for now. */
static inline ssize_t ps_stream_recv(struct ps_stream *stream, void *bytes, size_t len)
{
	if (stream->tls)
		return ps_tls_recv(stream->tls, bytes, len);
	return recv(stream->fd, bytes, len, MSG_DONTWAIT);
}

/*
 * As sendmsg() of the parts; less than all: the socket took no more. With TLS, bytes that were not
 * taken may be encrypted already: the next call must begin with the same bytes, wherever they are,
 * as a queue does.
 */
static inline ssize_t ps_stream_send(struct ps_stream *stream, const struct iovec *parts,
                                     size_t count)
{
	/* sendmsg only reads them. */
	struct msghdr head = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = count };

	if (stream->tls)
		return ps_tls_send(stream->tls, parts, count);
	return sendmsg(stream->fd, &head, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Is something here that no poll of the socket tells of? */
static inline bool ps_stream_pending(const struct ps_stream *stream)
{
	return stream->tls && ps_tls_pending(stream->tls);
}

#endif
