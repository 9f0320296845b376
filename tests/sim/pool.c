/*
 * pool.c - see pool.h. Workers take parts of the plan in its order, and finish each part that they
 * took: so what is done has no gap.
 */
#include "pool.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PART = 50, PROGRESS = 5000, FAILURES_MAX = 20 };

struct pool {
	_Atomic uint64_t next, done, failed;
	atomic_bool stop;
};

static struct pool *pool; /* shared with the workers */

uint64_t sim_pool_size(const struct sim_plan *plan)
{
	uint64_t size = 0;

	for (unsigned i = 0; i < plan->range_count; i++)
		size += plan->ranges[i].last - plan->ranges[i].first + 1;
	return size;
}

/* --- a worker --- */

static void tell_failed(const struct sim_plan *plan, uint64_t seed)
{
	atomic_fetch_add(&pool->failed, 1);
	if (plan->long_run)
		printf("  for tests/sim/failed: %" PRIu64 " # (what it found)\n", seed);
}

static void run_seeds(const struct sim_plan *plan, uint64_t first, uint64_t count)
{
	struct sim_seeds seeds = plan->how;

	seeds.first = first;
	seeds.last = first + count - 1;
	while (seeds.first <= seeds.last && !sim_runs_pass(&seeds)) {
		tell_failed(plan, sim_runs_seed());
		seeds.first = sim_runs_seed() + 1;
	}
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Runs the schedules at..at+count-1 of the plan, in which the ranges follow one another. */
static void run_part(const struct sim_plan *plan, uint64_t at, uint64_t count)
{
	for (unsigned i = 0; i < plan->range_count && count; i++) {
		const struct sim_range *range = &plan->ranges[i];
		uint64_t size = range->last - range->first + 1, here;

		if (at >= size) {
			at -= size;
			continue;
		}
		here = smaller(count, size - at);
		run_seeds(plan, range->first + at, here);
		at = 0;
		count -= here;
	}
}

static void add_done(const struct sim_plan *plan, uint64_t count)
{
	uint64_t before = atomic_fetch_add(&pool->done, count);

	if (plan->long_run && before / PROGRESS != (before + count) / PROGRESS)
		printf("%" PRIu64 " done, %" PRIu64 " failed\n", before + count,
		       atomic_load(&pool->failed));
	fflush(stdout);
}

static void take_parts(const struct sim_plan *plan)
{
	const uint64_t size = sim_pool_size(plan);

	while (!atomic_load(&pool->stop) && atomic_load(&pool->failed) < FAILURES_MAX) {
		uint64_t at = atomic_fetch_add(&pool->next, PART), count;

		if (at >= size)
			return;
		count = smaller(PART, size - at);
		run_part(plan, at, count);
		add_done(plan, count);
	}
}

/* --- their parent --- */

static void stop(int signal_number)
{
	(void)signal_number;
	atomic_store(&pool->stop, true);
}

/* Makes this process stop at signals; its workers finish their parts. */
static void listen_to_signals(const struct sim_plan *plan)
{
	const struct sigaction action = { .sa_handler = stop };

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	alarm(plan->seconds);
}

static void be_worker(const struct sim_plan *plan, unsigned worker)
{
	if (plan->long_run) {
		signal(SIGTERM, SIG_IGN);
		signal(SIGINT, SIG_IGN);
		signal(SIGALRM, SIG_DFL);
	}
	sim_runs_be_worker(worker);
	take_parts(plan);
	exit(0);
}

/* Waits for a worker. If it did not exit by itself, its part counts as one failure. */
static void await_worker(void)
{
	int status;
	pid_t child;

	do
		child = wait(&status);
	while (child < 0 && errno == EINTR);
	if (child < 0 || status) {
		fprintf(stderr, "sim: a worker ended with status %d\n", child < 0 ? -1 : status);
		atomic_fetch_add(&pool->failed, 1);
		atomic_fetch_add(&pool->done, 1);
	}
}

struct sim_sum sim_pool_run(const struct sim_plan *plan)
{
	pool = mmap(NULL, sizeof(*pool), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pool == MAP_FAILED) {
		perror("sim");
		exit(3);
	}
	if (plan->long_run)
		listen_to_signals(plan);
	for (unsigned i = 0; i < plan->jobs; i++) {
		int child = sim_runs_fork();

		if (child == 0)
			be_worker(plan, i);
		if (child < 0) {
			perror("sim");
			exit(3);
		}
	}
	for (unsigned i = 0; i < plan->jobs; i++)
		await_worker();
	return (struct sim_sum){ pool->done, pool->failed };
}
