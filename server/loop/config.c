/*
 * config.c - the table of the daemon's options, and the rules for combining them. main.c calls it
 * to read the command line and the configuration file; options.c does the parsing. It opens no
 * other file.
 */
#include "config.h"

#include "../../proto/data/frame.h"
#include "../../proto/image/layout.h"
#include "../../proto/base/number.h"
#include "../../proto/base/options.h"
#include "../../proto/control/envelope.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Splits "host:port" or "[host]:port". */
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

/* Returns the next free endpoint, or NULL if there are ENDPOINTS_MAX. */
static struct endpoint *next_endpoint(struct config *config)
{
	return config->endpoint_count < ENDPOINTS_MAX ? &config->endpoints[config->endpoint_count]
	                                              : NULL;
}

static bool set_journal(void *into, const char *value)
{
	struct config *config = into;

	if (*value != '/' || strlen(value) >= sizeof(config->journal_socket))
		return false;
	memcpy(config->journal_socket, value, strlen(value) + 1);
	return true;
}

static bool set_listen(void *into, const char *value)
{
	struct config *config = into;
	struct endpoint *endpoint = next_endpoint(config);

	if (!endpoint || !split_address(value, endpoint))
		return false;
	endpoint->local = false;
	config->endpoint_count++;
	return true;
}

/* Rejects a path that does not fit in sun_path, which has 108 bytes with the terminating zero. */
static bool set_unix(void *into, const char *value)
{
	struct config *config = into;
	struct endpoint *endpoint = next_endpoint(config);

	if (!endpoint || value[0] != '/' || strlen(value) > 107)
		return false;
	endpoint->local = true;
	strcpy(endpoint->host, value);
	config->endpoint_count++;
	return true;
}

static bool set_unix_mode(void *into, const char *value)
{
	const size_t len = strspn(value, "01234567");
	unsigned mode;

	if (len == 0 || len > 4 || value[len])
		return false;
	mode = (unsigned)strtoul(value, NULL, 8);
	((struct config *)into)->unix_mode = mode;
	return mode <= 0777 && (mode & 0600) == 0600;
}

static bool set_http(void *into, const char *value)
{
	struct http_options *http = &((struct config *)into)->http;

	return http->enabled = split_address(value, &http->endpoint);
}

static bool set_http_name(void *into, const char *value)
{
	struct http_options *http = &((struct config *)into)->http;

	if (!*value || strlen(value) > HTTP_NAME_MAX || strpbrk(value, ":/[] ") ||
	    http->name_count == HTTP_NAMES_MAX)
		return false;
	strcpy(http->names[http->name_count++], value);
	return true;
}

static bool set_boot_id(void *into, const char *value)
{
	struct config *config = into;

	return config->has_boot_id = ps_boot_parse(value, config->boot_id);
}

/* Parses "host=NAME", "rack=NAME" or "zone=NAME". */
static bool set_label(void *into, const char *value)
{
	struct labels *labels = &((struct config *)into)->labels;
	const char *name = strchr(value, '=');
	char *label;

	if (!name || !ps_name_valid(name + 1))
		return false;
	if (!strncmp(value, "host=", 5))
		label = labels->host;
	else if (!strncmp(value, "rack=", 5))
		label = labels->rack;
	else if (!strncmp(value, "zone=", 5))
		label = labels->zone;
	else
		return false;
	strcpy(label, name + 1);
	return true;
}

enum { CONFIG_FILE = 1, CONFIG_LINE = 2 };

#define AT(member) PS_OPTION_AT(struct config, member)
#define FILE_OR_LINE .groups = CONFIG_FILE
#define LINE_ONLY .groups = CONFIG_LINE

