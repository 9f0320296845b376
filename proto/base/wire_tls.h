/*
 * wire_tls.h - the socket below a TLS stream, as an OpenSSL BIO. OpenSSL's own socket BIO raises
 * SIGPIPE, and sends each record of 16 KiB by a system call of its own. Only *_tls.c files may
 * include this header: it includes OpenSSL's.
 */
#ifndef PERSEAS_PROTO_WIRE_TLS_H
#define PERSEAS_PROTO_WIRE_TLS_H

#include <openssl/bio.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Initialize to zero, except for fd. */
struct ps_tls_wire {
	int fd;        /* the stream's socket */
	int error;     /* errno of the socket's failure; 0: the peer closed it */
	bool gathers;  /* true: records are kept until ps_tls_wire_flush() */
	uint8_t *kept; /* encrypted bytes [start, end) that the socket has not taken */
	size_t start, end, room;
};

enum { PS_TLS_WIRE_BATCH = 48 << 10 }; /* the largest result of ps_tls_wire_batch() */

/* Returns after how many kept bytes to flush, if `done` bytes of the same send are flushed already.
 * Large batches save system calls. Small ones let the peer begin to decrypt early, and leave it
 * less to do after the last. So batches begin small and grow during a send. */
size_t ps_tls_wire_batch(size_t done);

/* Returns a new BIO, or NULL if memory is out. The wire must outlive it. */
BIO *ps_tls_wire_bio(struct ps_tls_wire *wire);

/* Sends kept bytes. Returns 1 if none are left, 0 if the socket took only a part, or -1 with errno
 * and wire->error set if it failed. */
int ps_tls_wire_flush(struct ps_tls_wire *wire);

/* Frees kept bytes, sent or not. */
void ps_tls_wire_clear(struct ps_tls_wire *wire);

#endif
