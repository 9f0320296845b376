/*
 * measure.h - measures several steps in turn, round by round. Each round gives a rate, from a pass
 * without reading the clock, and latencies, from a pass with it.
 */
#ifndef PERSEAS_BENCH_MEASURE_H
#define PERSEAS_BENCH_MEASURE_H

#include "../client/command/bench/histogram.h"
#include "../proto/base/json.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { MEASURE_ROUNDS_MAX = 101, MEASURE_ROUNDS_LEAST = 3 };

struct measured {
	const char *name;
	int (*step)(void *ctx); /* runs one transaction; returns nonzero if it failed */
	void *ctx;
	int code;                         /* what the step that failed returned */
	unsigned rounds;                  /* measured so far */
	double rates[MEASURE_ROUNDS_MAX]; /* steps a second in each round */
	/* Steps per second of the thread's processor time: excludes time taken by other processes
	 * and time spent waiting. */
	double busy_rates[MEASURE_ROUNDS_MAX];
	uint64_t medians[MEASURE_ROUNDS_MAX]; /* median latency in each round, ns */
	struct ps_histogram latency;
	struct ps_histogram round;
};

/* Allocates the results for one step function. Exits the program if there is no memory. */
struct measured *measured_new(const char *name, int (*step)(void *ctx), void *ctx);
void measured_free_all(struct measured *const *m, unsigned count);

/* Runs steps for `seconds` without recording anything. Returns 0, or what the failed step
 * returned. */
int measure_warm_up(struct measured *m, double seconds);

/*
 * Measures one round: half of `seconds` without reading the clock, half with it. If `steps` is not
 * 0, each half ends after that many steps at the latest. Returns 0, or what the failed step
 * returned.
 */
int measure_round(struct measured *m, double seconds, uint64_t steps);

/* How to measure several steps in turn. */
struct measure_plan {
	uint64_t rounds; /* upper bound for each step function */
	double seconds;  /* of a round */
	uint64_t steps;  /* upper bound for half a round; 0: none */
	/* Ends early, after at least MEASURE_ROUNDS_LEAST rounds, when the rates of every step
	 * function differ by at most this fraction of their median, not counting the fastest and
	 * the slowest quarter of the rounds. 0: runs all rounds. */
	double spread;
	bool busy; /* compares the rates of processor time to end early */
};

/* Measures all step functions in turn, round by round. Returns NULL, or the one that failed. */
const struct measured *measure_in_turn(struct measured *const *m, unsigned count,
                                       const struct measure_plan *plan);

/* The median, smallest and largest value of several rounds. */
struct measured_ratio {
	double median, least, most;
};

/* Summarizes `values`, which it sorts. Returns zeros if count is 0. */
struct measured_ratio measured_summary(double *values, unsigned count);

struct measured_ratio measured_rates(const struct measured *m);

/* Prints a table with a line for each result; and a line that compares two results, with the ratio
 * of their medians and the smallest and largest ratio of rounds of the same number. */
void measured_print(FILE *out, struct measured *const *m, unsigned count);
void measured_print_ratios(FILE *out, const struct measured *a, const struct measured *b);

/* Adds a member for each result to a JSON object, named after the result. */
void measured_json_all(struct ps_json *json, struct measured *const *m, unsigned count);
/* Adds the number of rounds, the rates and the latencies of one result to a JSON object. */
void measured_json(struct ps_json *json, const struct measured *m);
/* Add a ratio, or an array of numbers, to a JSON object as member `key`. */
void measured_ratio_json(struct ps_json *json, const char *key, struct measured_ratio ratio);
void measured_numbers_json(struct ps_json *json, const char *key, const double *numbers,
                           unsigned count);

#endif
