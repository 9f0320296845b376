/*
 * measure.c - runs rounds, computes medians, prints tables.
 */
#include "clock.h"
#include "measure.h"
#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_A_LOOK = 32 }; /* between two reads of the clock in the untimed pass */

struct measured *measured_new(const char *name, int (*step)(void *ctx), void *ctx)
{
	struct measured *m = calloc(1, sizeof(*m));

	if (!m)
		exit(program_fail("memory", strerror(errno)));
	m->name = name;
	m->step = step;
	m->ctx = ctx;
	return m;
}

void measured_free_all(struct measured *const *m, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		free(m[i]);
}

static int pass_untimed(struct measured *m, uint64_t ns, uint64_t steps)
{
	uint64_t start = clock_ns(), busy = clock_thread_ns();
	uint64_t now = start, done = 0;
	int code;

	do {
		for (unsigned i = 0; i < STEPS_A_LOOK && (!steps || done < steps); i++, done++)
			if ((code = m->step(m->ctx)))
				return code;
		now = clock_ns();
	} while (now - start < ns && (!steps || done < steps));
	busy = clock_thread_ns() - busy;
	m->rates[m->rounds] = (double)done * 1e9 / (double)(now - start + !(now - start));
	m->busy_rates[m->rounds] = (double)done * 1e9 / (double)(busy + !busy);
	return 0;
}

/* Runs steps and records the latency of each. Reads the clock once a step: the end of one is the
 * beginning of the next. */
static int pass_timed(struct measured *m, uint64_t ns, uint64_t steps)
{
	uint64_t start = clock_ns();
	uint64_t before = start, done = 0;
	int code;

	ps_histogram_clear(&m->round);
	before = clock_ns();
	while (before - start < ns && (!steps || done < steps)) {
		uint64_t after;

		if ((code = m->step(m->ctx)))
			return code;
		after = clock_ns();
		ps_histogram_add(&m->round, after - before);
		before = after;
		done++;
	}
	m->medians[m->rounds] = ps_histogram_percentile(&m->round, 50);
	ps_histogram_merge(&m->latency, &m->round);
	return 0;
}

int measure_warm_up(struct measured *m, double seconds)
{
	return pass_untimed(m, (uint64_t)(seconds * 1e9), 0);
}

int measure_round(struct measured *m, double seconds, uint64_t steps)
{
	uint64_t half = (uint64_t)(seconds * 1e9 / 2);
	int code;

	if (m->rounds == MEASURE_ROUNDS_MAX)
		return -1;
	if ((code = pass_untimed(m, half, steps)) || (code = pass_timed(m, half, steps)))
		return code;
	m->rounds++;
	return 0;
}

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct measured_ratio measured_summary(double *values, unsigned count)
{
	struct measured_ratio ratio = { 0, 0, 0 };

	if (!count)
		return ratio;
	qsort(values, count, sizeof(*values), compare_numbers);
	ratio.least = values[0];
	ratio.most = values[count - 1];
	ratio.median = count % 2 ? values[count / 2]
	                         : (values[count / 2 - 1] + values[count / 2]) / 2;
	return ratio;
}

/* Returns true if the rates of all rounds agree, not counting the fastest and the slowest quarter:
 * a round that was disturbed says nothing about the others. */
static bool is_settled(const struct measured *m, const struct measure_plan *plan)
{
	const unsigned out = m->rounds / 4;
	double values[MEASURE_ROUNDS_MAX];
	double median;

	memcpy(values, plan->busy ? m->busy_rates : m->rates, sizeof(values));
	median = measured_summary(values, m->rounds).median;
	return values[m->rounds - 1 - out] - values[out] <= plan->spread * median;
}

static bool are_settled(struct measured *const *m, unsigned count, const struct measure_plan *plan)
{
	for (unsigned i = 0; i < count; i++)
		if (m[i]->rounds < MEASURE_ROUNDS_LEAST || !is_settled(m[i], plan))
			return false;
	return true;
}

