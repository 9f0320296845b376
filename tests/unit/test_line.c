/*
 * test_line.c - who is woken by what among the threads that wait for mirrors, and who leads
 * (line.h).
 */
#include "line_rig.h"

struct unit_fixture unit_fixture = { setup, teardown };

/* The mirror has completed so many more, and the leader sees it. */
static void complete_for_leader(unsigned count)
{
	pthread_mutex_lock(&o->p->lock);
	direct_release(o->d, 0, count);
	wake_leader(o->p->env, PS_COMMITTER);
	pthread_mutex_unlock(&o->p->lock);
}

/* Another thread sees that the mirror has completed transactions in the order of posting. */
TEST(a_completion_wakes_those_whose_transactions_are_held)
{
	begin_all();
	complete_to_end(1, 0);
	/* The one that has the longest to wait leads from then on. */
	UNTIL(led_for() == first + WAITERS - 1);
	assert_int_equal(woken, 1);
	complete_to_end(2, 1);
	assert_int_equal(end(2), 0);
	UNTIL(woken == 3 && asleep() == 1);
	complete_to_end(1, 3);
	UNTIL(led_for() == first + WAITERS - 1);
	complete_to_end(1, 4);
	assert_int_equal(woken, 4);
}

/* The leader's transaction completes last; its waiters were called before. */
TEST(one_completion_of_all_wakes_all)
{
	begin_all();
	complete(WAITERS);
	for (unsigned i = 0; i < WAITERS; i++)
		assert_int_equal(end(i), 0);
	assert_int_equal(woken, WAITERS - 1);
}

/* Each needs the lock first of all. */
TEST(the_leader_calls_the_others_when_it_has_let_go_of_the_lock)
{
	begin_all();
	calls_outside = true;
	complete_for_leader(WAITERS);
	for (unsigned i = 0; i < WAITERS; i++)
		assert_int_equal(end(i), 0);
	assert_int_equal(woken, WAITERS - 1);
}

/* The first that it wakes takes its processor. */
TEST(those_that_are_woken_call_the_rest)
{
	begin_all();
	is_slow_to_call = true;
	complete_for_leader(WAITERS);
	for (unsigned i = 0; i < WAITERS; i++)
		assert_int_equal(end(i), 0);
}

/* More than it keeps calls of. */
TEST(the_leader_calls_all_of_a_crowd)
{
	begin(0, first);
	UNTIL(is_led());
	for (unsigned i = 1; i < CROWD; i++) {
		begin(i, first);
		UNTIL(asleep() == i);
	}
	complete_for_leader(1);
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(end(i), 0);
	assert_int_equal(woken, CROWD - 1);
	complete(WAITERS - 1);
}

