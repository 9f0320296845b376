/*
 * test_telling.c - a change of the roster: mirrors are told of it, and nobody waits for what one of
 * them does not say. What a round of the keeper waited for shows in the clock: in these rounds
 * nothing else lets time pass.
 */
#include "roster_rig.h"

#include "../../client/core/mirror.h"
#include "../../client/keeper/heartbeat.h"
#include "../../client/keeper/roster.h"
#include "../../client/keeper/roster_telling.h"

#define MS (uint64_t)1000000
#define ROUND (20 * MS)   /* between rounds of the keeper */
#define LITTLE (100 * MS) /* thousands of looks at the clock */

static int setup(void **state)
{
	*state = begin(4, 2);
	return 0;
}

struct unit_fixture unit_fixture = { setup, owner_teardown };

static const struct perseas_roster_change replaces = { PERSEAS_ROSTER_REPLACE, "sim://0", "sim://4",
	                                               0, 0 };

/* Mirror 0 is replaced by mirror 4, and one hangs from a stage of that on: ns that rounds of the
 * keeper waited. */
static uint64_t replace(struct owner *o, unsigned mirror, enum ps_change_stage hangs)
{
	uint64_t start, rounds = 0;

	assert_int_equal(owner_change(o, &replaces), 0);
	start = o->d->now;
	while (o->p->upkeep.change.stage != PS_CHANGE_NONE) {
		assert_true(++rounds < ROUNDS);
		if (o->p->upkeep.change.stage == hangs)
			o->d->mirrors[mirror].hung = true;
		direct_keep_after(o->d, o->p, ROUND);
	}
	if (o->p->upkeep.change.result_code)
		fail_msg("%s", o->p->upkeep.change.text);
	assert_null(o->p->next_roster);
	return o->d->now - start - rounds * ROUND;
}

/* A mirror that stays hangs, and no sign of life is due from it yet: nobody waits while all are
 * asked whether they know this owner. */
TEST(test_a_mirror_that_just_hung_holds_no_change_up, struct owner *o)
{
	assert_true(replace(o, 3, PS_CHANGE_COPYING) < LITTLE);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	direct_unhang(o->d, 3);
	owner_keep(o, 3, PERSEAS_MIRROR_LIVE);
}

/* The mirror hangs when both rosters count: no message sent then is waited for. */
TEST(test_a_change_is_told_beside_one_that_hangs, struct owner *o)
{
	assert_true(replace(o, 3, PS_CHANGE_JOINT) < LITTLE);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	direct_unhang(o->d, 3);
	owner_keep(o, 3, PERSEAS_MIRROR_LIVE);
}

/* The one that leaves is told so, and hangs. */
TEST(test_a_mirror_that_leaves_is_not_waited_for, struct owner *o)
{
	assert_true(replace(o, 0, PS_CHANGE_SETTLING) < LITTLE);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
	o->d->mirrors[0].hung = false;
}

/* All mirrors take long to record a roster: the keeper goes on meanwhile. */
TEST(test_nobody_waits_for_slow_answers, struct owner *o)
{
	for (unsigned i = 0; i < MIRRORS; i++) {
		o->d->mirrors[i].slow_at = PERSEAS__REQUEST__BODY_ROSTER;
		o->d->mirrors[i].slow_ns = 300 * MS;
	}
	assert_true(replace(o, 0, PS_CHANGE_NONE) < LITTLE);
	assert_int_equal(owner_put(o, 0, 100, 3), 0);
}

/* Runs as the keeper does, with admin. */
static void pass(struct owner *o, uint64_t ns)
{
	o->d->now += ns;
	o->p->is_admin_taken = true;
	ps_heartbeat_step(o->p, o->d->now);
	o->p->is_admin_taken = false;
}

static uint32_t tell(struct perseas *p, uint32_t set)
{
	uint32_t took;

	p->is_admin_taken = true;
	took = ps_roster_tell_mirrors(p, set);
	p->is_admin_taken = false;
	return took;
}

/* Tells all four, and returns who has taken it a moment later. */
static uint32_t tell_and_hear(struct owner *o)
{
	tell(o->p, 15);
	pass(o, MS);
	return tell(o->p, 15);
}

