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
#include <sys/epoll.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	/* The kernel notices a peer whose kernel is gone after about this time, also on an idle
	 * connection. */
	SILENCE_MS = 10000,
	KEEPALIVE_IDLE_S = 5,
	KEEPALIVE_INTERVAL_S = 2,
	KEEPALIVE_PROBES = 3,
	BUSY_RETRY_NS = 2000000, /* a Unix socket does not signal when its backlog has room again */
	LAST_RETRY_NS = 50000000, /* a last address that failed is tried again after this time */
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

static void dial_init(struct ps_dial *dial, const struct ps_address *address)
{
	memset(dial, 0, sizeof(*dial));
	dial->fd = dial->epoll_fd = -1;
	dial->address = *address;
	dial->began_at = ps_monotonic();
	dial->until = PS_NEVER;
}

static int set_path(struct ps_dial *dial, struct ps_error *error)
{
	const struct ps_address *address = &dial->address;
	struct sockaddr_un *path = (struct sockaddr_un *)&dial->list.to[0];

	if (address->scheme != PS_SCHEME_UNIX || strlen(address->host) >= sizeof(path->sun_path))
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "%s exists only in a simulation; give host:port or "
		                    "unix:///path",
		                    address->text);
	path->sun_family = AF_UNIX;
	strcpy(path->sun_path, address->host);
	dial->list.len[0] = sizeof(*path);
	dial->list.count = 1;
	return 0;
}

int ps_dial_begin(struct ps_dial *dial, const struct ps_address *address, struct ps_error *error)
{
	int failed;

	dial_init(dial, address);
	if (address->scheme != PS_SCHEME_TCP)
		return set_path(dial, error);
	if (ps_resolver_parse_number(address, &dial->list))
		return 0;
	dial->source = PS_DIAL_RESOLVED;
	dial->lookup = ps_lookup_begin(address);
	failed = errno;
	if (ps_resolver_last_address(address, &dial->list, dial->daemon))
		dial->source = PS_DIAL_LAST;
	else if (!dial->lookup)
		return ps_error_set(error, PERSEAS_ESYSTEM,
		                    "%s: its name cannot be looked up (%s); raise the limits on "
		                    "threads and open files, or give the host's number",
		                    address->text, strerror(failed));
	return 0;
}

int ps_dial_begin_known(struct ps_dial *dial, const struct ps_address *address,
                        struct ps_error *error)
{
	dial_init(dial, address);
	if (address->scheme != PS_SCHEME_TCP)
		return set_path(dial, error);
	return ps_resolver_known_addresses(address, &dial->list, error);
}

static void close_epoll(struct ps_dial *dial)
{
	if (dial->epoll_fd >= 0)
		close(dial->epoll_fd);
	dial->epoll_fd = -1;
}

static void drop_lookup(struct ps_dial *dial)
{
	ps_lookup_drop(dial->lookup);
	dial->lookup = NULL;
	close_epoll(dial);
}

static void hang_up(struct ps_dial *dial)
{
	if (dial->fd >= 0)
		close(dial->fd);
	dial->fd = -1;
	close_epoll(dial);
}

void ps_dial_end(struct ps_dial *dial)
{
	hang_up(dial);
	drop_lookup(dial);
	if (dial->source == PS_DIAL_LAST)
		ps_resolver_note_failure(&dial->address);
}

/* --- the answer of the name service --- */

/* Takes the answer of the name service, if there is one. The present attempt continues if the name
 * still leads to its address; otherwise the new addresses are tried instead. */
static void take_lookup_answer(struct ps_dial *dial)
{
	struct ps_addresses found;
	int here;

	if (!dial->lookup || !ps_lookup_get_answer(dial->lookup, &found, &dial->lookup_error))
		return;
	drop_lookup(dial);
	dial->until = PS_NEVER;
	if (dial->lookup_error)
		return;
	here = dial->fd >= 0 ? ps_addresses_find(&found, &dial->list.to[dial->current]) : -1;
	if (here < 0)
		hang_up(dial);
	dial->list = found;
	dial->source = PS_DIAL_RESOLVED;
	dial->began_at = ps_monotonic();
	dial->current = 0;
	if (here > 0) {
		dial->list.to[here] = found.to[0];
		dial->list.len[here] = found.len[0];
		dial->list.to[0] = found.to[here];
		dial->list.len[0] = found.len[here];
	}
}

