/*
 * test_config.c - what the daemon makes of its command line and its file.
 */
#include "../../proto/data/frame.h"
#include "../../server/loop/config.h"
#include "../support/unit.h"

#include <sched.h>

static struct config config;
static char why[1024];

static int parse(const char *first, const char *second)
{
	char *argv[] = { (char *)"perseasd", (char *)first, (char *)second, NULL };

	return config_parse(&config, first ? second ? 3 : 2 : 1, argv, why, sizeof(why));
}

/* A member of struct config, and the value that it must have. NUMBER: also of bools and enums. */
#define NUMBER(member, value) offsetof(struct config, member), sizeof(config.member), value, NULL
#define TEXT(member, value) offsetof(struct config, member), 0, 0, value

struct good {
	const char *first, *second; /* the command line */
	size_t at, width;           /* the member; width 0: a text */
	uint64_t number;
	const char *text;
};

/* clang-format off */
static const struct good defaults[] = {
	{ NULL, NULL, NUMBER(endpoint_count, 1) },
	{ NULL, NULL, TEXT(endpoints[0].host, "127.0.0.1") },
	{ NULL, NULL, TEXT(endpoints[0].port, "7170") },
	{ NULL, NULL, NUMBER(endpoints[0].local, false) },
	{ NULL, NULL, TEXT(memory_dir, "/dev/shm/perseas") },
	{ NULL, NULL, NUMBER(max_memory, 0) },
	{ NULL, NULL, NUMBER(spin_us, 0) },
	{ NULL, NULL, NUMBER(owner_timeout_ms, 5000) },
	{ NULL, NULL, TEXT(spill_dir, "") },
	{ NULL, NULL, NUMBER(log_level, LOG_LEVEL_INFO) },
	{ NULL, NULL, NUMBER(log_format, LOG_FORMAT_TEXT) },
	{ NULL, NULL, TEXT(journal_socket, "/run/systemd/journal/socket") },
	{ NULL, NULL, NUMBER(http.enabled, false) },
	{ NULL, NULL, NUMBER(memory_on_disk, false) },
	{ NULL, NULL, NUMBER(highest_protocol, PS_PROTOCOL_VERSION) },
	{ NULL, NULL, NUMBER(unix_mode, 0600) },
};

/* Hosts by name, by number and by long number; with and without "=". */
static const struct good listeners[] = {
	{ "--listen", "node-1.example:0", TEXT(endpoints[0].host, "node-1.example") },
	{ "--listen", "node-1.example:0", TEXT(endpoints[0].port, "0") },
	{ "--listen=[::1]:65535", NULL, TEXT(endpoints[0].host, "::1") },
	{ "--listen=[::1]:65535", NULL, TEXT(endpoints[0].port, "65535") },
	{ "--unix", "/run/perseas/socket", NUMBER(endpoints[0].local, true) },
	{ "--unix", "/run/perseas/socket", NUMBER(endpoint_count, 1) },
	{ "--unix-mode", "666", NUMBER(unix_mode, 0666) },
	{ "--access", "/etc/perseas.access", TEXT(access_file, "/etc/perseas.access") },
	{ "--access", "/etc/perseas.access", NUMBER(unix_mode, 0600) },
	{ "--max-connections", "65536", NUMBER(max_connections, 65536) },
	{ "--http", "[::1]:0", NUMBER(http.enabled, true) },
	{ "--http", "[::1]:0", TEXT(http.endpoint.host, "::1") },
	{ "--http", "[::1]:0", TEXT(http.endpoint.port, "0") },
	{ "--http", "[::1]:0", NUMBER(http.anywhere, false) },
	{ "--http", "[::1]:0", NUMBER(endpoint_count, 1) },
	{ "--http-anywhere=on", "--http=0.0.0.0:7180", NUMBER(http.anywhere, true) },
	{ "--http-anywhere=on", "--http=0.0.0.0:7180", NUMBER(http.enabled, true) },
	{ "--http-port-file", "/a", TEXT(http.port_file, "/a") },
	{ "--http-name=a", "--http-name=node1.example", TEXT(http.names[1], "node1.example") },
};

