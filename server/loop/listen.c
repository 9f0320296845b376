/*
 * listen.c - listening sockets on TCP and Unix addresses, and files with their ports. main.c opens
 * them, and accepted connections go to connection_loop.c. It listens on addresses that other hosts
 * reach only if its caller allows it.
 */
#include "daemon.h"
#include "listen_name.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	BACKLOG = 128,
	ACCEPTS = 16,   /* connections accepted at once */
	PAUSE_MS = 100, /* pause after accept() found no free descriptor */
	LOOKUP_MS = 10000,
};

struct listener {
	struct listener *next;
	struct daemon *daemon;
	int fd;
	struct event *readable;
	struct event *resume; /* timer: ends a pause */
	bool local;           /* a Unix socket */
	char path[108];       /* path to remove when the daemon exits; "": none */
	unsigned port;        /* port of a TCP socket; 0 for a Unix socket */
};

static void resume_listener(evutil_socket_t fd, short what, void *arg)
{
	struct listener *listener = arg;

	(void)fd;
	(void)what;
	event_add(listener->readable, NULL);
}

/* If no descriptor is free, the socket stays readable, so stop polling it for a while. */
static void pause_listener(struct listener *listener)
{
	const struct timeval pause = { .tv_usec = PAUSE_MS * 1000L };

	log_event(LOG_LEVEL_WARNING, "connections-wait", NULL,
	          "no connection can be accepted for now: %s", strerror(errno));
	event_del(listener->readable);
	event_add(listener->resume, &pause);
}

/* Returns true if accept() failed for lack of a descriptor or memory. accept() may do so even if no
 * connection waits, because it allocates both first. */
