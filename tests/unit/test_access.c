/*
 * test_access.c - rules: what they allow, what they limit, and what is no rule.
 */
#include "../../server/store/access_file.h"
#include "../support/unit.h"

static bool find_user(const char *name, uint32_t *uid)
{
	*uid = 1000;
	return strcmp(name, "bank") == 0;
}

static bool find_group(const char *name, uint32_t *gid)
{
	*gid = 50;
	return strcmp(name, "staff") == 0;
}

static const struct access_names names = { find_user, find_group };
static struct access_fault fault;

static struct access *parse(const char *text)
{
	return access_parse(text, strlen(text), &names, &fault);
}

static struct access *rules(const char *text)
{
	struct access *access = parse(text);

	if (!access)
		fail_msg("line %u: %s", fault.line, fault.text);
	return access;
}

static struct identity identity(const char *name)
{
	struct identity who = { .name = "" };

	snprintf(who.name, sizeof(who.name), "%s", name);
	return who;
}

static bool may(const struct access *access, const char *name, enum right right, const char *store)
{
	const struct identity who = identity(name);

	return access_allows(access, &who, right, store);
}

/* No file was given. */
TEST(without_rules_everybody_may_do_everything)
{
	assert_true(may(NULL, "anonymous", RIGHT_ADMIN, NULL));
	assert_int_equal(access_limit(NULL, "anonymous", LIMIT_STORES), LIMIT_NONE);
	assert_int_equal(access_rule_count(NULL), 0);
}

/* Comments, empty lines, and ends of lines of another system. */
TEST(a_file_without_rules_denies_everything)
{
	struct access *access = rules("# nothing\n\n   \t\r\n#allow * all");

	assert_int_equal(access_rule_count(access), 0);
	for (unsigned right = RIGHT_CREATE; right <= RIGHT_ADMIN; right <<= 1)
		assert_false(may(access, "uid:0", (enum right)right, "bank"));
	access_free(access);
}

/* A file without any allow line was emptied by mistake, unless it says "deny all"; next to an allow
 * line it cannot say so. */
TEST(to_deny_everybody_must_be_said)
{
	static const struct {
		const char *text, *doubt;
	} files[] = {
		{ "", "no line allows anybody anything" },
		{ "# allow * all\n", "no line allows anybody anything" },
		{ "limit * stores 4\n", "no line allows anybody anything" },
		{ "deny *\nallow uid:0 read\n", "beside lines that allow something" },
		{ "deny * # for now\nlimit * stores 4\n", NULL },
		{ "allow uid:0 read\n", NULL },
	};

	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct access *access = rules(files[i].text);
		const char *doubt = access_likely_mistake(access);

		assert_int_equal(doubt != NULL, files[i].doubt != NULL);
		if (doubt)
			assert_non_null(strstr(doubt, files[i].doubt));
		assert_int_equal(may(access, "uid:0", RIGHT_READ, "bank"), i == 3 || i == 5);
		access_free(access);
	}
	assert_null(parse("deny uid:0"));
	assert_null(parse("deny * own"));
	assert_null(parse("deny"));
	assert_string_equal(fault.text, "only \"deny *\" is there: what no line allows is denied");
}

/* Two lines for the same identity, and one for others. */
TEST(rights_of_all_lines_add_up)
{
	struct access *access = rules("allow uid:1000 read,own store bank-*\r\n"
	                              "allow cert:node-*.example create\t# all stores\n"
	                              "allow uid:1000 admin store bank-1\n"
	                              "allow anonymous read store *-public\n");

	assert_int_equal(access_rule_count(access), 4);
	assert_true(may(access, "uid:1000", RIGHT_READ, "bank-1"));
	assert_true(may(access, "uid:1000", RIGHT_OWN, "bank-"));
	assert_true(may(access, "uid:1000", RIGHT_ADMIN, "bank-1"));
	assert_false(may(access, "uid:1000", RIGHT_ADMIN, "bank-2"));
	assert_false(may(access, "uid:1000", RIGHT_CREATE, "bank-1"));
	assert_false(may(access, "uid:1000", RIGHT_READ, "bank"));
	assert_false(may(access, "uid:10001", RIGHT_READ, "bank-1"));
	assert_true(may(access, "cert:node-7.example", RIGHT_CREATE, "any"));
	assert_false(may(access, "cert:node-7.example.org", RIGHT_CREATE, "any"));
	assert_false(may(access, "cert:node-7.example", RIGHT_READ, "any"));
	assert_true(may(access, "anonymous", RIGHT_READ, "a-public"));
	assert_false(may(access, "anonymous", RIGHT_OWN, "a-public"));
	assert_false(may(access, "", RIGHT_READ, "a-public"));
	access_free(access);
}