static const struct ps_option option_rows[] = {
	{ "listen", PS_OPTION_OWN, .placeholder = "HOST:PORT", .set = set_listen, FILE_OR_LINE,
	  .must = "an address, for example 192.0.2.1:" PS_PORT " or [::1]:" PS_PORT
	          "; there may be 16 listeners",
	  .help = "Listens for owners over TCP; port 0 takes a free one. May be given several "
	          "times, like --unix. Without either, and without a socket from systemd "
	          "(perseasd.socket): 127.0.0.1:" PS_PORT "." },
	{ "unix", PS_OPTION_OWN, .placeholder = "PATH", .set = set_unix, FILE_OR_LINE,
	  .must = "an absolute path of 107 bytes or less; there may be 16 listeners",
	  .help = "Listens for owners on this host, which share memory with the daemon." },
	{ "unix-mode", PS_OPTION_OWN, .placeholder = "MODE", .default_text = "600",
	  .set = set_unix_mode, FILE_OR_LINE, .must = "a mode, for example 600 or 666",
	  .help = "Permissions of these sockets in octal, as for chmod: who may connect." },
	{ "tls-cert", PS_OPTION_PATH, AT(tls_cert), "FILE", FILE_OR_LINE,
	  .help = "Uses TLS 1.3 on all TCP connections, with the daemon's certificate and those "
	          "between it and the CA, as PEM. Needs --tls-key and --tls-ca. SIGHUP reads "
	          "the files again, for new connections." },
	{ "tls-key", PS_OPTION_PATH, AT(tls_key), "FILE", FILE_OR_LINE,
	  .help = "The key of that certificate." },
	{ "tls-ca", PS_OPTION_PATH, AT(tls_ca), "FILE", FILE_OR_LINE,
	  .help = "The CA that signs the certificates of peers that may connect." },
	{ "tls-crl", PS_OPTION_PATH, AT(tls_crl), "FILE", FILE_OR_LINE,
	  .help = "Revoked certificates: the list of that CA, and of each CA below it." },
	{ "plaintext", PS_OPTION_CHOICE, AT(allows_exposed_plaintext), "WHERE", "loopback",
	  FILE_OR_LINE, .choices = "loopback|anywhere",
	  .help = "Where TCP without TLS is allowed: loopback, or anywhere. With anywhere, "
	          "whoever reaches the port can read and change stores." },
	{ "rdma", PS_OPTION_CHOICE, AT(rdma.enabled), "on|off", "on", FILE_OR_LINE,
	  .choices = "off|on",
	  .help = "Offers RDMA to owners over TCP if the address to which they connected is "
	          "that of an RDMA device." },
	{ "rdma-port", PS_OPTION_NUMBER, AT(rdma.port), "PORT", "0", FILE_OR_LINE, .high = 65535,
	  .help = "The port for RDMA connections; 0: any that is free." },
	{ "rdma-order", PS_OPTION_CHOICE, AT(rdma.phased), "MODE", "ordered", FILE_OR_LINE,
	  .choices = "ordered|phased",
	  .help = "ordered, or phased for a network that may reorder writes (adaptive routing): "
	          "then undo, data and slot are written one after the other." },
	{ "rdma-flush", PS_OPTION_CHOICE, AT(rdma.flush_by_read), "on|off", "off", FILE_OR_LINE,
	  .choices = "off|on",
	  .help = "Owners count an RDMA write only when a read after it has returned, which pushes "
	          "it out of the device's buffers." },
	{ "memory-dir", PS_OPTION_PATH, AT(memory_dir), "DIR", "/dev/shm/perseas", FILE_OR_LINE,
	  .help = "Keeps the images in DIR, which is new, empty or perseasd's own; no symbolic "
	          "link is followed. It must lie in memory (tmpfs, ramfs)." },
	{ "unsafe-memory-on-disk", PS_OPTION_CHOICE, AT(memory_on_disk), "on|off", "off",
	  FILE_OR_LINE, .choices = "off|on",
	  .help = "Allows --memory-dir on a disk, for experiments. What a power cut leaves "
	          "there may be old, so images count only during the boot that wrote them." },
	{ "max-memory", PS_OPTION_SIZE, AT(max_memory), "BYTES", "0", FILE_OR_LINE,
	  .help = "Limit for all images together, with K, M, G or T; 0: no limit. It is read "
	          "at the start: SIGHUP does not change it." },
	{ "owner-timeout", PS_OPTION_SECONDS, AT(owner_timeout_ms), "SECONDS", "5", FILE_OR_LINE,
	  .high = 86400000,
	  .help = "Seconds of silence after which an owner no longer counts as live, so that a "
	          "claim needs no takeover: 0.1 or more; 0: it is live while it is connected." },
	{ "copies", PS_OPTION_NUMBER, AT(copies), "N", "1", FILE_OR_LINE, .high = 1024,
	  .help = "How many owners may bring their images here up to date at a time; the others "
	          "wait for their turn. Those whose commits wait come first, and wait for each "
	          "other alone. 0: any number." },
	{ "label", PS_OPTION_OWN, .placeholder = "WHERE=NAME", .set = set_label, FILE_OR_LINE,
	  .must = "host=NAME, rack=NAME or zone=NAME; a name has 1 to 63 of A-Z a-z 0-9 . _ -, and "
	          "does not begin with a dot",
	  .help = "Says where this daemon runs: host=NAME, rack=NAME or zone=NAME, once each. "
	          "perseas place gives a store no two mirrors with the same one. Default of host: "
	          "the host's own name." },
	{ "protocol", PS_OPTION_NUMBER, AT(highest_protocol), "N", FILE_OR_LINE,
	  .low = PS_PROTOCOL_LEAST, .high = PS_PROTOCOL_VERSION,
	  .help = "The highest version of the protocol to speak. With an older one than the "
	          "current, this daemon behaves like one of an older release, so that an upgrade "
	          "can be rehearsed. Default: the current one." },
	{ "spill-dir", PS_OPTION_PATH, AT(spill_dir), "DIR", FILE_OR_LINE,
	  .help = "Writes the images to DIR on SIGTERM, SIGINT or `perseas spill`. At start, "
	          "loads from there the images that memory has lost." },
	{ "state-dir", PS_OPTION_PATH, AT(state_dir), "DIR", FILE_OR_LINE,
	  .help = "Records in DIR which spills were loaded, so that old ones that come back from a "
	          "backup of the spill directory are not loaded again. Without it they are." },
	{ "access", PS_OPTION_PATH, AT(access_file), "FILE", FILE_OR_LINE,
	  .help = "Rules of who may do what, and how much: lines of\n"
	          "    allow WHO RIGHT[,RIGHT]... [store STORES]\n"
	          "    limit WHO [memory BYTES] [stores N]\n"
	          "              [sessions N] [connections N]\n"
	          "              [requests N/s]\n"
	          "WHO is uid:N, user:NAME, gid:N, group:NAME, cert:NAME, anonymous or *. RIGHT is "
	          "create, own, read, recover, admin, share or all. In names * stands for any "
	          "characters; # begins a comment. What no line allows is denied. The first line "
	          "that names a limit sets it. A FILE that allows nobody anything is refused, "
	          "unless it has a line \"deny *\". SIGHUP reads FILE again. Without this option "
	          "everybody may do everything." },
	{ "max-connections", PS_OPTION_NUMBER, AT(max_connections), "N", "1024", FILE_OR_LINE,
	  .low = 16, .high = 65536,
	  .help = "Maximum number of connections, 16 to 65536. A quarter is reserved for owners "
	          "and Unix sockets. Owners, who need two each, cannot have the last sixteenth. "
	          "Of what owners leave, Unix sockets and TCP can have half each." },
	{ "threads", PS_OPTION_NUMBER, AT(threads), "N", FILE_OR_LINE, .low = 1,
	  .high = THREADS_MAX,
	  .help = "Threads for the data of owners over TCP and Unix sockets, 1 to 64. Each "
	          "serves some of the stores; with 1, the main thread does it. Default: the "
	          "processors that perseasd may use, 8 at most." },
	{ "spin-us", PS_OPTION_NUMBER, AT(spin_us), "N", "0", FILE_OR_LINE, .high = 1000000,
	  .unit = "microseconds", .help = "Microseconds to spin for more data before sleeping." },
	{ "log-level", PS_OPTION_CHOICE, AT(log_level), "LEVEL", "info", FILE_OR_LINE,
	  .choices = "error|warning|info|debug",
	  .help = "The least important messages to log: error, warning, info or debug." },
	{ "log-format", PS_OPTION_CHOICE, AT(log_format), "FORMAT", "text", FILE_OR_LINE,
	  .choices = "text|json",
	  .help = "text; json: one object a line. "
	          "Where standard error is systemd's journal, text comes with fields "
	          "(PERSEAS_EVENT, PERSEAS_STORE, ...)." },
	{ "journal-socket", PS_OPTION_OWN, .placeholder = "PATH",
	  .default_text = "/run/systemd/journal/socket", .set = set_journal, FILE_OR_LINE,
	  .must = "an absolute path of at most 107 bytes",
	  .help = "Where systemd's journal takes entries that have fields. What it does not take "
	          "goes to standard error as a line." },
	{ "http", PS_OPTION_OWN, .placeholder = "HOST:PORT", .set = set_http, FILE_OR_LINE,
	  .must = "an address, for example 127.0.0.1:7180",
	  .help = "Serves HTTP there: /metrics, /healthz, /readyz, /status.json, and a page "
	          "at /; port 0 takes a free one. Unless --http-anywhere is on, HOST is an "
	          "address that only this host reaches, like 127.0.0.1 or ::1. Without --http "
	          "there is no HTTP." },
	{ "http-anywhere", PS_OPTION_CHOICE, AT(http.anywhere), "on|off", "off", FILE_OR_LINE,
	  .choices = "off|on",
	  .help = "Serves HTTP to other hosts, too: everybody who reaches the port can read it." },
	{ "http-name", PS_OPTION_OWN, .placeholder = "NAME", .set = set_http_name, FILE_OR_LINE,
	  .must = "a host's name, for example node1.example, without a port; there may be 8",
	  .help = "Another name of this host under which HTTP requests are answered; up to 8 "
	          "times. Numbers, localhost and the host's own name need no option." },
	{ "http-port-file", PS_OPTION_PATH, AT(http.port_file), "FILE", FILE_OR_LINE,
	  .help = "Writes the port for HTTP to FILE once it is open." },
	{ "port-file", PS_OPTION_PATH, AT(port_file), "FILE", FILE_OR_LINE,
	  .help = "Writes the TCP ports to FILE once they are open, one a line." },
	{ "config", PS_OPTION_PATH, AT(file), "FILE", LINE_ONLY,
	  .help = "Reads options from FILE: lines of NAME VALUE; # begins a comment." },
	{ "boot-id", PS_OPTION_OWN, .placeholder = "ID", .set = set_boot_id, LINE_ONLY,
	  .must = "32 hexadecimal digits",
	  .help = "The id of this boot of the host, if /proc does not give it: 32 hexadecimal "
	          "digits, like %b in a systemd unit." },
	{ "check", PS_OPTION_FLAG, AT(check), LINE_ONLY,
	  .help = "Reads all options, the rules of --access and the files of --tls-*, says what is "
	          "wrong with them, and exits. The status is 0 if they can be used for a start or "
	          "by SIGHUP, 1 if a file cannot, 2 if an option is wrong. It opens no socket and "
	          "no image, so it can run while a daemon does; run it as the daemon's user. It "
	          "does not check whether an address needs TLS because the network reaches it." },
	{ "metrics-help", PS_OPTION_FLAG, AT(metrics_help), LINE_ONLY,
	  .help = "Prints a table of all metrics and exits." },
	{ "help", PS_OPTION_FLAG, AT(help), LINE_ONLY, .letter = 'h',
	  .help = "Prints this text and exits." },
	{ "version", PS_OPTION_FLAG, AT(version), LINE_ONLY,
	  .help = "Prints the version and exits." },
};

