/*
 * measure.h - runs several things in turn, round by round, and tells what each did: its
 * rate from a pass without a clock, its latencies from a pass with one.
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
	int (*step)(void *ctx); /* one transaction; not 0: it failed */
	void *ctx;
	int code;                         /* of the step that failed */
	unsigned rounds;                  /* so far */
	double rates[MEASURE_ROUNDS_MAX]; /* a second */
	/* A second of the thread's processor time: what other processes take does not count, nor
	 * does what it waits for. */
	double busy_rates[MEASURE_ROUNDS_MAX];
	uint64_t medians[MEASURE_ROUNDS_MAX]; /* latency of each round, ns */
	struct ps_histogram latency;
	struct ps_histogram round;
};

/* Ends the program where there is no memory. */
struct measured *measured_new(const char *name, int (*step)(void *ctx), void *ctx);
void measured_free_all(struct measured *const *m, unsigned count);

/* Steps for that long that are not counted. 0, or what step returned. */
int measure_warm_up(struct measured *m, double seconds);

/*
 * One round: half of `seconds` without a clock, half with one; each half ends sooner after
 * `steps` steps, when that is not 0. 0, or what step returned.
 */
int measure_round(struct measured *m, double seconds, uint64_t steps);

/* How several are measured. */
struct measure_plan {
	uint64_t rounds; /* of each, at most */
	double seconds;  /* of a round */
	uint64_t steps;  /* of half a round, at most; 0: as many as there is time for */
	/* Fewer rounds will do, MEASURE_ROUNDS_LEAST of each at least, once the rates of none
	 * differ by more than this part of their median, without the fastest quarter of its rounds
	 * and the slowest; 0: all rounds are run. */
	double spread;
	bool busy; /* the rates that count there are those of processor time */
};

/* Rounds of each; they take turns, round by round. NULL, or the one that failed. */
const struct measured *measure_in_turn(struct measured *const *m, unsigned count,
                                       const struct measure_plan *plan);

/* A median, and the smallest and largest of the rounds. */
struct measured_ratio {
	double median, least, most;
};

/* Of any numbers, which it sorts; zeros when there are none. */
struct measured_ratio measured_summary(double *values, unsigned count);

struct measured_ratio measured_rates(const struct measured *m);

/* A table, and the line below it that compares two of its lines: the median of one by that of the
 * other, and the extremes of rounds of the same number. */
void measured_print(FILE *out, struct measured *const *m, unsigned count);
void measured_print_ratios(FILE *out, const struct measured *a, const struct measured *b);

/* Members of a JSON object: an object for each, by its name. */
void measured_json_all(struct ps_json *json, struct measured *const *m, unsigned count);
/* Those of one: its rounds, rates and latencies. */
void measured_json(struct ps_json *json, const struct measured *m);
/* A ratio, and an array, by that key. */
void measured_ratio_json(struct ps_json *json, const char *key, struct measured_ratio ratio);
void measured_numbers_json(struct ps_json *json, const char *key, const double *numbers,
                           unsigned count);

#endif
