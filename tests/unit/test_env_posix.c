/*
 * test_env_posix.c - clocks, sleeping and waking, the keeper's thread, the variables of the
 * environment: beyond the contract that test_contract_env.c has them keep.
 */
#include "../../client/core/env.h"
#include "../support/unit.h"

#include <sys/resource.h>

#define FAR 20000000000ULL /* ns: longer than anything here takes */

static int setup(void **state)
{
	*state = ps_env_posix(NULL, NULL);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	struct ps_env *env = *state;

	env->ops->free(env);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

/* Two looks at each clock. */
TEST(clocks_are_those_of_the_host, struct ps_env *env)
{
	uint64_t before = env->ops->now(env);
	uint64_t wall = env->ops->clock(env);
	uint64_t seconds = (uint64_t)time(NULL);

	assert_true(env->ops->now(env) >= before);
	assert_true(wall / 1000000000 + 2 >= seconds && wall / 1000000000 <= seconds);
}

/* An env of a process that has this variable. The caller frees it. */
static struct ps_env *env_with(const char *name, const char *value)
{
	struct ps_env *env;

	assert_int_equal(setenv(name, value, 1), 0);
	env = ps_env_posix(NULL, NULL);
	unsetenv(name);
	assert_non_null(env);
	return env;
}

/* Sets the variable as perseas run does for COMMAND. */
TEST(a_process_reads_what_it_inherited, struct ps_env *env)
{
	static const uint8_t mark[PS_OWNER_MARK] = { 0x00, 0x11, 0xaa, 0xbb };

	assert_null(env->told_by_run);
	assert_false(env->has_owner_mark);
	env = env_with(PS_INHERITED_VARIABLE, "mark 0011aabb\nlist @bank\n");
	assert_true(env->has_owner_mark);
	assert_memory_equal(env->owner_mark, mark, sizeof(mark));
	assert_string_equal(env->told_by_run->list, "@bank");
	env->ops->free(env);
	env = env_with(PS_INHERITED_VARIABLE, "mark 0011aabbcc\n");
	assert_false(env->has_owner_mark);
	env->ops->free(env);
}

/* Someone is woken before it sleeps: it must not sleep at all, and only once not. */
TEST(a_wake_before_the_pause_is_not_lost, struct ps_env *env)
{
	uint64_t begun = env->ops->now(env);

	env->ops->wake(env, PS_KEEPER);
	env->ops->wake(env, PS_KEEPER);
	env->ops->pause(env, PS_KEEPER, NULL, 0, begun + FAR);
	assert_true(env->ops->now(env) < begun + FAR);
	begun = env->ops->now(env);
	env->ops->pause(env, PS_KEEPER, NULL, 0, begun + 10000000);
	assert_true(env->ops->now(env) >= begun + 10000000);
}

/* The other sleeper is woken, and time is up. */
TEST(a_pause_lasts_until_its_time, struct ps_env *env)
{
	uint64_t until = env->ops->now(env) + 10000000;

	env->ops->wake(env, PS_KEEPER);
	env->ops->pause(env, PS_COMMITTER, NULL, 0, until);
	assert_true(env->ops->now(env) >= until);
	/* A time that has passed already. */
	env->ops->pause(env, PS_COMMITTER, NULL, 0, 0);
}

/* A mirror's answer arrives while a committer sleeps. */
TEST(a_pause_ends_when_a_descriptor_is_ready, struct ps_env *env)
{
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	uint64_t begun = env->ops->now(env);
	int first[2], second[2];

	assert_int_equal(pipe(first), 0);
	assert_int_equal(pipe(second), 0);
	fds[0].fd = first[0];
	fds[1].fd = second[0];
	assert_int_equal(write(second[1], "x", 1), 1);
	env->ops->pause(env, PS_COMMITTER, fds, 2, begun + FAR);
	assert_true(env->ops->now(env) < begun + FAR);
	assert_int_equal(fds[0].revents, 0);
	assert_int_equal(fds[1].revents, POLLIN);
	close(first[0]);
	close(first[1]);
	close(second[0]);
	close(second[1]);
}

struct beside {
	struct ps_env *env;
	atomic_int turn;
	sigset_t blocked;
	uint64_t until;
};

/* Sleeps, and gives the turn back, for as often as it is woken. */
static void sleep_in_turns(void *arg)
{
	struct beside *b = arg;
	struct ps_env *env = b->env;

	pthread_sigmask(SIG_SETMASK, NULL, &b->blocked);
	while (atomic_load(&b->turn) >= 0 && env->ops->now(env) < b->until) {
		if (atomic_load(&b->turn) == 1) {
			atomic_store(&b->turn, 0);
			env->ops->wake(env, PS_COMMITTER);
		}
		env->ops->pause(env, PS_KEEPER, NULL, 0, b->until);
	}
}

/* Two threads wake each other in turn; one wake that is lost stops them until the end. */
TEST(no_wake_is_lost_between_threads, struct ps_env *env)
{
	struct beside b = { .env = env, .until = env->ops->now(env) + FAR };
	uint64_t begun;
	int i, turn = 1;

	assert_int_equal(env->ops->spawn(env, PS_KEEPER, sleep_in_turns, &b), 0);
	for (i = 0; i < 2000 && env->ops->now(env) < b.until; i++) {
		atomic_store(&b.turn, 1);
		env->ops->wake(env, PS_KEEPER);
		while ((turn = atomic_load(&b.turn)) == 1 && env->ops->now(env) < b.until)
			env->ops->pause(env, PS_COMMITTER, NULL, 0, b.until);
	}
	atomic_store(&b.turn, -1);
	env->ops->wake(env, PS_KEEPER);
	env->ops->join(env, PS_KEEPER);
	assert_int_equal(i, 2000);
	assert_int_equal(turn, 0);
	assert_true(env->ops->now(env) < b.until);
	/* A wake is used up: after at most one more the thread sleeps again. */
	env->ops->pause(env, PS_COMMITTER, NULL, 0, env->ops->now(env));
	begun = env->ops->now(env);
	env->ops->pause(env, PS_COMMITTER, NULL, 0, begun + 10000000);
	assert_true(env->ops->now(env) >= begun + 10000000);
	/* The application's signals are not taken by that thread. */
	assert_true(sigismember(&b.blocked, SIGTERM) && sigismember(&b.blocked, SIGALRM));
}

static void sleep_as_the_keeper(void *arg)
{
	struct beside *b = arg;

	b->env->ops->pause(b->env, PS_KEEPER, NULL, 0, b->until);
}

/* Two threads that sleep as one would take each other's wakes. */
TEST(two_that_sleep_as_one_are_a_mistake_of_ours, struct ps_env *env)
{
	struct beside b = { .env = env, .until = env->ops->now(env) + FAR / 4 };
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		const struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		if (env->ops->spawn(env, PS_KEEPER, sleep_as_the_keeper, &b))
			_exit(1);
		while (env->ops->now(env) < b.until)
			env->ops->pause(env, PS_KEEPER, NULL, 0, env->ops->now(env) + 1000000);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

/* A committer waits for progress that does not come. */
TEST(a_wait_ends_at_its_time, struct ps_env *env)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_condattr_t attributes;
	pthread_cond_t cond;
	uint64_t until;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&cond, &attributes);
	pthread_mutex_lock(&lock);
	until = env->ops->now(env) + 10000000;
	while (env->ops->now(env) < until)
		env->ops->wait(env, &cond, &lock, until);
	pthread_mutex_unlock(&lock);
	env->ops->broadcast(env, &cond);
	pthread_cond_destroy(&cond);
	pthread_condattr_destroy(&attributes);
}

