/*
 * test_gather_stopped.c - a group is held back while no thread could send it: the process was
 * stopped, or the thread that asked for a turn waited for another one. Working mirrors are not
 * dropped for that, and commits that were not sent to them are not in doubt.
 */
#include "gather_rig.h"

/* More than mirrors have to complete what they were sent. */
static void pass_time(struct owner *o)
{
	o->d->now += ps_ms(o->p->options.commit_timeout_ms + 1);
}

/* Commits one durable transaction, and one that is held back, or sent if nothing is gathered. */
static struct owner *begin_held(bool gathers)
{
	struct owner *o = gathering_owner(3);

	o->d->staged = true;
	if (!gathers)
		o->options.gather_us = 0;
	owner_begin(o);
	put_held(o, 500, 10, 9);
	assert_int_equal(perseas_flush(o->p), 0);
	return o;
}

/* --- the process is stopped --- */

/* Stops the process right after a commit. Mirrors answered everything before it, and answer it
 * later. */
static struct owner *stop_and_go_on(bool gathers)
{
	struct owner *o = begin_held(gathers);

	put_held(o, 0, 10, 1);
	assert_int_equal(o->p->commit.has_gathered, gathers);
	pass_time(o);
	hold_all(o, DIRECT_HOLD_COMPLETIONS);
	return o;
}

/* A transaction can begin, and what was held back is durable once mirrors complete it. */
static void assert_no_doubt(struct owner *o)
{
	perseas_tx_t *tx;

	assert_int_equal(owner_stat(o).in_doubt, 0);
	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	assert_int_equal(perseas_abort(tx), 0);
	complete_all(o);
	assert_sent(o, 0, 1);
	owner_free(o);
}

TEST(test_no_doubt_of_what_was_not_sent)
{
	for (unsigned gathers = 0; gathers < 2; gathers++) {
		struct owner *o = stop_and_go_on(gathers);

		direct_collect(o->p);
		assert_no_doubt(o);
	}
}

TEST(test_no_doubt_by_the_next_commit)
{
	for (unsigned gathers = 0; gathers < 2; gathers++) {
		struct owner *o = stop_and_go_on(gathers);
		struct perseas_token token;

		assert_int_equal(post_with(o, PERSEAS_NOWAIT, 100, 10, 2, &token), 0);
		assert_no_doubt(o);
	}
}

/* The timeout counts from the post, less the time for which a commit may be held back: doubt comes
 * if mirrors hang. */
TEST(test_doubt_comes_after_all)
{
	struct owner *o = stop_and_go_on(true);
	const uint64_t most = ps_ms(o->p->options.commit_timeout_ms);

	direct_collect(o->p);
	o->d->now += most - o->p->commit.gather->max_hold_ns - ps_ms(1);
	direct_collect(o->p);
	assert_int_equal(owner_stat(o).in_doubt, 0);
	o->d->now += ps_ms(1);
	direct_collect(o->p);
	assert_int_equal(owner_stat(o).in_doubt, 1);
	complete_all(o);
	owner_free(o);
}

/* A commit that was sent long before is in doubt, although the next one is sent only now. */
TEST(test_what_hangs_already_gets_no_more_time)
{
	struct owner *o = begin_held(true);

	hold_all(o, DIRECT_HOLD_COMPLETIONS);
	put_held(o, 0, 10, 1);
	o->d->now += o->p->commit.gather->max_hold_ns;
	direct_collect(o->p);
	assert_sent(o, 0, 1);
	put_held(o, 20, 10, 2);
	pass_time(o);
	direct_collect(o->p);
	assert_int_equal(owner_stat(o).in_doubt, 1);
	complete_all(o);
	owner_free(o);
}

/* --- a turn comes late --- */

static struct owner *waiting;

/* Another thread has the turn for long, and one more commits just before it gives it back. */
static void give_turn_late(struct direct *d)
{
	d->on_wait = NULL;
	pass_time(waiting);
	put_held(waiting, 0, 10, 1);
	pthread_mutex_lock(&waiting->p->lock);
	waiting->p->is_admin_taken = false;
	pthread_mutex_unlock(&waiting->p->lock);
	if (waiting->p->commit.has_gathered)
		hold_all(waiting, DIRECT_HOLD_COMPLETIONS);
}

static void complete_held(void *arg)
{
	(void)arg;
	let_all_go(waiting);
}

TEST(test_a_late_turn_breaks_no_link)
{
	for (unsigned gathers = 0; gathers < 2; gathers++) {
		struct owner *o = waiting = begin_held(gathers);
		void *addr;

		o->p->is_admin_taken = true;
		o->d->on_wait = give_turn_late;
		o->d->on_pause = complete_held;
		assert_int_equal(perseas_map(o->p, "another", 100, &addr), 0);
		o->d->on_pause = NULL;
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(owner_state(o, i), PERSEAS_MIRROR_LIVE);
		assert_sent(o, 0, 1);
		let_all_go(o);
		owner_free(o);
	}
}
