/*
 * test_resync_asks.c - who must confirm that a mirror may be copied to (I9), and when.
 */
#include "resync_rig.h"

#include "../../client/keeper/pending_answers.h"

struct unit_fixture unit_fixture = { setup, teardown };

#define MS (uint64_t)1000000

/* Another owner claims all mirrors but one, and leaves. */
static void take_over_the_others(struct owner *o, unsigned but)
{
	struct perseas_options options = o->options;
	perseas_t *second;

	options.flags = PERSEAS_TAKEOVER;
	o->d->mirrors[but].break_at = PERSEAS__REQUEST__BODY_CLAIM;
	assert_int_equal(direct_open(o->d, STORE, &options, &second, &o->error), 0);
	assert_int_equal(o->d->mirrors[but].break_at, 0);
	assert_int_equal(perseas_close(second), 0);
}

/* Mirror 1 has lost its memory, and runs. */
static void lose_memory(struct owner *o)
{
	owner_lose(o, 1);
}

/* A mirror lost its memory and is being made anew when another owner takes the others over: they no
 * longer confirm this one's claim, so the image must not count (I9). `breaks`: the copy broke after
 * its first chunk, so that the image it left bears a slot of this owner's already. */
static void assert_others_are_asked_again(struct fixture *f, bool breaks)
{
	struct owner *o = f->o;
	Perseas__Header *header;

	lose_memory(o);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	direct_keep(o->d, o->p);
	if (breaks)
		direct_cut(o->d, 1);
	take_over_the_others(o, 1);
	for (unsigned i = 0; i < 40; i++) {
		direct_keep(o->d, o->p);
		header = header_of(f, 1);
		assert_int_equal(header->state, PERSEAS__STATE__STATE_JOINING);
		perseas__header__free_unpacked(header, NULL);
		assert_int_not_equal(owner_state(o, 1), PERSEAS_MIRROR_LIVE);
	}
}

TEST(test_others_are_asked_again_at_the_end, struct fixture *f)
{
	assert_others_are_asked_again(f, false);
}

TEST(test_others_are_asked_again_after_a_break, struct fixture *f)
{
	assert_others_are_asked_again(f, true);
}

static int setup_any_acks(void **state)
{
	return setup_of(state, 3, 1, true);
}

/* W = 1 of 3, so R is all three. Two mirrors were this owner's and whole, fell behind, and the copy
 * to each of them breaks half way: neither is whole, so neither can be asked for the other. Nobody
 * but this owner had them since: they are copied again without. */
TEST_WITH(test_half_copies_of_what_was_ours_do_not_wait_for_each_other, setup_any_acks, teardown,
          struct fixture *f)
{
	struct owner *o = f->o;

	for (unsigned i = 1; i < 3; i++) {
		Perseas__Header *header;

		make_stale(f, i);
		owner_keep(o, i, PERSEAS_MIRROR_RESYNCING);
		direct_keep(o->d, o->p);
		direct_crash(o->d, i);
		header = header_of(f, i);
		assert_int_equal(header->state, PERSEAS__STATE__STATE_JOINING);
		perseas__header__free_unpacked(header, NULL);
	}
	for (unsigned i = 1; i < 3; i++)
		direct_start(o->d, i);
	assert_catches_up(f, 1);
	assert_catches_up(f, 2);
}

/* A mirror is copied whole while the mirrors that must confirm it owe answers: they are asked when
 * those have arrived, and nothing is copied twice. */
TEST(test_who_confirms_may_be_behind, struct fixture *f)
{
	static struct ps_question q[PS_PENDING_MAX]; /* as long as answers are due */
	struct owner *o = f->o;
	const struct ps_resync *r = &o->p->upkeep.resync;

	lose_memory(o);
	owner_keep(o, 1, PERSEAS_MIRROR_RESYNCING);
	for (unsigned i = 0; i < 3; i += 2) {
		o->d->mirrors[i].slow_at = PERSEAS__REQUEST__BODY_CONFIRM;
		o->d->mirrors[i].slow_ns = 50 * MS;
	}
	for (unsigned rounds = 0; owner_state(o, 1) != PERSEAS_MIRROR_LIVE; rounds++) {
		assert_true(rounds < ROUNDS);
		assert_int_equal(owner_state(o, 1), PERSEAS_MIRROR_RESYNCING);
		o->p->is_admin_taken = true;
		for (unsigned i = 0; i < PS_PENDING_MAX && r->has_posted_first_chunk && !q[i].id;
		     i++)
			ps_question_ask_claim_confirmations(o->p, &q[i], 5);
		o->p->is_admin_taken = false;
		direct_keep_after(o->d, o->p, MS);
	}
	assert_int_not_equal(q[0].id, 0);
	assert_image(f, 1);
}

/* Too few others take the roster with its new id: then it gets no image (I9). */
TEST(test_nothing_is_made_anew_that_nobody_knows, struct fixture *f)
{
	struct owner *o = f->o;

	lose_memory(o);
	for (unsigned i = 0; i < 20; i++) {
		o->d->mirrors[0].break_at = o->d->mirrors[2].break_at =
			PERSEAS__REQUEST__BODY_ROSTER;
		direct_keep(o->d, o->p);
		assert_int_equal(memory_heap_pieces(o->d->mirrors[1].memory), 0);
	}
	o->d->mirrors[0].break_at = o->d->mirrors[2].break_at = 0;
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_image(f, 1);
}
