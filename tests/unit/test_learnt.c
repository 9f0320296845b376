/*
 * test_learnt.c - an open by a process to which `perseas run` named mirrors of its store that are
 * not on its list (inherited.h): the open uses them as if a mirror of the list had named them.
 */
#include "follow_rig.h"

#include <inttypes.h>

#define LIST "sim://0,sim://1"

static struct ps_inherited inherited;

/* `learnt` is a line of the block, about LIST. */
static struct ps_env *env_with(struct owner *o, const char *learnt)
{
	struct ps_env *env = direct_env(o->d);
	char text[256];

	snprintf(text, sizeof(text), "store " STORE "\nlist " LIST "\nlearnt %s\n", learnt);
	ps_inherited_read(&inherited, text);
	env->told_by_run = &inherited;
	return env;
}

/* Opens like perseas_open with LIST, having learned `learnt`. */
static int open_learnt(struct owner *o, const char *learnt, uint32_t flags)
{
	struct perseas_options options = o->options;

	owner_close(o);
	options.flags |= flags;
	memset(&o->error, 0, sizeof(o->error));
	return ps_open(env_with(o, learnt), STORE, LIST, &options, &o->p, &o->error);
}

static void open_learnt_well(struct owner *o, const char *learnt, uint32_t flags)
{
	if (open_learnt(o, learnt, flags))
		fail_msg("%s", o->error.text);
}

/* The store has left the list, mirror by mirror. */
static struct owner *begin_left(void)
{
	struct owner *o = begin(2, 2);

	replace_member(o, "sim://0", "sim://2");
	replace_member(o, "sim://1", "sim://3");
	owner_die(o);
	owner_lose(o, 0);
	owner_lose(o, 1);
	return o;
}

/* One of the mirrors is enough: its roster names the other. */
TEST(a_store_that_left_its_list_is_opened_where_it_is)
{
	struct owner *o = begin_left();

	open_learnt_well(o, "0:1 sim://3", PERSEAS_CREATE);
	owner_map(o);
	assert_int_equal(o->bytes[0], 2);
	assert_int_equal(owner_stat(o).live, 2);
	owner_free(o);
}

/* A standby within that process looks there, too. */
TEST(a_standby_follows_it_there)
{
	struct owner *o = begin_left();
	struct ps_env *looks = env_with(o, "0:1 sim://2,sim://3");

	follow_list(o, LIST, looks);
	assert_int_equal(follow.status_peers.listed_count, 2);
	assert_int_equal(look(), PS_OWNER_NONE);
	assert_int_equal(follow.status_peers.count, 4);
	assert_int_equal(follow.watch_peers.count, 4);
	assert_false(ps_follow_is_unlisted_member(&follow, 1));
	assert_true(ps_follow_is_unlisted_member(&follow, 2));
	follow_end();
	owner_free(o);
}

/* The mirrors that it was told of are silent at first, and the list shows an older roster. */
TEST(a_standby_does_not_forget_them_for_an_older_roster)
{
	struct owner *o = begin(2, 2);
	struct ps_env *looks;
	char learnt[64];

	replace_member(o, "sim://0", "sim://2");
	replace_member(o, "sim://1", "sim://3");
	replace_member(o, "sim://2", "sim://4");
	snprintf(learnt, sizeof(learnt), "%" PRIu64 ":%" PRIu64 " sim://3,sim://4",
	         o->p->roster->epoch, o->p->roster->version);
	looks = env_with(o, learnt);
	owner_die(o);
	owner_lose(o, 1);
	owner_lose(o, 2);
	direct_crash(o->d, 3);
	direct_crash(o->d, 4);
	follow_list(o, LIST, looks);
	assert_int_equal(look(), PS_OWNER_UNKNOWN);
	direct_start(o->d, 3);
	direct_start(o->d, 4);
	o->d->now += LONG_NS;
	assert_int_equal(look(), PS_OWNER_NONE);
	follow_end();
	owner_free(o);
}

