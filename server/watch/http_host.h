/*
 * http_host.h - is a request for HTTP meant for this daemon? http_loop.c asks that, by the host
 * which the request names. A browser sends there what it has in its address bar: a page of somebody
 * else's, whose name was made to lead to this host (DNS rebinding), names that one, and must see
 * nothing.
 */
#ifndef PERSEAS_SERVER_HTTP_HOST_H
#define PERSEAS_SERVER_HTTP_HOST_H

#include "../loop/config.h"

/* Of a Host field, or a URL: a name or a number, of IPv6 in brackets, and perhaps ":port". True
 * for a number, which nobody can make lead elsewhere, for localhost, for the name of this host, for
 * that in --http, and for those in --http-name. Never looks a name up. */
bool http_host_is_ours(const struct http_options *options, const char *host);

#endif
