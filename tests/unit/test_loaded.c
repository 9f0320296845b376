/*
 * test_loaded.c - a mirror comes back under an open owner with what was loaded from its spill: the
 * same image under an id of its own, which W mirrors record before it is told itself.
 */
#include "resync_rig.h"

#include "../../client/keeper/roster.h"

struct unit_fixture unit_fixture = { setup_five, teardown };

/* Sets up three mirrors with W = 3, and one that does not belong to the store. */
static int setup_all(void **state)
{
	struct fixture *f;
	struct direct *d;

	setup_of(state, 3, 3, true);
	f = *state;
	d = f->o->d;
	d->mirrors[d->count] = (struct direct_mirror){ .memory = memory_heap_new(0, 9),
		                                       .writes_left = -1 };
	assert_non_null(d->mirrors[d->count].memory);
	direct_start(d, d->count++);
	return 0;
}

/* The image goes on from where it was, and the others know its id. */
TEST_WITH(a_loaded_image_goes_on, setup, teardown, struct fixture *f)
{
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

/* Returns true if the mirror's recorded roster lists mirror 1 by the id with which it was
 * loaded. */
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
	for (unsigned i = 0; f->o->p->mirrors[1].is_from_spill; i++) {
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
TEST(nobody_waits_until_it_is_recorded, struct fixture *f)
{
	static const unsigned hung[] = { 0, 2, 3 };

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

/* The loaded mirror itself is slow. */
TEST(nobody_waits_for_a_loaded_mirror, struct fixture *f)
{
	answer_slowly(f->o, 1, PERSEAS__REQUEST__BODY_ROSTER);
	come_back_loaded(f);
	go_on_until_recorded(f);
	assert_image(f, 1);
}

/* Its session breaks while the others are told: it is told by the next one, and not before them. */
TEST(a_session_that_breaks_meanwhile_changes_nothing, struct fixture *f)
{
	for (unsigned i = 0; i < 5; i++)
		if (i != 1)
			answer_slowly(f->o, i, PERSEAS__REQUEST__BODY_ROSTER);
	come_back_loaded(f);
	for (unsigned i = 0; i < 5; i++)
		round_of(f->o);
	assert_int_equal(ps_roster_mirrors_to_tell_last(f->o->p), 1 << 1);
	direct_cut(f->o->d, 1);
	round_of(f->o);
	reach_live(f->o, 1);
	assert_int_equal(ps_roster_mirrors_to_tell_last(f->o->p), 1 << 1);
	go_on_until_recorded(f);
	assert_image(f, 1);
}

/* --- it is not recorded, and something else is told --- */

/* The mirror returns during a change of the roster: it is told its id after W others know it. */
TEST(a_change_tells_it_after_the_others, struct fixture *f)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REMOVE, "sim://4", NULL, 3,
		                                      0 };
	struct owner *o = f->o;
	const struct ps_change *c = &o->p->upkeep.change;
	uint64_t start;

	for (unsigned i = 0; i < 5; i++)
		answer_slowly(o, i, PERSEAS__REQUEST__BODY_ROSTER);
	assert_int_equal(owner_change(o, &wanted), 0);
	round_of(o);
	assert_int_equal(c->stage, PS_CHANGE_JOINT);
	direct_crash(o->d, 1);
	load_spilled(f, 1);
	for (unsigned i = 0; !ps_roster_mirrors_to_tell_last(o->p); i++) {
		assert_true(i < ROUNDS);
		round_of(o);
	}
	assert_int_equal(c->stage, PS_CHANGE_JOINT);
	start = o->d->now;
	for (unsigned i = 0; c->stage != PS_CHANGE_NONE; i++) {
		assert_true(i < ROUNDS);
		round_of(o);
		assert_true(!knows_own_id(f, 1) || o->d->now - start > SLOW - LITTLE);
	}
	assert_int_equal(c->result_code, 0);
	assert_true(knows_own_id(f, 1));
}

/* Mirror 1 comes back from its spill, and mirror 0 loses its host before it records the id. */
static void lose_before_it_is_recorded(struct fixture *f)
{
	struct owner *o = f->o;

	answer_slowly(o, 0, PERSEAS__REQUEST__BODY_ROSTER);
	direct_crash(o->d, 1);
	load_spilled(f, 1);
	reach_live(o, 1);
	for (unsigned i = 0; i < 5; i++)
		round_of(o);
	assert_int_equal(ps_roster_mirrors_to_tell_last(o->p), 1 << 1);
	direct_crash(o->d, 0);
	memory_heap_lose(o->d->mirrors[0].memory, NULL);
	o->d->mirrors[0].slow_at = 0;
	round_of(o);
	assert_int_equal(owner_state(o, 0), PERSEAS_MIRROR_DOWN);
}

/* Commits can go on, and the id is recorded. */
static void assert_goes_on(struct fixture *f)
{
	assert_int_equal(put_big(f, 100, 90, 1), 0);
	for (unsigned i = 0; f->o->p->mirrors[1].is_from_spill; i++) {
		assert_true(i < ROUNDS);
		round_of(f->o);
	}
	assert_true(knows_own_id(f, 1));
	assert_image(f, 1);
}

/* There is no W without the loaded one: it is told of both ids when the others have taken them. */
TEST_WITH(a_lost_mirror_is_made_anew_beside_it, setup_two, teardown, struct fixture *f)
{
	lose_before_it_is_recorded(f);
	direct_start(f->o->d, 0);
	reach_live(f->o, 0);
	assert_goes_on(f);
	assert_image(f, 0);
}
TEST_ALSO(a_lost_mirror_is_made_anew_beside_it, setup_all, teardown);

/* One other mirror is slow: the loaded one must not know its id first, and waits. */
TEST_WITH(a_making_tells_it_after_the_others, setup_all, teardown, struct fixture *f)
{
	struct owner *o = f->o;
	uint64_t start;

	lose_before_it_is_recorded(f);
	answer_slowly(o, 2, PERSEAS__REQUEST__BODY_ROSTER);
	direct_start(o->d, 0);
	start = o->d->now;
	for (unsigned i = 0; owner_state(o, 0) != PERSEAS_MIRROR_LIVE; i++) {
		assert_true(i < ROUNDS);
		round_of(o);
		assert_true(!knows_own_id(f, 1) || o->d->now - start > SLOW);
	}
	assert_true(knows_own_id(f, 1));
	o->d->mirrors[2].slow_at = 0;
	assert_goes_on(f);
}

/* The same in a change that replaces the lost mirror. */
TEST_WITH(a_dead_mirror_is_replaced_beside_it, setup_all, teardown, struct fixture *f)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REPLACE, "sim://0", "sim://3",
		                                      0, 0 };
	const struct ps_change *c = &f->o->p->upkeep.change;

	lose_before_it_is_recorded(f);
	assert_int_equal(owner_change(f->o, &wanted), 0);
	for (unsigned i = 0; c->stage != PS_CHANGE_NONE; i++) {
		assert_true(i < ROUNDS);
		round_of(f->o);
	}
	if (c->result_code)
		fail_msg("%s", c->text);
	assert_goes_on(f);
	assert_image(f, 3);
}
