#include "config.h"

#include "../proto/number.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char config_help[] =
	"Usage: perseasd [OPTION]...\n"
	"Keeps images of stores in memory for their owners on other hosts.\n"
	"\n"
	"  --listen HOST:PORT   wait for owners over TCP; port 0 takes a free one. May be given\n"
	"                       several times, as may --unix. Without either, and without a\n"
	"                       socket from systemd (perseasd.socket): 127.0.0.1:7170\n"
	"  --unix PATH          wait for owners on this host, which share memory with the daemon\n"
	"  --unix-mode MODE     who may connect there, as for chmod, in octal (600)\n"
	"  --tls-cert FILE      TLS 1.3 on all TCP connections: the daemon's certificate, then\n"
	"                       those between it and the CA, as PEM. Needs --tls-key, --tls-ca.\n"
	"                       SIGHUP reads the files again, for connections that come then\n"
	"  --tls-key FILE       the certificate's key\n"
	"  --tls-ca FILE        the CA that signs the certificates of those who may connect\n"
	"  --tls-crl FILE       certificates of that CA that are revoked\n"
	"  --plaintext WHERE    where TCP may be spoken without TLS: loopback, or anywhere, where\n"
	"                       whoever reaches the port can read and change stores (loopback)\n"
	"  --rdma on|off        offer RDMA to owners over TCP, where the address that they came\n"
	"                       to is an RDMA device's (on)\n"
	"  --rdma-port PORT     where RDMA connections come to; 0: any that is free (0)\n"
	"  --rdma-order MODE    ordered, or phased for a network that may reorder writes\n"
	"                       (adaptive routing): undo, data and slot one after the other\n"
	"                       (ordered)\n"
	"  --rdma-flush on|off  images lie in persistent memory: RDMA writes count when a read\n"
	"                       after them has come back (off)\n"
	"  --memory-dir DIR     where images are kept (/dev/shm/perseas)\n"
	"  --max-memory BYTES   limit for all images together, with K, M, G or T; 0: none (0)\n"
	"  --owner-timeout S    seconds of silence after which an owner does not count as live,\n"
	"                       so that a claim needs no takeover; 0: it is while connected (5)\n"
	"  --spill-dir DIR      write the images to DIR on SIGTERM, SIGINT or `perseas spill`;\n"
	"                       what memory has lost is loaded from there at start\n"
	"  --access FILE        rules of who may do what, and how much of it: lines of\n"
	"                           allow WHO RIGHT[,RIGHT]... [store STORES]\n"
	"                           limit WHO [memory BYTES] [stores N] [sessions N]\n"
	"                                     [connections N] [requests N/s]\n"
	"                       WHO is uid:N, user:NAME, gid:N, group:NAME, cert:NAME, anonymous\n"
	"                       or *; RIGHT is create, own, read, recover, admin or all; in names\n"
	"                       * stands for any characters; # begins a comment. What no line\n"
	"                       allows is denied; the first line that names a limit sets it.\n"
	"                       SIGHUP reads FILE again. Without it everybody may do everything\n"
	"  --max-connections N  16 to 65536; a quarter is kept for owners and Unix sockets (1024)\n"
	"  --spin-us N          microseconds to spin for more data before sleeping (0)\n"
	"  --log-level LEVEL    error, warning, info or debug (info)\n"
	"  --log-format FORMAT  text, or json: an object a line (text)\n"
	"  --http HOST:PORT     answer HTTP there: /metrics, /healthz, /readyz, /status.json, and\n"
	"                       a page at /; port 0 takes a free one. HOST is of this host alone,\n"
	"                       as 127.0.0.1 or ::1. Without it: no HTTP\n"
	"  --http-anywhere on|off  whoever reaches the port may look: other hosts, too (off)\n"
	"  --http-port-file FILE  write the port for HTTP to FILE once it is open\n"
	"  --port-file FILE     write the TCP ports to FILE once they are open, a line each\n"
	"  --config FILE        read options from FILE: lines of NAME VALUE, # begins a comment\n"
	"  --metrics-help       print a table of all metrics, and exit\n"
	"  --help, --version    print this text, or the version, and exit\n"
	"\n"
	"Exit status:\n"
	"  0  it was ended, by a signal or by perseas spill\n"
	"  1  it could not start, or could not write an image to the disk\n"
	"  2  an option is wrong\n";

