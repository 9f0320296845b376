/*
 * test_broken_copy.c - a session breaks while an open mends a mirror that it does not need: it goes
 * on without that one, unless another owner broke it.
 */
#include "mend_rig.h"

static int setup_lone_acks(void **state)
{
	return owner_setup(state, 2, 1);
}

struct unit_fixture unit_fixture = { setup_lone_acks, owner_teardown };

static void break_second(void *arg)
{
	struct owner *o = arg;

	o->d->mirrors[1].writes_left = 1;
}

/* The second mirror missed what an open can send it, and the owner, of this epoch, is dead. */
static uint64_t fall_behind(struct owner *o)
{
	uint64_t epoch;

	direct_crash(o->d, 1);
	put_many(o, 20, 1);
	epoch = owner_stat(o).epoch;
	owner_die(o);
	direct_start(o->d, 1);
	return epoch;
}

/* One of two mirrors is enough, and every copy to the other breaks: the open succeeds after one
 * claim, and the keeper goes on copying. */
TEST(test_a_copy_that_breaks_undoes_no_open, struct owner *o)
{
	const uint64_t before = fall_behind(o);

	o->d->on_pause = break_second;
	o->d->on_pause_arg = o;
	break_second(o);
	assert_int_equal(owner_open(o, 0), 0);
	owner_map(o);
	assert_int_equal(owner_stat(o).epoch, before + 1);
	assert_int_equal(owner_state(o, 0), PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_STALE);
	o->d->on_pause = NULL;
	o->d->mirrors[1].writes_left = -1;
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	put_many(o, 3, 9);
	owner_reopen(o);
	assert_int_equal(owner_stat(o).live, 2);
}

/* The mirror whose copy broke is claimed by another owner, before this one's open has returned:
 * this one must not go on. */
static void claim_second(void *arg, unsigned mirror, unsigned session)
{
	struct owner *o = arg;

	(void)session;
	if (mirror != 1)
		return;
	o->d->tap = NULL;
	perseas_close(owner_rival(o));
}

TEST(test_a_copy_that_another_claim_breaks_does, struct owner *o)
{
	const struct direct_tap tap = { .arg = o, .ended = claim_second };
	const uint64_t before = fall_behind(o);

	o->d->mirrors[1].writes_left = 1;
	o->d->tap = &tap;
	owner_reopen(o);
	/* The other one's, and a second attempt after it. */
	assert_int_equal(owner_stat(o).epoch, before + 3);
	assert_int_equal(owner_put(o, 0, 10, 1), 0);
}