static const struct good others[] = {
	{ "--unsafe-memory-on-disk", "on", NUMBER(memory_on_disk, true) },
	{ "--max-memory", "4096", NUMBER(max_memory, 4096) },
	{ "--max-memory", "3k", NUMBER(max_memory, 3 << 10) },
	{ "--max-memory", "2T", NUMBER(max_memory, (uint64_t)2 << 40) },
	{ "--max-memory", "16777215T", NUMBER(max_memory, (uint64_t)16777215 << 40) },
	{ "--threads", "64", NUMBER(threads, 64) },
	{ "--owner-timeout", "0", NUMBER(owner_timeout_ms, 0) },
	{ "--owner-timeout=86400", NULL, NUMBER(owner_timeout_ms, 86400000) },
	{ "--owner-timeout", "0.1", NUMBER(owner_timeout_ms, 100) },
	{ "--spill-dir", "/var/lib/perseas/spill", TEXT(spill_dir, "/var/lib/perseas/spill") },
	{ "--label", "rack=r1.A_b-c", TEXT(labels.rack, "r1.A_b-c") },
	{ "--label", "rack=r1.A_b-c", TEXT(labels.zone, "") },
	{ "--label=host=h", "--label=zone=z", TEXT(labels.host, "h") },
	{ "--label=host=h", "--label=zone=z", TEXT(labels.zone, "z") },
	{ "--protocol", "8", NUMBER(highest_protocol, 8) },
	{ "--log-format", "json", NUMBER(log_format, LOG_FORMAT_JSON) },
	{ "--journal-socket", "/run/journal", TEXT(journal_socket, "/run/journal") },
	{ "--boot-id", "0123456789abcdef0123456789ABCDEF", NUMBER(has_boot_id, true) },
	{ "--boot-id", "0123456789abcdef0123456789ABCDEF", NUMBER(boot_id[0], 0x01) },
	{ "--boot-id", "0123456789abcdef0123456789ABCDEF", NUMBER(boot_id[15], 0xef) },
	{ "--boot-id", "01234567-89ab-cdef-0123-456789abcdef", NUMBER(has_boot_id, true) },
	{ "--metrics-help", NULL, NUMBER(metrics_help, true) },
	{ "--help", NULL, NUMBER(help, true) },
	{ "--version", NULL, NUMBER(version, true) },
	{ "--check", NULL, NUMBER(check, true) },
};

