/*
 * test_address.c - the entries of the mirrors list.
 */
#include "../../client/core/address.h"
#include "../support/unit.h"

/* Every form of an entry, and what it comes down to. Where a daemon is that was not told otherwise
 * the text says it, too. */
TEST(every_form_is_understood)
{
	static const struct {
		const char *entry;
		enum ps_scheme scheme;
		const char *host, *port;
		enum ps_route route;
		const char *text; /* NULL: the entry's own text */
	} good[] = {
		{ "a:1", PS_SCHEME_TCP, "a", "1", PS_ROUTE_ANY, NULL },
		{ "mirror-1.example.org:7170", PS_SCHEME_TCP, "mirror-1.example.org", "7170",
		  PS_ROUTE_ANY, NULL },
		{ "10.0.0.1:65535", PS_SCHEME_TCP, "10.0.0.1", "65535", PS_ROUTE_ANY, NULL },
		{ "tcp://host_2:07170", PS_SCHEME_TCP, "host_2", "7170", PS_ROUTE_TCP, NULL },
		{ "rdma://host_2:7170", PS_SCHEME_TCP, "host_2", "7170", PS_ROUTE_RDMA, NULL },
		{ "rdma://[::1]:1", PS_SCHEME_TCP, "::1", "1", PS_ROUTE_RDMA, NULL },
		{ "[::1]:7170", PS_SCHEME_TCP, "::1", "7170", PS_ROUTE_ANY, NULL },
		{ "tcp://[fe80::1%eth0]:9", PS_SCHEME_TCP, "fe80::1%eth0", "9", PS_ROUTE_TCP,
		  NULL },
		{ "[::ffff:10.0.0.1]:9", PS_SCHEME_TCP, "::ffff:10.0.0.1", "9", PS_ROUTE_ANY,
		  NULL },
		{ "unix:///run/perseas.sock", PS_SCHEME_UNIX, "/run/perseas.sock", "", PS_ROUTE_ANY,
		  NULL },
		{ "unix:///tmp/with space:1", PS_SCHEME_UNIX, "/tmp/with space:1", "", PS_ROUTE_ANY,
		  NULL },
		{ "sim://0", PS_SCHEME_SIM, "", "0", PS_ROUTE_ANY, NULL },
		{ "sim://15", PS_SCHEME_SIM, "", "15", PS_ROUTE_ANY, NULL },
		{ "host", PS_SCHEME_TCP, "host", "7170", PS_ROUTE_ANY, "host:7170" },
		{ "rdma://host", PS_SCHEME_TCP, "host", "7170", PS_ROUTE_RDMA, "rdma://host:7170" },
		{ "tcp://[::1]", PS_SCHEME_TCP, "::1", "7170", PS_ROUTE_TCP, "tcp://[::1]:7170" },
		{ "[::1]", PS_SCHEME_TCP, "::1", "7170", PS_ROUTE_ANY, "[::1]:7170" },
		{ "unix://", PS_SCHEME_UNIX, "/run/perseas/socket", "", PS_ROUTE_ANY,
		  "unix:///run/perseas/socket" },
	};
	struct ps_address address;
	struct ps_error error;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		const char *text = good[i].text ? good[i].text : good[i].entry;

		if (ps_address_parse(good[i].entry, &address, &error))
			fail_msg("\"%s\" is refused: %s", good[i].entry, error.text);
		if (address.scheme != good[i].scheme || address.route != good[i].route ||
		    strcmp(address.text, text) || strcmp(address.host, good[i].host) ||
		    strcmp(address.port, good[i].port))
			fail_msg("\"%s\" is %d, %d, %s, %s, %s", good[i].entry, address.scheme,
			         address.route, address.text, address.host, address.port);
	}
}

/* Entries that people get wrong, and a word of the sentence that tells them. */
TEST(a_wrong_entry_is_refused_with_its_reason)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "", "empty" },
		{ "host:", "port is not a number" },
		{ "host:0", "port is not a number" },
		{ "host:65536", "port is not a number" },
		{ "host:123456", "port is not a number" },
		{ "host:-1", "port is not a number" },
		{ "host:80x", "port is not a number" },
		{ "host: 80", "port is not a number" },
		{ ":7170", "no host" },
		{ "tcp://:7170", "no host" },
		{ "ho st:7170", "character" },
		{ "ho/st:7170", "character" },
		{ "ho\nst:7170", "character" },
		{ "h\xc3\xb6st:7170", "character" },
		{ "::1:7170", "brackets" },
		{ "[::1]7170", "a colon and a port" },
		{ "tcp://", "no host" },
		{ "host:,", "port is not a number" },
		{ "[::1", "not an IPv6" },
		{ "[]:1", "not an IPv6" },
		{ "[host]:1", "not an IPv6" },
		{ "[::1%]:1", "not an IPv6" },
		{ "[1:2:3:4:5:6:7:8:9:1:2:3:4:5:6:7:8:9:1:2:3:4:5:6:7]:1", "not an IPv6" },
		{ "unix://run/perseas", "slash" },
		{ "unix:///", "slash" },
		{ "unix:///run/\001", "control" },
		{ "rdma://", "no host" },
		{ "rdma://:7170", "no host" },
		{ "RDMA://host:1", "not known" },
		{ "http://host:1", "not known" },
		{ "etcd://host:1/key", "only @NAME and srv://DOMAIN name a list" },
		{ "TCP://host:1", "not known" },
		{ "sim://", "simulated" },
		{ "sim://x", "simulated" },
	};
	struct ps_address address;
	struct ps_error error;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memset(&error, 0, sizeof(error));
		assert_int_equal(ps_address_parse(bad[i].text, &address, &error), PERSEAS_EINVAL);
		assert_int_equal(error.code, PERSEAS_EINVAL);
		if (!strstr(error.text, bad[i].why))
			fail_msg("\"%s\" gave: %s", bad[i].text, error.text);
		assert_non_null(strstr(error.text, "write host:port"));
		assert_null(strpbrk(error.text, "\n\001\xc3"));
	}
	assert_int_equal(ps_address_parse(NULL, &address, &error), PERSEAS_EINVAL);
}

