/*
 * The stage of tcp: a mirror in a thread, behind a socket (with TLS, or not), which is the daemon's
 * decoder over plain memory.
 */
#include "contract_fabric.h"

#include "../../client/host/socket.h"
#include "../../proto/data/frame.h"
#include "../../proto/base/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEP = 16, ONCE = 65536, GIVEN = 2 };

struct tcp_stage {
	struct fabric_stage stage; /* first */
	struct ps_env env;
	struct stage_grant grant;
	uint8_t log[STAGE_LOG], segment[STAGE_SEGMENT];
	int listener;
	struct ps_tls *tls;      /* the mirror's, or NULL */
	struct ps_stream stream; /* fd is -1 while nobody is connected */
	int wake;
	pthread_t thread;
	pthread_mutex_t lock;
	bool stopped, over;
	struct ps_decoder decoder;
	struct ps_hello hello;
	size_t heard; /* bytes of the hello */
	uint64_t answered;
};

static struct tcp_stage *of(struct fabric_stage *stage)
{
	return (struct tcp_stage *)stage;
}

/* --- the mirror; locked --- */

static uint8_t *where(void *ctx, const struct ps_extent *extent, bool write)
{
	struct tcp_stage *t = ctx;
	bool log = extent->region == PS_REGION_LOG;
	uint64_t size = log ? STAGE_LOG : STAGE_SEGMENT;

	(void)write;
	if ((!log && extent->region != PS_REGION_SEGMENT) || extent->length > size ||
	    extent->offset > size - extent->length)
		return NULL;
	return (log ? t->log : t->segment) + extent->offset;
}

static void wait_for(struct tcp_stage *t, short events)
{
	struct pollfd fd = { .fd = t->stream.fd, .events = events };

	ps_poll(&fd, 1, PS_NEVER);
}

static void send_all(struct tcp_stage *t, const void *bytes, size_t len)
{
	struct iovec rest = { (void *)(uintptr_t)bytes, len };

	while (rest.iov_len > 0) {
		ssize_t n = ps_stream_send(&t->stream, &rest, 1);

		if (n < 0 && ps_would_block(errno)) {
			wait_for(t, POLLOUT);
		} else if (n <= 0) {
			return;
		} else {
			rest.iov_base = (uint8_t *)rest.iov_base + n;
			rest.iov_len -= (size_t)n;
		}
	}
}

static void answer(void *ctx, const struct ps_answer *answer, const uint8_t *bytes)
{
	struct tcp_stage *t = ctx;

	t->answered = answer->cookie;
	send_all(t, answer, sizeof(*answer));
	if (answer->length)
		send_all(t, bytes, answer->length);
}

static const struct ps_decoder_ops ops = { where, answer };

static void hang_up(struct tcp_stage *t)
{
	ps_stream_close(&t->stream);
	t->stream.fd = -1;
}

static bool is_connected(const struct tcp_stage *t)
{
	return t->stream.fd >= 0;
}

/* Accepts another connection, which replaces the earlier one: a session has one data path. */
static void accept_next(struct tcp_stage *t)
{
	int fd = accept4(t->listener, NULL, NULL, SOCK_CLOEXEC), shaken = 1;

	if (fd < 0)
		return;
	if (is_connected(t))
		hang_up(t);
	t->stream.fd = fd;
	t->heard = 0;
	t->answered = 0;
	ps_decoder_init(&t->decoder, &ops, t);
	if (t->tls && ps_stream_begin_tls(&t->stream, t->tls, NULL))
		shaken = -1;
	while (shaken > 0 && (shaken = ps_stream_handshake(&t->stream)) == 0) {
		wait_for(t, ps_stream_events(&t->stream, false));
		shaken = 1;
	}
	if (shaken < 0)
		hang_up(t);
}

/* Takes `most` bytes of what has come. False: there is nothing. */
static bool take(struct tcp_stage *t, size_t most)
{
	const bool greeted = t->heard == sizeof(t->hello);
	struct ps_answer welcome = { .op = PS_OP_HELLO };
	uint8_t bytes[ONCE];
	ssize_t n;

	if (!is_connected(t))
		return false;
	if (greeted)
		n = ps_stream_recv(&t->stream, bytes, most);
	else
		n = ps_stream_recv(&t->stream, (uint8_t *)&t->hello + t->heard,
		                   sizeof(t->hello) - t->heard);
	if (n < 0 && ps_would_block(errno))
		return false;
	if (n <= 0 || (greeted && ps_decoder_feed(&t->decoder, bytes, (size_t)n))) {
		hang_up(t);
		return false;
	}
	if (greeted)
		return true;
	t->heard += (size_t)n;
	if (t->heard == sizeof(t->hello))
		send_all(t, &welcome, sizeof(welcome));
	return true;
}

