/*
 * test_pager_begin.c - a pager of which some part cannot begin (pager_uffd.c): the call returns
 * with the reason, no lane runs, and nothing is left open. The call must not wait for a thread that
 * nobody ends.
 */
#include "../../client/core/demand.h"
#include "../../client/core/env.h"
#include "../support/unit.h"

#include <dirent.h>
#include <dlfcn.h>

enum { FAULT_TUNNEL, BULK_TUNNEL }; /* pairs of sockets, in order */
enum { FAULT_LANE, FAULT_TUNNELLER, BULK_LANE, BULK_TUNNELLER, HIRER }; /* threads, in order */

static atomic_int pairs_left, threads_left; /* calls that succeed before one fails; -1: all do */
static atomic_uint lanes_run;

int socketpair(int domain, int type, int protocol, int ends[2])
{
	int (*real)(int domain, int type, int protocol, int ends[2]);

	*(void **)&real = dlsym(RTLD_NEXT, "socketpair");
	if (atomic_fetch_sub(&pairs_left, 1))
		return real(domain, type, protocol, ends);
	errno = EMFILE;
	return -1;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg), void *arg)
{
	int (*real)(pthread_t * thread, const pthread_attr_t *attr, void *(*fn)(void *arg),
	            void *arg);

	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return atomic_fetch_sub(&threads_left, 1) ? real(thread, attr, fn, arg) : EAGAIN;
}

struct unit_fixture unit_group = { unit_limit_time, NULL };

static void count_lane(void *arg)
{
	(void)arg;
	atomic_fetch_add(&lanes_run, 1);
}

static unsigned count_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* Begins a pager whose connections are over TLS, and ends it if it began. Returns the number of
 * lanes that ran. */
static unsigned begin(struct ps_error *error)
{
	static void (*const lanes[PS_LANES])(void *arg) = { count_lane, count_lane };
	struct ps_env *env = ps_env_posix(NULL, NULL);
	const unsigned before = count_open();
	struct ps_pager *pager;

	assert_non_null(env);
	/* Only a connection would look into it, and none is made. */
	env->tls = (struct ps_tls *)env;
	*error = (struct ps_error){ 0 };
	atomic_store(&lanes_run, 0);
	pager = ps_pager_uffd.begin(env, lanes, NULL, error);
	if (pager)
		ps_pager_uffd.end(pager);
	assert_int_equal(pager == NULL, error->code != 0);
	assert_int_equal(count_open(), before);
	env->tls = NULL;
	env->ops->free(env);
	return atomic_load(&lanes_run);
}

static void assert_begins_not(void)
{
	struct ps_error error;

	assert_int_equal(begin(&error), 0);
	assert_int_equal(error.code, PERSEAS_ESYSTEM);
	assert_non_null(strstr(error.text, "threads that fetch memory"));
}

static void assert_begins(void)
{
	struct ps_error error;
	const unsigned ran = begin(&error);

	if (error.code)
		fail_msg("%s", error.text);
	assert_int_equal(ran, PS_LANES);
}

TEST(test_it_begins)
{
	atomic_store(&pairs_left, -1);
	atomic_store(&threads_left, -1);
	assert_begins();
}

TEST(test_a_lanes_tunnel_does_not_open)
{
	atomic_store(&threads_left, -1);
	for (int which = FAULT_TUNNEL; which <= BULK_TUNNEL; which++) {
		atomic_store(&pairs_left, which);
		assert_begins_not();
	}
}

/* Without the thread that hires others, no mirror is read over its link, and all else works. */
TEST(test_a_thread_does_not_start)
{
	atomic_store(&pairs_left, -1);
	for (int which = FAULT_LANE; which < HIRER; which++) {
		atomic_store(&threads_left, which);
		assert_begins_not();
	}
	atomic_store(&threads_left, HIRER);
	assert_begins();
}