static const struct ps_options config_options = {
	.program = "perseasd",
	.rows = option_rows,
	.count = sizeof(option_rows) / sizeof(option_rows[0]),
};
static_assert(sizeof(option_rows) / sizeof(option_rows[0]) <= 64,
              "a bit for each in ps_reader.given");
static_assert(ENDPOINTS_MAX == 16 && HTTP_NAMES_MAX == 8, "as the rows say");

void config_help(FILE *out)
{
	fprintf(out, "Usage: perseasd [OPTION]...\n"
	             "Keeps images of stores in memory, as a mirror for owners on other hosts.\n"
	             "\n");
	ps_options_help(&config_options, out, CONFIG_FILE);
	fprintf(out, "\nOnly on the command line:\n");
	ps_options_help(&config_options, out, CONFIG_LINE);
	fprintf(out, "\n"
	             "Exit status:\n"
	             "  0  a signal or perseas spill ended it\n"
	             "  1  it could not start, or could not write an image to the disk\n"
	             "  2  an option is wrong\n");
}

/* Splits a line of the file into name and value, in place. Returns false if the line is empty. */
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

static int read_lines(struct ps_reader *reader, FILE *file, unsigned *number)
{
	char *line = NULL, *name, *value;
	size_t room = 0;
	ssize_t len;
	int ret = 0;

	errno = 0;
	for (*number = 1; ret == 0 && (len = getline(&line, &room, file)) >= 0; ++*number) {
		if (strlen(line) != (size_t)len)
			ret = ps_reader_fail(reader, "there is a byte 0; it must be a text");
		else if (split_line(line, &name, &value))
			ret = ps_options_read_line(reader, CONFIG_FILE, name, value);
	}
	--*number;
	if (ret == 0 && !feof(file))
		ret = ps_reader_fail(reader, "%s", strerror(errno));
	free(line);
	return ret;
}

