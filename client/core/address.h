/*
 * address.h - addresses of mirrors: the entries of a list of mirrors.
 */
#ifndef PERSEAS_CLIENT_ADDRESS_H
#define PERSEAS_CLIENT_ADDRESS_H

#include "../../proto/image/layout.h"
#include "error.h"

#include <stdbool.h>

/* Bytes of the text of a list with the maximum number of mirrors. */
enum { PS_LIST_TEXT = PS_MIRRORS_MAX * 256 + 64 };

enum ps_scheme { PS_SCHEME_TCP, PS_SCHEME_UNIX, PS_SCHEME_SIM };

/* The data path to a host: the best fabric that both ends have, or the one that the address asks
 * for. */
enum ps_route { PS_ROUTE_ANY, PS_ROUTE_TCP, PS_ROUTE_RDMA };

struct ps_address {
	enum ps_scheme scheme; /* how the control connection is made */
	enum ps_route route;   /* TCP only */
	char text[256];        /* the complete address as text, with defaults filled in */
	/* TCP: host name or IP address, without brackets; UNIX: path of the socket */
	char host[200];
	/* TCP: port number in decimal; SIM: number of the simulated mirror */
	char port[8];
};

/* Parses one entry: "host:port", "[v6]:port", "tcp://host:port", "rdma://host:port",
 * "unix:///path", "sim://n". A missing port or path gets the daemon's default, also in ->text.
 * Returns 0, or PERSEAS_EINVAL with a sentence that says what is wrong and shows a correct
 * entry. */
int ps_address_parse(const char *text, struct ps_address *address, struct ps_error *error);

/* Parses a comma-separated list of at most PS_MIRRORS_MAX entries, all different. Returns 0 and
 * sets *count, or PERSEAS_EINVAL. */
int ps_address_parse_list(const char *text, struct ps_address *addresses, unsigned *count,
                          struct ps_error *error);

/* Returns true if `text` is an entry of the comma-separated list, which may be NULL. Compares bytes
 * only: another spelling of the same address does not count. */
bool ps_address_in_list(const char *list, const char *text);

#endif