/* Checks which fabrics are tried for the address, and in which order. */
static void assert_fabrics(struct ps_env *env, const char *text, uint32_t rdma_port,
                           const char *first, const char *second)
{
	Perseas__Grant grant = PERSEAS__GRANT__INIT;
	const struct ps_fabric *fabric;
	struct ps_address address;

	grant.rdma_port = rdma_port;
	grant.descriptors = strcmp(first, "shm") == 0;
	assert_int_equal(ps_address_parse(text, &address, NULL), 0);
	fabric = env->ops->fabric(env, &address, &grant, 0);
	assert_non_null(fabric);
	assert_string_equal(fabric->name, first);
	fabric = env->ops->fabric(env, &address, &grant, 1);
	assert_string_equal(fabric ? fabric->name : "", second);
	assert_null(env->ops->fabric(env, &address, &grant, 2));
}

/* Which data paths go with which address, in a process that has no RDMA. */
TEST(the_fabric_follows_from_the_address, struct ps_env *env)
{
	env->verbs = NULL;
	assert_fabrics(env, "host:1", 0, "tcp", "");
	assert_fabrics(env, "host:1", 7171, "tcp", "");
	assert_fabrics(env, "tcp://host:1", 7171, "tcp", "");
	assert_fabrics(env, "rdma://host:1", 7171, "rdma", "");
	assert_fabrics(env, "unix:///x", 0, "shm", "");
	assert_fabrics(env, "unix:///x", 7171, "tcp", ""); /* without descriptors */
}

/* In a build with RDMA it comes first, where the mirror offers it or where it is asked for. */
TEST(rdma_is_tried_before_tcp, struct ps_env *env)
{
	if (!env->verbs)
		return; /* built without */
	assert_fabrics(env, "host:1", 0, "tcp", "");
	assert_fabrics(env, "host:1", 7171, "rdma", "tcp");
	assert_fabrics(env, "tcp://host:1", 7171, "tcp", "");
	assert_fabrics(env, "rdma://host:1", 0, "rdma", "");
	assert_fabrics(env, "unix:///x", 0, "shm", "");
}

/* rdma:// in a process that has no RDMA, by its build or by the environment. */
TEST(without_rdma_its_address_is_refused, struct ps_env *env)
{
	Perseas__Grant grant = PERSEAS__GRANT__INIT;
	struct ps_error error = { 0 };
	struct ps_address address;

	env->verbs = NULL;
	assert_int_equal(ps_address_parse("rdma://host:1", &address, NULL), 0);
	assert_null(env->ops->fabric(env, &address, &grant, 0)
	                    ->attach(env, &address, &grant, NULL, 1, 0, &error));
	assert_int_equal(error.code, PERSEAS_ERDMA);
	assert_non_null(strstr(error.text, "rdma://host:1: "));
	assert_non_null(strstr(error.text, "tcp://host:1"));
	/* And before anything is asked for, unless the address leaves another way. */
	error = (struct ps_error){ 0 };
	assert_int_equal(env->ops->has_route(env, &address, &error), PERSEAS_ERDMA);
	assert_non_null(strstr(error.text, "tcp://host:1"));
	assert_int_equal(ps_address_parse("host:1", &address, NULL), 0);
	assert_int_equal(env->ops->has_route(env, &address, &error), 0);
}

/* The variable by which a user switches RDMA off. */
TEST_WITH(the_environment_switches_rdma_off, NULL, NULL)
{
	struct ps_env *env = env_with("PERSEAS_RDMA", "off");

	assert_null(env->verbs);
	env->ops->free(env);
}
