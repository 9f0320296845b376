/*
 * test_named_list.c - a process that `perseas run` started opens a store by a list's name, while
 * the name server is silent, slow, or says something else than what the name stood for before.
 */
#include "follow_rig.h"

#include "../../server/store/store_private.h"

#define BEFORE "sim://0,sim://1" /* what the name stood for when `perseas run` began */
#define OTHERS "sim://2,sim://3"

/* The name server. */
static struct {
	struct ps_env_ops ops;
	struct ps_inherited inherited;
	const struct direct *d;
	const char *list; /* what the name stands for; NULL: `code` says why nothing */
	int code;
	unsigned late; /* waits that end before the name server says anything */
	unsigned in_flight;
	uint64_t longest_ns; /* of the waits */
} server;

static int server_begin(struct ps_env *env, const char *text, struct ps_list_lookup **lookup,
                        struct ps_error *error)
{
	(void)env;
	(void)error;
	assert_string_equal(text, "@bank");
	server.in_flight++;
	*lookup = (void *)&server;
	return 0;
}

static bool server_wait(struct ps_list_lookup *lookup, uint64_t until_ns, char list[PS_LIST_TEXT],
                        struct ps_error *error)
{
	const uint64_t now_ns = server.d->now;

	assert_ptr_equal(lookup, &server);
	if (until_ns > now_ns && until_ns - now_ns > server.longest_ns)
		server.longest_ns = until_ns - now_ns;
	if (server.late) {
		server.late--;
		return false;
	}
	error->code = 0;
	if (server.list)
		strcpy(list, server.list);
	else
		ps_error_set(error, server.code, "the name server's word");
	return true;
}

static int server_fd(const struct ps_list_lookup *lookup)
{
	assert_ptr_equal(lookup, &server);
	return 0;
}

static void server_drop(struct ps_list_lookup *lookup)
{
	assert_ptr_equal(lookup, &server);
	server.in_flight--;
}

static struct ps_env *named_env(struct owner *o)
{
	struct ps_env *env = direct_env(o->d);

	server.d = o->d;
	server.ops = *env->ops;
	server.ops.list_begin = server_begin;
	server.ops.list_await = server_wait;
	server.ops.list_fd = server_fd;
	server.ops.list_drop = server_drop;
	server.longest_ns = 0;
	strcpy(server.inherited.list, "@bank");
	env->ops = &server.ops;
	env->told_by_run = &server.inherited;
	return env;
}

/* perseas_open by the name, by a process whose `perseas run` knew these mirrors. The name server
 * says `list` after so many waits in vain. */
static int open_named(struct owner *o, const char *before, const char *list, unsigned late,
                      uint32_t flags)
{
	struct perseas_options options = o->options;
	int rc;

	owner_close(o);
	options.flags |= flags;
	server.list = list;
	server.code = PERSEAS_EUNREACHABLE;
	server.late = late;
	strcpy(server.inherited.list_mirrors, before);
	memset(&o->error, 0, sizeof(o->error));
	rc = ps_open(named_env(o), STORE, "@bank", &options, &o->p, &o->error);
	assert_int_equal(server.in_flight, 0);
	return rc;
}

/* A store on the first two of five daemons, without an owner. */
static int setup(void **state)
{
	struct owner *o = begin(2, 2);

	owner_die(o);
	*state = o;
	return 0;
}

struct unit_fixture unit_fixture = { setup, owner_teardown };

TEST(a_silent_name_server_is_not_waited_for, struct owner *o)
{
	assert_int_equal(open_named(o, BEFORE, NULL, UINT32_MAX, 0), 0);
	assert_true(server.longest_ns <= ps_ms(200));
	owner_map(o);
	assert_int_equal(o->bytes[0], 2);
	assert_int_equal(owner_stat(o).live, 2);
	/* Opens as if no name server could be reached. */
	assert_int_equal(open_named(o, BEFORE, NULL, 0, PERSEAS_TAKEOVER), 0);
}

TEST(a_process_that_knows_nothing_waits, struct owner *o)
{
	assert_int_equal(open_named(o, "", NULL, UINT32_MAX, 0), PERSEAS_EUNREACHABLE);
	assert_error_says(o, "@bank");
	assert_true(server.longest_ns > ps_ms(1000));
	assert_int_equal(open_named(o, "m1:0", NULL, UINT32_MAX, 0), PERSEAS_EUNREACHABLE);
	assert_int_equal(open_named(o, "", BEFORE, 0, 0), 0);
}

/* The name server's answer is the present truth. */
TEST(a_name_server_that_answers_is_believed, struct owner *o)
{
	assert_int_equal(open_named(o, BEFORE, OTHERS, 0, 0), PERSEAS_ENOSTORE);
	assert_int_equal(open_named(o, OTHERS, BEFORE, 0, 0), 0);
	assert_int_equal(o->p->mirror_count, 2);
	owner_close(o);
	server.code = PERSEAS_EINVAL;
	server.list = NULL;
	server.late = 0;
	assert_int_equal(ps_open(named_env(o), STORE, "@bank", &o->options, &o->p, &o->error),
	                 PERSEAS_EINVAL);
	assert_error_says(o, "the name server's word");
}

