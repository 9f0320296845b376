/*
 * test_follow_name.c - a standby whose list of mirrors has a name: it is looked up again while no
 * mirror tells of the store, and a name server that is silent holds nothing up.
 */
#include "follow_rig.h"

#include "../../server/store/store_private.h"

#include <sys/eventfd.h>

static int setup(void **state)
{
	*state = begin(3, 2);
	return 0;
}

static int teardown(void **state)
{
	follow_end();
	return owner_teardown(state);
}

struct unit_fixture unit_fixture = { setup, teardown };

/* A name that stands for one mirror, or cannot be looked up until somebody has it stand for one. */
static struct {
	struct ps_env_ops ops;
	const char *list;
	bool silent;
	unsigned asked;
	int fd; /* of the lookup in flight; -1: none is */
} named;

static int named_begin(struct ps_env *env, const char *text, struct ps_list_lookup **lookup,
                       struct ps_error *error)
{
	(void)env;
	(void)error;
	assert_string_equal(text, "@bank");
	assert_int_equal(named.fd, -1);
	named.asked++;
	named.fd = eventfd(!named.silent, EFD_CLOEXEC);
	assert_true(named.fd >= 0);
	*lookup = (void *)&named;
	return 0;
}

/* Fails: a thread that follows a store never waits for a name. */
static bool named_wait(struct ps_list_lookup *lookup, uint64_t until_ns, char list[PS_LIST_TEXT],
                       struct ps_error *error)
{
	assert_ptr_equal(lookup, &named);
	assert_int_equal(until_ns, 0);
	if (named.silent)
		return false;
	error->code = 0;
	if (named.list)
		strcpy(list, named.list);
	else
		ps_error_set(error, PERSEAS_EUNREACHABLE, "no server answers");
	return true;
}

static int named_fd(const struct ps_list_lookup *lookup)
{
	assert_ptr_equal(lookup, &named);
	return named.fd;
}

static void named_drop(struct ps_list_lookup *lookup)
{
	assert_ptr_equal(lookup, &named);
	close(named.fd);
	named.fd = -1;
}

/* The name service says `list` (NULL: nothing), at once or when the test says so. */
static void name_service(const char *list, bool silent)
{
	named.ops = *follow.status_peers.env->ops;
	named.ops.list_begin = named_begin;
	named.ops.list_await = named_wait;
	named.ops.list_fd = named_fd;
	named.ops.list_drop = named_drop;
	named.list = list;
	named.silent = silent;
	named.asked = 0;
	named.fd = -1;
	follow.status_peers.env->ops = &named.ops;
	follow.list = "@bank";
	follow.name_looked_up_ns = ps_follow_now_ns(&follow);
}

/* All mirrors of a store have new addresses, and only the name of the list knows. It is looked up
 * again, now and then, while no mirror tells of the store, and not afterwards: then its roster says
 * where it is. */
TEST(a_name_is_looked_up_again_while_no_mirror_tells_of_the_store, struct owner *o)
{
	follow_begin(o, 0, 1);
	follow.status_peers.listed_count = follow.watch_peers.listed_count = 1;
	direct_crash(o->d, 4);
	name_service(NULL, false);
	look();
	assert_int_equal(named.asked, 0);
	assert_int_equal(now.ownership, PS_OWNER_UNKNOWN);
	o->d->now += LONG_NS;
	look();
	assert_int_equal(named.asked, 1);
	assert_int_equal(now.ownership, PS_OWNER_UNKNOWN);
	named.list = "sim://1";
	look();
	assert_int_equal(named.asked, 1);
	o->d->now += LONG_NS;
	look();
	assert_int_equal(named.asked, 2);
	assert_int_equal(now.ownership, PS_OWNER_LIVES);
	expect_last(4, "sim://2");
	named.list = "sim://7";
	o->d->now += LONG_NS;
	look();
	assert_int_equal(named.asked, 2);
	expect_last(4, "sim://2");
}

/* The mirrors are asked all the same, at most one lookup is in flight, and its end makes the next
 * look. */
