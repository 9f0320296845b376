/*
 * sim - the real client core and the real store logic in a simulated world, over many seeds.
 *
 *   sim                        the fixed schedules of every day, some of them twice; all that is
 *                              counted must have happened in them
 *   sim --full A..B            the same with these schedules
 *   sim --list FILE            the schedules of a file (regressions.h)
 *   sim --mistakes [--anew]    every mistake must be found: by its noted seed, or by a search
 *   sim --night N [--start SEED] [--seconds S]
 *                              N schedules from a random seed on, or from this one; it ends early
 *                              after S seconds or at SIGTERM, and says how to go on
 *   sim --seeds A..B           these schedules; mixed.h says which seeds are mixed
 *   sim --seed N [--trace]     one, with what happens in it
 *   sim --mistake WORD [--seed N [--trace]] [--sound]
 *                              this mistake, or the same schedules without it
 *   sim --note [--mistake WORD]
 *                              searches for the cheapest seeds that find mistakes, and prints their
 *                              rows of mistakes.h
 *
 * --jobs J divides the schedules among J processes: of a night 2 by default, else 1.
 */
#include "../support/coroutine.h"
#include "mistakes.h"
#include "mixed.h"
#include "pool.h"
#include "regressions.h"
#include "search.h"

#include <inttypes.h>
#include <sys/random.h>

#ifdef ADDRESS_SANITIZED
enum { DAY = 1000, DAY_MIXED = 100, COUNTED = 0 };
#else
enum { DAY = 2500, DAY_MIXED = 500, COUNTED = 1 };
#endif

enum { NIGHT_JOBS = 2 };

/* The largest start of a night, so that its last seed fits into 64 bits. A drawn start is
 * SIM_WIDE_SEEDS or more, which makes half of the schedules mixed. */
#define START_MAX (UINT64_MAX >> 1)

struct arguments {
	struct sim_seeds seeds;
	bool all_mistakes, anew, note, full;
	const char *list;
	uint64_t night, start, seconds, jobs;
};

static int result(struct sim_sum sum)
{
	printf("%" PRIu64 " passed, %" PRIu64 " failed\n", sum.done - sum.failed, sum.failed);
	return sum.failed ? 1 : 0;
}

static struct sim_plan plan_of(const struct arguments *arguments, const struct sim_range *ranges,
                               unsigned count)
{
	return (struct sim_plan){ .ranges = ranges,
		                  .range_count = count,
		                  .how = arguments->seeds,
		                  .jobs = (unsigned)(arguments->jobs ? arguments->jobs : 1) };
}

/* Runs the plan, and some schedules twice. Everything that is counted must have happened. */
static int run_fully(const struct sim_plan *plan)
{
	struct sim_sum sum = sim_pool_run(plan);

	sum.failed += sim_runs_print_counts(COUNTED);
	sum.failed += !sim_runs_repeat();
	sum.done++;
	if (sum.done < sum.failed)
		sum.done = sum.failed;
	return result(sum);
}

static int run_day(const struct arguments *arguments)
{
	static const struct sim_range day[] = { { 1, DAY },
		                                { SIM_MIXED, SIM_MIXED + DAY_MIXED - 1 } };
	struct sim_plan plan = plan_of(arguments, day, 2);

	return run_fully(&plan);
}

static int run_seeds(const struct arguments *arguments)
{
	const struct sim_range range = { arguments->seeds.first, arguments->seeds.last };
	struct sim_plan plan = plan_of(arguments, &range, 1);
	struct sim_sum sum;

	if (arguments->full)
		return run_fully(&plan);
	sum = sim_pool_run(&plan);
	sim_runs_print_counts(false);
	return result(sum);
}

static uint64_t random_start(void)
{
	uint64_t drawn;

	if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn)) {
		perror("sim");
		exit(3);
	}
	return SIM_WIDE_SEEDS + drawn % (START_MAX - SIM_WIDE_SEEDS);
}

static int run_night(const struct arguments *arguments)
{
	const uint64_t start = arguments->start ? arguments->start : random_start();
	const struct sim_range range = { start, start + arguments->night - 1 };
	struct sim_plan plan = plan_of(arguments, &range, 1);
	struct sim_sum sum;

	plan.long_run = true;
	plan.seconds = (unsigned)arguments->seconds;
	plan.jobs = (unsigned)(arguments->jobs ? arguments->jobs : NIGHT_JOBS);
	printf("start %" PRIu64 "\n", start);
	sum = sim_pool_run(&plan);
	sim_runs_print_counts(false);
	if (sum.done < arguments->night)
		printf("ended after %" PRIu64 " of %" PRIu64 "; the rest: sim --night %" PRIu64
		       " --start %" PRIu64 "\n",
		       sum.done, arguments->night, arguments->night - sum.done, start + sum.done);
	return result(sum);
}

static int find_all(bool anew)
{
	return result((struct sim_sum){ SIM_MISTAKES_END - 1, sim_search_find_all(anew) });
}

static int find(const struct arguments *arguments)
{
	const bool found = sim_search_find(arguments->seeds.mistake, arguments->anew);

	return result((struct sim_sum){ 1, !found });
}

