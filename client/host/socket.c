/*
 * socket.c - connecting to a mirror without blocking, address by address.
 */
#include "socket.h"
#include "../core/env.h"
#include "../../proto/base/standard_streams.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	/* A peer's kernel that is gone is noticed after about this long, also on a connection
	 * on which nothing is sent. */
	SILENCE_MS = 10000,
	KEEPALIVE_IDLE_S = 5,
	KEEPALIVE_INTERVAL_S = 2,
	KEEPALIVE_PROBES = 3,
	BUSY_RETRY_NS = 2000000, /* a Unix socket whose backlog is full tells no one when not */
};

uint64_t ps_monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int ps_poll(struct pollfd *fds, unsigned count, uint64_t until_ns)
{
	uint64_t now = ps_monotonic();
	uint64_t left = until_ns > now ? until_ns - now : 0;
	struct timespec timeout = {
		.tv_sec = (time_t)(left / 1000000000),
		.tv_nsec = (long)(left % 1000000000),
	};
	int ready = ppoll(fds, count, until_ns == PS_NEVER ? NULL : &timeout, NULL);

	return ready > 0 ? ready : 0;
}

int ps_would_block(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == ENOBUFS ||
	       error == ENOMEM;
}

void ps_close_all(const int *fds, unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++)
		close(fds[i]);
}

static int look_up(struct ps_dial *dial, struct ps_error *error)
{
	struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
	};
	struct addrinfo *list = NULL, *at;
	int refused = getaddrinfo(dial->address.host, dial->address.port, &hints, &list);

	if (refused == EAI_NONAME) {
		hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
		refused = getaddrinfo(dial->address.host, dial->address.port, &hints, &list);
	}
	if (refused)
		return ps_error_set(error, PERSEAS_EUNREACHABLE,
		                    "%s: the host is not known (%s); check its name in the list "
		                    "of mirrors",
		                    dial->address.text, gai_strerror(refused));
	for (at = list; at && dial->count < PS_DIAL_MAX; at = at->ai_next) {
		memcpy(&dial->to[dial->count], at->ai_addr, at->ai_addrlen);
		dial->to_len[dial->count++] = at->ai_addrlen;
	}
	freeaddrinfo(list);
	return 0;
}

int ps_dial_begin(struct ps_dial *dial, const struct ps_address *address, struct ps_error *error)
{
	struct sockaddr_un *path = (struct sockaddr_un *)&dial->to[0];

	memset(dial, 0, sizeof(*dial));
	dial->fd = -1;
	dial->address = *address;
	if (address->scheme == PS_SCHEME_TCP)
		return look_up(dial, error);
	if (address->scheme != PS_SCHEME_UNIX || strlen(address->host) >= sizeof(path->sun_path))
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "%s exists only in a simulation; give host:port or "
		                    "unix:///path",
		                    address->text);
	path->sun_family = AF_UNIX;
	strcpy(path->sun_path, address->host);
	dial->to_len[0] = sizeof(*path);
	dial->count = 1;
	return 0;
}

void ps_dial_end(struct ps_dial *dial)
{
	if (dial->fd >= 0)
		close(dial->fd);
	dial->fd = -1;
}

static void set_option(int fd, int level, int option, int value)
{
	/* All of them only make it faster, or a failure seen sooner. */
	(void)setsockopt(fd, level, option, &value, sizeof(value));
}

static void tune(int fd)
{
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, SILENCE_MS);
}

/* The address being tried has failed: on to the next. */
static void give_up(struct ps_dial *dial, int error)
{
	ps_dial_end(dial);
	dial->error = error;
	dial->at++;
}

