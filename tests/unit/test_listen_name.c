/*
 * test_listen_name.c - a daemon that listens at a name: a name server that is silent does not hold
 * up its start for longer than the limit, and the daemon says what to do.
 */
#include "resolver_rig.h"

#include "../../server/loop/listen_name.h"

enum { LIMIT_MS = 20 };

static const struct endpoint named = { .host = "mirror.test", .port = "7170" };

static int forget_questions(void **state)
{
	(void)state;
	names_set(false, "127.0.0.1");
	names_asked();
	return 0;
}

struct unit_fixture unit_fixture = { forget_questions, NULL };

TEST(a_silent_name_server_is_waited_for_for_so_long)
{
	char why[512] = "";

	names_set(true, "127.0.0.1");
	assert_null(listen_lookup(&named, LIMIT_MS, why, sizeof(why)));
	assert_non_null(strstr(why, "cannot listen on mirror.test:7170: no name server says now"));
	names_set(false, "127.0.0.1");
	names_await(0);
}

TEST(an_answer_is_taken)
{
	char why[512] = "";
	struct addrinfo *found = listen_lookup(&named, -1, why, sizeof(why));

	assert_non_null(found);
	assert_int_equal(found->ai_family, AF_INET);
	freeaddrinfo(found);
	assert_int_equal(names_asked(), 1);
	names_set(false, NULL);
	assert_null(listen_lookup(&named, -1, why, sizeof(why)));
	assert_non_null(strstr(why, "mirror.test:7170: Name or service not known"));
}

TEST(a_number_is_not_looked_up)
{
	const struct endpoint number = { .host = "127.0.0.1", .port = "7170" };
	char why[512] = "";
	struct addrinfo *found = listen_lookup(&number, -1, why, sizeof(why));

	assert_non_null(found);
	freeaddrinfo(found);
	assert_int_equal(names_asked(), 0);
}
