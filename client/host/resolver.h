/*
 * resolver.h - the addresses behind host names. No caller ever waits for the name service:
 * getaddrinfo runs on a detached thread, at most one for each name at a time, that nobody joins. A
 * process-wide table holds, for each host and port, the last answer of the name service and the
 * address at which a mirror answered last. socket.c dials by it. Any thread may call these
 * functions; a child of fork starts with an empty table.
 */
#ifndef PERSEAS_CLIENT_RESOLVER_H
#define PERSEAS_CLIENT_RESOLVER_H

#include "../core/address.h"
#include "../../proto/image/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum { PS_ADDRESSES_MAX = 8 }; /* addresses of one host that are tried */

struct ps_addresses {
	unsigned count;
	struct sockaddr_storage to[PS_ADDRESSES_MAX];
	socklen_t len[PS_ADDRESSES_MAX];
};

/* Returns the index of the address in the list, or -1. */
int ps_addresses_find(const struct ps_addresses *list, const struct sockaddr_storage *to);

/* Sets the port of an IPv4 or IPv6 address. */
void ps_addresses_set_port(struct sockaddr_storage *to, uint16_t port);

/* Returns false if the host is a name, true with *found if it is a number. */
bool ps_resolver_parse_number(const struct ps_address *address, struct ps_addresses *found);

/* A lookup of a host name in flight or ended. */
struct ps_lookup;

/* Begins a lookup, or joins the one of the same name that is in flight. Returns NULL with errno
 * set: no thread, descriptor or memory for it (EAGAIN also if too many lookups are in flight). */
struct ps_lookup *ps_lookup_begin(const struct ps_address *address);

/* Returns a descriptor that becomes readable when the lookup ends. */
int ps_lookup_fd(const struct ps_lookup *lookup);

/* Returns true if the lookup has ended. Then *found has at least one address and *refused is 0, or
 * *refused is an error of getaddrinfo. */
bool ps_lookup_get_answer(struct ps_lookup *lookup, struct ps_addresses *found, int *refused);

/* Must be called once for each ps_lookup_begin; the lookup itself goes on. NULL is allowed. */
void ps_lookup_drop(struct ps_lookup *lookup);

/* Notes where a mirror answered, and the identity of its daemon (PS_ID_SIZE bytes, or NULL if it
 * told none). */
void ps_resolver_note(const struct ps_address *address, const struct sockaddr_storage *to,
                      socklen_t len, const uint8_t *daemon);

/* Notes that a connection to the last address of a mirror failed. Forgets that address, unless the
 * last answer of the name service has it, or there was no answer. */
void ps_resolver_note_failure(const struct ps_address *address);

/* Returns true with *last, one address, and the identity of the daemon that answered there. */
bool ps_resolver_last_address(const struct ps_address *address, struct ps_addresses *last,
                              uint8_t daemon[PS_ID_SIZE]);

/* Returns all addresses that are known without a lookup: where the mirror answered, then those of
 * the last answer. Returns 0, or PERSEAS_EUNREACHABLE if there are none. */
int ps_resolver_known_addresses(const struct ps_address *address, struct ps_addresses *known,
                                struct ps_error *error);

/* Writes the addresses at which mirrors answered as text for ps_resolver_import in another process,
 * as many as fit; "" if there are none. */
void ps_resolver_export(char *text, size_t size);

/* Adds the addresses in a text from ps_resolver_export, for names that have none so far. Ignores
 * the rest of the text from the first malformed part on. */
void ps_resolver_import(const char *text);

#endif