/* The store has moved since, and the mirrors that it left answer that they have none. */
TEST(mirrors_that_do_not_do_are_replaced_by_those_of_the_list, struct owner *o)
{
	assert_int_equal(open_named(o, OTHERS, BEFORE, 1, 0), 0);
	assert_int_equal(o->p->mirror_count, 2);
	assert_string_equal(o->p->mirrors[0].address.text, "sim://0");
	assert_false(o->p->mirrors[0].is_from_roster);
	owner_die(o);
	direct_crash(o->d, 2);
	direct_crash(o->d, 3);
	assert_int_equal(open_named(o, OTHERS, BEFORE, 1, 0), 0);
}

/* Mirrors of a name are forgotten with it; mirrors that a roster named are not. */
TEST(mirrors_of_the_list_are_not_those_that_a_roster_added, struct owner *o)
{
	ps_inherited_read(&server.inherited, "store " STORE "\nlist @bank\nlearnt 0:1 sim://4\n");
	assert_int_equal(open_named(o, OTHERS, BEFORE ",sim://2", 1, 0), 0);
	assert_int_equal(o->p->mirror_count, 4);
	assert_string_equal(o->p->mirrors[2].address.text, "sim://2");
	assert_false(o->p->mirrors[2].is_from_roster);
	assert_string_equal(o->p->mirrors[3].address.text, "sim://4");
	assert_true(o->p->mirrors[3].is_from_roster);
	memset(&server.inherited, 0, sizeof(server.inherited));
}

/* Without the name server nobody knows that the store is nowhere. Mirrors that are down are named,
 * whatever it says. */
TEST(a_store_is_not_called_missing_without_the_list, struct owner *o)
{
	assert_int_equal(open_named(o, OTHERS, NULL, UINT32_MAX, 0), PERSEAS_EUNREACHABLE);
	assert_error_says(o, "@bank");
	assert_int_equal(open_named(o, OTHERS, OTHERS, 1, 0), PERSEAS_ENOSTORE);
	direct_crash(o->d, 0);
	direct_crash(o->d, 1);
	assert_int_equal(open_named(o, BEFORE, NULL, UINT32_MAX, 0), PERSEAS_EUNREACHABLE);
	assert_error_says(o, "sim://0");
}

static bool has_store(struct owner *o, unsigned mirror)
{
	const struct stores *stores = o->d->mirrors[mirror].stores;

	return stores && store_find((struct stores *)stores, STORE);
}

/* Nor is one made where the name may not lead any more. */
TEST(a_store_is_made_where_the_list_says, struct owner *o)
{
	assert_int_equal(open_named(o, OTHERS, NULL, UINT32_MAX, PERSEAS_CREATE),
	                 PERSEAS_EUNREACHABLE);
	assert_error_says(o, "@bank");
	assert_false(has_store(o, 2) || has_store(o, 3));
	assert_int_equal(open_named(o, OTHERS, "sim://3,sim://4", 1, PERSEAS_CREATE), 0);
	assert_true(!has_store(o, 2) && has_store(o, 3) && has_store(o, 4));
	assert_int_equal(o->p->mirror_count, 2);
}

TEST(nor_is_one_created, struct owner *o)
{
	strcpy(server.inherited.list_mirrors, OTHERS);
	server.list = NULL;
	server.late = UINT32_MAX;
	assert_int_equal(ps_create(named_env(o), STORE, "@bank", &o->options, &o->error),
	                 PERSEAS_EUNREACHABLE);
	assert_false(has_store(o, 2) || has_store(o, 3));
	server.list = OTHERS;
	server.late = 1;
	assert_int_equal(ps_create(named_env(o), STORE, "@bank", &o->options, &o->error), 0);
	assert_true(has_store(o, 2) && has_store(o, 3));
	assert_int_equal(server.in_flight, 0);
}

/* A standby in such a process. */
TEST(a_standby_follows_the_mirrors_that_are_known, struct owner *o)
{
	strcpy(server.inherited.list_mirrors, BEFORE);
	server.list = NULL;
	server.late = UINT32_MAX;
	follow_list(o, "@bank", named_env(o));
	assert_int_equal(look(), PS_OWNER_NONE);
	assert_int_equal(server.in_flight, 0);
	follow_end();
	/* These mirrors have no store any more; the name server may have it elsewhere. */
	strcpy(server.inherited.list_mirrors, OTHERS);
	follow_list(o, "@bank", named_env(o));
	assert_int_equal(look(), PS_OWNER_UNKNOWN);
	assert_false(now.has_no_image);
	assert_int_equal(server.in_flight, 1);
	server.late = 0;
	server.list = BEFORE;
	assert_int_equal(look(), PS_OWNER_NONE);
	follow_end();
	assert_int_equal(server.in_flight, 0);
}
