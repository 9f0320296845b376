/*
 * test_cancel.c - threads with a cancellation pending: what sleeps or makes system calls on the
 * path of a commit returns, and the thread ends at its own next cancellation point.
 */
#include "../../client/core/cancel.h"
#include "../../client/core/env.h"
#include "../../client/core/flag_fd.h"
#include "../support/unit.h"

static struct ps_env *env;
static atomic_bool returned;

/* Ends at the first cancellation point of fn, or at its own behind it. */
static void *run(void *arg)
{
	pthread_cancel(pthread_self());
	((void (*)(void))(uintptr_t)arg)();
	atomic_store(&returned, true);
	pthread_testcancel();
	return NULL;
}

/* Returns true if fn returned, and the thread was cancelled after it. */
static bool returns_then_cancels(void (*fn)(void))
{
	const struct perseas_options options = PERSEAS_OPTIONS_INIT;
	struct ps_error error = { 0 };
	pthread_t thread;
	void *result;

	env = ps_env_posix(&options, &error);
	assert_non_null(env);
	atomic_store(&returned, false);
	assert_int_equal(pthread_create(&thread, NULL, run, (void *)(uintptr_t)fn), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	env->ops->free(env);
	return atomic_load(&returned);
}

static void wait_for_time(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&lock);
	env->ops->wait(env, &cond, &lock, 1);
	pthread_mutex_unlock(&lock);
}

static void pause_for_time(void)
{
	env->ops->pause(env, PS_UNWOKEN, NULL, 0, 1);
	env->ops->pause(env, PS_COMMITTER, NULL, 0, 1);
}

static void raise_and_lower_flag(void)
{
	struct ps_error error = { 0 };
	const int flag = ps_flag_fd_new(&error);

	ps_flag_fd_raise(flag);
	ps_flag_fd_lower(flag);
	{
		PS_UNCANCELLED;
		close(flag);
	}
}

TEST(a_cancelled_thread_returns_from_a_wait)
{
	assert_true(returns_then_cancels(wait_for_time));
}

TEST(a_cancelled_thread_returns_from_a_pause)
{
	assert_true(returns_then_cancels(pause_for_time));
}

TEST(a_cancelled_thread_returns_from_a_flag)
{
	assert_true(returns_then_cancels(raise_and_lower_flag));
}