static bool is_lack_of_resources(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static bool has_waiting_connection(const struct listener *listener)
{
	struct pollfd fd = { .fd = listener->fd, .events = POLLIN };

	return poll(&fd, 1, 0) != 0;
}

static void accept_connections(struct listener *listener)
{
	for (int i = 0; i < ACCEPTS; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t len = sizeof(from);
		int peer = accept4(listener->fd, (struct sockaddr *)&from, &len,
		                   SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (peer >= 0) {
			connection_accept(listener->daemon, peer, (struct sockaddr *)&from,
			                  listener->local);
			continue;
		}
		if (is_lack_of_resources(errno) && !has_waiting_connection(listener))
			return;
		if (errno == EMFILE && admission_evict_one(&listener->daemon->admission))
			continue;
		if (is_lack_of_resources(errno))
			pause_listener(listener);
		if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

DAEMON_CALLBACK(on_connection, struct listener, daemon, accept_connections)

/* Returns true if a process answers at this path. */
static bool is_socket_in_use(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool served;

	if (fd < 0)
		return true;
	served = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
	         errno == EAGAIN;
	close(fd);
	return served;
}

/* Removes a socket that an earlier daemon left. Returns 0, or -1 if the path is in use. */
static int remove_stale_socket(const struct sockaddr_un *address, char *why, size_t size)
{
	struct stat st;

	if (lstat(address->sun_path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(why, size, "%s is there already and is not a socket", address->sun_path);
		return -1;
	}
	if (is_socket_in_use(address)) {
		snprintf(why, size, "another process answers at %s", address->sun_path);
		return -1;
	}
	unlink(address->sun_path);
	return 0;
}

static int bind_unix(const struct endpoint *endpoint, mode_t mode, char *why, size_t size)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	mode_t mask;
	int fd, ret;

	/* config.c accepts no longer path. */
	memcpy(address.sun_path, endpoint->host, sizeof(address.sun_path) - 1);
	if (remove_stale_socket(&address, why, size) < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mask = umask(0777 & ~mode); /* the socket must never have wider permissions */
	ret = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (ret == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	snprintf(why, size, "cannot listen at %s: %s", endpoint->host, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static int bind_address(const struct addrinfo *address)
{
	const int on = 1;
	int error;
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* Returns true if only processes on this host can connect to the address. */
static bool is_loopback(const struct sockaddr *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;

	if (address->sa_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return address->sa_family == AF_INET6 && (IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
	                                          (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) &&
	                                           v6->sin6_addr.s6_addr[12] == IN_LOOPBACKNET));
}

static bool are_all_loopback(const struct addrinfo *list)
{
	for (; list; list = list->ai_next)
		if (!is_loopback(list->ai_addr))
			return false;
	return true;
}

/* Uses the first address of the name that can be bound. */
int listen_tcp(const struct endpoint *endpoint, const char *exposed_advice, char *why, size_t size)
{
	struct addrinfo *found = listen_lookup(endpoint, LOOKUP_MS, why, size);
	int fd = -1;

	if (!found)
		return -1;
	if (exposed_advice && !are_all_loopback(found)) {
		snprintf(why, size, "%s:%s %s", endpoint->host, endpoint->port, exposed_advice);
		freeaddrinfo(found);
		return -1;
	}
	for (struct addrinfo *address = found; address && fd < 0; address = address->ai_next)
		fd = bind_address(address);
	if (fd < 0)
		snprintf(why, size, "cannot listen on %s:%s: %s", endpoint->host, endpoint->port,
		         strerror(errno));
	freeaddrinfo(found);
	return fd;
}

unsigned listen_get_port(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = { 0 };
	socklen_t len = sizeof(address);

	getsockname(fd, &address.any, &len);
	return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port
	                                               : address.v4.sin_port);
}

static struct listener *make_listener(struct daemon *daemon, int fd)
{
	struct listener *listener = calloc(1, sizeof(*listener));

	if (!listener)
		return NULL;
	listener->daemon = daemon;
	listener->fd = fd;
	listener->readable = event_new(daemon->base, fd, EV_READ | EV_PERSIST, on_connection,
	                               listener);
	listener->resume = evtimer_new(daemon->base, resume_listener, listener);
	if (listener->readable && listener->resume && event_add(listener->readable, NULL) == 0)
		return listener;
	if (listener->readable)
		event_free(listener->readable);
	if (listener->resume)
		event_free(listener->resume);
	free(listener);
	return NULL;
}

const char *listen_text(char text[LISTEN_TEXT], bool local, const char *host, unsigned port)
{
	const bool colons = strchr(host, ':');

	if (local)
		snprintf(text, LISTEN_TEXT, "unix://%s", host);
	else
		snprintf(text, LISTEN_TEXT, "%s%s%s:%u", colons ? "[" : "", host, colons ? "]" : "",
		         port);
	return text;
}

/* Takes over the socket and logs its address. Returns NULL and closes the socket if memory is
 * out. */
static struct listener *add_listener(struct daemon *daemon, int fd, bool local, const char *host,
                                     unsigned port)
{
	struct listener *listener = make_listener(daemon, fd), **end = &daemon->listeners;
	char at[LISTEN_TEXT];

	if (!listener) {
		close(fd);
		return NULL;
	}
	while (*end)
		end = &(*end)->next;
	*end = listener;
	listener->local = local;
	listener->port = port;
	listen_text(at, local, host, port);
	if (listener == daemon->listeners)
		log_set_name(at);
	log_event(LOG_LEVEL_INFO, "listening", NULL, "listening at %s%s%s", local ? "" : "tcp://",
	          at, !local && daemon->tls ? ", with TLS" : "");
	return listener;
}

static const char exposed_advice[] =
	"would let everybody on the network read and change the stores, without TLS: give "
	"--tls-cert, --tls-key and --tls-ca, or, on a network that is trusted, "
	"--plaintext anywhere";

int daemon_listen(struct daemon *daemon, const struct endpoint *endpoint, char *why, size_t size)
{
	const mode_t mode = daemon->unix_mode ? daemon->unix_mode : 0600;
	const bool local = endpoint->local;
	int fd = local ? bind_unix(endpoint, mode, why, size)
	               : listen_tcp(endpoint,
	                            daemon->tls || daemon->allows_exposed_plaintext
	                                    ? NULL
	                                    : exposed_advice,
	                            why, size);
	struct listener *listener;

	if (fd < 0)
		return -1;
	listener = add_listener(daemon, fd, local, endpoint->host, local ? 0 : listen_get_port(fd));
	if (!listener) {
		snprintf(why, size, "out of memory");
		return -1;
	}
	if (local)
		memcpy(listener->path, endpoint->host, sizeof(listener->path) - 1);
	return 0;
}

int daemon_adopt_socket(struct daemon *daemon, const struct activated *socket, char *why,
                        size_t size)
{
	struct sockaddr_storage address = { 0 };
	socklen_t len = sizeof(address);

	if (!socket->local && !daemon->tls && !daemon->allows_exposed_plaintext &&
	    (getsockname(socket->fd, (struct sockaddr *)&address, &len) < 0 ||
	     !is_loopback((struct sockaddr *)&address))) {
		snprintf(why, size, "the service manager's socket at %s:%u %s", socket->host,
		         socket->port, exposed_advice);
		close(socket->fd);
		return -1;
	}
	if (add_listener(daemon, socket->fd, socket->local, socket->host, socket->port))
		return 0;
	snprintf(why, size, "out of memory");
	return -1;
}

void daemon_close_listeners(struct daemon *daemon)
{
	while (daemon->listeners) {
		struct listener *listener = daemon->listeners;

		daemon->listeners = listener->next;
		event_free(listener->readable);
		event_free(listener->resume);
		if (listener->path[0])
			unlink(listener->path);
		close(listener->fd);
		free(listener);
	}
}

int listen_write_file_atomically(const char *path, const char *text, char *why, size_t size)
{
	char beside[PATH_MAX + 8];
	FILE *file;
	int failed;

	snprintf(beside, sizeof(beside), "%s.new", path);
	file = fopen(beside, "we");
	if (!file) {
		snprintf(why, size, "port file %s: %s", beside, strerror(errno));
		return -1;
	}
	fputs(text, file);
	failed = ferror(file);
	if (fclose(file) != 0 || failed || rename(beside, path) < 0) {
		snprintf(why, size, "port file %s: %s", path, strerror(errno));
		unlink(beside);
		return -1;
	}
	return 0;
}

int daemon_write_ports(const struct daemon *daemon, const char *path, char *why, size_t size)
{
	char text[(ENDPOINTS_MAX + ACTIVATED_MAX) * 8] = "";
	size_t len = 0;

	for (const struct listener *at = daemon->listeners; at; at = at->next)
		if (!at->local)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%u\n", at->port);
	return listen_write_file_atomically(path, text, why, size);
}
