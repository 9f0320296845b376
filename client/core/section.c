/*
 * section.c - the side that closes sections. See section.h.
 */
#include "section.h"

#include "env.h"

enum {
	PAUSE_NS = 20000, /* ns: enough for the thread inside to finish, unless it was preempted */
	TRIES = 1000,     /* attempts at a barrier that worked before */
};

void ps_section_closer_sleep_briefly(struct ps_env *env)
{
	env->ops->pause(env, PS_UNWOKEN, NULL, 0, env->ops->now(env) + PAUSE_NS);
}

void ps_section_fence(struct ps_env *env)
{
	/* Gives up after many attempts: by then every store has long left its processor. */
	for (unsigned i = 0; i < TRIES && !env->ops->barrier(env); i++)
		ps_section_closer_sleep_briefly(env);
}
