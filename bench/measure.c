/*
 * measure.c - rounds, medians, tables.
 */
#include "clock.h"
#include "measure.h"
#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_A_LOOK = 32 }; /* between two looks at the clock in a pass without one */

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

void measured_free(struct measured *m)
{
	free(m);
}

void measured_free_all(struct measured *const *m, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		measured_free(m[i]);
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

/* The clock is read once a step: the end of one is the beginning of the next. */
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

const struct measured *measure_in_turn(struct measured *const *m, unsigned count, uint64_t rounds,
                                       double seconds, uint64_t steps)
{
	for (uint64_t round = 0; round < rounds; round++)
		for (unsigned i = 0; i < count; i++)
			if ((m[i]->code = measure_round(m[i], seconds, steps)))
				return m[i];
	return NULL;
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

struct measured_ratio measured_rates(const struct measured *m)
{
	double values[MEASURE_ROUNDS_MAX];

	memcpy(values, m->rates, sizeof(values));
	return measured_summary(values, m->rounds);
}

double measured_rate(const struct measured *m)
{
	return measured_rates(m).median;
}

uint64_t measured_latency(const struct measured *m, double percent)
{
	return ps_histogram_percentile(&m->latency, percent);
}

struct measured_ratio measured_rate_ratio(const struct measured *a, const struct measured *b)
{
	double values[MEASURE_ROUNDS_MAX];
	struct measured_ratio ratio;

	for (unsigned i = 0; i < a->rounds; i++)
		values[i] = a->rates[i] / b->rates[i];
	ratio = measured_summary(values, a->rounds);
	ratio.median = measured_rate(a) / measured_rate(b);
	return ratio;
}

struct measured_ratio measured_latency_ratio(const struct measured *a, const struct measured *b)
{
	double values[MEASURE_ROUNDS_MAX];
	struct measured_ratio ratio;

	for (unsigned i = 0; i < a->rounds; i++)
		values[i] = (double)a->medians[i] / (double)(b->medians[i] + !b->medians[i]);
	ratio = measured_summary(values, a->rounds);
	ratio.median = (double)measured_latency(a, 50) / (double)measured_latency(b, 50);
	return ratio;
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
	struct measured_ratio rate = measured_rate_ratio(a, b);
	struct measured_ratio latency = measured_latency_ratio(a, b);

	fprintf(out, "%s / %s: rate %.3f (%.3f - %.3f), median latency %.2f (%.2f - %.2f)\n",
	        a->name, b->name, rate.median, rate.least, rate.most, latency.median, latency.least,
	        latency.most);
}

void measured_numbers_json(FILE *out, const char *name, const double *numbers, unsigned count)
{
	fprintf(out, "\"%s\": [", name);
	for (unsigned i = 0; i < count; i++)
		fprintf(out, "%s%.6g", i ? ", " : "", numbers[i]);
	fprintf(out, "]");
}

void measured_json(FILE *out, const struct measured *m)
{
	struct measured_ratio rate = measured_rates(m);

	fprintf(out, "\"%s\": {\"rounds\": %u, \"rate\": ", m->name, m->rounds);
	measured_ratio_json(out, &rate);
	fprintf(out, ", ");
	measured_percentiles_json(out, &m->latency);
	fprintf(out, ", \"max_ns\": %" PRIu64 ", ", m->latency.max);
	measured_numbers_json(out, "rates", m->rates, m->rounds);
	fprintf(out, ", ");
	measured_numbers_json(out, "busy_rates", m->busy_rates, m->rounds);
	fprintf(out, ", \"p50s_ns\": [");
	for (unsigned i = 0; i < m->rounds; i++)
		fprintf(out, "%s%" PRIu64, i ? ", " : "", m->medians[i]);
	fprintf(out, "]}");
}

void measured_json_all(FILE *out, struct measured *const *m, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		fprintf(out, "%s", i ? ", " : "");
		measured_json(out, m[i]);
	}
}

void measured_print_all(struct measured *const *m, unsigned count, bool json)
{
	if (!json) {
		measured_print(stdout, m, count);
		return;
	}
	printf("{");
	measured_json_all(stdout, m, count);
	printf("}\n");
}

void measured_ratio_json(FILE *out, const struct measured_ratio *ratio)
{
	fprintf(out, "{\"median\": %.6g, \"min\": %.6g, \"max\": %.6g}", ratio->median,
	        ratio->least, ratio->most);
}

void measured_ratios_json(FILE *out, const struct measured *a, const struct measured *b,
                          const char *behind)
{
	struct measured_ratio rate = measured_rate_ratio(a, b);
	struct measured_ratio latency = measured_latency_ratio(a, b);

	fprintf(out, ", \"rate_ratio%s\": ", behind);
	measured_ratio_json(out, &rate);
	fprintf(out, ", \"p50_ratio%s\": ", behind);
	measured_ratio_json(out, &latency);
}

void measured_percentiles_json(FILE *out, const struct ps_histogram *latency)
{
	fprintf(out, "\"p50_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64 ", \"p99_9_ns\": %" PRIu64,
	        ps_histogram_percentile(latency, 50), ps_histogram_percentile(latency, 99),
	        ps_histogram_percentile(latency, 99.9));
}

void measured_text_json(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
	}
	fputc('"', out);
}
