/*
 * test_config.c - what the daemon makes of its command line and its file.
 */
#include "../../proto/data/frame.h"
#include "../../server/loop/config.h"
#include "../support/unit.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct config config;
static char why[1024];

static int parse(const char *first, const char *second)
{
	char *argv[] = { (char *)"perseasd", (char *)first, (char *)second, NULL };

	return config_parse(&config, first ? second ? 3 : 2 : 1, argv, why, sizeof(why));
}

/* Nothing is given. */
TEST(defaults_serve_this_host)
{
	assert_int_equal(parse(NULL, NULL), 0);
	assert_int_equal(config.endpoint_count, 1);
	assert_string_equal(config.endpoints[0].host, "127.0.0.1");
	assert_string_equal(config.endpoints[0].port, "7170");
	assert_false(config.endpoints[0].local);
	assert_string_equal(config.memory_dir, "/dev/shm/perseas");
	assert_int_equal(config.max_memory, 0);
	assert_int_equal(config.spin_us, 0);
	assert_in_range(config.threads, 1, THREADS_USUAL);
	assert_int_equal(config.owner_timeout_ms, 5000);
	assert_string_equal(config.spill_dir, "");
	assert_int_equal(config.log_level, LOG_LEVEL_INFO);
	assert_int_equal(config.log_format, LOG_FORMAT_TEXT);
}

TEST(http_is_off_unless_an_address_is_given)
{
	assert_int_equal(parse(NULL, NULL), 0);
	assert_false(config.http.on);
	assert_int_equal(parse("--http", "[::1]:0"), 0);
	assert_true(config.http.on);
	assert_string_equal(config.http.endpoint.host, "::1");
	assert_string_equal(config.http.endpoint.port, "0");
	assert_false(config.http.anywhere);
	assert_int_equal(config.endpoint_count, 1);
	assert_int_equal(parse("--http-anywhere=on", "--http=0.0.0.0:7180"), 0);
	assert_true(config.http.anywhere && config.http.on);
	assert_int_equal(parse("--http-port-file", "/a"), 0);
	assert_string_equal(config.http.port_file, "/a");
	assert_int_equal(parse("--http-name=a", "--http-name=node1.example"), 0);
	assert_string_equal(config.http.names[1], "node1.example");
	assert_int_equal(parse("--http-name", "node1.example:80"), -1);
	assert_int_equal(parse("--http-name", ""), -1);
	assert_int_equal(parse("--http", "7180"), -1);
	assert_int_equal(parse("--http", "127.0.0.1:65536"), -1);
	assert_int_equal(parse("--http-anywhere", "yes"), -1);
	assert_false(config.memory_on_disk);
	assert_int_equal(parse("--unsafe-memory-on-disk", "on"), 0);
	assert_true(config.memory_on_disk);
	assert_int_equal(parse("--boot-id", "0123456789abcdef0123456789ABCDEF"), 0);
	assert_true(config.boot_given && config.boot[0] == 0x01 && config.boot[15] == 0xef);
	assert_int_equal(parse("--boot-id", "01234567-89ab-cdef-0123-456789abcdef"), 0);
	assert_int_equal(parse("--boot-id", "0123456789abcdef0123456789abcde"), -1);
	assert_int_equal(parse("--boot-id", "0123456789abcdef0123456789abcdef0"), -1);
	assert_int_equal(parse("--boot-id", "0123456789abcdef0123456789abcdeg"), -1);
	assert_int_equal(parse("--metrics-help", NULL), 0);
	assert_true(config.metrics_help);
}

TEST(lines_of_the_log_are_text_or_json)
{
	assert_int_equal(parse("--log-format", "json"), 0);
	assert_int_equal(config.log_format, LOG_FORMAT_JSON);
	assert_int_equal(parse("--log-format", "otel"), 0);
	assert_int_equal(config.log_format, LOG_FORMAT_OTEL);
	assert_string_equal(config.journal, "/run/systemd/journal/socket");
	assert_int_equal(parse("--journal-socket", "journal"), -1);
	assert_int_equal(parse("--journal-socket", "/run/journal"), 0);
	assert_string_equal(config.journal, "/run/journal");
	assert_int_equal(parse("--log-format", "xml"), -1);
}

