/*
 * activation.h - sockets that a service manager opened for the daemon (the protocol of
 * sd_listen_fds). They outlive the daemon, so owners that connect while it restarts wait instead of
 * being refused.
 */
#ifndef PERSEAS_SERVER_ACTIVATION_H
#define PERSEAS_SERVER_ACTIVATION_H

#include <stdbool.h>
#include <stddef.h>

enum { ACTIVATED_MAX = 16 };

struct activated {
	int fd;
	bool local;     /* a Unix socket with the path `host` */
	char host[256]; /* numeric address that the socket is bound to */
	unsigned port;  /* of a TCP socket; 0 for a Unix socket */
};

/* Fills `sockets` from LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES, and removes these from the
 * environment. Call it before the process opens anything. The caller owns the descriptors, which
 * are non-blocking and close-on-exec. Returns their number (0: none for this process). Returns -1
 * with a sentence in `why` if LISTEN_FDS is not 1 to ACTIVATED_MAX, or if one is no listening
 * socket with a TCP address or a path. */
int activation_take(struct activated sockets[ACTIVATED_MAX], char *why, size_t size);

#endif
