/*
 * srv.h - lists of mirrors in the DNS: the SRV records of _perseas._tcp.DOMAIN (RFC 2782).
 * list_by_name.c calls it. Nothing of an answer reaches a list or a sentence before it was checked
 * to be a host name and a port.
 */
#ifndef PERSEAS_CLIENT_SRV_H
#define PERSEAS_CLIENT_SRV_H

#include "../core/address.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does the text begin with "srv://"? */
bool ps_srv_is(const char *text);

/* Whom to ask, and for how long. */
struct ps_srv_server {
	struct sockaddr_in address;
	unsigned seconds; /* of each of two tries: 1 to 30 */
};

/*
 * Asks for what "srv://DOMAIN" names. server: NULL for those of /etc/resolv.conf, which have two
 * tries each, of a second or two. 0, with the list: the mirrors by priority, weight
 * (the greater first), host and port, each once.
 * PERSEAS_EINVAL: DOMAIN is no name, or the DNS has no such records; PERSEAS_EUNREACHABLE: no
 * server answered, for now; PERSEAS_EPROTOCOL: an answer that cannot be used; PERSEAS_ELIMIT: more
 * mirrors than a store has. After an error the list is "".
 */
int ps_srv_list(const char *text, const struct ps_srv_server *server, char list[PS_LIST_TEXT],
                struct ps_error *error);

/* Reads an answer to that question, of len bytes; domain is for sentences. */
int ps_srv_read(const uint8_t *answer, size_t len, const char *domain, char list[PS_LIST_TEXT],
                struct ps_error *error);

#endif
