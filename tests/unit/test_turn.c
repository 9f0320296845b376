/*
 * test_turn.c - whose turn it is to open a store: a standby's decision, without clocks and mirrors.
 */
#include "../../client/standby/turn.h"
#include "../support/unit.h"

#define MS ((uint64_t)1000000)
#define BEGIN (1000 * MS) /* when it all begins */

static uint64_t until;

static bool comes(struct ps_turn *turn, enum ps_ownership ownership, uint64_t ms)
{
	return ps_turn_is_due(turn, ownership, BEGIN + ms * MS, &until);
}

/* Nothing but news of the mirrors makes a difference to it. */
TEST(nobody_goes_while_an_owner_lives)
{
	struct ps_turn turn = { .order = 0 };

	assert_false(comes(&turn, PS_OWNER_LIVES, 0));
	assert_true(until == PS_NEVER);
	assert_false(comes(&turn, PS_OWNER_LIVES, 1000000));
	assert_true(until == PS_NEVER);
}

/* Mirrors that come back send no news to who does not watch them. */
TEST(nobody_goes_while_it_is_not_known)
{
	struct ps_turn turn = { .order = 0 };

	assert_false(comes(&turn, PS_OWNER_UNKNOWN, 0));
	assert_true(until == BEGIN + PS_TURN_LOOK_MS * MS);
}

TEST(the_first_goes_at_once)
{
	struct ps_turn turn = { .order = 0 };

	assert_true(comes(&turn, PS_OWNER_NONE, 0));
	assert_true(comes(&turn, PS_OWNER_NONE, 1));
}

/* However often it looks meanwhile. */
TEST(others_wait_for_their_turn)
{
	struct ps_turn turn = { .order = 2 };

	assert_false(comes(&turn, PS_OWNER_NONE, 0));
	assert_true(until == BEGIN + 500 * MS);
	assert_false(comes(&turn, PS_OWNER_NONE, 499));
	assert_true(until == BEGIN + 500 * MS);
	assert_true(comes(&turn, PS_OWNER_NONE, 500));
}

/* Until it has had the time to open the store: it may have gone, too. */
TEST(another_one_is_left_the_store_that_it_is_given)
{
	static const uint8_t mark[PS_OWNER_MARK] = { 1, 2, 3, 4 }, other[PS_OWNER_MARK] = { 5 };
	struct ps_turn turn = { .order = 0 };
	struct ps_follow_result now = { .ownership = PS_OWNER_LIVES };

	now.handover.exists = now.handover.is_present = true;
	memcpy(now.handover.to, mark, sizeof(mark));
	assert_false(ps_turn_must_yield(&turn, &now, NULL, BEGIN, &until));
	now.ownership = PS_OWNER_NONE;
	assert_false(ps_turn_must_yield(&turn, &now, mark, BEGIN, &until));
	assert_true(ps_turn_must_yield(&turn, &now, other, BEGIN, &until));
	assert_true(ps_turn_must_yield(&turn, &now, NULL, BEGIN, &until));
	assert_true(until == BEGIN + PS_TURN_YIELD_LOOK_MS * MS);
	assert_true(
		ps_turn_must_yield(&turn, &now, NULL, BEGIN + (PS_TURN_YIELD_MS - 1) * MS, &until));
	assert_false(ps_turn_must_yield(&turn, &now, NULL, BEGIN + PS_TURN_YIELD_MS * MS, &until));
	now.handover.is_present = false;
	turn.yield_since_ns = 0;
	assert_false(ps_turn_must_yield(&turn, &now, NULL, BEGIN, &until));
}

/* Once it is free, and whatever its order. An open that failed is no reason to claim it at once. */
TEST(who_is_meant_waits_for_nobody)
{
	static const uint8_t mark[PS_OWNER_MARK] = { 1, 2, 3, 4 }, other[PS_OWNER_MARK] = { 5 };
	struct ps_turn turn = { .order = 9 };
	struct ps_follow_result now = { .ownership = PS_OWNER_LIVES };

	memcpy(now.handover.to, mark, sizeof(mark));
	now.handover.exists = true;
	assert_false(ps_turn_is_named(&turn, &now, mark, BEGIN));
	now.ownership = PS_OWNER_UNKNOWN;
	assert_false(ps_turn_is_named(&turn, &now, mark, BEGIN));
	now.ownership = PS_OWNER_NONE;
	assert_true(ps_turn_is_named(&turn, &now, mark, BEGIN));
	assert_false(ps_turn_is_named(&turn, &now, other, BEGIN));
	assert_false(ps_turn_is_named(&turn, &now, NULL, BEGIN));
	ps_turn_note_failure(&turn, BEGIN);
	assert_false(ps_turn_is_named(&turn, &now, mark, BEGIN + (PS_TURN_REST_MS - 1) * MS));
	assert_true(ps_turn_is_named(&turn, &now, mark, BEGIN + PS_TURN_REST_MS * MS));
	now.handover.exists = false;
	assert_false(ps_turn_is_named(&turn, &now, mark, BEGIN + PS_TURN_REST_MS * MS));
}

