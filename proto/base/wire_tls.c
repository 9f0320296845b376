/*
 * wire_tls.c - the socket below a TLS stream. OpenSSL calls it, and stream_tls.c says when to
 * gather records. It never blocks and never raises SIGPIPE.
 */
#include "wire_tls.h"

#include <assert.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	/* Holds a batch, one more record, and a message of TLS itself. */
	KEPT_SIZE = PS_TLS_WIRE_BATCH + 2 * SSL3_RT_MAX_PACKET_SIZE,
};

static BIO_METHOD *bio_method;

static bool is_temporary(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM;
}

static ssize_t send_once(struct ps_tls_wire *wire, const void *bytes, size_t len)
{
	ssize_t n;

	do {
		n = send(wire->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && !is_temporary(errno))
		wire->error = errno;
	return n;
}

size_t ps_tls_wire_batch(size_t done)
{
	size_t batch = SSL3_RT_MAX_PLAIN_LENGTH + done / 8;

	return batch < PS_TLS_WIRE_BATCH ? batch : PS_TLS_WIRE_BATCH;
}

int ps_tls_wire_flush(struct ps_tls_wire *wire)
{
	while (wire->start < wire->end) {
		ssize_t n = send_once(wire, wire->kept + wire->start, wire->end - wire->start);

		if (n < 0)
			return is_temporary(errno) ? 0 : -1;
		wire->start += (size_t)n;
	}
	ps_tls_wire_clear(wire);
	return 1;
}

void ps_tls_wire_clear(struct ps_tls_wire *wire)
{
	free(wire->kept);
	wire->kept = NULL;
	wire->start = wire->end = wire->room = 0;
}

/* Appends bytes to the kept ones. Returns false if memory is out or the buffer is full. */
static bool keep_bytes(struct ps_tls_wire *wire, const void *bytes, size_t len)
{
	if (!wire->kept) {
		wire->kept = malloc(KEPT_SIZE);
		if (!wire->kept)
			return false;
		wire->room = KEPT_SIZE;
	}
	assert(wire->start <= wire->end && wire->end <= wire->room);
	if (len > wire->room - (wire->end - wire->start))
		return false;
	if (len > wire->room - wire->end) {
		memmove(wire->kept, wire->kept + wire->start, wire->end - wire->start);
		wire->end -= wire->start;
		wire->start = 0;
	}
	memcpy(wire->kept + wire->end, bytes, len);
	wire->end += len;
	return true;
}

static int bio_write(BIO *bio, const char *bytes, int len)
{
	struct ps_tls_wire *wire = BIO_get_data(bio);
	ssize_t n;

	BIO_clear_retry_flags(bio);
	if (wire->gathers && keep_bytes(wire, bytes, (size_t)len))
		return len;
	/* Bytes that were kept earlier must be sent before the new ones. */
	n = ps_tls_wire_flush(wire);
	if (n > 0)
		n = send_once(wire, bytes, (size_t)len);
	else if (n == 0)
		errno = EAGAIN;
	if (n > 0)
		return (int)n;
	if (is_temporary(errno))
		BIO_set_retry_write(bio);
	return -1;
}

static int bio_read(BIO *bio, char *bytes, int len)
{
	struct ps_tls_wire *wire = BIO_get_data(bio);
	ssize_t n;

	BIO_clear_retry_flags(bio);
	do {
		n = recv(wire->fd, bytes, (size_t)len, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		return (int)n;
	if (n < 0 && is_temporary(errno))
		BIO_set_retry_read(bio);
	else
		wire->error = n < 0 ? errno : 0;
	return (int)n;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
	struct ps_tls_wire *wire = BIO_get_data(bio);

	(void)number;
	(void)pointer;
	if (command == BIO_CTRL_EOF)
		return wire->error == 0;
	return command == BIO_CTRL_FLUSH;
}

static void make_bio_method(void)
{
	int type = BIO_get_new_index();

	bio_method = BIO_meth_new(type | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR, "perseas");
	if (bio_method && !(BIO_meth_set_write(bio_method, bio_write) &&
	                    BIO_meth_set_read(bio_method, bio_read) &&
	                    BIO_meth_set_ctrl(bio_method, bio_control))) {
		BIO_meth_free(bio_method);
		bio_method = NULL;
	}
}

BIO *ps_tls_wire_bio(struct ps_tls_wire *wire)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	BIO *bio;

	pthread_once(&once, make_bio_method);
	bio = bio_method ? BIO_new(bio_method) : NULL;
	if (!bio)
		return NULL;
	BIO_set_data(bio, wire);
	BIO_set_init(bio, 1);
	return bio;
}