/* Reads a configuration file: lines of "name value" or "name = value"; # begins a comment. */
static int read_file(struct ps_reader *reader, const char *path)
{
	char inner[PATH_MAX + 128] = "";
	struct ps_reader lines = *reader;
	FILE *file = fopen(path, "re");
	unsigned number;
	int ret;

	if (!file)
		return ps_reader_fail(reader, "configuration file %s: %s", path, strerror(errno));
	lines.why = inner;
	lines.size = sizeof(inner);
	ret = read_lines(&lines, file, &number);
	if (ret && ferror(file))
		ps_reader_fail(reader, "configuration file %s: %s", path, inner);
	else if (ret)
		ps_reader_fail(reader, "%s, line %u: %s", path, number, inner);
	fclose(file);
	return ret;
}

/* Requires all of the files that TLS needs, or none. */
static int check_tls_files_complete(struct ps_reader *reader)
{
	const struct config *config = reader->into;
	bool any = config->tls_cert[0] || config->tls_key[0] || config->tls_ca[0] ||
	           config->tls_crl[0];

	if (any && !(config->tls_cert[0] && config->tls_key[0] && config->tls_ca[0]))
		return ps_reader_fail(reader,
		                      "TLS needs --tls-cert, --tls-key and --tls-ca: %s is missing",
		                      !config->tls_cert[0]  ? "--tls-cert"
		                      : !config->tls_key[0] ? "--tls-key"
		                                            : "--tls-ca");
	if (any && config->allows_exposed_plaintext)
		return ps_reader_fail(reader, "with TLS there is no plain text: leave "
		                              "--plaintext anywhere out, or --tls-cert");
	return 0;
}