/* Begins with the next address. */
static void attempt(struct ps_dial *dial)
{
	const struct sockaddr *to = (const struct sockaddr *)&dial->to[dial->at];

	dial->fd = ps_above_standard(
		socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (dial->fd < 0) {
		give_up(dial, errno);
		return;
	}
	dial->until = PS_NEVER;
	if (to->sa_family != AF_UNIX)
		tune(dial->fd);
	if (connect(dial->fd, to, dial->to_len[dial->at]) == 0 || errno == EINPROGRESS)
		return;
	if (errno == EAGAIN) {
		ps_dial_end(dial);
		dial->error = EAGAIN;
		dial->until = ps_monotonic() + BUSY_RETRY_NS;
		return;
	}
	give_up(dial, errno);
}

/* A connect to a free port of this host's own ephemeral range may meet itself; that is no
 * mirror, although it greets as one. */
static bool is_itself(int fd)
{
	struct sockaddr_storage here = { 0 }, there = { 0 };
	socklen_t here_len = sizeof(here), there_len = sizeof(there);

	if (getsockname(fd, (struct sockaddr *)&here, &here_len) ||
	    getpeername(fd, (struct sockaddr *)&there, &there_len))
		return false;
	return here.ss_family != AF_UNIX && here_len == there_len &&
	       memcmp(&here, &there, here_len) == 0;
}

/* How the attempt under way ended: 1 connected, 0 it has not, -1 it failed. */
static int outcome(struct ps_dial *dial)
{
	struct pollfd fd = { .fd = dial->fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int error = 0;

	if (ps_poll(&fd, 1, 0) == 0)
		return 0;
	if (getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &error, &len))
		error = errno;
	if (!error && is_itself(dial->fd))
		error = ECONNREFUSED;
	if (error)
		give_up(dial, error);
	return error ? -1 : 1;
}

static int fail(const struct ps_dial *dial, struct ps_error *error)
{
	const char *name = dial->address.text;
	int code = PERSEAS_EUNREACHABLE;

	switch (dial->error) {
	case ECONNREFUSED:
		return ps_error_set(error, code,
		                    "%s refused the connection; is perseasd running there?", name);
	case ENOENT:
		return ps_error_set(error, code,
		                    "%s: there is no such socket; is perseasd "
		                    "running, and told to listen there (--unix)?",
		                    name);
	case EACCES:
	case EPERM:
		return ps_error_set(error, code,
		                    "%s: permission denied; run this as a user who "
		                    "may connect there, or see what a firewall refuses",
		                    name);
	case EHOSTUNREACH:
	case ENETUNREACH:
		return ps_error_set(error, code,
		                    "%s cannot be reached (%s); check the address and "
		                    "the network between",
		                    name, strerror(dial->error));
	case EAGAIN:
		return ps_error_set(error, code,
		                    "%s has too many connections waiting; is "
		                    "perseasd there stuck?",
		                    name);
	case EMFILE:
	case ENFILE:
		return ps_error_set(error, PERSEAS_ESYSTEM,
		                    "%s: no descriptor is left for a "
		                    "connection; raise the limit on open files",
		                    name);
	case ETIMEDOUT:
		return ps_error_set(error, code,
		                    "%s did not accept a connection in time; is the "
		                    "host up, and does no firewall stop it?",
		                    name);
	}
	return ps_error_set(error, code,
	                    "%s: no connection (%s); check that perseasd is running "
	                    "there",
	                    name, strerror(dial->error));
}

/* Gives the attempt under way its share of the time, once it is known how much there is. */
static void set_share(struct ps_dial *dial, uint64_t until_ns)
{
	uint64_t now = ps_monotonic();
	uint64_t left = until_ns > now ? until_ns - now : 0;

	if (dial->until == PS_NEVER && until_ns != PS_NEVER && dial->at + 1 < dial->count)
		dial->until = now + left / (dial->count - dial->at);
}

int ps_dial_step(struct ps_dial *dial, uint64_t until_ns, struct ps_error *error)
{
	while (dial->at < dial->count) {
		if (dial->fd < 0 && dial->error == EAGAIN && ps_monotonic() < dial->until)
			return 0;
		if (dial->fd < 0)
			attempt(dial);
		if (dial->fd < 0)
			continue;
		if (outcome(dial) > 0)
			return 1;
		if (dial->fd < 0)
			continue;
		set_share(dial, until_ns);
		if (ps_monotonic() < dial->until)
			return 0;
		give_up(dial, ETIMEDOUT);
	}
	return fail(dial, error);
}

int ps_dial_late(const struct ps_dial *dial, struct ps_error *error)
{
	struct ps_dial late = *dial;

	if (late.error != EAGAIN || late.fd >= 0)
		late.error = ETIMEDOUT;
	return fail(&late, error);
}

int ps_dial(const struct ps_address *address, uint64_t until_ns, struct ps_error *error)
{
	struct ps_dial dial;
	int code = ps_dial_begin(&dial, address, error);

	if (code)
		return code;
	while ((code = ps_dial_step(&dial, until_ns, error)) == 0) {
		struct pollfd fd = { .fd = dial.fd, .events = POLLOUT };

		if (ps_monotonic() >= until_ns) {
			code = ps_dial_late(&dial, error);
			break;
		}
		ps_poll(&fd, 1, dial.until < until_ns ? dial.until : until_ns);
	}
	if (code > 0)
		return dial.fd;
	ps_dial_end(&dial);
	return code;
}
