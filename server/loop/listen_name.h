/*
 * listen_name.h - looks up the addresses of a name at which the daemon shall listen. listen.c calls
 * it at the start. It must not wait longer for a name server than its caller allows.
 */
#ifndef PERSEAS_SERVER_LISTEN_NAME_H
#define PERSEAS_SERVER_LISTEN_NAME_H

#include "config.h"

#include <netdb.h>
#include <stddef.h>

/* Looks up the host and port, for at most limit_ms. Returns a list that the caller frees with
 * freeaddrinfo(), or NULL with a sentence in `why`. A numeric host is not looked up. */
struct addrinfo *listen_lookup(const struct endpoint *endpoint, int limit_ms, char *why,
                               size_t size);

#endif
