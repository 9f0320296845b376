/*
 * barrier_env.h - an env whose barrier is membarrier(2), for tests of sections and of what is built
 * of them. It counts barriers and pauses, and fails as many barriers as a test wants.
 */
#ifndef PERSEAS_TESTS_BARRIER_ENV_H
#define PERSEAS_TESTS_BARRIER_ENV_H

#include "../../client/core/env.h"
#include "../support/unit.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned barriers; /* calls so far */
static unsigned failures; /* calls that must still fail */
static atomic_uint pauses;

static bool barrier_env_barrier(struct ps_env *env)
{
	(void)env;
	barriers++;
	if (failures) {
		failures--;
		return false;
	}
	return syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0 &&
	       syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static uint64_t barrier_env_now(struct ps_env *env)
{
	(void)env;
	return 0;
}

static void barrier_env_pause(struct ps_env *env, enum ps_sleeper who, struct pollfd *fds,
                              unsigned count, uint64_t until_ns)
{
	(void)env, (void)fds, (void)until_ns;
	assert_int_equal(who, PS_UNWOKEN);
	assert_int_equal(count, 0);
	atomic_fetch_add(&pauses, 1);
	sched_yield();
}

static const struct ps_env_ops barrier_env_ops = { .barrier = barrier_env_barrier,
	                                           .now = barrier_env_now,
	                                           .pause = barrier_env_pause };
static struct ps_env env = { .ops = &barrier_env_ops };

static inline void barrier_env_reset(void)
{
	barriers = failures = 0;
	atomic_store(&pauses, 0);
}

#endif
