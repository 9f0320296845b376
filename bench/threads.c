/*
 * threads - measures transactions of several threads of one owner, concurrent in disjoint ranges,
 * or serialized.
 */
#include "clock.h"
#include "fabric.h"
#include "measure.h"
#include "options.h"
#include "work.h"
#include "../client/perseas.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	THREADS_MAX = 64,
	COUNTS_MAX = 16,
	SLICE = 1 << 20,
	SLICES = THREADS_MAX * SLICE,
	MEMORY = SLICES + 4096, /* the threads' slices, and the counter that they share */
};

static struct options {
	const char *threads;
	uint32_t round_ms;
	uint64_t rounds, bytes;
	bool json, serial;
	struct engine_options engine;
} options = {
	/* How long to wait for a mirror to allocate memory on a busy host. */
	.engine = { .segment = "slices", .connect_ms = 30000 },
};

static const char about[] =
	"Threads run transactions on one store, each in 1 MiB of its own: a transaction counts\n"
	"up the number at the beginning of that, and overwrites one range at a random place of\n"
	"it. With --serial one transaction comes after another, and all threads count up one\n"
	"number together. The numbers of threads take turns, round by round. In the end the store\n"
	"is opened again, and what was read back compared.\n";

static const struct ps_option rows[] = {
	{ "mirrors", PS_OPTION_TEXT, AT(engine.mirrors), "LIST", .help = "Where the store is." },
	{ "store", PS_OPTION_TEXT, AT(engine.store), "NAME", "threads",
	  .help = "Store that is made there." },
	{ "threads", PS_OPTION_TEXT, AT(threads), "LIST", "1,2,4,8",
	  .help = "Numbers of threads." },
	{ "bytes", PS_OPTION_SIZE, AT(bytes), "N", "64", 1, SLICE / 2,
	  .help = "Bytes of a transaction's range." },
	{ "serial", PS_OPTION_FLAG, AT(serial),
	  .help = "Transactions are PERSEAS_SERIAL, and have a number in common." },
	ENGINE_OPTION_ROWS,
	ROUND_OPTION_ROWS,
	JSON_OPTION_ROW,
};

/* A thread and its slice of memory. */
struct writer {
	perseas_t *p;
	uint8_t *slice;
	uint64_t *common;
	uint64_t state;
	uint64_t number; /* of the last transaction that it committed */
	int code;
	/* In the current round. */
	uint64_t busy_ns; /* processor time */
	struct ps_histogram latency;
};

static struct writer writers[THREADS_MAX];
/* The series of rounds for each number of threads. */
static struct series {
	unsigned threads;
	char name[16];
} series[COUNTS_MAX];
static struct measured *measured[COUNTS_MAX];
static unsigned series_count;
static _Atomic bool stop;

static int count_up(struct writer *w)
{
	uint64_t number = w->number + 1;
	uint8_t *at = w->slice + sizeof(number) +
	              work_below(&w->state, (uint32_t)(SLICE - sizeof(number) - options.bytes));
	perseas_tx_t *tx;
	int code = perseas_begin(w->p, options.serial ? PERSEAS_SERIAL : 0, &tx);

	if (code)
		return code;
	if (options.serial) {
		code = perseas_set_range(tx, w->common, sizeof(*w->common));
		if (code)
			return code;
		++*w->common;
	}
	if ((code = perseas_set_range(tx, w->slice, sizeof(number))) ||
	    (code = perseas_set_range(tx, at, options.bytes)))
		return code;
	memcpy(w->slice, &number, sizeof(number));
	memset(at, (int)(number & 0xff), options.bytes);
	code = perseas_commit(tx, 0);
	if (!code)
		w->number = number;
	return code;
}

static void *run_writer(void *arg)
{
	struct writer *w = arg;
	uint64_t before = clock_ns(), busy = clock_thread_ns();

	/* Runs at least one transaction, even if the thread gets a processor only at the end. */
	do {
		uint64_t after;

		w->code = count_up(w);
		after = clock_ns();
		ps_histogram_add(&w->latency, after - before);
		before = after;
	} while (!atomic_load_explicit(&stop, memory_order_relaxed) && !w->code);
	w->busy_ns = clock_thread_ns() - busy;
	return NULL;
}

/* Merges the results of a round's threads. */
static void note_round(struct measured *m, uint64_t start, unsigned threads)
{
	uint64_t took = clock_ns() - start, busy = 0;

	ps_histogram_clear(&m->round);
	for (unsigned i = 0; i < threads; i++) {
		ps_histogram_merge(&m->round, &writers[i].latency);
		busy += writers[i].busy_ns;
	}
	ps_histogram_merge(&m->latency, &m->round);
	m->rates[m->rounds] = (double)m->round.total * 1e9 / (double)took;
	m->busy_rates[m->rounds] = (double)m->round.total * 1e9 / (double)(busy + !busy);
	m->medians[m->rounds++] = ps_histogram_percentile(&m->round, 50);
}

