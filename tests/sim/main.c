/*
 * sim - the real client core and the real store logic in a simulated world, over many seeds.
 *
 *   sim                        a full run: many schedules, some of them twice, all mistakes
 *   sim --full A..B            the same with these schedules, and without the mistakes
 *   sim --seeds A..B           these schedules; from 1000000 on they are mixed (mixed.h)
 *   sim --seed N [--trace]     one, with what happens in it
 *   sim --mistakes             every mistake must be found
 *   sim --mistake WORD [--seed N [--trace]] [--sound]
 *                              this mistake, or the same schedules without it
 */
#include "coroutine.h"
#include "mistakes.h"
#include "schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef SIM_SANITIZED
enum { FULL_RUN = 1000, SANITIZED = 1 };
#else
enum { FULL_RUN = 20000, SANITIZED = 0 };
#endif

enum {
	/* More is no progress. Of real time much more, since a host has other work, and sleeps. */
	SECONDS_A_SEED = 30,
	REAL_SECONDS_A_SEED = 1200,
	FAILURES_MAX = 20,
	TWICE_FIRST = 101,
	TWICE_LAST = 120,
};

/* What a child that runs seeds tells its parent, also when it dies. */
struct shared {
	uint64_t seed; /* that is being run */
	uint64_t hash; /* of the traces of all of them */
	uint64_t counts[SIM_COUNTS_MAX];
};

static struct shared *shared;

struct seeds {
	uint64_t first, last;
	int mistake;
	bool sound, tracing, printing;
};

static void run_seeds(const struct seeds *seeds)
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
	sim_coroutines_free();
}

/* In a process of its own. True: all passed; else shared->seed did not. */
static bool pass(const struct seeds *seeds)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
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

/* How many fail. */
static unsigned run_all(struct seeds seeds)
{
	unsigned failed = 0;

	while (seeds.first <= seeds.last && failed < FAILURES_MAX && !pass(&seeds)) {
		failed++;
		seeds.first = shared->seed + 1;
	}
	return failed;
}

/* What was counted; with `needed`, what never happened is a failure. */
static unsigned print_counts(bool needed)
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
		bool missing = needed && about[i].needed && !shared->counts[i];

		printf("%12" PRIu64 " %s%s\n", shared->counts[i], about[i].text,
		       missing ? ": NEVER, so it is not tested" : "");
		never += missing;
	}
	return never;
}

/* The same seeds give the same schedules. */
static bool repeat(void)
{
	struct seeds seeds = { .first = TWICE_FIRST, .last = TWICE_LAST, .tracing = true };
	uint64_t hash;

	shared->hash = 0;
	if (!pass(&seeds))
		return false;
	hash = shared->hash;
	shared->hash = 0;
	if (!pass(&seeds))
		return false;
	printf("seeds %d..%d, run twice: %s\n", TWICE_FIRST, TWICE_LAST,
	       hash == shared->hash ? "the same traces" : "FAILED, the traces differ");
	return hash == shared->hash;
}

/*
 * Where the search begins for those that it finds late: the seed that found it the last time. An
 * edit of the code may change what happens with a seed; then the search finds another one, and says
 * so, and that one should be noted here.
 */
static const uint64_t noted[SIM_MISTAKES_END] = {
	[SIM_MISTAKE_UNCONFIRMED] = 2410, [SIM_MISTAKE_BY_KIND] = 5669,
	[SIM_MISTAKE_NO_ROOM] = 132,      [SIM_MISTAKE_DROPPED] = 327,
	[SIM_MISTAKE_FOREIGN] = 335,      [SIM_MISTAKE_UNASKED] = 2533,
	[SIM_MISTAKE_OLD_CLAIMS] = 1979,  [SIM_MISTAKE_LATE] = 392,
	[SIM_MISTAKE_UNMARKED] = 2427,    [SIM_MISTAKE_VERSIONS] = 2507,
	[SIM_MISTAKE_UNTOUCHED] = 11043,  [SIM_MISTAKE_PARENT_BACK] = 5291,
	[SIM_MISTAKE_UNAWAITED] = 107,    [SIM_MISTAKE_UNANSWERED] = 2889,
	[SIM_MISTAKE_LATER] = 85,         [SIM_MISTAKE_LAGS] = 140,
	[SIM_MISTAKE_HALF] = 321,         [SIM_MISTAKE_RENEWED] = 1956,
	[SIM_MISTAKE_SLOT_BEHIND] = 2275, [SIM_MISTAKE_PROMISED_BEFORE] = 471,
};

/* Does the seed that is noted find it, so that no search is needed? */
static bool is_found_again(int mistake)
{
	struct seeds seeds = { .first = noted[mistake], .mistake = mistake };

	seeds.last = seeds.first;
	if (!seeds.first)
		return false;
	if (!pass(&seeds))
		return true;
	printf("  not found with seed %" PRIu64 ", which tests/sim/main.c notes: searching\n",
	       seeds.first);
	return false;
}

