/*
 * address.h - where a mirror is: the entries of the mirrors list.
 */
#ifndef PERSEAS_CLIENT_ADDRESS_H
#define PERSEAS_CLIENT_ADDRESS_H

#include "../../proto/image/layout.h"
#include "error.h"

#include <stdbool.h>

/* Bytes of the text of a list that names as many mirrors as a store has. */
enum { PS_LIST_TEXT = PS_MIRRORS_MAX * 256 + 64 };

enum ps_scheme { PS_SCHEME_TCP, PS_SCHEME_UNIX, PS_SCHEME_SIM };

/* The data path to a host: that of the best fabric that both ends have, or the one that was
 * asked for. */
enum ps_route { PS_ROUTE_ANY, PS_ROUTE_TCP, PS_ROUTE_RDMA };

struct ps_address {
	enum ps_scheme scheme; /* of the control connection */
	enum ps_route route;   /* TCP only */
	char text[256];        /* as given, and complete */
	char host[200];        /* TCP: name or number, no brackets; UNIX: the path */
	char port[8];          /* TCP: decimal, 1 .. 65535; SIM: the mirror's number */
};

/* Parses one entry: "host:port", "[v6]:port", "tcp://host:port", "rdma://host:port",
 * "unix:///path", "sim://n". A port or path that is left out is the one that a daemon has by
 * default, and is in ->text then.
 * 0 or PERSEAS_EINVAL with a sentence that says what is wrong and shows a right one. */
int ps_address_parse(const char *text, struct ps_address *address, struct ps_error *error);

/* Parses a comma-separated list into at most PS_MIRRORS_MAX; the same entry twice is an
 * error. *count is set on success. */
int ps_address_list(const char *text, struct ps_address *addresses, unsigned *count,
                    struct ps_error *error);

/* Has the list, whose parts have commas between them, this text as one of them? NULL and "" have
 * none. How an address may be written otherwise is not looked at. */
bool ps_address_in_list(const char *list, const char *text);

#endif