TEST(owners_may_be_silent_for_as_long_as_is_said)
{
	assert_int_equal(parse("--owner-timeout", "0"), 0);
	assert_int_equal(config.owner_timeout_ms, 0);
	assert_int_equal(parse("--owner-timeout=86400", NULL), 0);
	assert_int_equal(config.owner_timeout_ms, 86400000);
	assert_int_equal(parse("--owner-timeout", "0.1"), 0);
	assert_int_equal(config.owner_timeout_ms, 100);
	assert_int_equal(parse("--owner-timeout", "0.099"), -1);
	assert_non_null(strstr(why, "at least 0.1"));
	assert_int_equal(parse("--owner-timeout", "86401"), -1);
	assert_int_equal(parse("--owner-timeout", "5s"), -1);
	assert_int_equal(parse("--spill-dir", "/var/lib/perseas/spill"), 0);
	assert_string_equal(config.spill_dir, "/var/lib/perseas/spill");
	assert_int_equal(parse("--spill-dir=", NULL), -1);
}

/* Three kinds of labels, each by itself; and versions of the protocol that there are. */
TEST(where_it_runs_and_what_it_speaks_is_told)
{
	static const char *const wrong[] = { "h1",      "room=a",   "=a",      "host=", "host=a b",
		                             "rack=.a", "host=a/b", "racks=a", "Rack=a" };

	assert_int_equal(parse("--label", "rack=r1.A_b-c"), 0);
	assert_string_equal(config.labels.rack, "r1.A_b-c");
	assert_string_equal(config.labels.zone, "");
	assert_int_equal(parse("--label=host=h", "--label=zone=z"), 0);
	assert_string_equal(config.labels.host, "h");
	assert_string_equal(config.labels.zone, "z");
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(parse("--label", wrong[i]), -1);
	assert_non_null(strstr(why, "host=NAME, rack=NAME or zone=NAME"));
	assert_int_equal(config.protocol, PS_PROTOCOL_VERSION);
	assert_int_equal(parse("--protocol", "7"), 0);
	assert_int_equal(config.protocol, 7);
	assert_int_equal(parse("--protocol", "6"), -1);
	assert_int_equal(parse("--protocol", "9"), -1);
}

TEST(who_may_come_and_how_many_is_told)
{
	static const char *const modes[] = { "", "8", "066", "0", "1777", "600x", "00600" };

	assert_int_equal(parse("--unix-mode", "666"), 0);
	assert_int_equal(config.unix_mode, 0666);
	assert_int_equal(parse("--access", "/etc/perseas.access"), 0);
	assert_string_equal(config.access_file, "/etc/perseas.access");
	assert_int_equal(config.unix_mode, 0600);
	assert_int_equal(parse("--max-connections", "65536"), 0);
	assert_int_equal(config.max_connections, 65536);
	assert_int_equal(parse("--max-connections", "15"), -1);
	assert_int_equal(parse("--max-connections", "65537"), -1);
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		assert_int_equal(parse("--unix-mode", modes[i]), -1);
}

/* Hosts by name, by number and by long number; with and without "=". */
TEST(addresses_are_split_into_host_and_port)
{
	assert_int_equal(parse("--listen", "node-1.example:0"), 0);
	assert_string_equal(config.endpoints[0].host, "node-1.example");
	assert_string_equal(config.endpoints[0].port, "0");
	assert_int_equal(parse("--listen=[::1]:65535", NULL), 0);
	assert_string_equal(config.endpoints[0].host, "::1");
	assert_string_equal(config.endpoints[0].port, "65535");
	assert_int_equal(parse("--unix", "/run/perseas/socket"), 0);
	assert_true(config.endpoints[0].local);
	assert_int_equal(config.endpoint_count, 1);
}

/* What nobody can listen on. */
TEST(wrong_addresses_are_refused_with_a_right_one)
{
	static const char *const wrong[] = {
		"",         ":",          "host",       "host:",
		":7170",    "host:65536", "host:-1",    "host:1x",
		"::1:7170", "[]:7170",    "host: 7170", "host:99999999999999999999",
	};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(parse("--listen", wrong[i]), -1);
		assert_non_null(strstr(why, "192.0.2.1:7170"));
	}
	assert_int_equal(parse("--unix", "socket"), -1);
	assert_int_equal(parse("--unix", ""), -1);
}

/* Sizes with units, and beyond 64 bits. */
TEST(sizes_have_units)
{
	static const char *const wrong[] = {
		"", "M", "1X", "1MB", "-1", "1.5G", " 1", "16777216T",
	};

	assert_int_equal(parse("--max-memory", "4096"), 0);
	assert_int_equal(config.max_memory, 4096);
	assert_int_equal(parse("--max-memory", "3k"), 0);
	assert_int_equal(config.max_memory, 3 << 10);
	assert_int_equal(parse("--max-memory", "2T"), 0);
	assert_int_equal(config.max_memory, (uint64_t)2 << 40);
	assert_int_equal(parse("--max-memory", "16777215T"), 0);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(parse("--max-memory", wrong[i]), -1);
}

