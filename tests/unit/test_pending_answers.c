/*
 * test_pending_answers.c - answers that nobody waits for: who takes them, and what a question
 * counts.
 */
#include "owner.h"

#include "../../client/core/mirror.h"
#include "../../client/keeper/pending_answers.h"
#include "../../client/keeper/session.h"

#define MS (uint64_t)1000000

/* Questions to mirrors that are behind. They last as long as answers are due. */
static struct ps_question behind[PS_PENDING_MAX];

/* Confirm takes them 50 ms, and only the questions of a test are asked. */
static int setup(void **state)
{
	struct owner *o;

	owner_setup(state, 3, 2);
	o = *state;
	for (unsigned i = 0; i < 3; i++) {
		o->d->mirrors[i].slow_at = PERSEAS__REQUEST__BODY_CONFIRM;
		o->d->mirrors[i].slow_ns = 50 * MS;
	}
	o->p->is_admin_taken = true;
	return 0;
}

static int teardown(void **state)
{
	struct owner *o = *state;

	o->p->is_admin_taken = false;
	owner_teardown(state);
	for (unsigned i = 0; i < PS_PENDING_MAX; i++)
		ps_question_forget(&behind[i]);
	return 0;
}

struct unit_fixture unit_fixture = { setup, teardown };

static void pass(struct owner *o, uint64_t ns)
{
	o->d->now += ns;
	ps_pending_take_all_answers(o->p, o->d->now);
}

/* The mirrors that answered count, and one that hangs leaves the others' answers as they are. */
TEST(test_answers_are_counted_as_they_come, struct owner *o)
{
	struct ps_question q = { 0 };

	o->d->mirrors[1].slow_ns = 200 * MS;
	direct_hang(o->d, 2);
	ps_question_ask_claim_confirmations(o->p, &q, 7);
	assert_int_equal(q.unanswered_mirrors, 7);
	pass(o, 60 * MS);
	assert_int_equal(q.granting_mirrors, 1);
	pass(o, 200 * MS);
	assert_int_equal(q.granting_mirrors, 3);
	assert_int_equal(q.unanswered_mirrors, 4);
	assert_false(ps_question_is_over(o->p, &q));
	pass(o, 4000 * MS);
	assert_true(ps_question_is_over(o->p, &q));
	assert_int_equal(q.granting_mirrors, 3);
	assert_int_equal(q.last_refusal.code, PERSEAS_EUNREACHABLE);
	assert_int_equal(o->p->mirrors[2].pending_answers.answer_count, 0);
	ps_question_forget(&q);
}

/* A question that is asked again counts only answers to its last request. */
TEST(test_an_answer_to_what_was_asked_before_counts_for_nothing, struct owner *o)
{
	struct ps_question q = { 0 };

	ps_question_ask_claim_confirmations(o->p, &q, 7);
	o->d->now += 30 * MS;
	ps_question_ask_claim_confirmations(o->p, &q, 3);
	pass(o, 30 * MS);
	assert_int_equal(q.granting_mirrors, 0);
	assert_int_equal(q.unanswered_mirrors, 3);
	pass(o, 30 * MS);
	assert_int_equal(q.granting_mirrors, 3);
	ps_question_forget(&q);
}

/* A session that ends takes its answers along, and is told to who wants them. */
TEST(test_the_answers_of_a_session_end_with_it, struct owner *o)
{
	struct ps_question q = { 0 };

	ps_question_ask_claim_confirmations(o->p, &q, 7);
	pthread_mutex_lock(&o->p->lock);
	ps_mirror_break_link(o->p, &o->p->mirrors[1], PS_LINK_BROKEN, "the test ends it");
	pthread_mutex_unlock(&o->p->lock);
	ps_mirror_disconnect(o->p, &o->p->mirrors[1]);
	assert_int_equal(q.unanswered_mirrors, 5);
	assert_int_equal(o->p->mirrors[1].pending_answers.answer_count, 0);
	pass(o, 60 * MS);
	assert_int_equal(q.granting_mirrors, 5);
	assert_true(ps_question_is_over(o->p, &q));
	ps_question_forget(&q);
}

/* A mirror that owes too many answers is not asked. */
TEST(test_a_mirror_is_not_asked_without_end, struct owner *o)
{
	struct ps_question q[PS_PENDING_MAX + 1] = { 0 };

	for (unsigned i = 0; i <= PS_PENDING_MAX; i++)
		ps_question_ask_claim_confirmations(o->p, &q[i], 1);
	assert_int_equal(q[PS_PENDING_MAX - 1].unanswered_mirrors, 1);
	assert_int_equal(q[PS_PENDING_MAX].unanswered_mirrors, 0);
	for (unsigned i = 0; i < PS_PENDING_MAX; i++)
		pass(o, 60 * MS);
	for (unsigned i = 0; i <= PS_PENDING_MAX; i++) {
		assert_int_equal(q[i].granting_mirrors, i < PS_PENDING_MAX);
		ps_question_forget(&q[i]);
	}
}

static const struct perseas_roster_change without = { PERSEAS_ROSTER_REMOVE, "sim://2", NULL, 0,
	                                              0 };

/* Makes so many answers due that these mirrors cannot be asked any more. */
static void fill(struct owner *o, uint32_t set)
{
	o->p->is_admin_taken = true;
	ps_pending_take_all_answers(o->p, o->d->now);
	for (unsigned i = 0; i < PS_PENDING_MAX; i++)
		ps_question_ask_claim_confirmations(o->p, &behind[i], set);
	assert_true(ps_pending_is_any_full(o->p, 7));
	assert_false(ps_pending_is_any_full(o->p, 1));
	o->p->is_admin_taken = false;
}

/* The mirror leaves, within 2 s. late: it falls behind before it can be told that it leaves. */
static void make_it_leave(struct owner *o, bool late)
{
	const struct ps_change *c = &o->p->upkeep.change;
	const uint64_t began = o->d->now;

	assert_int_equal(owner_change(o, &without), 0);
	while (c->stage != PS_CHANGE_NONE) {
		assert_true(o->d->now - began < 2000 * MS);
		if (late && c->stage == PS_CHANGE_SETTLING && !behind[0].id)
			fill(o, 4);
		direct_keep_after(o->d, o->p, 10 * MS);
	}
	assert_string_equal(c->text, "the roster is changed");
	assert_int_equal(c->result_code, 0);
	assert_int_not_equal(behind[0].id, 0);
}

TEST(test_a_change_of_the_roster_waits_until_all_can_be_asked, struct owner *o)
{
	fill(o, 6);
	make_it_leave(o, false);
}

/* The one that leaves is told so, also where it is behind with its answers. */
TEST(test_a_mirror_that_is_behind_is_let_go_of, struct owner *o)
{
	o->p->is_admin_taken = false;
	o->d->mirrors[2].break_at = PERSEAS__REQUEST__BODY_RELEASE;
	make_it_leave(o, true);
	assert_int_equal(o->d->mirrors[2].break_at, 0);
}

/* The mirror is found to be silent, and the others are asked. */
TEST(test_a_change_of_the_roster_waits_for_none_that_hangs, struct owner *o)
{
	direct_hang(o->d, 2);
	fill(o, 6);
	make_it_leave(o, false);
}