/* Waiters that were called leave before there is a leader: the last of them appoints one. */
TEST(there_is_a_leader_while_anybody_waits)
{
	begin_all();
	complete(3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(end(i), 0);
	UNTIL(led_for() == first + WAITERS - 1 && asleep() == 1);
	complete_to_end(1, 3);
	complete_to_end(1, 4);
}

/* A waiter for any progress, such as room in the ring, sleeps next to the leader. */
TEST(a_completion_wakes_who_waits_for_any)
{
	begin(0, first + 1);
	UNTIL(is_led());
	begin(1, 0);
	UNTIL(asleep() == 1);
	complete(1);
	end(1);
	UNTIL(led_for() == first + 1);
	complete_to_end(1, 0);
}

/* The waiter leads itself, and then lets the next one lead. */
TEST(who_waits_for_any_leads_too)
{
	begin(0, 0);
	UNTIL(is_led());
	begin(1, first + 1);
	UNTIL(asleep() == 1);
	complete(1);
	end(0);
	UNTIL(led_for() == first + 1);
	complete_to_end(1, 1);
}

/* When the leader leaves, nobody else in the line would see completions. */
TEST(who_waits_for_any_is_woken_when_the_leader_leaves)
{
	begin(0, first);
	UNTIL(is_led());
	begin(1, 0);
	UNTIL(asleep() == 1);
	pthread_mutex_lock(&o->p->lock);
	o->p->is_superseded = true;
	wake_leader(o->p->env, PS_COMMITTER);
	pthread_mutex_unlock(&o->p->lock);
	assert_int_equal(end(0), PERSEAS_EFENCED);
	end(1);
	o->p->is_superseded = false;
	complete(WAITERS);
}

/* A leader of others sleeps on the links, however long a commit may spin. */
TEST(nobody_spins_beside_others)
{
	begin_all();
	pthread_mutex_lock(&o->p->lock);
	o->p->options.spin_us = UINT32_MAX;
	o->p->options.commit_timeout_ms = UINT32_MAX;
	pthread_mutex_unlock(&o->p->lock);
	complete_to_end(1, 0);
	UNTIL(led_for() == first + WAITERS - 1);
	complete(WAITERS - 1);
	for (unsigned i = 1; i < WAITERS; i++)
		assert_int_equal(end(i), 0);
}

TEST(all_are_woken_when_another_owner_has_the_store)
{
	begin_all();
	pthread_mutex_lock(&o->p->lock);
	o->p->is_superseded = true;
	ps_wake_waiters(o->p);
	pthread_mutex_unlock(&o->p->lock);
	for (unsigned i = 0; i < WAITERS; i++)
		assert_int_equal(end(i), PERSEAS_EFENCED);
	o->p->is_superseded = false;
	complete(WAITERS);
}

/* Before it says that its time is over, it looks at the links itself, although another leads. */
TEST(who_gives_up_looks_before)
{
	struct perseas_token token = { o->p->commit.unwaited.token_epoch, first };

	begin(0, first + 1);
	UNTIL(is_led());
	assert_int_equal(perseas_wait(o->p, &token, 0), PERSEAS_ETIMEOUT);
	pthread_mutex_lock(&o->p->lock);
	direct_release(o->d, 0, 1);
	pthread_mutex_unlock(&o->p->lock);
	assert_int_equal(perseas_wait(o->p, &token, 0), 0);
	complete_to_end(1, 0);
}

/* A commit looks once more, too, before it is in doubt. */
TEST(a_commit_looks_before_it_is_in_doubt)
{
	uint64_t since = 0;

	begin(0, first + 1);
	UNTIL(is_led());
	pthread_mutex_lock(&o->p->lock);
	direct_release(o->d, 0, 1);
	is_time_over = true;
	assert_int_equal(ps_commit_await_w_mirrors(o->p, first, &since), 0);
	pthread_mutex_unlock(&o->p->lock);
	complete_to_end(1, 0);
}

TEST(nobody_looks_beside_the_leader)
{
	begin(0, first);
	UNTIL(is_led());
	pthread_mutex_lock(&o->p->lock);
	direct_release(o->d, 0, 1);
	pthread_mutex_unlock(&o->p->lock);
	begin(1, first + 1);
	UNTIL(asleep() == 1);
	assert_int_equal(o->p->mirrors[0].acked_seq, first - 1);
	complete_to_end(1, 0);
	assert_int_equal(end(1), 0);
}

/* The leader's sleep is valid until any thread polls, whatever that brings. */
TEST(the_leader_sleeps_anew_when_another_has_taken_completions)
{
	begin(0, first + 1);
	UNTIL(pauses == 1);
	complete(1);
	UNTIL(pauses == 2);
	complete_to_end(1, 0);
}

/* A poll that had nothing takes the event of a part of a chain, on fabrics that have such. */
TEST(the_leader_sleeps_anew_when_another_has_taken_an_event)
{
	const struct ps_fabric *fabric = o->p->mirrors[0].fabric;
	struct ps_fabric arming = *fabric;

	arming.poll_consumes_event = true;
	begin(0, first);
	UNTIL(pauses == 1);
	complete(0);
	assert_int_equal(pauses, 1);
	o->p->mirrors[0].fabric = &arming;
	complete(0);
	UNTIL(pauses == 2);
	o->p->mirrors[0].fabric = fabric;
	complete_to_end(1, 0);
}

/* A waiter whose transaction is held was called but has not run: others get a leader all the
 * same. */
TEST(nobody_waits_for_who_was_called_to_lead)
{
	slow[1] = true;
	begin_all();
	complete_to_end(2, 0);
	UNTIL(led_for() == first + WAITERS - 1);
	run_again(1, 1);
	assert_int_equal(end(1), 0);
	complete(3);
	for (unsigned i = 2; i < WAITERS; i++)
		assert_int_equal(end(i), 0);
}

/* Several waiters leave before the next leader has run; the first of them has woken it. */
TEST(one_heir_is_called)
{
	for (unsigned i = 1; i < WAITERS; i++)
		slow[i] = true;
	begin_all();
	complete_to_end(3, 0);
	run_again(1, 2);
	assert_int_equal(end(1), 0);
	assert_int_equal(end(2), 0);
	UNTIL(woken == 3);
	pthread_mutex_lock(&o->p->lock);
	assert_ptr_equal(o->p->commit.wait_line.first_waiter, o->p->commit.wait_line.last_waiter);
	assert_non_null(o->p->commit.wait_line.first_waiter);
	pthread_mutex_unlock(&o->p->lock);
	run_again(3, 4);
	UNTIL(led_for() == first + WAITERS - 1);
	complete_to_end(2, 3);
	assert_int_equal(end(4), 0);
}
