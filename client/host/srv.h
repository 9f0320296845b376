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

/* Returns true if the text begins with "srv://". */
bool ps_srv_is_name(const char *text);

/* A DNS server, and how long to wait for it. */
struct ps_srv_server {
	struct sockaddr_in address;
	unsigned seconds; /* time limit of each of the two tries: 1 to 30 */
};

/*
 * Looks up "srv://DOMAIN". server NULL stands for the servers of /etc/resolv.conf, with two tries
 * each, of a second or two. Returns 0 with the list: the mirrors by priority, weight (the greater
 * first), host and port, each once. After an error the list is "":
 * PERSEAS_EINVAL       DOMAIN is no name, or the DNS has no such records
 * PERSEAS_EUNREACHABLE no server answered
 * PERSEAS_EPROTOCOL    the answer is malformed
 * PERSEAS_ELIMIT       the answer has more mirrors than a store may have
 */
int ps_srv_lookup(const char *text, const struct ps_srv_server *server, char list[PS_LIST_TEXT],
                  struct ps_error *error);

/* Reads the DNS answer, of len bytes, to the query of ps_srv_lookup. Returns as ps_srv_lookup does.
 * domain is for error messages. */
int ps_srv_parse(const uint8_t *answer, size_t len, const char *domain, char list[PS_LIST_TEXT],
                 struct ps_error *error);

#endif