/* Patterns that a careless matcher takes too long for, or gets wrong. */
TEST(a_star_stands_for_any_characters)
{
	static const struct {
		const char *pattern, *store;
		bool matches;
	} cases[] = {
		{ "*", "x", true },
		{ "a*b*c", "abc", true },
		{ "a*b*c", "aXbYbZc", true },
		{ "a*b*c", "acb", false },
		{ "**a**", "bab", true },
		{ "a*", "ba", false },
		{ "*a", "ab", false },
		{ "*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[128];
		struct access *access;

		snprintf(text, sizeof(text), "allow * read store %s", cases[i].pattern);
		access = rules(text);
		assert_int_equal(may(access, "anonymous", RIGHT_READ, cases[i].store),
		                 cases[i].matches);
		access_free(access);
	}
}

/* A request about all stores needs a line for all stores. */
TEST(a_pattern_of_stores_is_not_all_stores)
{
	struct access *access = rules("allow uid:1 admin store a*\nallow uid:2 admin\n"
	                              "allow uid:3 admin store *\n");

	assert_false(may(access, "uid:1", RIGHT_ADMIN, NULL));
	assert_true(may(access, "uid:2", RIGHT_ADMIN, NULL));
	assert_true(may(access, "uid:3", RIGHT_ADMIN, NULL));
	access_free(access);
}

/* Users match by name and by number, and a process may have several groups. */
TEST(users_and_groups_match_by_number)
{
	struct access *access = rules("allow user:bank own\nallow group:staff read\n"
	                              "allow gid:7 create\nallow uid:* admin\n");
	struct identity who = identity("uid:1000"), other = identity("uid:1001");

	who.gids[0] = 1000;
	who.gids[1] = 50;
	who.gid_count = 2;
	assert_true(access_allows(access, &who, RIGHT_OWN, "a"));
	assert_true(access_allows(access, &who, RIGHT_READ, "a"));
	assert_false(access_allows(access, &who, RIGHT_CREATE, "a"));
	assert_true(access_allows(access, &who, RIGHT_ADMIN, "a"));
	assert_false(access_allows(access, &other, RIGHT_OWN, "a"));
	assert_false(access_allows(access, &other, RIGHT_READ, "a"));
	assert_true(access_allows(access, &other, RIGHT_ADMIN, "a"));
	assert_false(may(access, "anonymous", RIGHT_ADMIN, "a"));
	access_free(access);
}

/* An identity's own line stands before the line for all, and sets one of the figures. */
TEST(the_first_line_that_names_a_figure_sets_it)
{
	struct access *access = rules("limit user:bank memory 8G stores 0\n"
	                              "limit * stores 4 sessions 8 requests 1000/s\n"
	                              "limit * memory 1k connections 9\n");

	assert_int_equal(access_limit(access, "uid:1000", LIMIT_MEMORY), (uint64_t)8 << 30);
	assert_int_equal(access_limit(access, "uid:1000", LIMIT_STORES), 0);
	assert_int_equal(access_limit(access, "uid:1000", LIMIT_SESSIONS), 8);
	assert_int_equal(access_limit(access, "anonymous", LIMIT_MEMORY), 1024);
	assert_int_equal(access_limit(access, "anonymous", LIMIT_STORES), 4);
	assert_int_equal(access_limit(access, "cert:x", LIMIT_REQUESTS), 1000);
	assert_int_equal(access_limit(access, "cert:x", LIMIT_CONNECTIONS), 9);
	assert_false(may(access, "uid:1000", RIGHT_READ, "a"));
	access_free(access);
}

/* Each with a word that its fault must have. */
TEST(what_is_no_rule_is_refused_by_its_line)
{
	static const char *const wrong[][2] = {
		{ "deny * all", "deny" },
		{ "allow", "for whom" },
		{ "allow *", "rights" },
		{ "allow bank read", "bank" },
		{ "allow uid: read", "number" },
		{ "allow uid:01 read", "number" },
		{ "allow uid:4294967295 read", "number" },
		{ "allow uid:1* read", "number" },
		{ "allow user:nobody-there read", "no user" },
		{ "allow group:wheel read", "no group" },
		{ "allow cert: read", "identity" },
		{ "allow * write", "write" },
		{ "allow * read,", "right" },
		{ "allow * read,,own", "right" },
		{ "allow * read bank", "bank" },
		{ "allow * read store", "store" },
		{ "allow * read store a/b", "store" },
		{ "allow * read store a b", "too many" },
		{ "limit", "for whom" },
		{ "limit *", "limits" },
		{ "limit gid:7 stores 1", "groups" },
		{ "limit * bytes 1", "bytes" },
		{ "limit * memory", "memory" },
		{ "limit * memory 1X", "memory" },
		{ "limit * memory 99999999999T", "memory" },
		{ "limit * stores -1", "stores" },
		{ "limit * stores 1 stores 2", "twice" },
		{ "limit * stores 1000001", "stores" },
		{ "limit * requests 5", "rate" },
		{ "limit * requests 0/s", "rate" },
		{ "limit * requests 5/m", "rate" },
		{ "allow \033[2J read", "?[2J" },
		{ "allow * read store 12345678901234567890123456789012345678901234567890123456789"
		  "01234",
		  "63" },
	};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char text[256];

		snprintf(text, sizeof(text), "allow * read\n\n%s\nallow * own", wrong[i][0]);
		assert_null(parse(text));
		assert_int_equal(fault.line, 3);
		if (!strstr(fault.text, wrong[i][1]))
			fail_msg("%s: %s", wrong[i][0], fault.text);
	}
	assert_null(access_parse("allow * read\0x", 14, &names, &fault));
	assert_non_null(strstr(fault.text, "zero byte"));
}