static int note(int only)
{
	struct sim_sum sum = { 0 };

	for (int mistake = 1; mistake < SIM_MISTAKES_END; mistake++)
		if (!only || mistake == only) {
			sum.done++;
			sum.failed += !sim_search_note(mistake);
		}
	return result(sum);
}

/* Runs the seeds in one process, up to the first that fails. */
static int run_in_one(const struct sim_seeds *seeds)
{
	return result((struct sim_sum){ 1, !sim_runs_pass(seeds) });
}

static int run(struct arguments *arguments)
{
	struct sim_seeds *seeds = &arguments->seeds;

	if (arguments->all_mistakes)
		return find_all(arguments->anew);
	if (arguments->note)
		return note(seeds->mistake);
	if (arguments->list)
		return result(sim_regressions_run(arguments->list));
	if (arguments->night)
		return run_night(arguments);
	if (seeds->mistake && !seeds->last && !seeds->sound)
		return find(arguments);
	if (seeds->sound && !seeds->last) {
		seeds->first = 1;
		seeds->last = sim_mistakes[seeds->mistake].seeds;
	}
	if (!seeds->last)
		return run_day(arguments);
	if ((seeds->mistake && !seeds->sound) || seeds->printing)
		return run_in_one(seeds);
	return run_seeds(arguments);
}

/* --- the command line --- */

static int usage(void)
{
	fputs("sim [--full A..B | --seeds A..B | --list FILE | --mistakes [--anew] |\n"
	      "     --note | --night N [--start SEED] [--seconds S]] [--jobs J]\n"
	      "sim --seed N [--trace]\n"
	      "sim --mistake WORD [--anew | --note | --sound] [--seeds A..B | --seed N [--trace]]\n"
	      "mistakes:\n",
	      stderr);
	for (int i = 1; i < SIM_MISTAKES_END; i++)
		fprintf(stderr, "  %-12s %s\n", sim_mistakes[i].word, sim_mistakes[i].text);
	return 2;
}

static bool parse_number(const char *text, uint64_t *number)
{
	int end = 0;

	return sscanf(text, "%" SCNu64 "%n", number, &end) == 1 && *number > 0 && !text[end];
}

static bool parse_range(const char *text, struct sim_seeds *seeds)
{
	int end = 0;

	return sscanf(text, "%" SCNu64 "..%" SCNu64 "%n", &seeds->first, &seeds->last, &end) == 2 &&
	       !text[end];
}

/* Returns false if this is not an option without a value. */
static bool parse_flag(const char *option, struct arguments *arguments)
{
	if (!strcmp(option, "--mistakes"))
		arguments->all_mistakes = true;
	else if (!strcmp(option, "--anew"))
		arguments->anew = true;
	else if (!strcmp(option, "--note"))
		arguments->note = true;
	else if (!strcmp(option, "--sound"))
		arguments->seeds.sound = true;
	else if (!strcmp(option, "--trace"))
		arguments->seeds.tracing = arguments->seeds.printing = true;
	else
		return false;
	return true;
}

/* Returns false if the option is unknown or does not take this value. */
static bool parse_option(const char *option, const char *value, struct arguments *arguments)
{
	struct sim_seeds *seeds = &arguments->seeds;

	if (!strcmp(option, "--seed")) {
		bool good = parse_number(value, &seeds->first);

		seeds->last = seeds->first;
		return good;
	}
	if (!strcmp(option, "--full"))
		arguments->full = true;
	if (!strcmp(option, "--full") || !strcmp(option, "--seeds"))
		return parse_range(value, seeds);
	if (!strcmp(option, "--mistake"))
		return (seeds->mistake = sim_search_mistake(value)) > 0;
	if (!strcmp(option, "--list"))
		arguments->list = value;
	else if (!strcmp(option, "--night"))
		return parse_number(value, &arguments->night);
	else if (!strcmp(option, "--start"))
		return parse_number(value, &arguments->start);
	else if (!strcmp(option, "--seconds"))
		return parse_number(value, &arguments->seconds);
	else if (!strcmp(option, "--jobs"))
		return parse_number(value, &arguments->jobs);
	else
		return false;
	return true;
}

/* Returns false if a seed would be larger than UINT64_MAX - 1, or a number is too large. */
static bool is_in_range(const struct arguments *arguments)
{
	return arguments->jobs <= SIM_JOBS_MAX && arguments->seconds <= UINT32_MAX &&
	       arguments->seeds.first <= arguments->seeds.last &&
	       arguments->seeds.last < UINT64_MAX && arguments->night <= START_MAX &&
	       arguments->start <= START_MAX;
}

/* Returns false if the arguments are not understood. */
static bool parse(int argc, char **argv, struct arguments *arguments)
{
	for (int i = 1; i < argc; i++) {
		if (parse_flag(argv[i], arguments))
			continue;
		if (i + 1 == argc || !parse_option(argv[i], argv[i + 1], arguments))
			return false;
		i++;
	}
	return is_in_range(arguments);
}

int main(int argc, char **argv)
{
	struct arguments arguments = { 0 };

	if (!parse(argc, argv, &arguments) || !sim_runs_begin())
		return usage();
	return run(&arguments);
}
