/*
 * test_hung.c - a mirror that hangs, with its connections up, as a process that is stopped does: it
 * holds nothing up but what is done with itself. What a round of the keeper waited for shows in the
 * clock: in these rounds nothing else lets time pass.
 */
#include "resync_rig.h"

struct unit_fixture unit_fixture = { setup, teardown };

#define MOMENT (100 * MS) /* that all have to answer; it is asked for twice in a copy */

/* ns that rounds of the keeper waited until the mirror was copied whole. */
static uint64_t waited(struct fixture *f, unsigned mirror)
{
	struct owner *o = f->o;
	const uint64_t start = o->d->now;
	const uint64_t resyncs = owner_stat(o).resyncs;
	uint64_t rounds = 0;

	while (owner_stat(o).resyncs == resyncs) {
		assert_true(++rounds < ROUNDS);
		direct_keep_after(o->d, o->p, ROUND);
	}
	assert_int_equal(owner_state(o, mirror), PERSEAS_MIRROR_LIVE);
	return o->d->now - start - rounds * ROUND;
}

/* Its connections broke, and it takes new ones, and says nothing. */
static void break_and_hang(struct owner *o, unsigned mirror)
{
	direct_hang(o->d, mirror);
	direct_cut(o->d, mirror);
	direct_keep(o->d, o->p);
	assert_int_equal(owner_state(o, mirror), PERSEAS_MIRROR_DOWN);
}

/* Mirror 2 hangs while it is claimed again: mirror 1 is copied as if it were not there. */
TEST(test_a_claim_that_is_not_answered_holds_up_no_copy, struct fixture *f)
{
	make_stale(f, 1);
	break_and_hang(f->o, 2);
	assert_true(waited(f, 1) < LITTLE);
	assert_int_equal(owner_state(f->o, 2), PERSEAS_MIRROR_DOWN);
	assert_image(f, 1);
	direct_unhang(f->o->d, 2);
	assert_catches_up(f, 2);
}

/* A mirror that is LIVE hangs. Once a sign of life is due for long it is asked nothing, so that one
 * that lost its memory is made anew by the word of the others (I9), without a pause. */
TEST_WITH(test_a_silent_mirror_is_not_waited_for, setup_five, teardown, struct fixture *f)
{
	struct owner *o = f->o;

	direct_hang(o->d, 4);
	for (unsigned i = 0; i < 2; i++)
		direct_keep_after(o->d, o->p, 1100 * MS);
	assert_int_equal(owner_state(o, 4), PERSEAS_MIRROR_LIVE);
	owner_lose(o, 1);
	assert_true(waited(f, 1) < LITTLE);
	assert_image(f, 1);
	direct_unhang(o->d, 4);
	assert_catches_up(f, 4);
}

/* The mirror hung just before all were asked: it gets their short wait, and is not heard later. */
TEST_WITH(test_a_mirror_that_just_hung_is_not_waited_for, setup_five, teardown, struct fixture *f)
{
	struct owner *o = f->o;

	owner_lose(o, 1);
	o->d->mirrors[4].hung = true;
	assert_true(waited(f, 1) < 2 * MOMENT + LITTLE);
	assert_image(f, 1);
	direct_unhang(o->d, 4);
	assert_catches_up(f, 4);
}

/* Mirrors hang in turn while one is copied again and again: each copy ends, and all catch up. */
TEST_WITH(test_mirrors_hang_in_turn, setup_five, teardown, struct fixture *f)
{
	struct owner *o = f->o;

	for (unsigned hung = 2; hung < 5; hung++) {
		make_stale(f, 1);
		break_and_hang(o, hung);
		assert_true(waited(f, 1) < LITTLE);
		put_all_over(f, (uint8_t)hung);
		direct_unhang(o->d, hung);
		assert_catches_up(f, hung);
	}
	assert_carries(f, 0);
}

/* Mirror 1 needs seconds for a request before its copy: the others still hear from this owner. */
static void assert_heard_beside(struct fixture *f, int request)
{
	struct owner *o = f->o;
	const uint64_t start = o->d->now;

	o->d->mirrors[1].slow_at = request;
	o->d->mirrors[1].slow_ns = 2500 * MS;
	while (owner_state(o, 1) != PERSEAS_MIRROR_RESYNCING) {
		assert_true(o->d->now - start < 6000 * MS);
		direct_keep_after(o->d, o->p, ROUND);
		assert_true(o->d->now - o->p->mirrors[0].pending_answers.oldest_asked_at <
		            600 * MS);
		assert_true(o->d->now - o->p->mirrors[2].pending_answers.oldest_asked_at <
		            600 * MS);
	}
	assert_true(o->d->now - start >= 2500 * MS);
	assert_catches_up(f, 1);
}

TEST(test_signs_of_life_go_on_while_memory_is_made, struct fixture *f)
{
	owner_lose(f->o, 1);
	assert_heard_beside(f, PERSEAS__REQUEST__BODY_REBUILD);
}

/* Mirror 1 is copied to in place. */
TEST(test_signs_of_life_go_on_while_a_copy_is_prepared, struct fixture *f)
{
	make_stale(f, 1);
	assert_heard_beside(f, PERSEAS__REQUEST__BODY_JOINING);
}
