/*
 * test_jobs.c - one thread at a time has the turn, what goes on aside stops nobody, and what is
 * cancelled ends.
 */
#include "../../server/host/jobs.h"
#include "../support/unit.h"

#include <sched.h>
#include <sys/eventfd.h>

enum { ROUNDS = 200, MANY = 8 };

static int woken;
static struct jobs *jobs;
static unsigned done;
static uint64_t counter; /* the thread that has the turn adds to it, without a lock */

static void wake(void *arg)
{
	const uint64_t one = 1;

	assert_ptr_equal(arg, &woken);
	assert_int_equal(write(woken, &one, sizeof(one)), sizeof(one));
}

static int begin(void **state)
{
	(void)state;
	woken = eventfd(0, EFD_CLOEXEC);
	jobs = jobs_new(wake, &woken);
	done = 0;
	counter = 0;
	return jobs ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	jobs_free(jobs);
	close(woken);
	return 0;
}

struct unit_fixture unit_fixture = { begin, end };

static void count_done(struct job *job)
{
	assert_true(job->over);
	done++;
}

/* Waits as the loop does. */
static void wait_for_turns(void)
{
	struct pollfd fd = { .fd = woken, .events = POLLIN };
	uint64_t times;

	assert_int_equal(poll(&fd, 1, 600000), 1);
	assert_int_equal(read(woken, &times, sizeof(times)), sizeof(times));
	jobs_give_turns(jobs);
}

static void run_at_once(struct job *job)
{
	assert_false(job->over);
	assert_false(job_cancelled());
	counter++;
}

TEST(a_job_without_aside_is_over_at_once)
{
	struct job job = { .run = run_at_once, .done = count_done };

	for (int i = 0; i < ROUNDS; i++) {
		assert_true(jobs_can_start(jobs));
		assert_true(jobs_start(jobs, &job));
	}
	assert_int_equal(counter, ROUNDS);
	assert_int_equal(done, 0);
	assert_int_equal(jobs_count(jobs), 0);
}

/* Aside until it is told. */
static atomic_bool may_end;

static void wait_aside(void *arg)
{
	(void)arg;
	while (!atomic_load(&may_end) && !job_cancelled())
		sched_yield();
}

static void run_long(struct job *job)
{
	(void)job;
	counter++;
	job_aside(JOB_ASIDE_LEAST, wait_aside, NULL);
	counter++;
}

TEST(who_is_aside_stops_nobody)
{
	struct job quick = { .run = run_at_once }, many[JOBS_MAX];

	atomic_store(&may_end, false);
	for (unsigned i = 0; i < JOBS_MAX - 1; i++) {
		many[i] = (struct job){ .run = run_long, .done = count_done };
		assert_true(jobs_can_start(jobs));
		assert_false(jobs_start(jobs, &many[i]));
		assert_int_equal(jobs_count(jobs), i + 1);
	}
	assert_int_equal(counter, JOBS_MAX - 1);
	/* One more job fits, and ends meanwhile; two more do not. */
	assert_true(jobs_can_start(jobs));
	assert_true(jobs_start(jobs, &quick));
	many[JOBS_MAX - 1] = many[0];
	assert_false(jobs_start(jobs, &many[JOBS_MAX - 1]));
	assert_false(jobs_can_start(jobs));
	atomic_store(&may_end, true);
	while (done < JOBS_MAX)
		wait_for_turns();
	assert_int_equal(jobs_count(jobs), 0);
	assert_int_equal(counter, 2 * JOBS_MAX + 1);
	assert_true(jobs_can_start(jobs));
}

TEST(what_is_cancelled_ends)
{
	struct job first = { .run = run_long, .done = count_done }, second = first;

	atomic_store(&may_end, false);
	assert_true(jobs_can_start(jobs));
	assert_false(jobs_start(jobs, &first));
	assert_true(jobs_can_start(jobs));
	assert_false(jobs_start(jobs, &second));
	job_cancel(&first);
	wait_for_turns();
	assert_int_equal(done, 1);
	assert_true(first.over);
	assert_false(second.over);
	/* The end of the daemon. */
	jobs_drain(jobs);
	assert_int_equal(done, 2);
	assert_int_equal(jobs_count(jobs), 0);
}

static void do_nothing(void *arg)
{
	(void)arg;
}

static void run_in_turns(struct job *job)
{
	(void)job;
	for (int i = 0; i < ROUNDS; i++) {
		counter++;
		job_aside(JOB_ASIDE_LEAST, do_nothing, NULL);
	}
}

/* Jobs and the loop add to one number without a lock: two turns at once would lose additions. */
TEST(one_at_a_time_has_the_turn)
{
	struct job many[MANY];

	for (int i = 0; i < MANY; i++) {
		many[i] = (struct job){ .run = run_in_turns, .done = count_done };
		assert_true(jobs_can_start(jobs));
		assert_false(jobs_start(jobs, &many[i]));
		counter++;
	}
	while (done < MANY) {
		counter++;
		wait_for_turns();
		counter--;
	}
	assert_int_equal(counter, MANY * ROUNDS + MANY);
}

static unsigned order[4], ran;

struct later {
	struct job job;
	unsigned number;
};

static void run_later(struct job *job)
{
	order[ran++] = ((struct later *)job)->number;
	job_aside(JOB_ASIDE_LEAST, do_nothing, NULL);
}

static void begin_two(struct job *job)
{
	static struct later inner = { { .run = run_later, .done = count_done }, 2 };

	assert_false(job_queue(&inner.job));
	run_later(job);
}

/* Later jobs of any thread begin once the loop comes to them. A drain leaves no job. */
TEST(a_later_job_begins_when_the_loop_comes_to_it)
{
	struct later first = { { .run = begin_two, .done = count_done }, 1 };
	struct later last = { { .run = run_later, .done = count_done }, 3 };

	ran = 0;
	assert_false(job_queue(&first.job));
	assert_int_equal(ran, 0);
	assert_int_equal(jobs_count(jobs), 1);
	while (done < 2)
		wait_for_turns();
	assert_int_equal(jobs_count(jobs), 0);
	assert_false(job_queue(&last.job));
	jobs_drain(jobs);
	assert_int_equal(done, 3);
	assert_int_equal(ran, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(order[i], i + 1);
}

TEST(a_later_job_without_jobs_is_a_call)
{
	struct later only = { { .run = run_later, .done = count_done }, 1 };

	jobs_free(jobs);
	ran = 0;
	assert_true(job_queue(&only.job));
	assert_int_equal(ran, 1);
	assert_int_equal(done, 0);
	jobs = NULL;
}

TEST(outside_of_a_job_it_is_a_call)
{
	atomic_store(&may_end, true);
	job_aside(JOB_ASIDE_LEAST, wait_aside, NULL);
	assert_false(job_cancelled());
}
