/*
 * test_cancel.c - threads with a cancellation pending: what sleeps or makes system calls on the
 * path of a commit returns, and the thread ends at its own next cancellation point.
 */
#include "../../client/core/cancel.h"
#include "../../client/core/env.h"
#include "../../client/core/flag_fd.h"
#include "../support/contract_clause.h"
#include "../support/unit.h"

static struct ps_env *env;
static struct fabric_stage *stage;
static struct ps_link *link_of_stage;
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

static void post_a_slot(void)
{
	const struct ps_chain chain = {
		NULL, 0, 0, { stage->ring, STAGE_SLOT_AT, PS_REGION_LOG, STAGE_SLOT }
	};

	stage->fabric->post(link_of_stage, &chain);
}

static void poll_a_link(void)
{
	stage->fabric->poll(link_of_stage);
}

/* No mirror listens there. */
static void open_in_vain(void)
{
	struct perseas_options options = PERSEAS_OPTIONS_INIT;
	perseas_t *p;

	options.open_timeout_ms = 1;
	perseas_open("bank", "127.0.0.1:1", &options, &p);
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

TEST(a_cancelled_thread_sends_and_receives_over_tcp)
{
	stage = fabric_stage_tcp(NULL, NULL);
	link_of_stage = attach(stage);
	assert_non_null(link_of_stage);
	assert_true(returns_then_cancels(post_a_slot));
	assert_true(returns_then_cancels(poll_a_link));
	stage->fabric->detach(link_of_stage);
	fabric_stage_tcp_end(stage);
}

TEST(a_cancelled_thread_returns_from_an_open)
{
	assert_true(returns_then_cancels(open_in_vain));
}
