/*
 * follow_rig.h - a standby that follows the store of roster_rig.h. A test has one at a time.
 */
#ifndef PERSEAS_TESTS_FOLLOW_RIG_H
#define PERSEAS_TESTS_FOLLOW_RIG_H

#include "roster_rig.h"

#include "../../client/standby/follow.h"

#define LONG_NS 60000000000ULL /* after which a standby looks at everything again */

static struct ps_follow follow;
static struct ps_standing_now now; /* what the last look found */

/* Follows the store by this list. The standby owns `looks`, the env of its looks. */
static inline void follow_list(struct owner *o, const char *list, struct ps_env *looks)
{
	assert_int_equal(ps_follow_open(&follow, STORE, list, NULL, looks, direct_env(o->d), 1000,
	                                &o->error),
	                 0);
}

/* Ends the standby. Does nothing if there is none. */
static inline void follow_end(void)
{
	struct ps_env *envs[] = { follow.looks.env, follow.watches.env };

	if (!follow.store)
		return;
	ps_follow_close(&follow);
	for (int i = 0; i < 2; i++)
		envs[i]->ops->free(envs[i]);
	memset(&follow, 0, sizeof(follow));
}

/* Looks at the store. Returns who owns it. */
static inline enum ps_ownership look(void)
{
	ps_follow_look(&follow, &now);
	return now.ownership;
}

#endif
