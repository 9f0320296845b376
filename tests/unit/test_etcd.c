/*
 * test_etcd.c - what names a key of etcd, what such a key may have, and what is told of an etcdctl
 * that fails. etcd itself is asked in the drills.
 */
#include "../../client/host/etcd.h"
#include "../support/unit.h"

#define ID "0123456789abcdef0123456789abcdef"

static const struct ps_etcd_key bank = { "127.0.0.1:2379", "perseas/bank" };

static int read_text(const char *text, struct ps_etcd_value *value)
{
	struct ps_error error = { 0 };
	int rc = ps_etcd_read(text, strlen(text), &bank, value, &error);

	assert_int_equal(rc, error.code);
	return rc;
}

TEST(a_key_is_named_by_its_place)
{
	struct ps_etcd_key key;
	struct ps_error error;
	static const char *const wrong[] = {
		"etcd://",       "etcd://h:1",      "etcd://h:1/",    "etcd:///k",
		"etcd://-h:1/k", "etcd://h:1/-k",   "etcd://h:1/a b", "etcd://h:1/a\"b",
		"srv://h/k",     "etcd://h:1/a\nb", "h:1/k",
	};

	assert_int_equal(ps_etcd_parse("etcd://a:1,[::1]:2/perseas/bank", &key, &error), 0);
	assert_string_equal(key.endpoints, "a:1,[::1]:2");
	assert_string_equal(key.key, "perseas/bank");
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(ps_etcd_parse(wrong[i], &key, &error), PERSEAS_EINVAL);
}

TEST(a_list_may_stand_alone_or_with_its_roster)
{
	struct ps_etcd_value value;

	assert_int_equal(read_text("m1:7170,m2:7170\n", &value), 0);
	assert_string_equal(value.list, "m1:7170,m2:7170");
	assert_false(value.numbered);
	assert_int_equal(read_text("m1:7170 roster=7 store=" ID "\n", &value), 0);
	assert_true(value.numbered && value.roster == 7);
	assert_string_equal(value.list, "m1:7170");
	assert_string_equal(value.store, ID);
}

TEST(what_is_no_list_is_refused)
{
	static const char *const wrong[] = {
		"@bank",
		"etcd://h:1/k",
		"m1:7170,",
		"m1:7170 roster=7",
		"m1:7170 roster=7 store=0123",
		"m1:7170 roster=x store=" ID,
		"m1:7170 roster=7 store=" ID "0",
		"m1:7170 roster=7 store=0123456789ABCDEF0123456789ABCDEF",
		"m1:7170\nm2:7170",
		"unix:///a\"b",
		"\x1b[2J",
	};
	struct ps_etcd_value value;

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(read_text(wrong[i], &value), PERSEAS_EPROTOCOL);
	assert_int_equal(read_text("", &value), PERSEAS_EINVAL);
	assert_int_equal(read_text(" \n", &value), PERSEAS_EINVAL);
}

/* A list that a person wrote has no roster: it may be replaced. */
TEST(a_newer_roster_and_another_store_stay)
{
	struct ps_etcd_value there = { .numbered = true, .roster = 7, .store = ID }, next = there;

	assert_int_equal(ps_etcd_judge(&there, &next, false), PS_ETCD_NEWER);
	next.roster = 6;
	assert_int_equal(ps_etcd_judge(&there, &next, true), PS_ETCD_NEWER);
	next.roster = 8;
	assert_int_equal(ps_etcd_judge(&there, &next, false), PS_ETCD_PUT);
	next.store[0] = 'f';
	assert_int_equal(ps_etcd_judge(&there, &next, false), PS_ETCD_OTHER);
	next.roster = 1;
	assert_int_equal(ps_etcd_judge(&there, &next, true), PS_ETCD_PUT);
	there.numbered = false;
	assert_int_equal(ps_etcd_judge(&there, &next, false), PS_ETCD_PUT);
}

/* etcdctl writes lines of its own log before the one that says why. */
TEST(the_line_that_says_why_is_told)
{
	char folder[] = "/tmp/perseas-etcd-XXXXXX", program[64];
	struct ps_etcd_value value;
	struct ps_error error;
	FILE *file;

	assert_non_null(mkdtemp(folder));
	snprintf(program, sizeof(program), "%s/etcdctl", folder);
	file = fopen(program, "w");
	assert_non_null(file);
	fputs("#!/bin/sh\necho '{\"level\":\"warn\"}' >&2\necho 'Error: no leader' >&2\nexit 1\n",
	      file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(program, 0755), 0);
	assert_int_equal(setenv("PATH", folder, 1), 0);
	/* However busy this machine is. */
	assert_int_equal(setenv(PS_ETCD_TIMEOUT_VARIABLE, "600", 1), 0);
	assert_int_equal(ps_etcd_get(&bank, &value, &error), PERSEAS_EUNREACHABLE);
	assert_non_null(strstr(error.text, "asked by etcdctl: no leader"));
	unlink(program);
	rmdir(folder);
}
