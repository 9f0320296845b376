/*
 * engine_ping.c - memory without transactions, and for each commit a round trip over a bare socket.
 * It shows what talking to another process on this host costs without Perseas if both ends wait as
 * Perseas does. `compare` measures it next to other engines, or alone.
 */
#include "area.h"
#include "clock.h"
#include "engine.h"
#include "options.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct ping {
	struct engine engine;
	int fd;
	pid_t child; /* process of the far end; 0: not started */
	uint64_t spin_ns;
	uint8_t *message;
	size_t message_size;
	void *memory;
	size_t size;
};

/* Receives a whole message: spins with non-blocking receives, then sleeps. Returns 0 or -1. */
static int receive_all(int fd, uint8_t *bytes, size_t len, uint64_t spin_ns)
{
	uint64_t until = clock_ns() + spin_ns;
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	while (len) {
		ssize_t n = recv(fd, bytes, len, MSG_DONTWAIT);

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			return -1;
		} else if (clock_ns() >= until) {
			poll(&wait, 1, -1);
		}
	}
	return 0;
}

static int send_all(int fd, const uint8_t *bytes, size_t len)
{
	while (len) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return -1;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* Connects a pair of TCP sockets over the loopback. Returns 0 or -1. */
static int tcp_pair(int fds[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int on = 1;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(listener, 1) || getsockname(listener, (struct sockaddr *)&at, &len) ||
	    (fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0 ||
	    connect(fds[0], (struct sockaddr *)&at, sizeof(at)) ||
	    (fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0 ||
	    setsockopt(fds[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) ||
	    setsockopt(fds[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
		return -1;
	close(listener);
	return 0;
}

/* Runs the far end: echoes messages until the near end closes the connection. Does not return. */
static void send_back(const struct ping *ping, int fd, const struct engine_options *options)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	cpu_pin(options->far_cpu);
	while (!receive_all(fd, ping->message, ping->message_size, options->far_spin_us * 1000) &&
	       !send_all(fd, ping->message, ping->message_size))
		;
	_exit(0);
}

static int ping_open(struct engine *engine, const struct engine_options *options, size_t size,
                     void **memory)
{
	struct ping *ping = (struct ping *)engine;
	bool local = engine->ops == &engine_unix_pingpong;
	uint64_t spin_us = options->spin_us ? options->spin_us : 50;
	int fds[2] = { -1, -1 };

	ping->message_size = options->ping_bytes ? options->ping_bytes : 256;
	ping->message = calloc(1, ping->message_size);
	ping->size = size;
	ping->spin_ns = spin_us == UINT32_MAX ? 0 : spin_us * 1000;
	if (!ping->message ||
	    (local ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) : tcp_pair(fds)) ||
	    (ping->child = fork()) < 0)
		return engine_fail(engine, "%s", strerror(errno));
	ping->fd = fds[0];
	if (!ping->child) {
		close(fds[0]);
		send_back(ping, fds[1], options);
	}
	close(fds[1]);
	*memory = ping->memory = area_filled(size, 0);
	snprintf(engine->setup, sizeof(engine->setup), "a round trip of %zu bytes over %s",
	         ping->message_size, local ? "a Unix socket" : "TCP on the loopback");
	return *memory ? 0 : engine_fail(engine, "%s", strerror(errno));
}

static int ping_commit(struct engine *engine)
{
	const struct ping *ping = (const struct ping *)engine;

	if (!send_all(ping->fd, ping->message, ping->message_size) &&
	    !receive_all(ping->fd, ping->message, ping->message_size, ping->spin_ns))
		return 0;
	return engine_fail(engine, "the far end is gone");
}

static void ping_close(struct engine *engine)
{
	const struct ping *ping = (const struct ping *)engine;

	if (ping->child > 0) {
		close(ping->fd);
		waitpid(ping->child, NULL, 0);
	}
	area_free(ping->memory, ping->size);
	free(ping->message);
}

#define PING_OPS                                                                              \
	.survives = "nothing", .forks = true, .size = sizeof(struct ping), .open = ping_open, \
	.begin = engine_begin_nothing, .range = engine_range_nothing, .commit = ping_commit,  \
	.close = ping_close

const struct engine_ops engine_pingpong = { .name = "pingpong", PING_OPS };
const struct engine_ops engine_unix_pingpong = { .name = "unix-pingpong", PING_OPS };
