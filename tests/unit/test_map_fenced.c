/*
 * test_map_fenced.c - segments are mapped and published while another owner takes the store over,
 * which cuts the sessions of the one before: it is told that it is fenced. Where mirrors are only
 * gone, it is told that.
 */
#include "owner.h"

static perseas_t *rival; /* the owner that takes over; NULL: nobody did */

static int setup(void **state)
{
	struct owner *o;

	owner_setup_three(state);
	o = *state;
	/* The keeper's rounds are ten seconds apart. */
	o->p->options.connect_timeout_ms = 60000;
	rival = NULL;
	return 0;
}

static int teardown(void **state)
{
	((struct owner *)*state)->d->on_pause = NULL;
	perseas_close(rival);
	return owner_teardown(state);
}

struct unit_fixture unit_fixture = { setup, teardown };

TEST(test_map, struct owner *o)
{
	void *addr;

	rival = owner_rival(o);
	owner_at_pause(o, owner_keep_unlocked);
	assert_int_equal(perseas_map(o->p, "more", SIZE, &addr), PERSEAS_EFENCED);
	assert_says(o, "another owner has taken");
	assert_null(addr);
}

TEST(test_publish, struct owner *o)
{
	void *addr;

	assert_int_equal(perseas_map(o->p, "more", SIZE, &addr), 0);
	rival = owner_rival(o);
	owner_at_pause(o, owner_keep_unlocked);
	assert_int_equal(perseas_publish(o->p), PERSEAS_EFENCED);
}

/* Nor is the handle then of no more use. */
TEST(test_mirrors_that_are_gone_fence_nobody, struct owner *o)
{
	void *addr;

	direct_crash(o->d, 0);
	direct_crash(o->d, 1);
	owner_at_pause(o, owner_keep_unlocked);
	assert_int_equal(perseas_map(o->p, "more", SIZE, &addr), PERSEAS_EUNREACHABLE);
	assert_says(o, "only 1 of 3 mirrors");
	direct_start(o->d, 0);
	owner_keep(o, 0, PERSEAS_MIRROR_LIVE);
	o->d->on_pause = NULL;
	assert_int_equal(perseas_map(o->p, "more", SIZE, &addr), 0);
}
