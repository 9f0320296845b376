/*
 * address.c - parses and checks the entries of a list of mirrors.
 *
 * An entry comes from a person, or from a roster that a mirror sent. Wrong entries are made
 * printable before they are shown.
 */
#include "address.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define DIGITS "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define FORMS "write host:port, rdma://host:port, tcp://host:port, [ipv6]:port or unix:///path"

enum { SHOWN_MAX = 80 };

/* The beginning of a wrong entry, made printable. */
struct shown {
	char text[SHOWN_MAX + 4];
};

static struct shown make_printable(const char *text)
{
	const size_t length = strlen(text), most = length < SHOWN_MAX ? length : SHOWN_MAX;
	struct shown shown;

	for (size_t i = 0; i < most; i++)
		shown.text[i] = (char)(text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
	strcpy(shown.text + most, most < length ? "..." : "");
	return shown;
}

static int fail_list_entry(struct ps_error *error, const char *text, const char *what)
{
	return ps_error_set(error, PERSEAS_EINVAL, "\"%s\" is not a mirror's address: %s; %s",
	                    make_printable(text).text, what, FORMS);
}

/* Parses a decimal number of 1 to 5 digits from `low` to 65535. Writes it back without leading
 * zeros. Returns false if the text is not such a number. */
static bool parse_number(const char *text, unsigned low, char out[8])
{
	size_t digits = strspn(text, DIGITS);
	unsigned long number;

	if (digits == 0 || digits > 5 || text[digits])
		return false;
	number = strtoul(text, NULL, 10);
	if (number < low || number > 65535)
		return false;
	snprintf(out, 8, "%lu", number);
	return true;
}

/* Returns true if the text can be a host name, or an IPv6 scope. Does not depend on the locale. */
static bool is_host_name(const char *text, size_t len)
{
	return len > 0 && strspn(text, LETTERS DIGITS "._-") >= len;
}

static bool is_ipv6(const char *text, size_t len)
{
	const char *scope = memchr(text, '%', len);
	size_t number = scope ? (size_t)(scope - text) : len;
	char digits[INET6_ADDRSTRLEN];
	struct in6_addr address;

	if (number >= sizeof(digits))
		return false;
	if (scope && !is_host_name(scope + 1, len - number - 1))
		return false;
	memcpy(digits, text, number);
	digits[number] = '\0';
	return inet_pton(AF_INET6, digits, &address) == 1;
}

/* Parses the host of "host:port". Returns where ":port" begins, or NULL with *what set. */
static const char *parse_host(const char *text, char *host, size_t size, const char **what)
{
	const char *end;
	size_t len;

	if (*text == '[') {
		end = strchr(++text, ']');
		*what = "what is in brackets is not an IPv6 address";
		if (!end || !is_ipv6(text, (size_t)(end - text)))
			return NULL;
	} else {
		end = text + strcspn(text, ":");
		*what = "an IPv6 address is written in brackets";
		if (*end && strchr(end + 1, ':'))
			return NULL;
		*what = end == text ? "it has no host"
		                    : "the host has a character that no host has";
		if (!is_host_name(text, (size_t)(end - text)))
			return NULL;
	}
	len = (size_t)(end - text);
	*what = "the host is too long";
	if (len >= size)
		return NULL;
	memcpy(host, text, len);
	host[len] = '\0';
	return *end == ']' ? end + 1 : end;
}

static int parse_tcp(const char *text, struct ps_address *address, struct ps_error *error)
{
	const char *what = NULL;
	const char *port = parse_host(text, address->host, sizeof(address->host), &what);

	address->scheme = PS_SCHEME_TCP;
	if (!port)
		return fail_list_entry(error, address->text, what);
	if (!*port) {
		strcpy(address->port, PS_PORT);
		strcat(address->text, ":" PS_PORT);
		return 0;
	}
	if (*port != ':')
		return fail_list_entry(error, address->text,
		                       "a colon and a port may stand behind the host");
	if (!parse_number(port + 1, 1, address->port))
		return fail_list_entry(error, address->text,
		                       "the port is not a number from 1 to 65535");
	return 0;
}

static int parse_unix(const char *path, struct ps_address *address, struct ps_error *error)
{
	size_t len = strlen(path);
	size_t i;

	address->scheme = PS_SCHEME_UNIX;
	if (!*path) {
		path = PS_SOCKET;
		strcat(address->text, path);
		len = strlen(path);
	}
	if (path[0] != '/' || len < 2)
		return fail_list_entry(error, address->text, "the path must begin with a slash");
	if (len >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return fail_list_entry(error, address->text,
		                       "the path is longer than a socket's may be");
	for (i = 0; i < len; i++)
		if ((unsigned char)path[i] < ' ' || path[i] == 0x7f || path[i] == ',')
			return fail_list_entry(error, address->text,
			                       "the path has a comma or a control character");
	memcpy(address->host, path, len + 1);
	return 0;
}

int ps_address_parse(const char *text, struct ps_address *address, struct ps_error *error)
{
	const char *rest;

	memset(address, 0, sizeof(*address));
	if (!text || !*text)
		return fail_list_entry(error, "", "it is empty");
	if (strlen(text) >= sizeof(address->text))
		return fail_list_entry(error, text, "it is too long");
	strcpy(address->text, text);
	rest = strstr(text, "://");
	if (!rest)
		return parse_tcp(text, address, error);
	rest += 3;
	if (strncmp(text, "tcp://", 6) == 0) {
		address->route = PS_ROUTE_TCP;
		return parse_tcp(rest, address, error);
	}
	if (strncmp(text, "rdma://", 7) == 0) {
		address->route = PS_ROUTE_RDMA;
		return parse_tcp(rest, address, error);
	}
	if (strncmp(text, "unix://", 7) == 0)
		return parse_unix(rest, address, error);
	if (strncmp(text, "sim://", 6) != 0)
		return fail_list_entry(error, text,
		                       "what stands before :// is not known, and only @NAME and "
		                       "srv://DOMAIN name a list of mirrors");
	address->scheme = PS_SCHEME_SIM;
	if (!parse_number(rest, 0, address->port))
		return fail_list_entry(error, text,
		                       "a simulated mirror has a number from 0 to 65535");
	return 0;
}

/* Returns true if both addresses lead to the same mirror, however they are written. */
static bool lead_to_same_mirror(const struct ps_address *a, const struct ps_address *b)
{
	if (a->scheme != b->scheme || strcmp(a->port, b->port) != 0)
		return false;
	return a->scheme == PS_SCHEME_UNIX ? strcmp(a->host, b->host) == 0
	                                   : strcasecmp(a->host, b->host) == 0;
}

static bool is_space_or_tab(char c)
{
	return c == ' ' || c == '\t';
}

/* Parses `len` bytes of a list into addresses[count]. */
static int parse_list_entry(const char *text, size_t len, struct ps_address *addresses,
                            unsigned count, struct ps_error *error)
{
	char entry[sizeof(addresses->text) + 1];
	unsigned i;
	int code;

	while (len > 0 && is_space_or_tab(*text))
		text++, len--;
	while (len > 0 && is_space_or_tab(text[len - 1]))
		len--;
	if (count == PS_MIRRORS_MAX)
		return ps_error_set(error, PERSEAS_EINVAL,
		                    "the list names more than %d mirrors, the most a store has",
		                    PS_MIRRORS_MAX);
	/* An entry that is cut off here is still too long, and the parser refuses it. */
	if (len >= sizeof(entry))
		len = sizeof(entry) - 1;
	memcpy(entry, text, len);
	entry[len] = '\0';
	code = ps_address_parse(entry, &addresses[count], error);
	for (i = 0; code == 0 && i < count; i++)
		if (lead_to_same_mirror(&addresses[i], &addresses[count]))
			code = ps_error_set(error, PERSEAS_EINVAL,
			                    "%s is in the list twice (as %s); name each "
			                    "mirror once",
			                    addresses[count].text, addresses[i].text);
	return code;
}

int ps_address_parse_list(const char *text, struct ps_address *addresses, unsigned *count,
                          struct ps_error *error)
{
	unsigned found = 0;
	size_t len;
	int code;

	if (!text)
		return fail_list_entry(error, "", "it is empty");
	for (;; text += len + 1) {
		len = strcspn(text, ",");
		code = parse_list_entry(text, len, addresses, found, error);
		if (code)
			return code;
		found++;
		if (!text[len])
			break;
	}
	*count = found;
	return 0;
}

bool ps_address_in_list(const char *list, const char *text)
{
	const size_t length = strlen(text);

	while (list && *list) {
		if (!strncmp(list, text, length) && (!list[length] || list[length] == ','))
			return true;
		list = strchr(list, ',');
		if (list)
			list++;
	}
	return false;
}
