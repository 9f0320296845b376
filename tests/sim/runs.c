/*
 * runs.c - see runs.h. A child tells its parent through shared memory which seed it runs, so that
 * the parent knows that even if the child is killed.
 */
#include "runs.h"

#include "../support/coroutine.h"
#include "schedule.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	/* A schedule that takes longer than this does not end. The limit of real time is far
	 * higher, because a busy host may give the process few turns. */
	SECONDS_A_SEED = 30,
	REAL_SECONDS_A_SEED = 1200,
	TWICE_FIRST = 101,
	TWICE_LAST = 120,
};

/* The memory through which a child reports to its parent. */
struct shared {
	uint64_t seed; /* that is being run */
	uint64_t hash; /* of the traces of all of them */
	uint64_t counts[SIM_COUNTS_MAX];
};

static struct shared *workers, *shared; /* all workers' results, and this process's */

bool sim_runs_begin(void)
{
	workers = mmap(NULL, SIM_JOBS_MAX * sizeof(*workers), PROT_READ | PROT_WRITE,
	               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared = workers;
	return workers != MAP_FAILED;
}

void sim_runs_be_worker(unsigned worker)
{
	shared = &workers[worker];
}

int sim_runs_fork(void)
{
	const pid_t parent = getpid();
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(3);
	}
	return child;
}

static void run_seeds(const struct sim_seeds *seeds)
{
	struct sim_world w = { .mistake = seeds->mistake,
		               .sound = seeds->sound,
		               .tracing = seeds->tracing,
		               .printing = seeds->printing,
		               .counts = shared->counts };

	const struct itimerval limit = { .it_value = { .tv_sec = SECONDS_A_SEED } };

	for (uint64_t seed = seeds->first; seed <= seeds->last; seed++) {
		shared->seed = seed;
		setitimer(ITIMER_PROF, &limit, NULL);
		alarm(REAL_SECONDS_A_SEED);
		sim_schedule_run(&w, seed);
		shared->hash = (shared->hash ^ w.hash) * 0x100000001b3u;
	}
	setitimer(ITIMER_PROF, &(struct itimerval){ 0 }, NULL);
	alarm(0);
	sim_world_free(&w);
	coroutines_free();
}

bool sim_runs_pass(const struct sim_seeds *seeds)
{
	int status = 0;
	pid_t child = sim_runs_fork();

	if (child == 0) {
		run_seeds(seeds);
		exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("sim");
		exit(3);
	}
	if (WIFSIGNALED(status))
		printf("%sseed %" PRIu64 " %s: signal %d\n", seeds->mistake ? "  " : "",
		       shared->seed, seeds->mistake ? "ends" : "FAILED", WTERMSIG(status));
	return status == 0;
}

uint64_t sim_runs_seed(void)
{
	return shared->seed;
}

static uint64_t counted(int what)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < SIM_JOBS_MAX; i++)
		sum += workers[i].counts[what];
	return sum;
}

unsigned sim_runs_print_counts(bool needed)
{
	static const struct {
		const char *text;
		bool needed;
	} about[] = {
#define ABOUT(name, must, text) { text, must },
		SIM_COUNTS(ABOUT)
#undef ABOUT
	};
	unsigned never = 0;

	for (int i = 0; i < SIM_COUNTS_MAX; i++) {
		uint64_t count = counted(i);
		bool missing = needed && about[i].needed && !count;

		printf("%12" PRIu64 " %s%s\n", count, about[i].text,
		       missing ? ": NEVER, so it is not tested" : "");
		never += missing;
	}
	return never;
}

static bool hash_of(const struct sim_seeds *seeds, uint64_t *hash)
{
	shared->hash = 0;
	if (!sim_runs_pass(seeds))
		return false;
	*hash = shared->hash;
	return true;
}

bool sim_runs_repeat(void)
{
	const struct sim_seeds seeds = { .first = TWICE_FIRST,
		                         .last = TWICE_LAST,
		                         .tracing = true };
	uint64_t first, second;

	if (!hash_of(&seeds, &first) || !hash_of(&seeds, &second))
		return false;
	printf("seeds %d..%d, run twice: %s\n", TWICE_FIRST, TWICE_LAST,
	       first == second ? "the same traces" : "FAILED, the traces differ");
	return first == second;
}