bool ps_dial_distrust(struct ps_dial *dial)
{
	if (dial->source != PS_DIAL_LAST || (!dial->lookup && !dial->lookup_error))
		return false;
	dial->source = PS_DIAL_RESOLVED;
	dial->list.count = dial->current = 0;
	return true;
}

/* Confirms the address after another daemon than before answered at PS_DIAL_LAST. Returns 1 if the
 * name service leads to this address, 0 if it has not answered yet, or PERSEAS_EUNREACHABLE. */
static int confirm_last_address(struct ps_dial *dial, struct ps_error *error)
{
	const char *what = "cannot be looked up now; see /etc/resolv.conf and the name server";
	struct ps_addresses found;

	if (dial->lookup && !ps_lookup_get_answer(dial->lookup, &found, &dial->lookup_error))
		return 0;
	if (dial->lookup && !dial->lookup_error) {
		if (ps_addresses_find(&found, &dial->list.to[dial->current]) >= 0)
			return 1;
		what = "leads to another address now; try again";
	}
	return ps_error_set(error, PERSEAS_EUNREACHABLE,
	                    "%s: another daemon has the address where this mirror was, and the "
	                    "mirror's name %s",
	                    dial->address.text, what);
}

int ps_dial_accept(struct ps_dial *dial, const uint8_t *daemon, struct ps_error *error)
{
	static const uint8_t none[PS_ID_SIZE];
	int rc = 1;

	if (dial->source == PS_DIAL_LAST &&
	    memcmp(daemon ? daemon : none, dial->daemon, PS_ID_SIZE) != 0)
		rc = confirm_last_address(dial, error);
	if (rc > 0 && dial->source != PS_DIAL_GIVEN)
		ps_resolver_note(&dial->address, &dial->list.to[dial->current],
		                 dial->list.len[dial->current], daemon);
	if (rc > 0)
		dial->source = PS_DIAL_GIVEN;
	if (rc)
		drop_lookup(dial);
	return rc;
}

/* --- connecting --- */

static void set_option(int fd, int level, int option, int value)
{
	/* Failures do not matter: a connection works without these options. */
	(void)setsockopt(fd, level, option, &value, sizeof(value));
}

static void set_tcp_options(int fd)
{
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
	set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
	set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, SILENCE_MS);
}

/* Notes that the address being tried failed, and moves on to the next. The last address of a mirror
 * is tried again while the name service has not answered, because the mirror may just be restarting
 * there. */
static void fail_address(struct ps_dial *dial, int error)
{
	hang_up(dial);
	dial->error = error;
	dial->until = PS_NEVER;
	if (dial->source == PS_DIAL_LAST && dial->lookup)
		dial->until = ps_monotonic() + LAST_RETRY_NS;
	else
		dial->current++;
}

/* Lets the caller wait for the connection and the lookup at once. If there is no descriptor for
 * that, the caller waits for the connection only. */
static void watch_connect_and_lookup(struct ps_dial *dial)
{
	struct epoll_event connected = { .events = EPOLLOUT }, answered = { .events = EPOLLIN };

	dial->epoll_fd = ps_above_standard(epoll_create1(EPOLL_CLOEXEC));
	if (dial->epoll_fd >= 0 &&
	    (epoll_ctl(dial->epoll_fd, EPOLL_CTL_ADD, dial->fd, &connected) ||
	     epoll_ctl(dial->epoll_fd, EPOLL_CTL_ADD, ps_lookup_fd(dial->lookup), &answered)))
		close_epoll(dial);
}

/* Returns true if the same address is tried again at dial->until. */
static bool is_retry_pending(const struct ps_dial *dial)
{
	return dial->fd < 0 && dial->until != PS_NEVER;
}

/* Begins to connect to the current address. */
static void begin_connect(struct ps_dial *dial)
{
	const struct sockaddr *to = (const struct sockaddr *)&dial->list.to[dial->current];

	dial->fd = ps_above_standard(
		socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (dial->fd < 0) {
		fail_address(dial, errno);
		return;
	}
	dial->until = PS_NEVER;
	if (to->sa_family != AF_UNIX)
		set_tcp_options(dial->fd);
	if (connect(dial->fd, to, dial->list.len[dial->current]) == 0 || errno == EINPROGRESS) {
		if (dial->lookup)
			watch_connect_and_lookup(dial);
		return;
	}
	if (errno == EAGAIN) {
		hang_up(dial);
		dial->error = EAGAIN;
		dial->until = ps_monotonic() + BUSY_RETRY_NS;
		return;
	}
	fail_address(dial, errno);
}

/* Returns true if the socket is connected to itself, which can happen on a free port of this host's
 * ephemeral range. It would even look like a mirror, because it echoes the greeting. */
static bool is_connected_to_itself(int fd)
{
	struct sockaddr_storage here = { 0 }, there = { 0 };
	socklen_t here_len = sizeof(here), there_len = sizeof(there);

	if (getsockname(fd, (struct sockaddr *)&here, &here_len) ||
	    getpeername(fd, (struct sockaddr *)&there, &there_len))
		return false;
	return here.ss_family != AF_UNIX && here_len == there_len &&
	       memcmp(&here, &there, here_len) == 0;
}

int ps_connect_result(int fd, int *error)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);

	*error = 0;
	if (ps_poll(&ready, 1, 0) == 0)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, error, &len))
		*error = errno;
	if (!*error && is_connected_to_itself(fd))
		*error = ECONNREFUSED;
	return *error ? -1 : 1;
}