struct reader {
	struct config *config;
	char *why;
	size_t size;
};

static int wrong(struct reader *reader, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int wrong(struct reader *reader, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reader->why, reader->size, format, args);
	va_end(args);
	return -1;
}

static struct endpoint *next_endpoint(struct reader *reader)
{
	struct config *config = reader->config;

	if (config->endpoint_count == ENDPOINTS_MAX) {
		wrong(reader, "there may be %d listeners at most", ENDPOINTS_MAX);
		return NULL;
	}
	return &config->endpoints[config->endpoint_count];
}

/* "host:port" or "[host]:port", as the parts of `value`. */
static bool split_address(const char *value, struct endpoint *endpoint)
{
	const char *colon = strrchr(value, ':'), *host = value, *end;
	uint64_t port;
	size_t len;

	if (!colon || !ps_number_read(colon + 1, &end, &port) || *end || port > 65535)
		return false;
	len = (size_t)(colon - host);
	if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	} else if (memchr(host, ':', len)) {
		return false;
	}
	if (len == 0 || len >= sizeof(endpoint->host))
		return false;
	memcpy(endpoint->host, host, len);
	endpoint->host[len] = '\0';
	snprintf(endpoint->port, sizeof(endpoint->port), "%u", (unsigned)port);
	return true;
}

static int set_listen(struct reader *reader, const char *value)
{
	struct endpoint *endpoint = next_endpoint(reader);

	if (!endpoint)
		return -1;
	if (!split_address(value, endpoint))
		return wrong(reader,
		             "--listen %s is not an address; write for example "
		             "192.0.2.1:7170 or [::1]:7170",
		             value);
	endpoint->local = false;
	reader->config->endpoint_count++;
	return 0;
}

static int set_unix(struct reader *reader, const char *value)
{
	struct endpoint *endpoint = next_endpoint(reader);

	if (!endpoint)
		return -1;
	/* sun_path has 108 bytes. */
	if (value[0] != '/' || strlen(value) > 107)
		return wrong(reader, "--unix %s is not an absolute path of 107 bytes or less",
		             value);
	endpoint->local = true;
	snprintf(endpoint->host, sizeof(endpoint->host), "%s", value);
	reader->config->endpoint_count++;
	return 0;
}

static int set_path(struct reader *reader, const char *name, char path[PATH_MAX], const char *value)
{
	if (!*value || strlen(value) >= PATH_MAX)
		return wrong(reader, "--%s needs a path of less than %d bytes", name, PATH_MAX);
	strcpy(path, value);
	return 0;
}

static int set_memory_dir(struct reader *reader, const char *value)
{
	return set_path(reader, "memory-dir", reader->config->memory_dir, value);
}

static int set_spill_dir(struct reader *reader, const char *value)
{
	return set_path(reader, "spill-dir", reader->config->spill_dir, value);
}

static int set_access(struct reader *reader, const char *value)
{
	return set_path(reader, "access", reader->config->access_file, value);
}

static int set_port_file(struct reader *reader, const char *value)
{
	return set_path(reader, "port-file", reader->config->port_file, value);
}

static int set_http(struct reader *reader, const char *value)
{
	struct http_options *http = &reader->config->http;

	http->on = split_address(value, &http->endpoint);
	if (http->on)
		return 0;
	return wrong(reader, "--http %s is not an address; write for example 127.0.0.1:7180",
	             value);
}

static int set_http_port_file(struct reader *reader, const char *value)
{
	return set_path(reader, "http-port-file", reader->config->http.port_file, value);
}