/* Entries at and beyond the lengths that are allowed. */
TEST(lengths_are_bounded)
{
	static const struct {
		const char *before, *after;
		int letters, code; /* the entry is so many letters between the two, and ends so */
	} entries[] = {
		{ "", ":1", 199, 0 },
		{ "", ":1", 200, PERSEAS_EINVAL },
		{ "", ":1", 1000, PERSEAS_EINVAL },
		{ "rdma://", "", 199, 0 },
		{ "rdma://", "", 200, PERSEAS_EINVAL },
		{ "unix:///", "", 106, 0 },
		{ "unix:///", "", 107, PERSEAS_EINVAL },
	};
	struct ps_address address;
	struct ps_error error;
	char letters[1001], text[1024];

	memset(letters, 'h', sizeof(letters));
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		snprintf(text, sizeof(text), "%s%.*s%s", entries[i].before, entries[i].letters,
		         letters, entries[i].after);
		if (ps_address_parse(text, &address, &error) != entries[i].code)
			fail_msg("%d letters behind \"%s\"", entries[i].letters, entries[i].before);
		if (entries[i].code)
			assert_true(strlen(error.text) < 300);
		else if (address.scheme == PS_SCHEME_UNIX)
			assert_int_equal(strlen(address.host), 107);
		else if (address.route == PS_ROUTE_RDMA)
			assert_int_equal(strlen(address.text), 7 + 199 + 5); /* with the port */
	}
}

/* A list of three, written with spaces as people do. */
TEST(a_list_keeps_its_order)
{
	struct ps_address addresses[PS_MIRRORS_MAX];
	struct ps_error error;
	unsigned count = 99;

	assert_int_equal(ps_address_parse_list("a , b", addresses, &count, &error), 0);
	assert_int_equal(ps_address_parse_list("a:1, tcp://b:2 ,\tunix:///c", addresses, &count,
	                                       &error),
	                 0);
	assert_int_equal(count, 3);
	assert_string_equal(addresses[0].text, "a:1");
	assert_string_equal(addresses[1].text, "tcp://b:2");
	assert_string_equal(addresses[2].text, "unix:///c");
}

/* Lists with holes, with the same mirror twice under two spellings, or with too many. */
TEST(a_wrong_list_is_refused_and_gives_no_count)
{
	static const char *const bad[] = {
		"",
		",",
		"a:1,",
		",a:1",
		"a:1,,b:1",
		"a:1,b:",
		"a,a:7170",
		"a,tcp://A:7170",
		"unix://,unix:///run/perseas/socket",
		"a:1,a:1",
		"a:1,tcp://A:01",
		"unix:///x,a:1,unix:///x",
		"[::1]:1,tcp://[::1]:1",
		"a:1,a:2,a:3,a:4,a:5,a:6,a:7,a:8,a:9,a:10,a:11,a:12,a:13,a:14,a:15,a:16,a:17",
	};
	struct ps_address addresses[PS_MIRRORS_MAX];
	struct ps_error error;
	unsigned count = 99;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(ps_address_parse_list(bad[i], addresses, &count, &error),
		                 PERSEAS_EINVAL);
		assert_true(strlen(error.text) > 20);
		assert_int_equal(count, 99);
	}
	assert_int_equal(ps_address_parse_list(NULL, addresses, &count, &error), PERSEAS_EINVAL);
}

/* A list of as many mirrors as a store may have. */
TEST(the_longest_list_is_taken)
{
	struct ps_address addresses[PS_MIRRORS_MAX];
	struct ps_error error;
	unsigned count = 0;
	char text[PS_MIRRORS_MAX * 16] = "";
	int i;

	for (i = 0; i < PS_MIRRORS_MAX; i++)
		snprintf(text + strlen(text), 16, "%shost:%d", i ? "," : "", i + 1);
	assert_int_equal(ps_address_parse_list(text, addresses, &count, &error), 0);
	assert_int_equal(count, PS_MIRRORS_MAX);
}

/* An address that is the beginning or the end of a listed one is not in the list. */
TEST(a_list_has_what_is_between_its_commas)
{
	static const char list[] = "m1:71,[::1]:7170,unix:///a b";
	static const char *const there[] = { "m1:71", "[::1]:7170", "unix:///a b" };
	static const char *const other[] = { "m1:7", "1:71", "m1:710", "unix:///a" };

	for (size_t i = 0; i < sizeof(there) / sizeof(there[0]); i++)
		assert_true(ps_address_in_list(list, there[i]));
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		assert_false(ps_address_in_list(list, other[i]));
	assert_false(ps_address_in_list("", "m1:71"));
	assert_false(ps_address_in_list(NULL, "m1:71"));
}