static bool find(int mistake)
{
	const struct sim_mistake_about *about = &sim_mistakes[mistake];
	struct seeds seeds = { .first = 1, .last = about->seeds, .mistake = mistake };

	printf("mistake: %s\n", about->text);
	if (!is_found_again(mistake) && pass(&seeds)) {
		printf("  MISSED in %u seeds: sim --mistake %s\n", about->seeds, about->word);
		return false;
	}
	printf("  found; again: sim --mistake %s --seed %" PRIu64 " --trace\n", about->word,
	       shared->seed);
	/* It must be the mistake that is found: without it the schedule passes. */
	seeds.first = seeds.last = shared->seed;
	seeds.sound = true;
	if (pass(&seeds))
		return true;
	printf("  FAILED also without it: sim --mistake %s --sound --seed %" PRIu64 " --trace\n",
	       about->word, seeds.first);
	return false;
}

static unsigned find_all(void)
{
	unsigned missed = 0;

	for (int mistake = 1; mistake < SIM_MISTAKES_END; mistake++)
		missed += !find(mistake);
	return missed;
}

static int result(uint64_t passed, uint64_t failed)
{
	printf("%" PRIu64 " passed, %" PRIu64 " failed\n", passed, failed);
	return failed ? 1 : 0;
}

/* All of these pass, some twice, and everything that is counted has happened. */
static unsigned run_fully(const struct seeds *seeds)
{
	unsigned failed = run_all(*seeds);

	failed += print_counts(!SANITIZED);
	return failed + !repeat();
}

static int full_run(const struct seeds *seeds)
{
	unsigned failed = run_fully(seeds);

	return result(seeds->last - seeds->first + 2 - failed, failed);
}

static int run_everything(void)
{
	const struct seeds seeds = { .first = 1, .last = FULL_RUN };
	const unsigned mistakes = SANITIZED ? 0 : SIM_MISTAKES_END - 1;
	unsigned failed = run_fully(&seeds);

	failed += mistakes ? find_all() : 0;
	return result(FULL_RUN + 1 + mistakes - failed, failed);
}

static int usage(void)
{
	fputs("sim [--full A..B | --seeds A..B | --seed N [--trace] | --mistakes |\n"
	      "     --mistake WORD [--sound] [--seeds A..B | --seed N [--trace]]]\nmistakes:\n",
	      stderr);
	for (int i = 1; i < SIM_MISTAKES_END; i++)
		fprintf(stderr, "  %-12s %s\n", sim_mistakes[i].word, sim_mistakes[i].text);
	return 2;
}

static int mistake_of(const char *word)
{
	for (int i = 1; i < SIM_MISTAKES_END; i++)
		if (!strcmp(sim_mistakes[i].word, word))
			return i;
	return -1;
}

struct arguments {
	struct seeds seeds;
	bool all_mistakes, full;
};

/* False: they are not understood. */
static bool parse(int argc, char **argv, struct arguments *arguments)
{
	struct seeds *seeds = &arguments->seeds;

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--mistakes")) {
			arguments->all_mistakes = true;
			continue;
		} else if (!strcmp(argv[i], "--sound")) {
			seeds->sound = true;
			continue;
		} else if (!strcmp(argv[i], "--trace")) {
			seeds->tracing = seeds->printing = true;
			continue;
		} else if (!strcmp(argv[i], "--seed")) {
			seeds->first = seeds->last = strtoull(value, NULL, 10);
		} else if (!strcmp(argv[i], "--seeds") || !strcmp(argv[i], "--full")) {
			arguments->full = !strcmp(argv[i], "--full");
			if (sscanf(value, "%" SCNu64 "..%" SCNu64, &seeds->first, &seeds->last) !=
			    2)
				return false;
		} else if (!strcmp(argv[i], "--mistake")) {
			seeds->mistake = mistake_of(value);
		} else {
			return false;
		}
		if (!*value || seeds->mistake < 0)
			return false;
		i++;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	struct seeds *seeds = &arguments.seeds;
	uint64_t failed;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	if (shared == MAP_FAILED || !parse(argc, argv, &arguments))
		return usage();
	if (arguments.all_mistakes) {
		failed = find_all();
		return result(SIM_MISTAKES_END - 1 - failed, failed);
	}
	if (seeds->mistake && !seeds->last && !seeds->sound)
		return find(seeds->mistake) ? result(1, 0) : result(0, 1);
	if (seeds->sound && !seeds->last) {
		seeds->first = 1;
		seeds->last = sim_mistakes[seeds->mistake].seeds;
	}
	if (!seeds->last)
		return run_everything();
	if (arguments.full)
		return full_run(seeds);
	if ((seeds->mistake && !seeds->sound) || seeds->printing)
		return pass(seeds) ? result(1, 0) : result(0, 1);
	failed = run_all(*seeds);
	print_counts(false);
	return result(seeds->last - seeds->first + 1 - failed, failed);
}
