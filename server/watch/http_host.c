/*
 * http_host.c - decides by the Host header of a request whether it is meant for this daemon.
 * http_loop.c calls it for every request. It must not look a name up: unknown names are refused.
 */
#include "http_host.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Extracts the host's name, without port, brackets and a final dot. Returns false if the name is
 * empty or too long. */
static bool extract_name(const char *host, char name[HTTP_NAME_MAX + 1])
{
	const char *end = host + strcspn(host, ":");
	size_t len;

	if (*host == '[') {
		end = strchr(host, ']');
		host++;
	}
	if (!end || (*end == ']' && end[1] && end[1] != ':'))
		return false;
	if (end > host && end[-1] == '.')
		end--;
	len = (size_t)(end - host);
	if (len == 0 || len > HTTP_NAME_MAX)
		return false;
	memcpy(name, host, len);
	name[len] = '\0';
	return true;
}

static bool is_number(const char *name)
{
	uint8_t address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

static bool is_this_host(const char *name)
{
	char mine[HTTP_NAME_MAX + 1] = "";

	return strcasecmp(name, "localhost") == 0 ||
	       (gethostname(mine, sizeof(mine) - 1) == 0 && strcasecmp(name, mine) == 0);
}

bool http_host_is_ours(const struct http_options *options, const char *host)
{
	char name[HTTP_NAME_MAX + 1];

	if (!extract_name(host, name))
		return false;
	if (is_number(name) || is_this_host(name) || strcasecmp(name, options->endpoint.host) == 0)
		return true;
	for (unsigned i = 0; i < options->name_count; i++)
		if (strcasecmp(name, options->names[i]) == 0)
			return true;
	return false;
}
