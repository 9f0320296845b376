/*
 * test_judge_unfilled.c - when a store that its first transaction fills counts as unfinished.
 */
#include "judge_rig.h"

struct unit_fixture unit_fixture = { setup_scene, NULL };

static void mark_roster(struct scene *s, unsigned r)
{
	s->of[0].roster[r].level = 1;
	s->of[0].roster[r].filling = true;
}

/* Three mirrors, W = 2. Each may be empty, filled, or away: R decide, and by the newest state. */
TEST(r_mirrors_decide_whether_a_store_is_unfinished)
{
	for (unsigned turn = 0; turn < 27; turn++) {
		struct scene s = { .count = 0 };
		const unsigned kinds[3] = { turn % 3, turn / 3 % 3, turn / 9 };
		unsigned told = 0;
		bool filled = false;

		list(&s, 0, 0, 2, 0x7);
		mark_roster(&s, 0);
		for (unsigned k = 0; k < 3; k++) {
			if (kinds[k] == 2)
				continue;
			tell(&s, 0, k, 0, kinds[k] ? 1 + k : 0);
			told++;
			filled |= kinds[k] == 1;
		}
		if (told < 2)
			assert_int_not_equal(judge(&s), PS_OUTLOOK_UNFILLED);
		else
			assert_int_equal(judge(&s),
			                 filled ? PS_OUTLOOK_OPENS : PS_OUTLOOK_UNFILLED);
	}
}

/* The roster changed since, and one mirror did not hear of that. */
TEST(the_mark_of_a_mirror_that_is_late_means_nothing, struct scene *s)
{
	list(s, 0, 0, 2, 0x7);
	list(s, 0, 2, 2, 0xb);
	mark_roster(s, 0);
	mark_roster(s, 2);
	tell(s, 0, 2, 0, 0);
	tell_all(s, 0, 0x3, 2, 5000);
	assert_int_equal(judge(s), PS_OUTLOOK_OPENS);
}

TEST(a_store_without_the_mark_is_never_unfinished, struct scene *s)
{
	list(s, 0, 0, 1, 0x1);
	tell(s, 0, 0, 0, 0);
	assert_int_equal(judge(s), PS_OUTLOOK_OPENS);
	mark_roster(s, 0);
	assert_int_equal(judge(s), PS_OUTLOOK_UNFILLED);
}

/* The create of the marked store was not finished either. */
TEST(a_making_with_the_mark_is_unfinished, struct scene *s)
{
	list(s, 0, 0, 1, 0x1);
	mark_roster(s, 0);
	tell(s, 0, 0, 0, 0)->state = PERSEAS__STATE__STATE_CREATING;
	assert_int_equal(judge(s), PS_OUTLOOK_UNFILLED);
}
