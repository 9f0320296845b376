/*
 * test_together.c - what several threads commit at about the same time is sent by one system call:
 * when a chain stays here for others, and what sends it (ps_mirrors_post_from_ring, fabric.h F17).
 */
#include "line_rig.h"

struct unit_fixture unit_fixture = { setup, teardown };

static const struct ps_fabric *owner_fabric; /* while it is replaced */
static struct ps_fabric corking; /* the mirror's fabric, where sending together is of use */
static bool is_corked;
static unsigned corks, posts; /* how often it was corked; chains that were posted then */

static void note_cork(struct ps_link *link, bool corked)
{
	(void)link;
	assert_true(corked != is_corked);
	is_corked = corked;
	corks += corked;
}

static int note_post(struct ps_link *link, const struct ps_chain *chain)
{
	posts += is_corked;
	return owner_fabric->post(link, chain);
}

static void begin_corking(void)
{
	owner_fabric = o->p->mirrors[0].fabric;
	corking = *owner_fabric;
	corking.cork = note_cork;
	corking.post = note_post;
	corks = posts = 0;
	pthread_mutex_lock(&o->p->lock);
	o->p->mirrors[0].fabric = &corking;
	pthread_mutex_unlock(&o->p->lock);
}

static void end_corking(void)
{
	pthread_mutex_lock(&o->p->lock);
	o->p->mirrors[0].fabric = owner_fabric;
	pthread_mutex_unlock(&o->p->lock);
	assert_false(is_corked);
}

/* Returns how many transactions were committed and not sent. */
static uint64_t unsent(void)
{
	return o->p->commit.seq - o->p->mirrors[0].posted_seq;
}

/* Waiters 0 and 1 are called, and 1 does not run; an answer is due to the others. */
static void begin_with_one_to_come(void)
{
	slow[1] = true;
	begin_all();
	complete(2);
	assert_int_equal(end(0), 0);
	UNTIL(led_for() == first + WAITERS - 1);
	begin_corking();
}

static void end_all(void)
{
	run_again(1, 1);
	assert_int_equal(end(1), 0);
	UNTIL(unsent() == 0);
	end_corking();
	complete(WAITERS);
	for (unsigned i = 2; i < WAITERS; i++)
		assert_int_equal(end(i), 0);
}

/* They are sent when the last of them looks, all at once. */
TEST(commits_wait_for_others_that_come)
{
	begin_with_one_to_come();
	post(1);
	post(2);
	UNTIL(unsent() == 2);
	/* A look at the links that brings nothing sends nothing. */
	complete(0);
	UNTIL(unsent() == 2);
	end_all();
	assert_int_equal(corks, 1);
	assert_int_equal(posts, 2);
}

/* A woken thread may not run for long: the answer that was due arrives first. */
TEST(commits_wait_no_longer_than_for_an_answer)
{
	begin_with_one_to_come();
	post(1);
	UNTIL(unsent() == 1);
	complete(2);
	assert_int_equal(end(2), 0);
	assert_int_equal(end(3), 0);
	UNTIL(unsent() == 1);
	complete(1);
	UNTIL(unsent() == 0);
	assert_int_equal(end(4), 0);
	end_corking();
	run_again(1, 1);
	assert_int_equal(end(1), 0);
}

/* With nothing under way there is nothing to wait for. */
TEST(a_commit_is_sent_at_once_when_no_answer_is_due)
{
	begin_with_one_to_come();
	complete(3);
	for (unsigned i = 2; i < WAITERS; i++)
		assert_int_equal(end(i), 0);
	post(1);
	UNTIL(unsent() == 0);
	post(2);
	UNTIL(unsent() == 1);
	run_again(1, 1);
	assert_int_equal(end(1), 0);
	UNTIL(unsent() == 0);
	end_corking();
	assert_int_equal(corks, 0);
}

/* Where several cost as much as one alone and another, each is sent at once. */
TEST(nothing_waits_where_that_is_of_no_use)
{
	begin_with_one_to_come();
	corking.cork = NULL;
	post(1);
	UNTIL(unsent() == 0);
	end_all();
}