TEST(a_silent_name_server_holds_nothing_up, struct owner *o)
{
	struct pollfd fds[PS_FOLLOW_FDS];
	uint64_t until_ns = PS_NEVER;
	unsigned count;

	follow_begin(o, 0, 1);
	follow.status_peers.listed_count = follow.watch_peers.listed_count = 1;
	direct_crash(o->d, 4);
	name_service("sim://1", true);
	for (unsigned i = 0; i < 3; i++) {
		o->d->now += LONG_NS;
		look();
		assert_int_equal(named.asked, 1);
		assert_int_equal(now.ownership, PS_OWNER_UNKNOWN);
	}
	count = ps_follow_fill_pollfds(&follow, fds, &until_ns);
	assert_int_equal(fds[0].fd, named.fd);
	assert_int_equal(poll(fds, count, 0), 0);
	named.silent = false;
	assert_int_equal(eventfd_write(named.fd, 1), 0);
	assert_int_equal(poll(fds, count, 0), 1);
	assert_true(ps_follow_is_look_due(&follow));
	look();
	assert_int_equal(now.ownership, PS_OWNER_LIVES);
	assert_int_equal(named.fd, -1);
}

/* All mirrors lost the store, or have only a creation that was not finished. While nobody knows
 * which mirrors the name stands for, the store is neither gone nor to be created. */
static void expect_no_verdict(struct owner *o)
{
	o->d->now += LONG_NS;
	look();
	assert_false(now.has_no_image);
	assert_false(now.is_uncreated);
}

static void lose_all(struct owner *o)
{
	follow_begin(o, 3, 0);
	look();
	owner_die(o);
	for (unsigned i = 0; i < 3; i++)
		owner_lose(o, i);
}

TEST(a_store_is_not_gone_while_its_list_is_looked_up, struct owner *o)
{
	lose_all(o);
	name_service("sim://1", true);
	expect_no_verdict(o);
	expect_no_verdict(o);
	named.silent = false;
	look();
	assert_true(now.has_no_image);
	assert_true(now.is_uncreated);
}

/* Nor is it after a lookup that failed, until another one succeeds. */
TEST(a_store_is_not_gone_while_its_list_is_not_found, struct owner *o)
{
	lose_all(o);
	name_service(NULL, false);
	expect_no_verdict(o);
	look();
	assert_int_equal(named.asked, 1);
	assert_false(now.has_no_image);
	expect_no_verdict(o);
	assert_int_equal(named.asked, 2);
	named.list = "sim://1";
	o->d->now += LONG_NS;
	look();
	assert_int_equal(named.asked, 3);
	assert_true(now.has_no_image);
	assert_true(now.is_uncreated);
}

/* A mirror has an unfinished creation of the store. Such an image does not tell where the store is,
 * so the lookup goes on. */
TEST(a_creation_that_was_not_finished_ends_no_lookup, struct owner *o)
{
	Perseas__Header *header;

	follow_begin(o, 1, 0);
	owner_die(o);
	owner_lose(o, 1);
	owner_lose(o, 2);
	header = store_find(o->d->mirrors[0].stores, STORE)->header;
	header->state = PERSEAS__STATE__STATE_CREATING;
	name_service("sim://4", true);
	expect_no_verdict(o);
	assert_int_equal(named.asked, 1);
	named.silent = false;
	look();
	assert_true(now.is_uncreated);
	expect_last(4, "sim://4");
}

/* A mirror tells of the store before the name server says anything; or nobody looks any more. */
TEST(a_lookup_that_is_not_needed_is_dropped, struct owner *o)
{
	direct_crash(o->d, 4);
	for (unsigned i = 0; i < 2; i++) {
		follow_begin(o, 0, 1);
		follow.status_peers.listed_count = follow.watch_peers.listed_count = 1;
		name_service("sim://1", true);
		o->d->now += LONG_NS;
		look();
		assert_true(named.fd >= 0);
		if (i) {
			peers_add(&follow.status_peers, "sim://0");
			peers_add(&follow.watch_peers, "sim://0");
			look();
			assert_int_equal(now.ownership, PS_OWNER_LIVES);
			assert_int_equal(named.fd, -1);
		}
		follow_end();
		assert_int_equal(named.fd, -1);
	}
}