/* Command lines that are refused, and words of the sentence that says why. */
static const struct {
	const char *first, *second, *said;
} wrong[] = {
	/* Misspelt options and missing values. */
	{ "--liste", "a:1", "" }, { "--listener", "a:1", "" }, { "listen", "a:1", "" },
	{ "--", NULL, "" }, { "--listen", NULL, "--listen needs an address" },
	/* Where nobody can listen: the sentence shows a right address. */
	{ "--listen", "", "192.0.2.1:7170" }, { "--listen", ":", "192.0.2.1:7170" },
	{ "--listen", "host", "192.0.2.1:7170" }, { "--listen", "host:", "192.0.2.1:7170" },
	{ "--listen", ":7170", "192.0.2.1:7170" }, { "--listen", "host:65536", "192.0.2.1:7170" },
	{ "--listen", "host:-1", "192.0.2.1:7170" }, { "--listen", "host:1x", "192.0.2.1:7170" },
	{ "--listen", "::1:7170", "192.0.2.1:7170" }, { "--listen", "[]:7170", "192.0.2.1:7170" },
	{ "--listen", "host: 7170", "192.0.2.1:7170" },
	{ "--listen", "host:99999999999999999999", "192.0.2.1:7170" },
	{ "--unix", "socket", "" }, { "--unix", "", "" },
	{ "--http", "7180", "" }, { "--http", "127.0.0.1:65536", "" },
	{ "--http-name", "node1.example:80", "" }, { "--http-name", "", "" },
	{ "--http-anywhere", "yes", "" },
	/* The socket's mode, and limits of connections. */
	{ "--unix-mode", "", "" }, { "--unix-mode", "8", "" }, { "--unix-mode", "066", "" },
	{ "--unix-mode", "0", "" }, { "--unix-mode", "1777", "" }, { "--unix-mode", "600x", "" },
	{ "--unix-mode", "00600", "" },
	{ "--max-connections", "15", "" }, { "--max-connections", "65537", "" },
	/* Sizes without a number or beyond 64 bits, times and numbers out of range. */
	{ "--max-memory", "", "" }, { "--max-memory", "M", "" }, { "--max-memory", "1X", "" },
	{ "--max-memory", "1MB", "" }, { "--max-memory", "-1", "" }, { "--max-memory", "1.5G", "" },
	{ "--max-memory", " 1", "" }, { "--max-memory", "16777216T", "" },
	{ "--owner-timeout", "0.099", "at least 0.1" }, { "--owner-timeout", "86401", "" },
	{ "--owner-timeout", "5s", "" },
	{ "--spin-us", "1000001", "" }, { "--spin-us", "5us", "" },
	{ "--threads", "0", "" }, { "--threads", "65", "" },
	{ "--protocol", "6", "" }, { "--protocol", "10", "" },
	/* Labels of no kind, or of no name. */
	{ "--label", "h1", "host=NAME, rack=NAME or zone=NAME" },
	{ "--label", "room=a", "host=NAME, rack=NAME or zone=NAME" },
	{ "--label", "=a", "host=NAME, rack=NAME or zone=NAME" },
	{ "--label", "host=", "host=NAME, rack=NAME or zone=NAME" },
	{ "--label", "host=a b", "host=NAME, rack=NAME or zone=NAME" },
	{ "--label", "rack=.a", "host=NAME, rack=NAME or zone=NAME" },
	{ "--label", "host=a/b", "host=NAME, rack=NAME or zone=NAME" },
	{ "--label", "racks=a", "host=NAME, rack=NAME or zone=NAME" },
	{ "--label", "Rack=a", "host=NAME, rack=NAME or zone=NAME" },
	{ "--boot-id", "0123456789abcdef0123456789abcde", "" },
	{ "--boot-id", "0123456789abcdef0123456789abcdef0", "" },
	{ "--boot-id", "0123456789abcdef0123456789abcdeg", "" },
	{ "--log-format", "xml", "" }, { "--log-level", "loud", "" },
	{ "--journal-socket", "journal", "" },
	{ "--memory-dir", "", "" }, { "--spill-dir=", NULL, "" },
	/* A file that is not there, and one that is a folder. */
	{ "--config", "/nonexistent/file", "" }, { "--config", "/tmp", "/tmp: Is a directory" },
};
/* clang-format on */

static void assert_read(const struct good *rows, size_t count)
{
	for (const struct good *row = rows; row < rows + count; row++) {
		const char *at = (const char *)&config + row->at;
		uint64_t number = 0;

		if (parse(row->first, row->second))
			fail_msg("%s %s is refused: %s", row->first, row->second, why);
		memcpy(&number, at, row->width);
		if (number != row->number || (row->text && strcmp(at, row->text) != 0))
			fail_msg("%s %s: not what row %zd says", row->first, row->second,
			         row - rows);
	}
}

#define ROWS(table) (table), sizeof(table) / sizeof((table)[0])

TEST(defaults_serve_this_host)
{
	assert_read(ROWS(defaults));
	assert_in_range(config.threads, 1, THREADS_DEFAULT_MAX);
}

TEST(listeners_are_where_they_are_told_to_be)
{
	assert_read(ROWS(listeners));
}

TEST(every_other_option_is_read)
{
	assert_read(ROWS(others));
}

TEST(what_is_wrong_is_refused_with_a_reason)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (parse(wrong[i].first, wrong[i].second) != -1)
			fail_msg("%s %s is taken", wrong[i].first, wrong[i].second);
		if (!strstr(why, wrong[i].said))
			fail_msg("%s %s gave: %s", wrong[i].first, wrong[i].second, why);
	}
}