static void *run(void *arg)
{
	struct tcp_stage *t = arg;
	uint64_t count;

	for (;;) {
		struct pollfd fds[3] = { { t->wake, POLLIN, 0 }, { t->listener, POLLIN, 0 } };
		unsigned n = 1;

		pthread_mutex_lock(&t->lock);
		while (!t->stopped && take(t, ONCE))
			;
		if (!t->stopped)
			n = 2;
		if (!t->stopped && is_connected(t))
			fds[n++] = (struct pollfd){ t->stream.fd, POLLIN, 0 };
		if (t->over)
			n = 0;
		pthread_mutex_unlock(&t->lock);
		if (!n)
			return NULL;
		ps_poll(fds, n, PS_NEVER);
		(void)!read(t->wake, &count, sizeof(count));
		pthread_mutex_lock(&t->lock);
		if (!t->stopped && (fds[1].revents & POLLIN))
			accept_next(t);
		pthread_mutex_unlock(&t->lock);
	}
}

/* --- the stage --- */

static void tell(struct tcp_stage *t, bool stopped, bool over)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&t->lock);
	t->stopped = stopped;
	t->over = over;
	pthread_mutex_unlock(&t->lock);
	assert_int_equal(write(t->wake, &one, sizeof(one)), sizeof(one));
}

static void stop(struct fabric_stage *stage)
{
	tell(of(stage), true, false);
}

static void go(struct fabric_stage *stage)
{
	tell(of(stage), false, false);
}

static void step(struct fabric_stage *stage)
{
	struct tcp_stage *t = of(stage);

	pthread_mutex_lock(&t->lock);
	(void)take(t, STEP);
	pthread_mutex_unlock(&t->lock);
}

static void cut(struct fabric_stage *stage)
{
	struct tcp_stage *t = of(stage);

	pthread_mutex_lock(&t->lock);
	shutdown(t->stream.fd, SHUT_RDWR);
	pthread_mutex_unlock(&t->lock);
}

/* Answers that the link is fenced, and keeps the connection: the answer alone must be enough. */
static void fence(struct fabric_stage *stage)
{
	struct tcp_stage *t = of(stage);
	struct ps_answer fenced = { .op = PS_OP_WRITE, .status = PS_ANSWER_BAD_TOKEN };

	pthread_mutex_lock(&t->lock);
	fenced.cookie = t->answered + 1;
	send_all(t, &fenced, sizeof(fenced));
	pthread_mutex_unlock(&t->lock);
}

static const Perseas__Grant *grant(struct fabric_stage *stage, int *fds, uint64_t *epoch)
{
	struct tcp_stage *t = of(stage);

	*epoch = 1;
	for (unsigned i = 0; i < GIVEN; i++)
		fds[i] = stage_file(1);
	return &t->grant.grant;
}

static unsigned left(struct fabric_stage *stage)
{
	(void)stage;
	return stage_files();
}

static uint8_t *memory(struct fabric_stage *stage, uint32_t region)
{
	return region == PS_REGION_LOG ? of(stage)->log : of(stage)->segment;
}

static void listen_at(struct tcp_stage *t)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(at);
	int narrow = 4096;
	char text[32];

	t->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	setsockopt(t->listener, SOL_SOCKET, SO_RCVBUF, &narrow, sizeof(narrow));
	assert_int_equal(bind(t->listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(t->listener, 4), 0);
	assert_int_equal(getsockname(t->listener, (struct sockaddr *)&at, &len), 0);
	snprintf(text, sizeof(text), "127.0.0.1:%d", ntohs(at.sin_port));
	assert_int_equal(ps_address_parse(text, &t->stage.address, NULL), 0);
}

struct fabric_stage *fabric_stage_tcp(struct ps_tls *owner, struct ps_tls *mirror)
{
	struct tcp_stage *t = calloc(1, sizeof(*t));

	t->stage = (struct fabric_stage){
		.fabric = &ps_fabric_tcp,
		.env = &t->env,
		.short_ns = 20000000,
		.flood = 128,
		.now = stage_now,
		.pause = stage_pause,
		.grant = grant,
		.left = left,
		.memory = memory,
		.stop = stop,
		.go = go,
		.step = step,
		.cut = cut,
		.fence = fence,
	};
	t->stage.ring = aligned_alloc(PS_PAGE, STAGE_RING);
	listen_at(t);
	t->env.tls = owner;
	t->tls = mirror;
	t->stream.fd = -1;
	t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&t->lock, NULL);
	stage_grant_init(&t->grant);
	stage_add_region(&t->grant, PS_REGION_LOG, STAGE_LOG);
	stage_add_region(&t->grant, PS_REGION_PROMISE, PS_PAGE);
	stage_add_region(&t->grant, PS_REGION_SEGMENT, STAGE_SEGMENT);
	t->grant.grant.descriptors = GIVEN;
	assert_int_equal(pthread_create(&t->thread, NULL, run, t), 0);
	return &t->stage;
}

void fabric_stage_tcp_end(struct fabric_stage *stage)
{
	struct tcp_stage *t = of(stage);

	tell(t, true, true);
	pthread_join(t->thread, NULL);
	if (is_connected(t))
		hang_up(t);
	close(t->listener);
	close(t->wake);
	free(stage->ring);
	free(t);
}