static int set_tls_cert(struct reader *reader, const char *value)
{
	return set_path(reader, "tls-cert", reader->config->tls_cert, value);
}

static int set_tls_key(struct reader *reader, const char *value)
{
	return set_path(reader, "tls-key", reader->config->tls_key, value);
}

static int set_tls_ca(struct reader *reader, const char *value)
{
	return set_path(reader, "tls-ca", reader->config->tls_ca, value);
}

static int set_tls_crl(struct reader *reader, const char *value)
{
	return set_path(reader, "tls-crl", reader->config->tls_crl, value);
}

static int set_plaintext(struct reader *reader, const char *value)
{
	reader->config->exposed = strcmp(value, "anywhere") == 0;
	if (reader->config->exposed || strcmp(value, "loopback") == 0)
		return 0;
	return wrong(reader, "--plaintext %s is neither loopback nor anywhere", value);
}

static int set_file(struct reader *reader, const char *value)
{
	return set_path(reader, "config", reader->config->file, value);
}

static int set_max_memory(struct reader *reader, const char *value)
{
	if (ps_size_read(value, &reader->config->max_memory))
		return 0;
	return wrong(reader,
	             "--max-memory %s is not a number of bytes; write for example 512M or "
	             "64G",
	             value);
}

static int set_spin(struct reader *reader, const char *value)
{
	const char *end;
	uint64_t number;

	if (!ps_number_read(value, &end, &number) || *end || number > 1000000)
		return wrong(reader, "--spin-us %s is not a number from 0 to 1000000", value);
	reader->config->spin_us = (uint32_t)number;
	return 0;
}

static int set_max_connections(struct reader *reader, const char *value)
{
	const char *end;
	uint64_t number;

	if (!ps_number_read(value, &end, &number) || *end || number < 16 || number > 65536)
		return wrong(reader, "--max-connections %s is not a number from 16 to 65536",
		             value);
	reader->config->max_connections = (uint32_t)number;
	return 0;
}

static int set_unix_mode(struct reader *reader, const char *value)
{
	size_t len = strspn(value, "01234567");

	if (len == 0 || len > 4 || value[len])
		goto bad;
	reader->config->unix_mode = (unsigned)strtoul(value, NULL, 8);
	if (reader->config->unix_mode <= 0777 && (reader->config->unix_mode & 0600) == 0600)
		return 0;
bad:
	return wrong(reader, "--unix-mode %s is not a mode; write for example 600 or 666", value);
}

static int set_owner_timeout(struct reader *reader, const char *value)
{
	const char *end;
	uint64_t number;

	if (!ps_number_read(value, &end, &number) || *end || number > 86400)
		return wrong(reader, "--owner-timeout %s is not a number from 0 to 86400", value);
	reader->config->owner_timeout_s = (uint32_t)number;
	return 0;
}

static int set_switch(struct reader *reader, const char *name, bool *on, const char *value)
{
	*on = strcmp(value, "on") == 0;
	if (*on || strcmp(value, "off") == 0)
		return 0;
	return wrong(reader, "--%s %s is neither on nor off", name, value);
}

static int set_rdma(struct reader *reader, const char *value)
{
	return set_switch(reader, "rdma", &reader->config->rdma.on, value);
}

static int set_http_anywhere(struct reader *reader, const char *value)
{
	return set_switch(reader, "http-anywhere", &reader->config->http.anywhere, value);
}

static int set_rdma_flush(struct reader *reader, const char *value)
{
	return set_switch(reader, "rdma-flush", &reader->config->rdma.flush, value);
}

static int set_rdma_order(struct reader *reader, const char *value)
{
	reader->config->rdma.phased = strcmp(value, "phased") == 0;
	if (reader->config->rdma.phased || strcmp(value, "ordered") == 0)
		return 0;
	return wrong(reader, "--rdma-order %s is neither ordered nor phased", value);
}