/* The store is gone there, too: a new one is at the mirrors of the list alone. */
TEST(no_store_is_made_there)
{
	struct owner *o = owner_new(MIRRORS);

	o->options.acks = 3;
	assert_int_equal(open_learnt(o, "0:1 sim://2,sim://3", PERSEAS_CREATE), PERSEAS_EINVAL);
	assert_error_says(o, "2 mirrors cannot give 3");
	o->options.acks = 0;
	open_learnt_well(o, "0:1 sim://2,sim://3", PERSEAS_CREATE);
	assert_int_equal(o->p->roster->n_members, 2);
	assert_int_equal(o->p->roster->acks, 2);
	assert_int_equal(owner_stat(o).live, 2);
	owner_free(o);
}

/* The store may exist while that mirror does not answer. */
TEST(none_is_made_while_it_may_be_there)
{
	struct owner *o = begin_left();

	direct_crash(o->d, 2);
	direct_crash(o->d, 3);
	assert_int_equal(open_learnt(o, "0:1 sim://2,sim://3", PERSEAS_CREATE),
	                 PERSEAS_EUNREACHABLE);
	direct_start(o->d, 3);
	assert_int_equal(ps_create(env_with(o, "0:1 sim://3"), STORE, LIST, &o->options, &o->error),
	                 PERSEAS_EEXIST);
	owner_free(o);
}

static unsigned count_learnt(const char *text, const char *list)
{
	struct ps_roster_places places;

	ps_inherited_read(&inherited, text);
	ps_inherited_unlisted_mirrors(&inherited, STORE, list, &places);
	assert_int_equal(places.version, places.count > 0);
	return places.count;
}

#define ABOUT(store) "store " store "\nlist " LIST "\n"

/* Text that is malformed, or about another store or list, is ignored. */
TEST(it_is_of_one_store_and_list)
{
	static const char *const wrong[] = { "",           "0:1",          " ",        "m1:1",
		                             "0 m1:1",     "0:x m1:1",     "0:1,m1:1", "0:1 m1:1,",
		                             "0:1 m1:1 ,", "0:1  m1:1,,m2" };
	struct ps_roster_places places;
	char text[128];

	assert_int_equal(count_learnt(ABOUT(STORE) "learnt 0:1 m1:1,m2:2\n", LIST), 2);
	assert_int_equal(count_learnt("learnt 0:1 m1:1\n" ABOUT(STORE), LIST), 1);
	assert_int_equal(count_learnt(ABOUT(STORE) "learnt 0:1 m1:1\n", "sim://0"), 0);
	assert_int_equal(count_learnt("learnt 0:1 m1:1\n", LIST), 0);
	assert_int_equal(count_learnt(ABOUT("bank2") "learnt 0:1 m1:1\n", LIST), 0);
	assert_int_equal(count_learnt(ABOUT("ban") "learnt 0:1 m1:1\n", LIST), 0);
	assert_int_equal(count_learnt(ABOUT(STORE), LIST), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), ABOUT(STORE) "learnt %s\n", wrong[i]);
		assert_int_equal(count_learnt(text, LIST), 0);
	}
	ps_inherited_unlisted_mirrors(NULL, STORE, LIST, &places);
	assert_int_equal(places.count, 0);
}

/* The list has a second address of a mirror that was silent before: that is no mistake. */
TEST(a_mirror_that_is_named_otherwise_is_no_other)
{
	struct owner *o = begin(3, 2);

	owner_die(o);
	o->d->leads[1] = 2;
	open_learnt_well(o, "0:1 sim://2", 0);
	assert_int_equal(owner_stat(o).live, 2);
	owner_free(o);
}

/* The list may have come to name them since. */
TEST(a_mirror_that_is_named_is_no_other)
{
	struct owner *o = begin(2, 2);

	owner_die(o);
	open_learnt_well(o, "0:1 sim://1,sim://0", 0);
	assert_int_equal(o->p->mirror_count, 2);
	assert_false(o->p->mirrors[1].is_from_roster);
	owner_free(o);
}
