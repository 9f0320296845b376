/*
 * tcp_mirror.h - a mirror for test_fabric_tcp.c: the real decoder over plain memory, behind a
 * socket, moved on by hand, so that it is as slow as a situation needs.
 */
#ifndef PERSEAS_TESTS_TCP_MIRROR_H
#define PERSEAS_TESTS_TCP_MIRROR_H

#include "../../client/core/address.h"
#include "../../client/core/env.h"
#include "../../client/core/fabric.h"
#include "../../client/host/socket.h"
#include "../../proto/data/frame.h"
#include "../../proto/base/tls.h"
#include "../support/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define SEGMENT_SIZE ((uint64_t)32 << 20)

enum { LOG_SIZE = 65536, CHUNK = 65536 };

/* The mirror's TLS, and the owner's in its env; NULL: plain text. */
static struct ps_tls *mirror_tls;
static struct ps_env owner_env;

struct mirror {
	int listener;
	struct ps_stream stream;
	struct ps_address address;
	uint8_t token[PS_ID_SIZE]; /* that the owner must bring */
	_Alignas(8) uint8_t log[LOG_SIZE];
	uint8_t *segment;
	struct ps_decoder decoder;
	size_t once;      /* so many bytes of an answer, then a rest; 0: all at once */
	uint64_t rest;    /* ns */
	uint64_t applied; /* signalled frames */
	Perseas__Region regions[2], *list[2];
	Perseas__Grant grant;
	/* Handshake bytes to send instead of the right ones. */
	const void *greeting;
	size_t greeting_len;
	struct ps_hello hello;
	pthread_t thread;
};

#define PATIENCE 20000000000ULL /* ns: longer than anything here takes */

static uint64_t soon(void)
{
	return ps_monotonic() + PATIENCE;
}

static uint8_t *where(void *ctx, const struct ps_extent *extent, bool write)
{
	struct mirror *m = ctx;
	uint8_t *base = extent->region == PS_REGION_LOG ? m->log : m->segment;
	uint64_t size = extent->region == PS_REGION_LOG ? LOG_SIZE : SEGMENT_SIZE;

	(void)write;
	if ((extent->region != PS_REGION_LOG && extent->region != PS_REGION_SEGMENT) ||
	    extent->length > size || extent->offset > size - extent->length)
		return NULL;
	return base + extent->offset;
}

static void wait_for(struct mirror *m, short events)
{
	struct pollfd fd = { .fd = m->stream.fd, .events = events };

	ps_poll(&fd, 1, soon());
}

static void send_all(struct mirror *m, const void *bytes, size_t len)
{
	struct iovec rest = { (void *)(uintptr_t)bytes, len };

	while (rest.iov_len > 0) {
		ssize_t n = ps_stream_send(&m->stream, &rest, 1);

		if (n < 0 && ps_would_block(errno)) {
			wait_for(m, POLLOUT);
		} else if (n <= 0) {
			return;
		} else {
			rest.iov_base = (uint8_t *)rest.iov_base + n;
			rest.iov_len -= (size_t)n;
		}
	}
}

static bool receive_all(struct mirror *m, void *bytes, size_t len)
{
	for (size_t have = 0; have < len;) {
		ssize_t n = ps_stream_recv(&m->stream, (uint8_t *)bytes + have, len - have);

		if (n < 0 && ps_would_block(errno))
			wait_for(m, POLLIN);
		else if (n <= 0)
			return false;
		else
			have += (size_t)n;
	}
	return true;
}

/* Sends as over a slow link. Ends with the peer. */
static void send_slowly(struct mirror *m, const uint8_t *bytes, size_t len)
{
	for (size_t n; len > 0; bytes += n, len -= n) {
		struct pollfd fd = { .fd = m->stream.fd, .events = POLLRDHUP };

		n = len < m->once ? len : m->once;
		send_all(m, bytes, n);
		if (ps_poll(&fd, 1, ps_monotonic() + m->rest) > 0)
			return;
	}
}

