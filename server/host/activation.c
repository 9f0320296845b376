/*
 * activation.c - takes over sockets from the service manager. main.c calls it once, at the start.
 * It refuses sockets of unknown kinds.
 */
#include "activation.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_FD = 3 }; /* number of the first socket, SD_LISTEN_FDS_START */

/* Parses a decimal number of at least 1. Returns 0 if it is malformed. */
static unsigned long parse_positive(const char *text)
{
	char *end;
	unsigned long number;

	if (*text < '0' || *text > '9')
		return 0;
	errno = 0;
	number = strtoul(text, &end, 10);
	return errno || *end ? 0 : number;
}

/* Copies part `index` of "a:b:c". */
static void copy_name_part(const char *names, unsigned index, char *name, size_t size)
{
	while (names && index-- > 0) {
		names = strchr(names, ':');
		names = names ? names + 1 : NULL;
	}
	snprintf(name, size, "%.*s", names ? (int)strcspn(names, ":") : 0, names ? names : "");
}

static int socket_option(int fd, int option)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) < 0 ? -1 : value;
}

/* Returns what is wrong with a descriptor that should be a listening socket, or NULL. */
static const char *socket_fault(int fd)
{
	int family = socket_option(fd, SO_DOMAIN);

	if (family < 0)
		return errno == EBADF ? "is not open" : "is no socket";
	if (family != AF_INET && family != AF_INET6 && family != AF_UNIX)
		return "is of another family than IPv4, IPv6 and Unix";
	if (socket_option(fd, SO_TYPE) != SOCK_STREAM)
		return "is no stream socket";
	if (family != AF_UNIX && socket_option(fd, SO_PROTOCOL) != IPPROTO_TCP)
		return "is not TCP's";
	if (socket_option(fd, SO_ACCEPTCONN) != 1)
		return "does not listen; Accept=no is needed";
	return NULL;
}

static const char *read_path(const struct sockaddr_un *address, socklen_t len,
                             struct activated *socket)
{
	size_t room = len - offsetof(struct sockaddr_un, sun_path);

	if (len <= offsetof(struct sockaddr_un, sun_path) || !address->sun_path[0])
		return "has no path, so that no owner can name it";
	socket->local = true;
	snprintf(socket->host, sizeof(socket->host), "%.*s", (int)room, address->sun_path);
	return NULL;
}

static const char *read_address(struct activated *socket)
{
	union {
		struct sockaddr_storage any;
		struct sockaddr_un local;
	} address = { 0 };
	socklen_t len = sizeof(address);
	char port[NI_MAXSERV];

	if (getsockname(socket->fd, (struct sockaddr *)&address, &len) < 0)
		return "does not tell its address";
	if (address.any.ss_family == AF_UNIX)
		return read_path(&address.local, len, socket);
	if (getnameinfo((struct sockaddr *)&address, len, socket->host, sizeof(socket->host), port,
	                sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		return "does not tell its address";
	socket->port = (unsigned)parse_positive(port);
	return NULL;
}

static const char *take_socket(int fd, struct activated *socket)
{
	const char *fault = socket_fault(fd);
	int flags;

	memset(socket, 0, sizeof(*socket));
	socket->fd = fd;
	if (!fault)
		fault = read_address(socket);
	if (fault)
		return fault;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return "cannot be made non-blocking";
	return NULL;
}

static int take_sockets(struct activated *sockets, const char *count, const char *names, char *why,
                        size_t size)
{
	unsigned long number = parse_positive(count);
	char name[64];

	if (number < 1 || number > ACTIVATED_MAX) {
		snprintf(why, size,
		         "LISTEN_FDS=%s is not a number of sockets from 1 to %d; let "
		         "the socket unit have fewer lines with ListenStream=",
		         count, ACTIVATED_MAX);
		return -1;
	}
	for (unsigned i = 0; i < number; i++) {
		const char *fault = take_socket(FIRST_FD + (int)i, &sockets[i]);

		if (!fault)
			continue;
		copy_name_part(names, i, name, sizeof(name));
		snprintf(why, size,
		         "descriptor %u from the service manager%s%s %s; perseasd takes "
		         "sockets of ListenStream= with an address and port or a path",
		         FIRST_FD + i, *name ? ", of " : "", name, fault);
		return -1;
	}
	return (int)number;
}

int activation_take(struct activated sockets[ACTIVATED_MAX], char *why, size_t size)
{
	const char *count = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");
	int found = 0;

	/* The variables may be meant for the process that started this one, so compare the pid. */
	if (count && pid && parse_positive(pid) == (unsigned long)getpid())
		found = take_sockets(sockets, count, getenv("LISTEN_FDNAMES"), why, size);
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDNAMES");
	return found;
}