static int fail_dial(const struct ps_dial *dial, struct ps_error *error)
{
	const char *name = dial->address.text;
	int code = PERSEAS_EUNREACHABLE;

	if (dial->lookup_error)
		return ps_error_set(error, code,
		                    "%s: the host is not known (%s); check its name in the list "
		                    "of mirrors",
		                    name, gai_strerror(dial->lookup_error));
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

/* Limits the attempt to its share of the time that is left, unless it has a limit already. */
static void limit_attempt(struct ps_dial *dial, uint64_t until_ns)
{
	uint64_t now = ps_monotonic();
	uint64_t left = until_ns > now ? until_ns - now : 0;

	if (dial->until == PS_NEVER && until_ns != PS_NEVER && dial->current + 1 < dial->list.count)
		dial->until = now + left / (dial->list.count - dial->current);
}

int ps_dial_step(struct ps_dial *dial, uint64_t until_ns, struct ps_error *error)
{
	int connected, failure;

	take_lookup_answer(dial);
	while (dial->current < dial->list.count) {
		if (is_retry_pending(dial) && ps_monotonic() < dial->until)
			return 0;
		if (dial->fd < 0)
			begin_connect(dial);
		if (dial->fd < 0)
			continue;
		connected = ps_connect_result(dial->fd, &failure);
		if (connected > 0) {
			close_epoll(dial);
			return 1;
		}
		if (connected < 0) {
			fail_address(dial, failure);
			continue;
		}
		limit_attempt(dial, until_ns);
		if (ps_monotonic() < dial->until)
			return 0;
		fail_address(dial, ETIMEDOUT);
	}
	return dial->lookup ? 0 : fail_dial(dial, error);
}

bool ps_dial_poll_fd(const struct ps_dial *dial, struct pollfd *fd)
{
	if (!is_retry_pending(dial) && dial->lookup && (dial->fd < 0 || dial->epoll_fd >= 0))
		*fd = (struct pollfd){ dial->fd < 0 ? ps_lookup_fd(dial->lookup) : dial->epoll_fd,
			               POLLIN, 0 };
	else
		*fd = (struct pollfd){ dial->fd, POLLOUT, 0 };
	return fd->fd >= 0;
}

int ps_dial_fail_timeout(const struct ps_dial *dial, struct ps_error *error)
{
	struct ps_dial late = *dial;

	if (dial->lookup)
		return ps_error_set(error, PERSEAS_EUNREACHABLE,
		                    "%s: the name service did not say in time where the host is%s; "
		                    "check /etc/resolv.conf and the name server, or give the "
		                    "host's number",
		                    dial->address.text,
		                    dial->source == PS_DIAL_LAST
		                            ? ", and no mirror was reached at its last address"
		                            : "");

	if (late.error != EAGAIN || late.fd >= 0)
		late.error = ETIMEDOUT;
	return fail_dial(&late, error);
}

int ps_dial(const struct ps_address *address, uint64_t until_ns, struct ps_error *error)
{
	struct ps_dial dial;
	int code = ps_dial_begin(&dial, address, error);

	if (code)
		return code;
	while ((code = ps_dial_step(&dial, until_ns, error)) == 0) {
		struct pollfd fd;
		const bool waits = ps_dial_poll_fd(&dial, &fd);

		if (ps_monotonic() >= until_ns) {
			code = ps_dial_fail_timeout(&dial, error);
			break;
		}
		ps_poll(&fd, waits, dial.until < until_ns ? dial.until : until_ns);
	}
	if (code > 0) {
		code = dial.fd;
		dial.fd = -1;
	}
	ps_dial_end(&dial);
	return code;
}
