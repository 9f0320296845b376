/*
 * search.c - see search.h. An edit of the code may change what happens with a seed, so that a noted
 * one no longer finds its mistake. Then the search finds another, and prints the row to change.
 */
#include "search.h"

#include "mistakes.h"
#include "runs.h"

#include <inttypes.h>
#include <sys/resource.h>

/* The search notes the cheapest of the first CANDIDATES schedules that find a mistake. After the
 * first one it goes on to at most twice that seed plus LITTLE_MORE. */
enum { CANDIDATES = 5, LITTLE_MORE = 20 };

int sim_search_mistake(const char *word)
{
	for (int i = 1; i < SIM_MISTAKES_END; i++)
		if (!strcmp(sim_mistakes[i].word, word))
			return i;
	return -1;
}

static bool passes(int mistake, bool sound, uint64_t seed)
{
	const struct sim_seeds seeds = {
		.first = seed, .last = seed, .mistake = mistake, .sound = sound
	};

	return sim_runs_pass(&seeds);
}

static void print_row(int mistake, uint64_t seed)
{
	const struct sim_mistake_about *about = &sim_mistakes[mistake];

	printf("\tX(%s, \"%s\", %u, %" PRIu64 ", \"%s\") \\\n", about->name, about->word,
	       about->seeds, seed, about->text);
	fflush(stdout);
}

/* --- finding --- */

/* Returns 0 if none of the schedules finds the mistake. */
static uint64_t search(int mistake)
{
	const struct sim_mistake_about *about = &sim_mistakes[mistake];
	const struct sim_seeds seeds = { .first = 1, .last = about->seeds, .mistake = mistake };

	if (!sim_runs_pass(&seeds))
		return sim_runs_seed();
	printf("  MISSED in %u seeds: sim --mistake %s\n", about->seeds, about->word);
	return 0;
}

/* Returns 0 if the mistake is missed. */
static uint64_t noted_or_other(int mistake)
{
	const unsigned noted = sim_mistakes[mistake].noted;
	uint64_t other;

	if (!passes(mistake, false, noted))
		return noted;
	printf("  not found with seed %u, which is noted: searching\n", noted);
	other = search(mistake);
	if (other) {
		printf("  the row of tests/sim/mistakes.h with another seed:\n");
		print_row(mistake, other);
	}
	return other;
}

bool sim_search_find(int mistake, bool anew)
{
	const struct sim_mistake_about *about = &sim_mistakes[mistake];
	uint64_t seed;

	printf("mistake: %s\n", about->text);
	seed = anew ? search(mistake) : noted_or_other(mistake);
	if (!seed)
		return false;
	printf("  found; again: sim --mistake %s --seed %" PRIu64 " --trace\n", about->word, seed);
	/* The schedule must pass without the mistake, so that the mistake is what it found. */
	if (passes(mistake, true, seed))
		return true;
	printf("  FAILED also without it: sim --mistake %s --sound --seed %" PRIu64 " --trace\n",
	       about->word, seed);
	return false;
}

unsigned sim_search_find_all(bool anew)
{
	unsigned missed = 0;

	for (int mistake = 1; mistake < SIM_MISTAKES_END; mistake++)
		missed += !sim_search_find(mistake, anew);
	return missed;
}

/* --- noting --- */

/* Returns the processor time of all children so far, in microseconds. */
static uint64_t children_us(void)
{
	struct rusage used;

	getrusage(RUSAGE_CHILDREN, &used);
	return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Returns the processor time that the schedule takes with the mistake and without it, or UINT64_MAX
 * if it fails also without it. */
static uint64_t cost_us(int mistake, uint64_t seed)
{
	uint64_t before = children_us();

	passes(mistake, false, seed);
	return passes(mistake, true, seed) ? children_us() - before : UINT64_MAX;
}

bool sim_search_note(int mistake)
{
	struct sim_seeds seeds = { .first = 1,
		                   .last = sim_mistakes[mistake].seeds,
		                   .mistake = mistake };
	uint64_t best = 0, best_us = UINT64_MAX;

	for (unsigned i = 0; i < CANDIDATES && !sim_runs_pass(&seeds); i++) {
		uint64_t seed = sim_runs_seed(), us = cost_us(mistake, seed);

		if (us < best_us) {
			best = seed;
			best_us = us;
		}
		if (i == 0 && 2 * seed + LITTLE_MORE < seeds.last)
			seeds.last = 2 * seed + LITTLE_MORE;
		seeds.first = seed + 1;
	}
	if (best)
		print_row(mistake, best);
	return best != 0;
}