static int check_owner_timeout(struct ps_reader *reader)
{
	const struct config *config = reader->into;

	if (config->owner_timeout_ms > 0 && config->owner_timeout_ms < PS_OWNER_TIMEOUT_MIN_MS)
		return ps_reader_fail(reader, "--owner-timeout is 0, or at least 0.1: owners on a "
		                              "busy host are silent for shorter times");
	return 0;
}

/* Returns the number of processors that this process may use, at most THREADS_DEFAULT_MAX. */
static unsigned default_thread_count(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) < 1)
		return 1;
	return CPU_COUNT(&set) < THREADS_DEFAULT_MAX ? (unsigned)CPU_COUNT(&set)
	                                             : THREADS_DEFAULT_MAX;
}

/* Uses the host's name as the label "host" if it is a valid label. */
static void set_default_host(struct labels *labels)
{
	char name[PS_NAME_MAX + 1] = "";

	if (gethostname(name, sizeof(name) - 1) == 0 && ps_name_valid(name))
		strcpy(labels->host, name);
}

static void set_defaults(struct config *config)
{
	memset(config, 0, sizeof(*config));
	ps_options_preset(&config_options, config);
	config->threads = default_thread_count();
	config->highest_protocol = PS_PROTOCOL_VERSION;
	set_default_host(&config->labels);
}

/* The command line names the configuration file and takes precedence over it, so the command line
 * is read again after the file. */
int config_parse(struct config *config, int argc, char *const *argv, char *why, size_t size)
{
	struct ps_reader reader = { .options = &config_options, .into = config };
	char path[PATH_MAX];

	reader.why = why;
	reader.size = size;
	set_defaults(config);
	if (ps_options_read(&reader, argc, argv) < 0)
		return -1;
	if (config->file[0]) {
		strcpy(path, config->file);
		set_defaults(config);
		if (read_file(&reader, path) < 0 || ps_options_read(&reader, argc, argv) < 0)
			return -1;
	}
	if (check_tls_files_complete(&reader) < 0 || check_owner_timeout(&reader) < 0)
		return -1;
	config->is_default_endpoint = config->endpoint_count == 0;
	if (config->is_default_endpoint)
		set_listen(config, "127.0.0.1:" PS_PORT);
	return 0;
}