static int set_rdma_port(struct reader *reader, const char *value)
{
	const char *end;
	uint64_t number;

	if (!ps_number_read(value, &end, &number) || *end || number > 65535)
		return wrong(reader, "--rdma-port %s is not a number from 0 to 65535", value);
	reader->config->rdma.port = (unsigned)number;
	return 0;
}

static int set_log_level(struct reader *reader, const char *value)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(value, names[i]) != 0)
			continue;
		reader->config->log_level = (enum log_level)i;
		return 0;
	}
	return wrong(reader, "--log-level %s is none of error, warning, info, debug", value);
}

static int set_log_format(struct reader *reader, const char *value)
{
	bool json = strcmp(value, "json") == 0;

	if (!json && strcmp(value, "text") != 0)
		return wrong(reader, "--log-format %s is neither text nor json", value);
	reader->config->log_format = json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT;
	return 0;
}

static const struct option {
	const char *name;
	int (*set)(struct reader *reader, const char *value);
	bool in_file;
} options[] = {
	{ "listen", set_listen, true },
	{ "unix", set_unix, true },
	{ "unix-mode", set_unix_mode, true },
	{ "access", set_access, true },
	{ "max-connections", set_max_connections, true },
	{ "tls-cert", set_tls_cert, true },
	{ "tls-key", set_tls_key, true },
	{ "tls-ca", set_tls_ca, true },
	{ "tls-crl", set_tls_crl, true },
	{ "plaintext", set_plaintext, true },
	{ "rdma", set_rdma, true },
	{ "rdma-port", set_rdma_port, true },
	{ "rdma-order", set_rdma_order, true },
	{ "rdma-flush", set_rdma_flush, true },
	{ "memory-dir", set_memory_dir, true },
	{ "max-memory", set_max_memory, true },
	{ "owner-timeout", set_owner_timeout, true },
	{ "spill-dir", set_spill_dir, true },
	{ "spin-us", set_spin, true },
	{ "log-level", set_log_level, true },
	{ "log-format", set_log_format, true },
	{ "http", set_http, true },
	{ "http-anywhere", set_http_anywhere, true },
	{ "http-port-file", set_http_port_file, true },
	{ "port-file", set_port_file, true },
	{ "config", set_file, false },
};

static const struct option *find_option(const char *name, size_t len)
{
	for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (strlen(options[i].name) == len && memcmp(options[i].name, name, len) == 0)
			return &options[i];
	return NULL;
}

/* Splits a line of the file into name and value, in place. False: there is nothing on it. */
static bool split_line(char *line, char **name, char **value)
{
	char *end;

	line[strcspn(line, "#\r\n")] = '\0';
	*name = line + strspn(line, " \t");
	if (!**name)
		return false;
	*value = *name + strcspn(*name, " \t=");
	end = *value;
	*value += strspn(*value, " \t");
	if (**value == '=')
		*value += 1 + strspn(*value + 1, " \t");
	*end = '\0';
	end = *value + strlen(*value);
	while (end > *value && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	return true;
}

static int read_line(struct reader *reader, char *line)
{
	const struct option *option;
	char *name, *value;

	if (!split_line(line, &name, &value))
		return 0;
	option = find_option(name, strlen(name));
	if (!option || !option->in_file)
		return wrong(reader, "there is no option \"%s\" in this file", name);
	if (!*value)
		return wrong(reader, "option \"%s\" needs a value", name);
	return option->set(reader, value);
}

static int read_lines(struct reader *reader, FILE *file, unsigned *number)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int ret = 0;

	errno = 0;
	for (*number = 1; ret == 0 && (len = getline(&line, &room, file)) >= 0; ++*number)
		ret = strlen(line) == (size_t)len
		              ? read_line(reader, line)
		              : wrong(reader, "there is a byte 0; it must be a text");
	--*number;
	if (ret == 0 && !feof(file))
		ret = wrong(reader, "%s", strerror(errno));
	free(line);
	return ret;
}

