/*
 * test_section.c - sections that one thread enters without a fence (client/core/section.h): on two
 * processors at once, a thread that closes one never meets the thread inside. What makes that sure
 * is the barrier between the closer's store and its look.
 */
#include "../../client/core/section.h"

#include <pthread.h>

#include "barrier_env.h"
#include "two_processors.h"

enum {
	ROUNDS = 20000, /* in which the section is closed */
	DELAYS = 256,
	STAY = 500, /* turns of a loop */
};

static int setup(void **state)
{
	(void)state;
	barrier_env_reset();
	return 0;
}

struct unit_fixture unit_fixture = { setup, NULL };
struct unit_fixture unit_group = { unit_limit_time, NULL };

/* --- the tests --- */

TEST(a_section_is_entered_until_it_is_left)
{
	struct ps_section section = { false };

	assert_false(ps_section_is_entered(&section));
	ps_section_enter(&section);
	assert_true(ps_section_is_entered(&section));
	ps_section_leave(&section);
	assert_false(ps_section_is_entered(&section));
	assert_int_equal(barriers, 0);
}

/* The kernel may have no memory for a barrier, for a while. */
TEST(a_barrier_that_fails_is_tried_again)
{
	failures = 3;
	ps_section_fence(&env);
	assert_int_equal(barriers, 4);
	assert_int_equal(atomic_load(&pauses), 3);
}

static struct {
	int processors[2];
	struct ps_section section;
	atomic_bool closed, stop;
	volatile uint64_t inside; /* threads */
	uint64_t together;        /* so often there was another thread inside */
	uint64_t entered, shut;   /* so often each thread was inside */
} race;

static void be_inside(unsigned turns)
{
	race.together += race.inside != 0;
	race.inside = 1;
	while (turns-- > 0)
		__asm__ volatile("" ::: "memory");
	race.inside = 0;
}

static void *enter_again_and_again(void *arg)
{
	stay_on(race.processors[1]);
	while (!atomic_load_explicit(&race.stop, memory_order_relaxed)) {
		ps_section_enter(&race.section);
		if (!atomic_load_explicit(&race.closed, memory_order_acquire))
			be_inside((unsigned)(race.entered++ % 8));
		ps_section_leave(&race.section);
	}
	return arg;
}

static void close_section(unsigned delay)
{
	while (delay-- > 0)
		__asm__ volatile("" ::: "memory");
	atomic_store_explicit(&race.closed, true, memory_order_relaxed);
	ps_section_fence(&env);
	while (ps_section_is_entered(&race.section))
		ps_section_closer_sleep_briefly(&env);
	be_inside(STAY);
	race.shut++;
	atomic_store_explicit(&race.closed, false, memory_order_release);
}

/* The litmus test of the protocol: each of two threads stores, and then reads what the other one
 * stored. */
TEST(no_two_threads_are_inside_at_once)
{
	pthread_t thread;
	cpu_set_t before;

	if (!find_two(race.processors)) {
		print_message("SKIP: a fence orders what two processors do, and there is one\n");
		skip();
	}
	sched_getaffinity(0, sizeof(before), &before);
	assert_int_equal(pthread_create(&thread, NULL, enter_again_and_again, NULL), 0);
	stay_on(race.processors[0]);
	while (race.shut < ROUNDS && !race.together) {
		close_section((unsigned)(race.shut * 7919 % DELAYS));
		/* A thread that is inside may wait for a busy processor; a round that ends is no
		 * hang. */
		unit_limit_time(NULL);
	}
	atomic_store(&race.stop, true);
	pthread_join(thread, NULL);
	sched_setaffinity(0, sizeof(before), &before);
	assert_int_equal(race.together, 0);
}