/* An owner came, and went: those who come first have their time anew. */
TEST(a_turn_begins_anew_after_an_owner)
{
	struct ps_turn turn = { .order = 1 };

	assert_false(comes(&turn, PS_OWNER_NONE, 0));
	assert_false(comes(&turn, PS_OWNER_LIVES, 200));
	assert_false(comes(&turn, PS_OWNER_NONE, 300));
	assert_true(until == BEGIN + 550 * MS);
	assert_false(comes(&turn, PS_OWNER_UNKNOWN, 400));
	assert_false(comes(&turn, PS_OWNER_NONE, 500));
	assert_true(until == BEGIN + 750 * MS);
	assert_true(comes(&turn, PS_OWNER_NONE, 750));
}

/* Claims that lead to nothing raise epochs, and keep others from the store. */
TEST(who_failed_rests_for_longer_and_longer)
{
	struct ps_turn turn = { .order = 0 };
	uint64_t now = 0, rest = 100;

	for (unsigned i = 0; i < 20; i++) {
		assert_true(comes(&turn, PS_OWNER_NONE, now));
		ps_turn_note_failure(&turn, BEGIN + now * MS);
		assert_false(comes(&turn, PS_OWNER_NONE, now));
		assert_true(until == BEGIN + (now + rest) * MS);
		assert_false(comes(&turn, PS_OWNER_NONE, now + rest - 1));
		now += rest;
		rest = rest * 2 > 10000 ? 10000 : rest * 2;
	}
}

/* The failure of one owner says nothing about the next one. */
TEST(an_owner_ends_the_counting)
{
	struct ps_turn turn = { .order = 0 };

	for (unsigned i = 0; i < 5; i++)
		ps_turn_note_failure(&turn, BEGIN);
	assert_false(comes(&turn, PS_OWNER_LIVES, 5000));
	assert_int_equal(turn.failed_open_count, 0);
	assert_true(comes(&turn, PS_OWNER_NONE, 5000));
	ps_turn_note_failure(&turn, BEGIN + 5000 * MS);
	assert_true(comes(&turn, PS_OWNER_NONE, 5100));
	ps_turn_reset(&turn);
	assert_int_equal(turn.failed_open_count, 0);
}

/* An owner that lets go of the store long after it was held before holds back all the same. */
TEST(who_had_its_turn_is_held_anew)
{
	struct ps_follow_result now = { .ownership = PS_OWNER_NONE };
	struct ps_turn turn = { .order = 0 };

	assert_false(ps_turn_must_yield(&turn, &now, NULL, BEGIN, &until));
	assert_true(comes(&turn, PS_OWNER_NONE, 0));
	ps_turn_reset(&turn);
	now.handover.exists = now.handover.is_present = true;
	assert_true(ps_turn_must_yield(&turn, &now, NULL, BEGIN + 60000 * MS, &until));
}

/* The named standby claims again and again, and never opens the store: others come after the time
 * that it was given. With another handover the time begins anew. */
TEST(claims_give_no_more_time)
{
	const uint64_t end = BEGIN + PS_TURN_YIELD_MS * MS;
	struct ps_follow_result asked = { .ownership = PS_OWNER_NONE }, claimed = { 0 };
	struct ps_turn turn = { .order = 0 };

	asked.handover.exists = asked.handover.is_present = true;
	asked.handover.id[0] = 1;
	claimed.ownership = PS_OWNER_LIVES;
	for (uint64_t now_ns = BEGIN; now_ns < end; now_ns += 1000 * MS) {
		assert_true(ps_turn_must_yield(&turn, &asked, NULL, now_ns, &until));
		assert_false(ps_turn_must_yield(&turn, &claimed, NULL, now_ns + MS, &until));
		assert_false(comes(&turn, PS_OWNER_LIVES, 0));
	}
	assert_false(ps_turn_must_yield(&turn, &asked, NULL, end, &until));
	asked.handover.id[0] = 2;
	assert_true(ps_turn_must_yield(&turn, &asked, NULL, end, &until));
}

/* The owner that was asked is back before anybody else came. */
TEST(an_owner_that_came_again_is_waited_for_anew)
{
	struct ps_follow_result now = { .ownership = PS_OWNER_NONE };
	struct ps_turn turn = { .order = 0 };

	now.handover.exists = now.handover.is_present = true;
	assert_true(ps_turn_must_yield(&turn, &now, NULL, BEGIN, &until));
	now.ownership = PS_OWNER_LIVES;
	assert_false(ps_turn_must_yield(&turn, &now, NULL, BEGIN + 1000 * MS, &until));
	now.ownership = PS_OWNER_NONE;
	assert_true(ps_turn_must_yield(&turn, &now, NULL, BEGIN + (PS_TURN_YIELD_MS + 500) * MS,
	                               &until));
}
