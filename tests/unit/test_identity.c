/*
 * test_identity.c - who is at the other end of a socket, and what a name may be.
 */
#include "../../server/store/identity.h"
#include "../support/unit.h"

static bool has_group(const struct identity *who, uint32_t gid)
{
	for (unsigned i = 0; i < who->gid_count; i++)
		if (who->gids[i] == gid)
			return true;
	return false;
}

/* This process is at both ends. */
TEST(a_process_is_its_user_with_its_groups)
{
	gid_t groups[65536];
	int pair[2], count = getgroups(65536, groups);
	struct identity who;
	char name[32];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	identity_of_process(&who, pair[0]);
	snprintf(name, sizeof(name), "uid:%u", (unsigned)geteuid());
	assert_string_equal(who.name, name);
	assert_true(has_group(&who, getegid()));
	for (int i = 0; i < count && i < IDENTITY_GROUPS - 1; i++)
		assert_true(has_group(&who, groups[i]));
	close(pair[0]);
	close(pair[1]);
}

/* Not a socket of this host at all. */
TEST(who_cannot_be_told_is_anonymous)
{
	struct identity who;
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	identity_of_process(&who, pipes[0]);
	assert_string_equal(who.name, "anonymous");
	assert_int_equal(who.gid_count, 0);
	assert_true(identity_of_certificate(&who, NULL));
	assert_string_equal(who.name, "anonymous");
	close(pipes[0]);
	close(pipes[1]);
}

/* The longest, one that is longer, and ones that could pass for something else in a log. */
TEST(a_certificates_name_is_plain_or_nobodys)
{
	static const char *const wrong[] = { "", "a b", "a\nb", "\033[2J", "caf\xc3\xa9", "\x7f" };
	char longest[124];
	struct identity who;

	assert_true(identity_of_certificate(&who, "bank-1.example"));
	assert_string_equal(who.name, "cert:bank-1.example");
	memset(longest, 'x', sizeof(longest));
	longest[123] = '\0';
	assert_false(identity_of_certificate(&who, longest));
	assert_string_equal(who.name, "anonymous");
	longest[122] = '\0';
	assert_true(identity_of_certificate(&who, longest));
	assert_int_equal(strlen(who.name), IDENTITY_MAX);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_false(identity_of_certificate(&who, wrong[i]));
		assert_string_equal(who.name, "anonymous");
	}
}
