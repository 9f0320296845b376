/*
 * bench_run.c - see bench.h. Each thread runs transactions in a slice of the segment of its own.
 */
#include "bench.h"
#include "../../host/socket.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	WARM_PERCENT = 10, /* percent of a size's time that warm up and are not measured */
	LOOK_MS = 20,      /* pause between two looks at the clock and at signals */
};

enum stage { WARMING, MEASURING, ENDING };

struct run {
	perseas_t *p;
	uint32_t bytes;
	_Atomic enum stage stage;
	_Atomic unsigned failed;
	_Atomic bool measured; /* a commit was measured */
};

struct worker {
	struct run *run;
	pthread_t thread;
	uint8_t *slice;
	uint64_t number; /* transactions so far */
	int code;        /* the error that ended the thread; 0: none */
	struct ps_histogram commits;
};

static int worker_run_transaction(struct worker *w, uint64_t *ns)
{
	const size_t bytes = w->run->bytes;
	const size_t places = PS_BENCH_SLICE / bytes;
	uint8_t *at = w->slice + w->number++ % places * bytes;
	perseas_tx_t *tx;
	uint64_t before;
	int rc = perseas_begin(w->run->p, 0, &tx);

	if (rc)
		return rc;
	rc = perseas_set_range(tx, at, bytes);
	if (rc) {
		perseas_abort(tx);
		return rc;
	}
	memset(at, (int)(w->number & 0xff), bytes);
	before = ps_monotonic();
	rc = perseas_commit(tx, 0);
	*ns = ps_monotonic() - before;
	return rc;
}

static void *worker_run(void *arg)
{
	struct worker *w = arg;
	enum stage stage;
	uint64_t ns;

	while ((stage = atomic_load_explicit(&w->run->stage, memory_order_relaxed)) != ENDING) {
		w->code = worker_run_transaction(w, &ns);
		if (w->code)
			break;
		if (stage == MEASURING) {
			ps_histogram_add(&w->commits, ns);
			atomic_store_explicit(&w->run->measured, true, memory_order_relaxed);
		}
	}
	/* Only the first thread that fails says why. */
	if (w->code && atomic_fetch_add(&w->run->failed, 1) == 0)
		ps_complain(PS_EXIT_OK, "%s", perseas_message(w->run->p));
	return NULL;
}

/* Sleeps for `ms`, and in stage MEASURING until a commit was measured. Returns early if a signal
 * says to stop, or if a thread failed. */
static void wait_in_stage(const struct run *run, uint64_t ms)
{
	const uint64_t until = ps_monotonic() + ms * 1000000;

	while (!ps_stop_requested() && !atomic_load(&run->failed)) {
		const uint64_t now = ps_monotonic(), left = until > now ? until - now : 0;

		if (!left && (run->stage != MEASURING || atomic_load(&run->measured)))
			return;
		poll(NULL, 0,
		     left && left < (uint64_t)LOOK_MS * 1000000 ? (int)(left / 1000000) : LOOK_MS);
	}
}

static unsigned start_workers(struct run *run, struct worker *workers, uint8_t *base,
                              unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		workers[i].run = run;
		workers[i].slice = base + i * PS_BENCH_SLICE;
		if (pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]))
			return i;
	}
	return count;
}

/* Measures one size. A run that is stopped reports what it measured so far. */
static enum ps_exit measure_size(struct ps_bench *bench, struct ps_bench_size *size,
                                 struct worker *workers)
{
	const struct ps_args *args = bench->args;
	struct run run = { .p = bench->p, .bytes = size->bytes, .stage = WARMING };
	unsigned count = start_workers(&run, workers, bench->base, args->threads);
	uint64_t before;

	wait_in_stage(&run, args->run_ms * WARM_PERCENT / 100);
	atomic_store(&run.stage, MEASURING);
	before = ps_monotonic();
	if (count == args->threads)
		wait_in_stage(&run, args->run_ms);
	size->seconds = (double)(ps_monotonic() - before) / 1e9;
	atomic_store(&run.stage, ENDING);
	for (unsigned i = 0; i < count; i++) {
		pthread_join(workers[i].thread, NULL);
		ps_histogram_merge(&size->commits, &workers[i].commits);
	}
	if (count < args->threads)
		return ps_complain(PS_EXIT_FAILURE, "the system has no room for %u threads",
		                   args->threads);
	return atomic_load(&run.failed) ? PS_EXIT_FAILURE : PS_EXIT_OK;
}

enum ps_exit ps_bench_commits(struct ps_bench *bench)
{
	const struct ps_args *args = bench->args;
	enum ps_exit status = PS_EXIT_OK;

	for (unsigned i = 0; i < args->size_count && !status && !ps_stop_requested(); i++) {
		struct ps_bench_size *size = &bench->sizes[i];
		struct worker *workers = calloc(args->threads, sizeof(*workers));

		size->bytes = args->sizes[i];
		if (workers)
			status = measure_size(bench, size, workers);
		else
			status = ps_complain(PS_EXIT_FAILURE, "out of memory");
		free(workers);
		bench->size_count += size->commits.total > 0;
	}
	return status;
}
