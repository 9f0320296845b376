/*
 * test_nowait_stuck.c - a mirror that hangs, and is in the way of commits that wait for nothing
 * (PERSEAS_NOBLOCK): it is dropped as it would be for one that waits, and not before, whether or
 * not anybody commits meanwhile. What is told of it is told by the descriptor.
 */
#include "nowait_rig.h"

static const unsigned flags = PERSEAS_NOWAIT | PERSEAS_NOBLOCK;

static int try(struct owner *o)
{
	struct perseas_token token;

	return post_with(o, flags, 0, SIZE, 1, &token);
}

/* These take nothing, until there is no room. */
static void fill(struct owner *o, unsigned mirrors)
{
	int rc = 0;

	for (unsigned m = 0; m < o->d->count; m++)
		if (mirrors >> m & 1)
			o->d->mirrors[m].hold = DIRECT_HOLD_WRITES;
	for (unsigned i = 0; i < 100; i++) {
		rc = try(o);
		if (rc)
			break;
	}
	assert_int_equal(rc, PERSEAS_EAGAIN);
}

static uint64_t patience(const struct owner *o)
{
	return (uint64_t)o->p->options.commit_timeout_ms * 1000000;
}

static int setup_staged(void **state)
{
	struct owner *o = owner_new(3);

	o->d->staged = true;
	return owner_setup_of(state, o);
}

struct unit_fixture unit_fixture = { setup_staged, owner_teardown };

static bool is_readable(struct owner *o)
{
	struct pollfd look = { .fd = perseas_fd(o->p), .events = POLLIN };

	return poll(&look, 1, 0) == 1;
}

static void reset(struct owner *o)
{
	struct perseas_token token;

	assert_int_equal(perseas_durable(o->p, &token), 0);
	assert_false(is_readable(o));
}

/* A thread that commits now and then gets on after as long as one that waits. */
TEST(who_tries_again_drops_it, struct owner *o)
{
	fill(o, 2);
	o->d->now += patience(o) * 9 / 10;
	assert_int_equal(try(o), PERSEAS_EAGAIN);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
	o->d->now += patience(o) / 10;
	assert_int_equal(try(o), 0);
	assert_int_equal(owner_stat(o).dropped, 1);
	assert_int_equal(owner_stat(o).live, 2);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(try(o), 0);
	let_all_go(o);
}

/* Each transaction that it completes makes the time begin anew, also where that is not enough. */
TEST(who_gets_on_is_not_dropped, struct owner *o)
{
	struct perseas_token token;

	fill(o, 2);
	for (unsigned i = 0; i < 10; i++) {
		o->d->now += patience(o) * 9 / 10;
		direct_release(o->d, 1, 1);
		/* So much that one mirror is not enough. */
		for (unsigned k = 0; k < 100; k++)
			if (post_with(o, flags, 0, 1000, 1, &token))
				break;
		assert_int_equal(try(o), PERSEAS_EAGAIN);
	}
	assert_int_equal(owner_stat(o).dropped, 0);
	let_all_go(o);
	assert_int_equal(try(o), 0);
	assert_int_equal(owner_stat(o).live, 3);
}

/* The mirror was in the way long ago, caught up, and is in the way again: its time begins anew. */
TEST(an_old_time_does_not_count, struct owner *o)
{
	unsigned i;

	for (i = 0; i < 3; i++) {
		fill(o, 2);
		let_go(o, 1);
		o->d->now += 3 * patience(o);
	}
	/* Nor when it was away, and is back where it stood. */
	fill(o, 2);
	direct_cut(o->d, 1);
	direct_keep(o->d, o->p);
	o->d->now += 3 * patience(o);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	for (i = 0; i < 100 && !try(o); i++)
		;
	assert_true(i < 100);
	assert_int_equal(try(o), PERSEAS_EAGAIN);
	assert_int_equal(owner_stat(o).dropped, 0);
	let_all_go(o);
}

/* W need it: nothing would come of dropping it. What they do not hold is in doubt instead. */
TEST(one_that_is_needed_stays, struct owner *o)
{
	fill(o, 6);
	for (unsigned i = 0; i < 5; i++) {
		o->d->now += patience(o) / 2;
		direct_collect(o->p);
		assert_int_equal(try(o), i < 1 ? PERSEAS_EAGAIN : PERSEAS_EBLOCKED);
	}
	assert_int_equal(owner_stat(o).dropped, 0);
	assert_int_equal(owner_stat(o).live, 3);
	assert_int_equal(owner_stat(o).in_doubt, 1);
	complete_all(o);
	assert_int_equal(try(o), 0);
}

/* One of two mirrors in the way makes progress: the other one is dropped, although W needs one of
 * them. */
TEST(one_beside_a_slow_one_is_dropped, struct owner *o)
{
	unsigned i;

	fill(o, 6);
	for (i = 0; i < 8 && !owner_stat(o).dropped; i++) {
		o->d->now += patience(o) / 4;
		direct_release(o->d, 2, 1);
		try(o);
	}
	assert_int_equal(i, 4);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_DOWN);
	assert_int_equal(owner_state(o, 2), PERSEAS_MIRROR_LIVE);
	complete_all(o);
}

/* The library's thread drops it without a commit, and the descriptor tells that there is room. */
TEST(it_is_dropped_though_nobody_tries, struct owner *o)
{
	assert_true(perseas_fd(o->p) >= 0);
	fill(o, 2);
	reset(o);
	assert_false(o->p->commit.unwaited.is_collector_idle);
	o->d->now += patience(o) * 9 / 10;
	direct_collect(o->p);
	assert_false(is_readable(o));
	assert_false(o->p->commit.unwaited.is_collector_idle);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
	o->d->now += patience(o) / 10;
	direct_collect(o->p);
	assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_DOWN);
	assert_int_equal(owner_stat(o).dropped, 1);
	assert_true(is_readable(o));
	reset(o);
	assert_int_equal(try(o), 0);
	let_all_go(o);
	direct_collect(o->p);
	direct_collect(o->p);
	assert_true(o->p->commit.unwaited.is_collector_idle);
}

/* The descriptor says that it got on, or that it is gone, although W hold no more than before. */
TEST(room_is_told, struct owner *o)
{
	assert_true(perseas_fd(o->p) >= 0);
	fill(o, 2);
	reset(o);
	direct_collect(o->p);
	assert_false(is_readable(o));
	direct_release(o->d, 1, 4);
	direct_collect(o->p);
	assert_true(is_readable(o));
	assert_int_equal(try(o), 0);
	fill(o, 2);
	reset(o);
	direct_cut(o->d, 1);
	direct_keep(o->d, o->p);
	assert_true(is_readable(o));
	let_all_go(o);
}

TEST(what_is_refused_wakes_the_collector, struct owner *o)
{
	assert_true(perseas_fd(o->p) >= 0);
	fill(o, 2);
	let_go(o, 1);
	direct_collect(o->p);
	direct_collect(o->p);
	assert_true(o->p->commit.unwaited.is_collector_idle);
	o->d->mirrors[1].hold = DIRECT_HOLD_WRITES;
	o->p->commit.unwaited.is_collector_idle = false;
	fill(o, 2);
	o->p->commit.unwaited.is_collector_idle = true;
	o->d->woken = 0;
	assert_int_equal(try(o), PERSEAS_EAGAIN);
	assert_true(o->d->woken >> PS_COLLECTOR & 1);
	let_all_go(o);
}
