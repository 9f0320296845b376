/*
 * http_host.h - checks the host that an HTTP request names. Browsers send the host of the address
 * bar. A page of an attacker whose name was made to resolve to this host (DNS rebinding) names the
 * attacker's host, and must not see anything. http_loop.c calls it.
 */
#ifndef PERSEAS_SERVER_HTTP_HOST_H
#define PERSEAS_SERVER_HTTP_HOST_H

#include "../loop/config.h"

/* Checks a Host header or the host of a URL: a name or an address (IPv6 in brackets), optionally
 * with ":port". Returns true for an address, which cannot be redirected, for localhost, for the
 * name of this host, and for the names in --http and --http-name. Never looks a name up. */
bool http_host_is_ours(const struct http_options *options, const char *host);

#endif
