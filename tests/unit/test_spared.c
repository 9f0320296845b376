/*
 * test_spared.c - an open by a process that `perseas run` told which mirrors did not answer it:
 * the open does not wait for these again, unless it needs them.
 */
#include "owner.h"

struct unit_fixture unit_fixture = { owner_setup_three, owner_teardown };

#define SPARED "was not asked again"

static struct ps_inherited inherited;

/* Opens as a process that inherited this list of silent mirrors. */
static int open_sparing(struct owner *o, const char *silent, uint32_t flags)
{
	struct perseas_options options = o->options;
	struct ps_env *env;

	owner_close(o);
	env = direct_env(o->d);
	snprintf(inherited.mirrors_silent_to_run, sizeof(inherited.mirrors_silent_to_run), "%s",
	         silent);
	inherited.silent_at_ms = o->d->now / 1000000;
	env->told_by_run = &inherited;
	options.flags |= flags;
	return ps_open(env, STORE, direct_list(o->d), &options, &o->p, &o->error);
}

static bool spared_any(struct owner *o)
{
	return strstr(perseas_report(o->p), SPARED) != NULL;
}

static void assert_all_asked(struct owner *o)
{
	assert_false(spared_any(o));
	assert_int_equal(owner_stat(o).live, 3);
}

/* The keeper takes it up later, as one that did not answer. */
TEST(test_it_opens_without_a_mirror_that_was_silent, struct owner *o)
{
	assert_int_equal(open_sparing(o, "sim://1", 0), 0);
	assert_non_null(strstr(perseas_report(o->p), "sim://1 did not answer the standby, and "));
	assert_true(spared_any(o));
	assert_int_equal(owner_stat(o).live, 2);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_DOWN);
	owner_map(o);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
}

/* Two of three do not let it be opened: all are asked, and are there. */
TEST(test_those_that_it_needs_are_asked, struct owner *o)
{
	assert_int_equal(open_sparing(o, "sim://1,sim://2", 0), 0);
	assert_all_asked(o);
	assert_int_equal(open_sparing(o, "sim://0,sim://1,sim://2", 0), 0);
	assert_all_asked(o);
}

/* There is no store: it is made on all mirrors, or on none. */
TEST_WITH(test_a_store_is_made_on_all, NULL, NULL)
{
	struct owner *o = owner_new(3);

	assert_int_equal(open_sparing(o, "sim://1", 0), PERSEAS_ENOSTORE);
	assert_int_equal(open_sparing(o, "sim://1", PERSEAS_CREATE), 0);
	assert_int_equal(owner_stat(o).live, 3);
	owner_free(o);
}

/* The mirrors really are silent: the open says what is missing, as without the list. */
TEST(test_what_is_missing_is_said, struct owner *o)
{
	owner_close(o);
	direct_crash(o->d, 1);
	direct_crash(o->d, 2);
	assert_int_equal(open_sparing(o, "sim://1,sim://2", 0), PERSEAS_EQUORUM);
	assert_error_says(o, "sim://1");
	assert_error_says(o, "sim://2");
	assert_null(strstr(o->error.text, SPARED));
}

/* A takeover must ask every mirror: each one that is fenced is one less to commit on. And if an
 * operator accepts what fewer than R mirrors have, the spared one may have more. */
TEST(test_who_forces_it_asks_all, struct owner *o)
{
	assert_int_equal(open_sparing(o, "sim://1", PERSEAS_TAKEOVER), 0);
	assert_all_asked(o);
	o->options.accept_epoch = 1;
	o->options.accept_seq = 1;
	assert_int_equal(open_sparing(o, "sim://1", 0), 0);
	assert_all_asked(o);
}

/* An address is the whole of one, not a part. */
TEST(test_addresses_are_compared_whole, struct owner *o)
{
	static const char *const others[] = { "",           "sim://",   "sim://12", "xsim://1",
		                              "x,sim://1y", "sim://1 ", ",,",       "sim://3" };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(open_sparing(o, others[i], 0), 0);
		assert_all_asked(o);
	}
	assert_int_equal(open_sparing(o, "x,sim://1,y", 0), 0);
	assert_true(spared_any(o));
}

/* A silence of long ago counts for nothing, and neither does one in the future, by another host's
 * clock. */
TEST(test_silence_counts_for_a_while, struct owner *o)
{
	const uint64_t at_ms = UINT64_C(3600000), limit_ms = PS_INHERITED_SILENT_MS;

	(void)o;
	strcpy(inherited.mirrors_silent_to_run, "sim://1");
	inherited.silent_at_ms = at_ms;
	assert_true(ps_inherited_is_silent(&inherited, "sim://1", at_ms));
	assert_true(ps_inherited_is_silent(&inherited, "sim://1", at_ms + limit_ms));
	assert_false(ps_inherited_is_silent(&inherited, "sim://1", at_ms + limit_ms + 1));
	assert_false(ps_inherited_is_silent(&inherited, "sim://1", at_ms - 1));
	assert_false(ps_inherited_is_silent(&inherited, "sim://2", at_ms));
	assert_false(ps_inherited_is_silent(NULL, "sim://1", at_ms));
}
