/*
 * notify.c - sends a line to the service manager's socket, if it gave us one. The daemon calls it
 * when it is ready, loads, spills or stops. A failure is ignored.
 */
#include "notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void ps_notify_service_manager(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len;
	int fd;

	if (!path || (path[0] != '/' && path[0] != '@'))
		return;
	len = strlen(path);
	if (len >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, len);
	if (to.sun_path[0] == '@')
		to.sun_path[0] = '\0'; /* a socket in the abstract name space */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
	              (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}