/* A mirror answers what it was told before: it has not recorded what is told now. */
TEST(test_an_answer_counts_for_what_was_told, struct owner *o)
{
	struct perseas *p = o->p;
	const uint32_t all = 15, slow = 2;

	o->d->mirrors[1].slow_at = PERSEAS__REQUEST__BODY_ROSTER;
	o->d->mirrors[1].slow_ns = 50 * MS;
	p->upkeep.next_heartbeat_at = PS_NEVER;
	assert_int_equal(tell(p, all), 0);
	pass(o, 30 * MS);
	assert_int_equal(tell(p, all), all & ~slow);
	p->is_admin_taken = true;
	ps_rosters_raise_version(p);
	p->is_admin_taken = false;
	assert_int_equal(tell(p, all), 0);
	pass(o, 30 * MS);
	assert_int_equal(tell(p, all), all & ~slow);
	pass(o, 30 * MS);
	assert_int_equal(tell(p, all), all);
}

/* A session that ends takes along what was recorded on it: the mirror may lose its memory before
 * the next one. */
TEST(test_a_new_session_is_told_anew, struct owner *o)
{
	struct perseas *p = o->p;

	assert_int_equal(tell_and_hear(o), 15);
	direct_cut(o->d, 1);
	direct_keep(o->d, p);
	owner_keep(o, 1, PERSEAS_MIRROR_LIVE);
	assert_int_equal(p->upkeep.telling.recorded_mirrors, 13);
	assert_int_equal(tell_and_hear(o), 15);
}

/* A mirror that owes too many answers is told when that is over; one that did not record the roster
 * is told again after a while. */
TEST(test_one_that_was_not_told_is_told_later, struct owner *o)
{
	struct perseas *p = o->p;

	p->upkeep.next_heartbeat_at = PS_NEVER;
	p->mirrors[2].pending_answers.answer_count = PS_PENDING_MAX;
	tell(p, 15);
	p->mirrors[2].pending_answers.answer_count = 0;
	pass(o, MS);
	assert_int_equal(tell(p, 15), 11);
	pass(o, MS);
	assert_int_equal(tell(p, 15), 15);
	p->upkeep.telling.recorded_mirrors = 13;
	assert_int_equal(tell_and_hear(o), 13);
	pass(o, 600 * MS);
	assert_int_equal(tell_and_hear(o), 15);
}

/* The new mirror needs longer to make memory for the copy than the change has patience with one
 * that cannot be copied to: the keeper sleeps meanwhile. */
TEST(test_the_keeper_sleeps_while_memory_is_made, struct owner *o)
{
	o->p->options.connect_timeout_ms = 30000;
	o->d->mirrors[4].slow_at = PERSEAS__REQUEST__BODY_REBUILD;
	o->d->mirrors[4].slow_ns = 20000 * MS;
	assert_int_equal(owner_change(o, &replaces), 0);
	for (unsigned i = 0; i < 900; i++) {
		direct_keep_after(o->d, o->p, ROUND);
		assert_int_equal(o->p->upkeep.change.stage, PS_CHANGE_COPYING);
		if (ps_change_due_at(o->p, o->d->now) <= o->d->now)
			fail_msg("after %u rounds it is due at a time that is past", i);
	}
	for (unsigned rounds = 0; o->p->upkeep.change.stage != PS_CHANGE_NONE; rounds++) {
		assert_true(rounds < ROUNDS);
		direct_keep_after(o->d, o->p, ROUND);
	}
	assert_int_equal(o->p->upkeep.change.result_code, 0);
}

/* The mirror refuses each time that it is asked: the patience ends. */
TEST(test_a_mirror_without_memory_does_not_join, struct owner *o)
{
	const struct perseas_roster_change adds = { PERSEAS_ROSTER_ADD, NULL, "sim://4", 0, 0 };
	const uint64_t start = o->d->now;

	o->d->mirrors[4].slow_at = PERSEAS__REQUEST__BODY_REBUILD;
	o->d->mirrors[4].slow_ns = 50 * MS;
	memory_heap_set_limit(o->d->mirrors[4].memory, 1);
	assert_int_equal(owner_change(o, &adds), 0);
	while (o->p->upkeep.change.stage != PS_CHANGE_NONE) {
		assert_true(o->d->now - start < 12000 * MS);
		direct_keep_after(o->d, o->p, ROUND);
	}
	assert_int_equal(o->p->upkeep.change.result_code, PERSEAS_EUNREACHABLE);
	assert_non_null(strstr(o->p->upkeep.change.text, "memory"));
}
