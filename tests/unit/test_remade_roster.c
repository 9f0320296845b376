/*
 * test_remade_roster.c - a change of the roster whose new mirror loses its memory while both
 * rosters count. Another owner may have claimed it before that, and may complete the change with
 * mirrors that the owner of the change does not reach.
 */
#include "roster_rig.h"

#include "../../client/core/mirror.h"
#include "../../server/store/store_private.h"

struct unit_fixture unit_fixture = { NULL, owner_teardown };

static const struct store *store_on(struct owner *o, unsigned mirror)
{
	return store_find(o->d->mirrors[mirror].stores, STORE);
}

/* Mirror 4 takes the place of mirror 3 in a store of four, W = 3. Both rosters count, and only
 * mirror 4 was told so. */
static struct owner *begin_joint(void)
{
	const struct perseas_roster_change wanted = { PERSEAS_ROSTER_REPLACE, "sim://3", "sim://4",
		                                      0, 0 };
	struct owner *o = begin_test(4, 3);

	assert_int_equal(owner_change(o, &wanted), 0);
	for (unsigned i = 0; i < 4; i++)
		o->d->mirrors[i].break_at = PERSEAS__REQUEST__BODY_ROSTER;
	for (unsigned rounds = 0; !o->p->next_roster; rounds++) {
		assert_true(rounds < ROUNDS);
		direct_keep(o->d, o->p);
	}
	assert_non_null(store_on(o, 4)->header->next_roster);
	assert_false(store_on(o, 4)->header->marked);
	assert_null(store_on(o, 1)->header->next_roster);
	return o;
}

/* Another owner reaches mirrors 0, 3 and 4. It adopts the state on 0 and 3, which is too few to
 * open the store, and cannot write to 4. The owner before stays as it is. */
static void open_with_0_and_3(struct owner *o)
{
	struct perseas *before = o->p;
	uint8_t *bytes = o->bytes;

	o->p = NULL;
	direct_crash(o->d, 1);
	direct_crash(o->d, 2);
	o->d->mirrors[4].writes_left = 0;
	assert_int_equal(open_with(o, 0, 5, PERSEAS_TAKEOVER), PERSEAS_EQUORUM);
	o->d->mirrors[4].writes_left = -1;
	direct_start(o->d, 1);
	direct_start(o->d, 2);
	o->p = before;
	o->bytes = bytes;
}

static void keep_for(struct owner *o, unsigned rounds)
{
	for (; rounds > 0; rounds--)
		direct_keep(o->d, o->p);
}

static void assert_found(struct owner *o, uint8_t value)
{
	reopen_with(o, 0, 5, PERSEAS_TAKEOVER);
	assert_int_equal(o->bytes[99], value);
}

/* Mirrors 1 and 2, and mirror 4 made anew, would be W of the new roster, and n - T + 1 of the old
 * one. What they acknowledged would be lost to the slots of the other owner on mirrors 0 and 3. */
TEST(two_owners_do_not_complete_a_change_with_disjoint_mirrors)
{
	struct owner *o = begin_joint();
	bool acknowledged;

	open_with_0_and_3(o);
	owner_lose(o, 4);
	direct_crash(o->d, 0);
	direct_crash(o->d, 3);
	keep_for(o, ROUNDS);
	assert_null(store_on(o, 4));
	assert_non_null(strstr(o->p->mirrors[4].trouble_text, "too few other mirrors"));
	acknowledged = owner_put(o, 0, 100, 3) == 0;
	owner_die(o);
	direct_start(o->d, 0);
	direct_start(o->d, 3);
	assert_found(o, acknowledged ? 3 : 2);
}

/* Nobody else claimed the store. Two mirrors of the old roster leave that open; a third one
 * confirms it. */
TEST(w_of_the_old_roster_make_the_new_mirror_anew)
{
	struct owner *o = begin_joint();

	direct_crash(o->d, 0);
	direct_crash(o->d, 3);
	owner_lose(o, 4);
	keep_for(o, ROUNDS);
	assert_null(store_on(o, 4));
	assert_non_null(o->p->next_roster);
	direct_start(o->d, 0);
	owner_complete(o);
	owner_keep(o, 4, PERSEAS_MIRROR_LIVE);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	owner_die(o);
	direct_crash(o->d, 0);
	direct_start(o->d, 3);
	assert_found(o, 3);
}