/* As many as there are processors; a daemon that is bound to one has no thread beside its loop. */
TEST(threads_are_as_many_as_the_processors)
{
	cpu_set_t all, one;
	int first = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(parse(NULL, NULL), 0);
	assert_int_equal(config.threads,
	                 CPU_COUNT(&all) < THREADS_USUAL ? CPU_COUNT(&all) : THREADS_USUAL);
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(parse(NULL, NULL), 0);
	assert_int_equal(config.threads, 1);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(parse("--threads", "64"), 0);
	assert_int_equal(config.threads, 64);
}

/* Misspelt options, missing values, other numbers. */
TEST(what_is_not_understood_is_an_error)
{
	assert_int_equal(parse("--liste", "a:1"), -1);
	assert_int_equal(parse("--listener", "a:1"), -1);
	assert_int_equal(parse("listen", "a:1"), -1);
	assert_int_equal(parse("--", NULL), -1);
	assert_int_equal(parse("--listen", NULL), -1);
	assert_non_null(strstr(why, "--listen needs an address"));
	assert_int_equal(parse("--spin-us", "1000001"), -1);
	assert_int_equal(parse("--spin-us", "5us"), -1);
	assert_int_equal(parse("--threads", "0"), -1);
	assert_int_equal(parse("--threads", "65"), -1);
	assert_int_equal(parse("--log-level", "loud"), -1);
	assert_int_equal(parse("--memory-dir", ""), -1);
	assert_int_equal(parse("--config", "/nonexistent/file"), -1);
	assert_int_equal(parse("--help", NULL), 0);
	assert_true(config.help);
	assert_int_equal(parse("--version", NULL), 0);
	assert_true(config.version);
	assert_int_equal(parse("--check", NULL), 0);
	assert_true(config.check);
}

static void write_file(char *path, const char *text)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* A file sets some, the command line others, and one is set by both. */
TEST(the_command_line_wins_over_the_file)
{
	char path[] = "/tmp/perseas-config-XXXXXX";
	char *argv[] = {
		(char *)"perseasd", (char *)"--spin-us", (char *)"7", (char *)"--config", path,
		(char *)"--unix",   (char *)"/b"
	};

	write_file(path, "# a comment\n\n  spin-us = 9   # and another\nmax-memory 1G\n"
	                 "unix=/a\nlog-level\tdebug\n");
	assert_int_equal(config_parse(&config, 7, argv, why, sizeof(why)), 0);
	assert_int_equal(config.spin_us, 7);
	assert_int_equal(config.max_memory, 1 << 30);
	assert_int_equal(config.log_level, LOG_LEVEL_DEBUG);
	assert_int_equal(config.endpoint_count, 2);
	assert_string_equal(config.endpoints[0].host, "/a");
	assert_string_equal(config.endpoints[1].host, "/b");
	unlink(path);
}

/* A file with a mistake in its third line. */
TEST(mistakes_in_the_file_are_named_by_line)
{
	static const char *const wrong[] = {
		"\n\nspin-us many\n", "\n\nconfig /x\n", "\n\nhelp\n",
		"\n\nunix\n",         "\n\nunix =\n",    "\n\n=\n",
	};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char path[] = "/tmp/perseas-config-XXXXXX";

		write_file(path, wrong[i]);
		assert_int_equal(parse("--config", path), -1);
		assert_non_null(strstr(why, "line 3"));
		unlink(path);
	}
}

/* What ends a comment is its end of line, wherever that is. */
TEST(a_long_line_is_one_line)
{
	char path[] = "/tmp/perseas-config-XXXXXX";
	char text[3 * PATH_MAX];

	memset(text, 'x', sizeof(text));
	text[0] = '#';
	for (unsigned i = PATH_MAX; i + 16 < sizeof(text); i += 14)
		memcpy(text + i, " spin-us 1 nos ", 14);
	strcpy(text + sizeof(text) - 16, "\nmax-memory 1G\n");
	write_file(path, text);
	assert_int_equal(parse("--config", path), 0);
	assert_int_equal(config.spin_us, 0);
	assert_int_equal(config.max_memory, 1 << 30);
	unlink(path);
}

/* It would be as if nothing were written there. */
TEST(what_cannot_be_read_is_an_error)
{
	char path[] = "/tmp/perseas-config-XXXXXX";
	int fd = mkstemp(path);

	assert_int_equal(parse("--config", "/tmp"), -1);
	assert_non_null(strstr(why, "/tmp: Is a directory"));
	assert_int_equal(write(fd, "spin-us 1\0listen a:1\n", 22), 22);
	close(fd);
	assert_int_equal(parse("--config", path), -1);
	assert_non_null(strstr(why, "line 1: "));
	unlink(path);
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
