/*
 * test_named.c - mirror lists that have a name in a file of clusters.
 */
#include "../../client/host/list_by_name.h"
#include "../support/unit.h"

static char folder[] = "/tmp/perseas-named-XXXXXX";
static char path[128], own[128];

static void write_file(const char *at, const char *text)
{
	FILE *file = fopen(at, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int make_folder(void **state)
{
	char config[128];

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/clusters", folder);
	snprintf(config, sizeof(config), "%s/perseas", folder);
	snprintf(own, sizeof(own), "%s/perseas/clusters", folder);
	return mkdir(config, 0700);
}

static int remove_folder(void **state)
{
	char config[128];

	(void)state;
	unlink(path);
	unlink(own);
	snprintf(config, sizeof(config), "%s/perseas", folder);
	return rmdir(config) || rmdir(folder) ? -1 : 0;
}

/* The file that the variable names is the only one. */
static int use_file(void **state)
{
	(void)state;
	return setenv(PS_CLUSTERS_VARIABLE, path, 1);
}

struct unit_fixture unit_fixture = { use_file, NULL };
struct unit_fixture unit_group = { make_folder, remove_folder };

static void expect_list(const char *text, const char *wanted)
{
	struct ps_error error = { 0 };
	char list[PS_LIST_TEXT];

	assert_int_equal(ps_list_by_name(text, list, &error), 0);
	assert_string_equal(list, wanted);
}

static void expect_error(const char *text, int code, const char *words)
{
	char list[PS_LIST_TEXT] = "before";
	struct ps_error error = { 0 };

	assert_int_equal(ps_list_by_name(text, list, &error), code);
	assert_int_equal(error.code, code);
	assert_non_null(strstr(error.text, words));
	assert_string_equal(list, "");
}

TEST(a_name_stands_for_its_list)
{
	write_file(path, "# ours\n"
	                 "bank m1:7170,m2:7170 # two\n"
	                 "\n"
	                 "  shop\t=  m3 , unix:///s  \r\n"
	                 "ban x\n"
	                 "last m4");
	expect_list("@bank", "m1:7170,m2:7170");
	expect_list(" @shop", "m3 , unix:///s");
	expect_list("@last", "m4");
}

TEST(a_list_is_no_name)
{
	expect_list("m1:7170,m2:7170", "");
	expect_list("unix:///x@y", "");
	expect_list("", "");
	assert_false(ps_list_is_named("m1,srv://x"));
	assert_true(ps_list_is_named("\t@x"));
	assert_true(ps_list_is_named("srv://x"));
}

TEST(a_name_that_no_line_has_is_refused)
{
	write_file(path, "bank m1\n");
	expect_error("@ban", PERSEAS_EINVAL, "no cluster is named @ban: ");
	expect_error("@ban", PERSEAS_EINVAL, path);
	expect_error("@banks", PERSEAS_EINVAL, "no cluster is named @banks");
	unlink(path);
	expect_error("@bank", PERSEAS_EINVAL, "no cluster is named @bank");
	expect_error("@", PERSEAS_EINVAL, "must name a cluster");
	expect_error("@bank,m2", PERSEAS_EINVAL, "must name a cluster");
	expect_error("@../etc", PERSEAS_EINVAL, "must name a cluster");
}

TEST(a_line_that_is_wrong_is_named)
{
	char *text = malloc(3 * PS_LIST_TEXT);

	write_file(path, "bank m1\nshop m2\nbank m3\n");
	expect_error("@bank", PERSEAS_EINVAL, "line 3: the name is in the file twice");
	expect_list("@shop", "m2");
	write_file(path, "\nbank # none\n");
	expect_error("@bank", PERSEAS_EINVAL, "line 2: the name has no mirrors");
	write_file(path, "bank @shop\nshop m1\n");
	expect_error("@bank", PERSEAS_EINVAL, "line 1: a name cannot stand for another");
	/* The longest list is taken; one byte more is not, nor is a line of any length. */
	memset(text, 'm', 3 * PS_LIST_TEXT);
	memcpy(text, "bank ", 5);
	text[5 + PS_LIST_TEXT - 1] = '\0';
	write_file(path, text);
	expect_list("@bank", text + 5);
	text[5 + PS_LIST_TEXT - 1] = 'm';
	text[5 + PS_LIST_TEXT] = '\0';
	write_file(path, text);
	expect_error("@bank", PERSEAS_EINVAL, "line 1: the list is too long");
	text[5 + PS_LIST_TEXT] = 'm';
	text[3 * PS_LIST_TEXT - 1] = '\0';
	write_file(path, text);
	expect_error("@shop", PERSEAS_EINVAL, "line 1: it is too long");
	free(text);
}

TEST(a_file_that_cannot_be_read_is_named)
{
	setenv(PS_CLUSTERS_VARIABLE, folder, 1);
	expect_error("@bank", PERSEAS_ESYSTEM, folder);
}

/* Without the variable, the user's own file is read first, and the host's may be there as well. */
TEST(the_users_own_file_comes_first)
{
	unsetenv(PS_CLUSTERS_VARIABLE);
	setenv("XDG_CONFIG_HOME", folder, 1);
	write_file(own, "a-cluster-of-this-test m9\n");
	expect_list("@a-cluster-of-this-test", "m9");
	expect_error("@another-of-this-test", PERSEAS_EINVAL, PS_CLUSTERS " or ");
	expect_error("@another-of-this-test", PERSEAS_EINVAL, own);
	setenv("XDG_CONFIG_HOME", "not/absolute", 1);
	unsetenv("HOME");
	expect_error("@a-cluster-of-this-test", PERSEAS_EINVAL, "to " PS_CLUSTERS);
}

TEST(a_name_may_stand_for_a_domain)
{
	write_file(path, "bank srv://not..a.domain\n");
	expect_error("@bank", PERSEAS_EINVAL, "must be a domain");
}
