/*
 * cmd_bench.c - perseas bench: how far from one round trip is a commit on these mirrors?
 */
#include "command.h"
#include "bench/bench.h"
#include "ask/drop.h"
#include "../../proto/base/json.h"
#include "change/remake.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static double us_of(uint64_t ns)
{
	return (double)ns / 1000;
}

/* Shared memory has no network to make a trip over. */
static bool is_remote(const struct ps_bench_trip *trip)
{
	return strcmp(trip->mirror.fabric, "shm") != 0;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The median round trip, in ns, to the slowest of the W nearest mirrors: what a commit cannot do
 * without. 0: there is none, or it was not measured. */
static uint64_t trips_least(const struct ps_bench *bench)
{
	uint64_t medians[PS_MIRRORS_MAX];
	const struct ps_bench_trip *trip = bench->trips;

	for (unsigned i = 0; i < bench->trip_count; i++, trip++) {
		if (!trip->latency.total)
			return 0;
		medians[i] = is_remote(trip) ? ps_histogram_percentile(&trip->latency, 50) : 0;
	}
	if (bench->p->acks > bench->trip_count)
		return 0;
	qsort(medians, bench->trip_count, sizeof(medians[0]), by_number);
	return medians[bench->p->acks - 1];
}

static double size_in_trips(const struct ps_bench *bench, const struct ps_bench_size *size)
{
	uint64_t trip = trips_least(bench);

	return trip ? (double)ps_histogram_percentile(&size->commits, 50) / (double)trip : 0;
}

static double size_rate(const struct ps_bench_size *size)
{
	return size->seconds > 0 ? (double)size->commits.total / size->seconds : 0;
}

/* --- for people --- */

static void latency_cells(struct ps_table *table, unsigned column, const struct ps_histogram *h)
{
	static const double percents[] = { 50, 99, 99.9 };

	for (unsigned i = 0; i < 3; i++)
		ps_table_cell(table, column + i, "%.1f",
		              us_of(ps_histogram_percentile(h, percents[i])));
	ps_table_cell(table, column + 3, "%.1f", us_of(h->max));
}

static void print_trips(const struct ps_bench *bench)
{
	struct ps_table table = { 0 };

	ps_table_heads(&table, "ROUND TRIP TO|OVER|P50 US|P99 US|P99.9 US|MAX US|");
	for (unsigned i = 0; i < bench->trip_count; i++) {
		const struct ps_bench_trip *trip = &bench->trips[i];

		ps_table_cell(&table, 0, "%s", trip->mirror.address);
		ps_table_cell(&table, 1, is_remote(trip) ? "%s data connection" : "%s (no network)",
		              trip->mirror.fabric);
		if (trip->latency.total)
			latency_cells(&table, 2, &trip->latency);
		ps_table_cell(&table, 6, "%s", trip->mirror.trouble);
	}
	ps_table_print(&table, stdout);
}

static void print_sizes(const struct ps_bench *bench)
{
	struct ps_table table = { 0 };
	char text[PS_SIZE_TEXT];

	ps_table_heads(&table, "COMMIT OF|RATE /S|P50 US|P99 US|P99.9 US|MAX US|ROUND TRIPS");
	for (unsigned i = 0; i < bench->size_count; i++) {
		const struct ps_bench_size *size = &bench->sizes[i];

		ps_table_cell(&table, 0, "%s", ps_size_text(text, size->bytes));
		ps_table_cell(&table, 1, "%.0f", size_rate(size));
		latency_cells(&table, 2, &size->commits);
		if (trips_least(bench))
			ps_table_cell(&table, 6, "%.2f", size_in_trips(bench, size));
		else
			ps_table_cell(&table, 6, "-");
	}
	printf("\n");
	ps_table_print(&table, stdout);
}

static void print_text(const struct ps_bench *bench)
{
	const unsigned mirrors = bench->p->mirror_count, threads = bench->args->threads;

	printf("%u mirror%s, W = %u, %u thread%s, %.1f s a size\n\n", mirrors, ps_plural(mirrors),
	       bench->p->acks, threads, ps_plural(threads), bench->args->run_ms / 1000.0);
	print_trips(bench);
	print_sizes(bench);
}

/* --- for programs --- */

static void latency_json(struct ps_json *json, const char *key, const struct ps_histogram *h)
{
	if (!ps_json_begin_if(json, key, h->total))
		return;
	ps_json_number(json, "count", h->total);
	ps_json_real(json, "p50_us", us_of(ps_histogram_percentile(h, 50)));
	ps_json_real(json, "p99_us", us_of(ps_histogram_percentile(h, 99)));
	ps_json_real(json, "p99_9_us", us_of(ps_histogram_percentile(h, 99.9)));
	ps_json_real(json, "max_us", us_of(h->max));
	ps_json_end(json, '}');
}

static void trips_json(struct ps_json *json, const struct ps_bench *bench)
{
	ps_json_begin(json, "mirrors", '[');
	for (unsigned i = 0; i < bench->trip_count; i++) {
		const struct ps_bench_trip *trip = &bench->trips[i];

		ps_json_begin(json, NULL, '{');
		ps_json_text(json, "address", trip->mirror.address);
		ps_json_text(json, "fabric", trip->mirror.fabric);
		ps_json_text(json, "over", is_remote(trip) ? "data connection" : "shared memory");
		ps_json_text(json, "trouble", *trip->mirror.trouble ? trip->mirror.trouble : NULL);
		latency_json(json, "round_trip", &trip->latency);
		ps_json_end(json, '}');
	}
	ps_json_end(json, ']');
}

static void print_json(const struct ps_bench *bench)
{
	struct ps_json json = { .out = stdout };

	ps_json_begin(&json, NULL, '{');
	ps_json_number(&json, "acks", bench->p->acks);
	ps_json_number(&json, "threads", bench->args->threads);
	trips_json(&json, bench);
	ps_json_begin(&json, "sizes", '[');
	for (unsigned i = 0; i < bench->size_count; i++) {
		const struct ps_bench_size *size = &bench->sizes[i];

		ps_json_begin(&json, NULL, '{');
		ps_json_number(&json, "bytes", size->bytes);
		ps_json_real(&json, "seconds", size->seconds);
		ps_json_real(&json, "rate", size_rate(size));
		latency_json(&json, "commit", &size->commits);
		ps_json_real(&json, "round_trips",
		             trips_least(bench) ? size_in_trips(bench, size) : NAN);
		ps_json_end(&json, '}');
	}
	ps_json_end(&json, ']');
	ps_json_end(&json, '}');
}

/* --- the verb --- */

static enum ps_exit bench_measure(struct ps_bench *bench)
{
	enum ps_exit status;
	void *base;
	int rc = perseas_map(bench->p, "bench", bench->args->threads * PS_BENCH_SLICE, &base);

	if (!rc)
		rc = perseas_publish(bench->p);
	if (rc)
		return ps_library_failed(bench->p, rc);
	bench->base = base;
	status = ps_bench_trips(bench);
	if (!status)
		status = ps_bench_commits(bench);
	if (bench->args->json)
		print_json(bench);
	else
		print_text(bench);
	return status;
}

static void name_store(char name[PS_NAME_MAX + 1])
{
	uint64_t number;

	/* A name that is taken after all is refused. */
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = 0;
	snprintf(name, PS_NAME_MAX + 1, "bench-%016" PRIx64, number);
}

/* Closes the store and deletes it. */
static enum ps_exit store_take_away(struct ps_remake *remake)
{
	uint8_t id[PS_ID_SIZE];

	memcpy(id, remake->p->store_id, sizeof(id));
	ps_remake_end(remake);
	if (!ps_drop_all(remake->store, remake->mirrors, id, &remake->options))
		return PS_EXIT_OK;
	return ps_complain(PS_EXIT_FAILURE, "store '%s' on %s is left: delete it with perseas drop",
	                   remake->store, remake->mirrors);
}

enum ps_exit ps_verb_bench(const struct ps_args *args)
{
	char name[PS_NAME_MAX + 1];
	struct ps_remake remake = {
		.store = name,
		.mirrors = args->mirrors,
		.options = args->options,
		.hint = "try again",
	};
	static struct ps_bench bench;
	enum ps_exit status, away;

	if (args->unnamed)
		ps_announce(args->json, "no list is given: the commits load %s", args->mirrors);
	name_store(name);
	ps_stop_catch();
	status = ps_remake_begin(&remake);
	if (status)
		return status;
	bench.args = args;
	bench.p = remake.p;
	status = bench_measure(&bench);
	away = store_take_away(&remake);
	if (!status && ps_stopped())
		status = ps_complain(PS_EXIT_PARTLY, "stopped by a signal before all was measured");
	return away ? away : status;
}