/* There are as many threads as processors; a daemon that is bound to one has only its loop. */
TEST(threads_are_as_many_as_the_processors)
{
	cpu_set_t all, one;
	int first = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(parse(NULL, NULL), 0);
	assert_int_equal(config.threads, CPU_COUNT(&all) < THREADS_DEFAULT_MAX
	                                         ? CPU_COUNT(&all)
	                                         : THREADS_DEFAULT_MAX);
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(parse(NULL, NULL), 0);
	assert_int_equal(config.threads, 1);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* Parses a file of these bytes, behind one other option and before another, or NULL. */
static int parse_file(const char *bytes, size_t len, const char *before, const char *behind)
{
	char path[] = "/tmp/perseas-config-XXXXXX";
	char *argv[5] = { (char *)"perseasd" };
	int fd = mkstemp(path), argc = 1, ret;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	close(fd);
	if (before)
		argv[argc++] = (char *)before;
	argv[argc++] = (char *)"--config";
	argv[argc++] = path;
	if (behind)
		argv[argc++] = (char *)behind;
	ret = config_parse(&config, argc, argv, why, sizeof(why));
	unlink(path);
	return ret;
}

/* A file sets some, the command line others, and one is set by both. */
TEST(the_command_line_wins_over_the_file)
{
	static const char text[] = "# a comment\n\n  spin-us = 9   # and another\nmax-memory 1G\n"
				   "unix=/a\nlog-level\tdebug\n";

	assert_int_equal(parse_file(text, strlen(text), "--spin-us=7", "--unix=/b"), 0);
	assert_int_equal(config.spin_us, 7);
	assert_int_equal(config.max_memory, 1 << 30);
	assert_int_equal(config.log_level, LOG_LEVEL_DEBUG);
	assert_int_equal(config.endpoint_count, 2);
	assert_string_equal(config.endpoints[0].host, "/a");
	assert_string_equal(config.endpoints[1].host, "/b");
}

/* A file with a mistake in its third line. */
TEST(mistakes_in_the_file_are_named_by_line)
{
	static const char *const texts[] = {
		"\n\nspin-us many\n", "\n\nconfig /x\n", "\n\nhelp\n",
		"\n\nunix\n",         "\n\nunix =\n",    "\n\n=\n",
	};

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (parse_file(texts[i], strlen(texts[i]), NULL, NULL) != -1 ||
		    !strstr(why, "line 3"))
			fail_msg("%s gave: %s", texts[i], why);
}

/* A comment ends at its end of line, however far away. */
TEST(a_long_line_is_one_line)
{
	char text[3 * PATH_MAX];

	memset(text, 'x', sizeof(text));
	text[0] = '#';
	for (unsigned i = PATH_MAX; i + 16 < sizeof(text); i += 14)
		memcpy(text + i, " spin-us 1 nos ", 14);
	strcpy(text + sizeof(text) - 16, "\nmax-memory 1G\n");
	assert_int_equal(parse_file(text, strlen(text), NULL, NULL), 0);
	assert_int_equal(config.spin_us, 0);
	assert_int_equal(config.max_memory, 1 << 30);
}

/* A file that cannot be read must not pass for an empty one. */
TEST(what_cannot_be_read_is_an_error)
{
	assert_int_equal(parse_file("spin-us 1\0listen a:1\n", 22, NULL, NULL), -1);
	assert_non_null(strstr(why, "line 1: "));
}

/* More listeners than the daemon takes. */
TEST(listeners_are_limited_in_number)
{
	char *argv[2 * ENDPOINTS_MAX + 3] = { (char *)"perseasd" };

	for (int i = 0; i <= ENDPOINTS_MAX; i++) {
		argv[2 * i + 1] = (char *)"--listen";
		argv[2 * i + 2] = (char *)"host:1";
	}
	assert_int_equal(config_parse(&config, 2 * ENDPOINTS_MAX + 1, argv, why, sizeof(why)), 0);
	assert_int_equal(config_parse(&config, 2 * ENDPOINTS_MAX + 3, argv, why, sizeof(why)), -1);
}
