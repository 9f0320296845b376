/*
 * test_loaded.c - a mirror comes back under an open owner with what was loaded from its spill: the
 * same image under an id of its own, which W mirrors record before it is told itself.
 */
#include "resync_rig.h"

#include "../../client/keeper/roster.h"

static int setup_five(void **state)
{
	return setup_of(state, 5, 3, true);
}

/* It goes on from where it was, and the others know its id. */
static void a_loaded_image_goes_on(void **state)
{
	struct fixture *f = *state;
	struct owner *o = f->o;
	Perseas__Header *other;

	direct_crash(o->d, 1);
	put_all_over(f, 3);
	load_spilled(f, 1);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_stat(o).resyncs, 0);
	assert_image(f, 1);
	other = header_of(f, 0);
	assert_true(ps_id_equal(other->roster->members[1]->image_id, loaded_id));
	perseas__header__free_unpacked(other, NULL);
	assert_carries(f, 2);
}

/* Does the roster that a mirror has recorded list mirror 1 by the id with which it was loaded? */
static bool knows_own_id(struct fixture *f, unsigned mirror)
{
	Perseas__Header *header = header_of(f, mirror);
	const bool knows = ps_id_equal(header->roster->members[1]->image_id, loaded_id);

	perseas__header__free_unpacked(header, NULL);
	return knows;
}

/* Commits go on, and rounds of the keeper wait for nobody, until the id is recorded. */
static void go_on_until_recorded(struct fixture *f)
{
	for (unsigned i = 0; f->o->p->mirrors[1].loaded; i++) {
		unsigned know = 0;

		assert_true(i < ROUNDS);
		round_of(f->o);
		assert_int_equal(put_big(f, 100 * i, 90, (uint8_t)i), 0);
		for (unsigned k = 0; k < 5; k++)
			know += k != 1 && knows_own_id(f, k);
		/* With itself they are W. */
		assert_true(know >= 2 || !knows_own_id(f, 1));
	}
	assert_true(knows_own_id(f, 1));
}

static void come_back_loaded(struct fixture *f)
{
	direct_crash(f->o->d, 1);
	put_all_over(f, 3);
	load_spilled(f, 1);
	reach_live(f->o, 1);
}

/* Too few of the others answer: it is not told before them. */
static void nobody_waits_until_it_is_recorded(void **state)
{
	static const unsigned hung[] = { 0, 2, 3 };
	struct fixture *f = *state;

	for (unsigned i = 0; i < 3; i++)
		direct_hang(f->o->d, hung[i]);
	come_back_loaded(f);
	for (unsigned i = 0; i < 20; i++) {
		round_of(f->o);
		assert_int_equal(put_big(f, 100 * i, 90, (uint8_t)i), 0);
		assert_false(knows_own_id(f, 1));
	}
	assert_true(knows_own_id(f, 4));
	for (unsigned i = 0; i < 3; i++)
		direct_unhang(f->o->d, hung[i]);
	go_on_until_recorded(f);
	assert_image(f, 1);
}

/* It takes long itself. */
static void nobody_waits_for_a_loaded_mirror(void **state)
{
	struct fixture *f = *state;

	answer_slowly(f->o, 1, PERSEAS__REQUEST__BODY_ROSTER);
	come_back_loaded(f);
	go_on_until_recorded(f);
	assert_image(f, 1);
}

/* Its session breaks while the others are told: it is told by the next one, and not before them. */
static void a_session_that_breaks_meanwhile_changes_nothing(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 5; i++)
		if (i != 1)
			answer_slowly(f->o, i, PERSEAS__REQUEST__BODY_ROSTER);
	come_back_loaded(f);
	for (unsigned i = 0; i < 5; i++)
		round_of(f->o);
	assert_int_equal(ps_roster_unrecorded(f->o->p), 1 << 1);
	direct_cut(f->o->d, 1);
	round_of(f->o);
	reach_live(f->o, 1);
	assert_int_equal(ps_roster_unrecorded(f->o->p), 1 << 1);
	go_on_until_recorded(f);
	assert_image(f, 1);
}

#define TEST(function, with) cmocka_unit_test_setup_teardown(function, with, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_loaded_image_goes_on, setup),
		TEST(nobody_waits_until_it_is_recorded, setup_five),
		TEST(nobody_waits_for_a_loaded_mirror, setup_five),
		TEST(a_session_that_breaks_meanwhile_changes_nothing, setup_five),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
