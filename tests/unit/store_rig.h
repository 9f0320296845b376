/*
 * store_rig.h - a mirror without stores, for the tests of the store logic; *state is it.
 */
#ifndef PERSEAS_TESTS_STORE_RIG_H
#define PERSEAS_TESTS_STORE_RIG_H

#include "../support/mirror.h"
#include "../support/unit.h"

static inline int setup(void **state)
{
	static struct mirror mirror;

	mirror_open(&mirror);
	*state = &mirror;
	return 0;
}

static inline int teardown(void **state)
{
	mirror_close(*state);
	return 0;
}

#endif