/* Runs one round with `count` threads. Returns an exit status. */
static int run_round(struct measured *m, unsigned count)
{
	const struct timespec length = { options.round_ms / 1000,
		                         options.round_ms % 1000 * 1000000L };
	pthread_t threads[THREADS_MAX];
	uint64_t start = clock_ns();
	unsigned started = 0;

	atomic_store(&stop, false);
	for (; started < count; started++) {
		ps_histogram_clear(&writers[started].latency);
		if (pthread_create(&threads[started], NULL, run_writer, &writers[started]))
			break;
	}
	if (started == count)
		nanosleep(&length, NULL);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < started; i++) {
		pthread_join(threads[i], NULL);
		if (writers[i].code)
			return program_fail(perseas_error_name(writers[i].code),
			                    perseas_message(writers[i].p));
	}
	note_round(m, start, started);
	return started == count ? 0 : program_fail("thread", "it could not be started");
}

/* --- the store ---------------------------------------------------------------------- */

/* Reopens the store and compares its segment with `kept`, the owner's memory when it closed.
 * Returns an exit status. */
static int check_store(const uint8_t *kept)
{
	void *memory;
	perseas_t *p;
	int status = 0;

	if (perseas_open(options.engine.store, options.engine.mirrors, NULL, &p))
		return program_fail("open again", perseas_message(NULL));
	if (perseas_map(p, "slices", 0, &memory))
		status = program_fail("map again", perseas_message(p));
	else if (memcmp(memory, kept, MEMORY))
		status = program_refute("check", "the store does not hold what was committed");
	perseas_close(p);
	return status;
}

/* Checks that every counter matches the transactions committed, closes the engine, and checks the
 * store that the mirrors have. Returns an exit status. */
static int close_and_check(struct engine *engine, const uint8_t *memory)
{
	uint8_t *kept = malloc(MEMORY);
	uint64_t sum = 0;
	int status = 0;

	if (!kept || perseas_flush(engine->handle))
		status = program_fail("flush", kept ? engine_why(engine) : "out of memory");
	for (unsigned i = 0; i < THREADS_MAX; i++)
		sum += options.serial ? writers[i].number : 0;
	if (!status && memcmp(memory + SLICES, &sum, sizeof(sum)))
		status = program_refute("check", "what all threads count is not their sum");
	for (unsigned i = 0; !status && i < THREADS_MAX; i++)
		if (memcmp(writers[i].slice, &writers[i].number, sizeof(uint64_t)))
			status = program_refute("check", "a thread's count is not in its memory");
	if (!status)
		memcpy(kept, memory, MEMORY);
	engine_close(engine);
	if (!status)
		status = check_store(kept);
	free(kept);
	return status;
}

/* --- results ------------------------------------------------------------------------ */

static void print_json(perseas_t *p)
{
	struct ps_json json = { .out = stdout };

	ps_json_begin(&json, NULL, '{');
	ps_json_number(&json, "bytes", options.bytes);
	ps_json_number(&json, "serial", options.serial);
	ps_json_begin(&json, "series", '[');
	for (unsigned i = 0; i < series_count; i++) {
		ps_json_begin(&json, NULL, '{');
		ps_json_number(&json, "threads", series[i].threads);
		measured_json(&json, measured[i]);
		ps_json_end(&json, '}');
	}
	ps_json_end(&json, ']');
	fabric_json(&json, p);
	ps_json_end(&json, '}');
}

static int measure_all(perseas_t *p, uint8_t *memory)
{
	int status = 0;

	for (unsigned i = 0; i < THREADS_MAX; i++) {
		writers[i].p = p;
		writers[i].slice = memory + (size_t)i * SLICE;
		writers[i].common = (uint64_t *)(memory + SLICES);
		writers[i].state = WORK_SEED + i;
	}
	/* The first round of each warms up and is discarded. */
	for (unsigned i = 0; i < series_count && !status; i++) {
		status = run_round(measured[i], series[i].threads);
		ps_histogram_clear(&measured[i]->latency);
		measured[i]->rounds = 0;
	}
	for (uint64_t round = 0; round < options.rounds; round++)
		for (unsigned i = 0; i < series_count && !status; i++)
			status = run_round(measured[i], series[i].threads);
	return status;
}

static int read_threads(void)
{
	uint64_t numbers[COUNTS_MAX];

	series_count = list_numbers(options.threads, THREADS_MAX, COUNTS_MAX, numbers);
	for (unsigned i = 0; i < series_count; i++) {
		series[i].threads = (unsigned)numbers[i];
		snprintf(series[i].name, sizeof(series[i].name), "%u threads", series[i].threads);
		measured[i] = measured_new(series[i].name, NULL, NULL);
	}
	if (!series_count)
		return program_fail("--threads", "takes up to 16 numbers from 1 to 64, as 1,2,4");
	if (!options.engine.mirrors)
		return program_fail("--mirrors", "is missing; it lists the mirrors (see --help)");
	return 0;
}

int main(int argc, char **argv)
{
	char why[ENGINE_WHY];
	struct engine *engine;
	void *memory;
	int status;

	OPTIONS_PARSE(argc, argv);
	if (read_threads())
		return 2;
	engine = engine_open(&engine_perseas, &options.engine, MEMORY, &memory, why);
	if (!engine)
		return program_fail("open", why);
	status = *(const uint64_t *)memory ? program_fail(options.engine.store,
	                                                  "it was used already; give another store")
	                                   : measure_all(engine->handle, memory);
	if (status) {
		engine_close(engine);
		return status;
	}
	if (options.json) {
		print_json(engine->handle);
	} else {
		measured_print(stdout, measured, series_count);
		fabric_print(stdout, engine->handle);
	}
	return close_and_check(engine, memory);
}
