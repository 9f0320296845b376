/*
 * listen_name.h - the addresses behind the name that a daemon listens at. listen.c calls it, when
 * the daemon starts. It must never wait longer for a name server than it says.
 */
#ifndef PERSEAS_SERVER_LISTEN_NAME_H
#define PERSEAS_SERVER_LISTEN_NAME_H

#include "config.h"

#include <netdb.h>
#include <stddef.h>

/* Looks up the host and port for limit_ms at most. Returns the addresses, which are the caller's
 * (freeaddrinfo), or NULL with a sentence. A host that is a number is not looked up. */
struct addrinfo *listen_lookup(const struct endpoint *endpoint, int limit_ms, char *why,
                               size_t size);

#endif