const struct measured *measure_in_turn(struct measured *const *m, unsigned count,
                                       const struct measure_plan *plan)
{
	bool settled = false;

	for (uint64_t round = 0; round < plan->rounds && !settled; round++) {
		for (unsigned i = 0; i < count; i++)
			if ((m[i]->code = measure_round(m[i], plan->seconds, plan->steps)))
				return m[i];
		settled = plan->spread > 0 && are_settled(m, count, plan);
	}
	return NULL;
}

struct measured_ratio measured_rates(const struct measured *m)
{
	double values[MEASURE_ROUNDS_MAX];

	memcpy(values, m->rates, sizeof(values));
	return measured_summary(values, m->rounds);
}

static uint64_t measured_latency(const struct measured *m, double percent)
{
	return ps_histogram_percentile(&m->latency, percent);
}

static void print_line(FILE *out, const struct measured *m)
{
	struct measured_ratio rate = measured_rates(m);

	fprintf(out, "%-16s %12.0f %12.0f - %10.0f", m->name, rate.median, rate.least, rate.most);
	fprintf(out, " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9.1f\n", measured_latency(m, 50),
	        measured_latency(m, 99), measured_latency(m, 99.9), (double)m->latency.max / 1000);
}

void measured_print(FILE *out, struct measured *const *m, unsigned count)
{
	fprintf(out, "%-16s %12s %25s %9s %9s %9s %9s\n", "", "rate/s", "of rounds, min - max",
	        "p50 ns", "p99 ns", "p99.9 ns", "max us");
	for (unsigned i = 0; i < count; i++)
		print_line(out, m[i]);
}

void measured_print_ratios(FILE *out, const struct measured *a, const struct measured *b)
{
	double rates[MEASURE_ROUNDS_MAX], medians[MEASURE_ROUNDS_MAX];
	struct measured_ratio rate, median;

	for (unsigned i = 0; i < a->rounds; i++) {
		rates[i] = a->rates[i] / b->rates[i];
		medians[i] = (double)a->medians[i] / (double)(b->medians[i] + !b->medians[i]);
	}
	rate = measured_summary(rates, a->rounds);
	median = measured_summary(medians, a->rounds);
	fprintf(out, "%s / %s: rate %.3f (%.3f - %.3f), median latency %.2f (%.2f - %.2f)\n",
	        a->name, b->name, measured_rates(a).median / measured_rates(b).median, rate.least,
	        rate.most, (double)measured_latency(a, 50) / (double)measured_latency(b, 50),
	        median.least, median.most);
}

void measured_ratio_json(struct ps_json *json, const char *key, struct measured_ratio ratio)
{
	ps_json_begin(json, key, '{');
	ps_json_real(json, "median", ratio.median);
	ps_json_real(json, "min", ratio.least);
	ps_json_real(json, "max", ratio.most);
	ps_json_end(json, '}');
}

void measured_numbers_json(struct ps_json *json, const char *key, const double *numbers,
                           unsigned count)
{
	ps_json_begin(json, key, '[');
	for (unsigned i = 0; i < count; i++)
		ps_json_real(json, NULL, numbers[i]);
	ps_json_end(json, ']');
}

void measured_json(struct ps_json *json, const struct measured *m)
{
	ps_json_number(json, "rounds", m->rounds);
	measured_ratio_json(json, "rate", measured_rates(m));
	ps_json_number(json, "p50_ns", measured_latency(m, 50));
	ps_json_number(json, "p99_ns", measured_latency(m, 99));
	ps_json_number(json, "p99_9_ns", measured_latency(m, 99.9));
	ps_json_number(json, "max_ns", m->latency.max);
	measured_numbers_json(json, "rates", m->rates, m->rounds);
	measured_numbers_json(json, "busy_rates", m->busy_rates, m->rounds);
	ps_json_begin(json, "p50s_ns", '[');
	for (unsigned i = 0; i < m->rounds; i++)
		ps_json_number(json, NULL, m->medians[i]);
	ps_json_end(json, ']');
}

void measured_json_all(struct ps_json *json, struct measured *const *m, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		ps_json_begin(json, m[i]->name, '{');
		measured_json(json, m[i]);
		ps_json_end(json, '}');
	}
}
