/*
 * activation.h - sockets that a service manager opened for the daemon (sd_listen_fds' protocol):
 * they outlive it, so that owners who connect while it is restarted wait instead of being refused.
 */
#ifndef PERSEAS_SERVER_ACTIVATION_H
#define PERSEAS_SERVER_ACTIVATION_H

#include <stdbool.h>
#include <stddef.h>

enum { ACTIVATED_MAX = 16 };

struct activated {
	int fd;
	bool local;     /* a Unix socket, at the path `host` */
	char host[256]; /* the address that it is bound to, in numbers */
	unsigned port;  /* of a TCP socket, else 0 */
};

/*
 * Fills `sockets` from LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES, and takes these out of the
 * environment. To be called before the process opens anything. The descriptors become the
 * caller's, non-blocking and closed at exec. Their number, 0 when there are none for this process,
 * or -1 with a sentence in `why`: the number is not one from 1 to ACTIVATED_MAX, or one of them is
 * no socket over TCP or at a path that listens.
 */
int activation_take(struct activated sockets[ACTIVATED_MAX], char *why, size_t size);

#endif
