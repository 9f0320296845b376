/*
 * test_sleepers.c - who sleeps as whom. A commit that was sent sleeps as the committer while its
 * owner's claims are renewed; the keeper, which renews them, must not sleep as the same, or it
 * takes the wakes with which the commit would see that it is held. (env_direct.c asserts that.)
 */
#include "owner.h"

#define MS ((uint64_t)1000000)

enum { MIRRORS = 3, ROUNDS = 30 };

/* Commits sleep from the first moment on. */
static int setup_sleepy(void **state)
{
	struct owner *o = owner_new(MIRRORS);

	o->options.acks = 2;
	o->options.spin_us = 0;
	owner_begin(o);
	*state = o;
	return 0;
}

struct unit_fixture unit_fixture = { setup_sleepy, owner_teardown };

/* The keeper goes its rounds while the commit sleeps; how often it slept itself. */
static struct {
	struct owner *o;
	bool inside;
	unsigned slept;
} keeper;

static void renew_beside(void *arg)
{
	struct direct *d = keeper.o->d;

	(void)arg;
	if (keeper.inside) {
		keeper.slept++;
		for (unsigned i = 0; i < MIRRORS; i++)
			direct_release(d, i, UINT32_MAX);
		return;
	}
	keeper.inside = true;
	for (unsigned i = 0; i < ROUNDS; i++)
		direct_keep(d, keeper.o->p);
	keeper.inside = false;
}

static void commit_while_claims_are_renewed(struct owner *o)
{
	owner_claimed_and_left(o);
	memset(&keeper, 0, sizeof(keeper));
	keeper.o = o;
	o->d->on_pause = renew_beside;
	assert_int_equal(owner_put(o, 0, 8, 1), 0);
	o->d->on_pause = NULL;
	assert_int_equal(owner_stat(o).renewals, 1);
	assert_true(keeper.slept > 0);
}

TEST(the_keeper_waits_for_claims_while_a_commit_sleeps, struct owner *o)
{
	for (unsigned i = 0; i < MIRRORS; i++) {
		o->d->mirrors[i].slow_at = PERSEAS__REQUEST__BODY_CLAIM;
		o->d->mirrors[i].slow_ns = 100 * MS;
	}
	commit_while_claims_are_renewed(o);
}

/* The keeper resends what a mirror missed, and that completes before the mirror's slot is
 * written. */
TEST(the_keeper_waits_for_a_mirror_while_a_commit_sleeps, struct owner *o)
{
	for (unsigned i = 0; i < MIRRORS; i++)
		o->d->mirrors[i].hold = DIRECT_HOLD_COMPLETIONS;
	commit_while_claims_are_renewed(o);
	for (unsigned i = 0; i < MIRRORS; i++)
		o->d->mirrors[i].hold = DIRECT_HOLD_NOTHING;
}