/* Too many bytes, too many lines. */
TEST(there_is_a_most_that_is_read)
{
	const char line[] = "allow * read\n";
	const size_t len = sizeof(line) - 1;
	char *text = malloc(ACCESS_TEXT_MAX + 1);
	struct access *access;

	for (size_t i = 0; i <= ACCESS_RULES_MAX; i++)
		memcpy(text + i * len, line, len);
	access = access_parse(text, ACCESS_RULES_MAX * len, &names, &fault);
	assert_int_equal(access_rule_count(access), ACCESS_RULES_MAX);
	access_free(access);
	assert_null(access_parse(text, (ACCESS_RULES_MAX + 1) * len, &names, &fault));
	assert_int_equal(fault.line, ACCESS_RULES_MAX + 1);
	memset(text, '\n', ACCESS_TEXT_MAX + 1);
	assert_null(access_parse(text, ACCESS_TEXT_MAX + 1, &names, &fault));
	assert_int_equal(fault.line, 0);
	free(text);
}

/* A file that is good, one with a fault, and none; users are those of this host. */
TEST(a_file_that_is_wrong_is_named_with_its_line)
{
	char path[] = "/tmp/perseas-access-XXXXXX", why[512], at[128];
	struct access *access;
	int fd = mkstemp(path);

	assert_int_equal(write(fd, "allow user:root all\n", 20), 20);
	access = access_file_read(path, why, sizeof(why));
	assert_true(may(access, "uid:0", RIGHT_ADMIN, NULL));
	access_free(access);
	assert_int_equal(write(fd, "allow nobody\n", 13), 13);
	assert_null(access_file_read(path, why, sizeof(why)));
	snprintf(at, sizeof(at), "%s, line 2: ", path);
	assert_non_null(strstr(why, at));
	close(fd);
	unlink(path);
	assert_null(access_file_read(path, why, sizeof(why)));
	assert_non_null(strstr(why, "No such file"));
}
