/*
 * wire_tls.h - the socket below a TLS stream, as OpenSSL sees it. OpenSSL's own calls would raise
 * SIGPIPE, and send each record of 16 KiB by a system call of its own. Includes OpenSSL's headers:
 * for *_tls.c only.
 */
#ifndef PERSEAS_PROTO_WIRE_TLS_H
#define PERSEAS_PROTO_WIRE_TLS_H

#include <openssl/bio.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero to begin, but for fd. */
struct ps_tls_wire {
	int fd;        /* the stream's */
	int error;     /* errno of the socket's failure; 0: it has ended */
	bool gathers;  /* records are kept until ps_tls_wire_flush() */
	uint8_t *kept; /* encrypted bytes start .. end - 1 that the socket has not taken */
	size_t start, end, room;
};

enum { PS_TLS_WIRE_BATCH = 48 << 10 }; /* the most that ps_tls_wire_batch() gives */

/*
 * Kept bytes from which on it is time to flush, when so many bytes of the same send are gone
 * before. A call for each record takes more time than a larger batch. But the other end has nothing
 * to decrypt before the first batch comes, and is alone with the last one: batches are small at
 * first, and grow as the two matter less.
 */
size_t ps_tls_wire_batch(size_t done);

/* NULL: out of memory. The wire must outlive it. */
BIO *ps_tls_wire_bio(struct ps_tls_wire *wire);

/* Sends what is kept. 1: nothing is kept any more; 0: the socket took a part; -1: it failed, with
 * errno and wire->error. */
int ps_tls_wire_flush(struct ps_tls_wire *wire);

/* Frees what is kept, sent or not. */
void ps_tls_wire_clear(struct ps_tls_wire *wire);

#endif