static void answer(void *ctx, const struct ps_answer *answer, const uint8_t *bytes)
{
	struct mirror *m = ctx;

	m->applied++;
	send_all(m, answer, sizeof(*answer));
	if (answer->length && m->once)
		send_slowly(m, bytes, answer->length);
	else if (answer->length)
		send_all(m, bytes, answer->length);
}

static const struct ps_decoder_ops ops = { where, answer };

/* Takes in what has arrived, `most` bytes at most. Returns how much, or -1. */
static ssize_t pump_some(struct mirror *m, size_t most)
{
	uint8_t bytes[CHUNK];
	ssize_t n = ps_stream_recv(&m->stream, bytes, most < CHUNK ? most : CHUNK);

	if (n > 0 && ps_decoder_feed(&m->decoder, bytes, (size_t)n))
		return -1;
	return n;
}

/* A mirror that runs by itself: for reads, which block. */
__attribute__((unused)) static void *run(void *arg)
{
	struct mirror *m = arg;
	struct pollfd fd = { .fd = m->stream.fd, .events = POLLIN };
	ssize_t n;

	do {
		n = pump_some(m, CHUNK);
		if (n < 0 && ps_would_block(errno))
			poll(&fd, 1, -1);
	} while (n > 0 || (n < 0 && ps_would_block(errno)));
	return NULL;
}

static void *handshake(void *arg)
{
	struct mirror *m = arg;
	struct ps_answer welcome = { .op = PS_OP_HELLO };

	m->stream.fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC);
	if (mirror_tls && ps_stream_begin_tls(&m->stream, mirror_tls, NULL))
		return NULL;
	while (ps_stream_handshake(&m->stream) == 0)
		wait_for(m, ps_stream_events(&m->stream, false));
	if (!receive_all(m, &m->hello, sizeof(m->hello)))
		return NULL;
	if (m->greeting) {
		send_all(m, m->greeting, m->greeting_len);
		shutdown(m->stream.fd, SHUT_WR);
		return NULL;
	}
	if (memcmp(m->hello.token, m->token, PS_ID_SIZE) != 0)
		welcome.status = PS_ANSWER_BAD_TOKEN;
	send_all(m, &welcome, sizeof(welcome));
	return NULL;
}

static struct ps_link *attach(struct mirror *m, struct ps_error *error)
{
	struct ps_link *link;

	assert_int_equal(pthread_create(&m->thread, NULL, handshake, m), 0);
	link = ps_fabric_tcp.attach(&owner_env, &m->address, &m->grant, NULL, 1, soon(), error);
	pthread_join(m->thread, NULL);
	return link;
}

static struct ps_link *attach_well(struct mirror *m)
{
	struct ps_error error;
	struct ps_link *link = attach(m, &error);

	if (!link)
		fail_msg("%s", error.text);
	return link;
}

static int setup(void **state)
{
	struct mirror *m = calloc(1, sizeof(*m));
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(at);
	char text[32];
	int i;

	m->stream.fd = -1;
	m->segment = calloc(1, SEGMENT_SIZE);
	m->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(m->listener, (struct sockaddr *)&at, len) || listen(m->listener, 1) ||
	    getsockname(m->listener, (struct sockaddr *)&at, &len))
		return -1;
	snprintf(text, sizeof(text), "127.0.0.1:%d", ntohs(at.sin_port));
	ps_address_parse(text, &m->address, NULL);
	memset(m->token, 't', sizeof(m->token));
	ps_decoder_init(&m->decoder, &ops, m);
	perseas__grant__init(&m->grant);
	for (i = 0; i < 2; i++) {
		perseas__region__init(&m->regions[i]);
		m->list[i] = &m->regions[i];
	}
	m->regions[0].id = PS_REGION_LOG;
	m->regions[0].length = LOG_SIZE;
	m->regions[1].id = PS_REGION_SEGMENT;
	m->regions[1].length = SEGMENT_SIZE;
	m->grant.regions = m->list;
	m->grant.n_regions = 2;
	m->grant.token.data = m->token;
	m->grant.token.len = PS_ID_SIZE;
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	struct mirror *m = *state;

	ps_stream_close(&m->stream);
	close(m->listener);
	free(m->segment);
	free(m);
	return 0;
}

#endif