int config_read(struct config *config, const char *path, char *why, size_t size)
{
	char inner[PATH_MAX + 128] = "";
	struct reader reader = { .config = config, .why = inner, .size = sizeof(inner) };
	FILE *file = fopen(path, "re");
	unsigned number;
	int ret;

	if (!file) {
		snprintf(why, size, "configuration file %s: %s", path, strerror(errno));
		return -1;
	}
	ret = read_lines(&reader, file, &number);
	if (ret && ferror(file))
		snprintf(why, size, "configuration file %s: %s", path, inner);
	else if (ret)
		snprintf(why, size, "%s, line %u: %s", path, number, inner);
	fclose(file);
	return ret;
}

/* The option at argv[*at], whose value may be the argument after it. */
static int read_argument(struct reader *reader, int argc, char *const *argv, int *at,
                         bool file_only)
{
	const char *argument = argv[*at], *equals, *value;
	const struct option *option;
	size_t len;

	if (strncmp(argument, "--", 2) != 0 || !argument[2])
		return wrong(reader, "\"%s\" is not an option; see perseasd --help", argument);
	argument += 2;
	if (strcmp(argument, "metrics-help") == 0) {
		reader->config->metrics_help = true;
		return 0;
	}
	if (strcmp(argument, "help") == 0 || strcmp(argument, "version") == 0) {
		reader->config->help |= *argument == 'h';
		reader->config->version |= *argument == 'v';
		return 0;
	}
	equals = strchr(argument, '=');
	len = equals ? (size_t)(equals - argument) : strlen(argument);
	option = find_option(argument, len);
	if (!option)
		return wrong(reader, "there is no option --%s; see perseasd --help", argument);
	value = equals ? equals + 1 : *at + 1 < argc ? argv[++*at] : NULL;
	if (!value)
		return wrong(reader, "--%s needs a value; see perseasd --help", argument);
	if (file_only != !option->in_file)
		return 0;
	return option->set(reader, value);
}

static int read_arguments(struct reader *reader, int argc, char *const *argv, bool file_only)
{
	for (int i = 1; i < argc; i++)
		if (read_argument(reader, argc, argv, &i, file_only) < 0)
			return -1;
	return 0;
}

/* All or none of what TLS needs. */
static int check_tls(struct reader *reader)
{
	const struct config *config = reader->config;
	bool any = config->tls_cert[0] || config->tls_key[0] || config->tls_ca[0] ||
	           config->tls_crl[0];

	if (any && !(config->tls_cert[0] && config->tls_key[0] && config->tls_ca[0]))
		return wrong(reader, "TLS needs --tls-cert, --tls-key and --tls-ca: %s is missing",
		             !config->tls_cert[0]  ? "--tls-cert"
		             : !config->tls_key[0] ? "--tls-key"
		                                   : "--tls-ca");
	if (any && config->exposed)
		return wrong(reader, "with TLS there is no plain text: leave --plaintext anywhere "
		                     "out, or --tls-cert");
	return 0;
}

/* The file is read before the rest of the command line, which so has the last word. */
int config_parse(struct config *config, int argc, char *const *argv, char *why, size_t size)
{
	struct reader reader = { .config = config, .why = why, .size = size };

	memset(config, 0, sizeof(*config));
	strcpy(config->memory_dir, "/dev/shm/perseas");
	config->log_level = LOG_LEVEL_INFO;
	config->owner_timeout_s = 5;
	config->max_connections = 1024;
	config->unix_mode = 0600;
	config->rdma.on = true;
	if (read_arguments(&reader, argc, argv, true) < 0)
		return -1;
	if (config->file[0] && config_read(config, config->file, why, size) < 0)
		return -1;
	if (read_arguments(&reader, argc, argv, false) < 0)
		return -1;
	if (check_tls(&reader) < 0)
		return -1;
	config->endpoint_default = config->endpoint_count == 0;
	if (config->endpoint_default)
		return set_listen(&reader, "127.0.0.1:7170");
	return 0;
}
