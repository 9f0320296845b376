/*
 * cmd_bench.c - perseas bench: measures how long commits take on these mirrors.
 */
#include "command.h"
#include "bench/bench.h"
#include "ask/drop.h"
#include "../../proto/base/json.h"
#include "../../proto/image/layout.h"

#include <inttypes.h>
#include <sys/random.h>

static double us_of_ns(uint64_t ns)
{
	return (double)ns / 1000;
}

static double commit_rate(const struct ps_bench_size *size)
{
	return size->seconds > 0 ? (double)size->commits.total / size->seconds : 0;
}

/* --- for people --- */

static void print_mirrors(perseas_t *p, unsigned count)
{
	struct ps_table table = { 0 };

	ps_table_add_heads(&table, "MIRROR|OVER|");
	for (unsigned i = 0; i < count; i++) {
		struct perseas_mirror_stat mirror;

		if (perseas_mirror_stat(p, i, &mirror))
			continue;
		ps_table_set_cell(&table, 0, "%s", mirror.address);
		ps_table_set_cell(&table, 1, "%s", mirror.fabric);
		ps_table_set_cell(&table, 2, "%s", mirror.trouble);
	}
	ps_table_print(&table, stdout);
}

static void print_sizes(const struct ps_bench *bench)
{
	static const double percents[] = { 50, 99, 99.9 };
	struct ps_table table = { 0 };
	char text[PS_SIZE_TEXT];

	ps_table_add_heads(&table, "COMMIT OF|RATE /S|P50 US|P99 US|P99.9 US|MAX US");
	for (unsigned i = 0; i < bench->size_count; i++) {
		const struct ps_bench_size *size = &bench->sizes[i];

		ps_table_set_cell(&table, 0, "%s", ps_size_text(text, size->bytes));
		ps_table_set_cell(&table, 1, "%.0f", commit_rate(size));
		for (unsigned k = 0; k < 3; k++)
			ps_table_set_cell(&table, 2 + k, "%.1f",
			                  us_of_ns(ps_histogram_percentile(&size->commits,
			                                                   percents[k])));
		ps_table_set_cell(&table, 5, "%.1f", us_of_ns(size->commits.max));
	}
	printf("\n");
	ps_table_print(&table, stdout);
}

static void print_text(const struct ps_bench *bench, const struct perseas_stat *stat)
{
	const unsigned threads = bench->args->threads;

	printf("%u mirror%s, W = %u, %u thread%s, %.1f s a size\n\n", stat->mirrors,
	       ps_plural(stat->mirrors), stat->acks, threads, ps_plural(threads),
	       bench->args->run_ms / 1000.0);
	print_mirrors(bench->p, stat->mirrors);
	print_sizes(bench);
}

/* --- for programs --- */

static void mirrors_json(struct ps_json *json, perseas_t *p, unsigned count)
{
	ps_json_begin(json, "mirrors", '[');
	for (unsigned i = 0; i < count; i++) {
		struct perseas_mirror_stat mirror;

		if (perseas_mirror_stat(p, i, &mirror))
			continue;
		ps_json_begin(json, NULL, '{');
		ps_json_text(json, "address", mirror.address);
		ps_json_text(json, "fabric", mirror.fabric);
		ps_json_text(json, "trouble", *mirror.trouble ? mirror.trouble : NULL);
		ps_json_end(json, '}');
	}
	ps_json_end(json, ']');
}

static void size_json(struct ps_json *json, const struct ps_bench_size *size)
{
	const struct ps_histogram *commits = &size->commits;

	ps_json_begin(json, NULL, '{');
	ps_json_number(json, "bytes", size->bytes);
	ps_json_real(json, "seconds", size->seconds);
	ps_json_real(json, "rate", commit_rate(size));
	ps_json_begin(json, "commit", '{');
	ps_json_number(json, "count", commits->total);
	ps_json_real(json, "p50_us", us_of_ns(ps_histogram_percentile(commits, 50)));
	ps_json_real(json, "p99_us", us_of_ns(ps_histogram_percentile(commits, 99)));
	ps_json_real(json, "p99_9_us", us_of_ns(ps_histogram_percentile(commits, 99.9)));
	ps_json_real(json, "max_us", us_of_ns(commits->max));
	ps_json_end(json, '}');
	ps_json_end(json, '}');
}

static void print_json(const struct ps_bench *bench, const struct perseas_stat *stat)
{
	struct ps_json json = { .out = stdout };

	ps_json_begin(&json, NULL, '{');
	ps_json_number(&json, "acks", stat->acks);
	ps_json_number(&json, "threads", bench->args->threads);
	mirrors_json(&json, bench->p, stat->mirrors);
	ps_json_begin(&json, "sizes", '[');
	for (unsigned i = 0; i < bench->size_count; i++)
		size_json(&json, &bench->sizes[i]);
	ps_json_end(&json, ']');
	ps_json_end(&json, '}');
}

/* --- the verb --- */

static enum ps_exit bench_measure(struct ps_bench *bench)
{
	struct perseas_stat stat = { 0 };
	enum ps_exit status;
	void *base;
	int rc = perseas_map(bench->p, "bench", bench->args->threads * PS_BENCH_SLICE, &base);

	if (!rc)
		rc = perseas_publish(bench->p);
	if (rc)
		return ps_library_complain(bench->p, rc);
	bench->base = base;
	status = ps_bench_commits(bench);
	perseas_stat(bench->p, &stat);
	(bench->args->json ? print_json : print_text)(bench, &stat);
	return status;
}

static void make_store_name(char name[PS_NAME_MAX + 1])
{
	uint64_t number;

	/* Without random bytes the name may exist already, and then the store is not created. */
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = 0;
	snprintf(name, PS_NAME_MAX + 1, "bench-%016" PRIx64, number);
}

/* Drops the store that bench made. Its name is random, so it can be no other client's. */
static enum ps_exit drop_store(const char *store, const struct ps_args *args)
{
	if (!ps_drop_all(store, args->mirrors, &args->options))
		return PS_EXIT_OK;
	return ps_complain(PS_EXIT_FAILURE, "store '%s' on %s is left: delete it with perseas drop",
	                   store, args->mirrors);
}

enum ps_exit ps_verb_bench(const struct ps_args *args)
{
	static struct ps_bench bench;
	char store[PS_NAME_MAX + 1];
	enum ps_exit status, dropped;
	int rc;

	if (args->is_default_list)
		ps_announce(args->json, "no list is given: the commits load %s", args->mirrors);
	make_store_name(store);
	ps_stop_catch();
	rc = perseas_create(store, args->mirrors, &args->options);
	if (rc)
		return ps_library_complain(NULL, rc);
	rc = perseas_open(store, args->mirrors, &args->options, &bench.p);
	bench.args = args;
	status = rc ? ps_library_complain(NULL, rc) : bench_measure(&bench);
	perseas_close(bench.p);
	dropped = drop_store(store, args);
	if (!status && ps_stop_requested())
		status = ps_complain(PS_EXIT_PARTLY, "stopped by a signal before all was measured");
	return dropped ? dropped : status;
}
