/*
 * inserts - measures threads that insert into one table, each key in its own transaction, as in
 * figure 5 of the paper on Stasis: the hash table of doc/examples/ with a mirror, and tables of
 * other systems, whose files are in memory. The tables take turns, round by round.
 */
#include "inserts.h"

#include "clock.h"
#include "measure.h"
#include "options.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = INSERTS_THREADS, COUNTS_MAX = 8, WAYS_MAX = 6 };

static struct options {
	const char *mirrors, *store, *dir, *ways, *threads, *bulk;
	uint32_t round_ms;
	uint64_t rounds, spin_us;
	bool json, spoil;
} options;

static const char about[] =
	"Threads insert keys of 8 bytes with values of 8 bytes, each in its own transaction:\n\n"
	"  hash          the hash table of doc/examples/, with commits that wait for the mirror\n"
	"  hash-nowait   the same with PERSEAS_NOWAIT, and perseas_flush after each round\n"
	"  bdb           Berkeley DB's hash table, DB_TXN_SYNC, in the folder of --dir\n"
	"  bdb-tree      its B-tree, the same\n"
	"  lmdb          LMDB with a sync at every commit, in the same folder\n"
	"  bare          no table: as many bytes are sent over tcp, and waited for\n\n"
	"With --bulk a round is one transaction of one thread, as in figure 4 of that paper. In\n"
	"the end each must have the keys that were inserted, each with its value.\n";

static const struct ps_option rows[] = {
	{ "mirrors", PS_OPTION_TEXT, AT(mirrors), "LIST", .help = "Where the stores are." },
	{ "store", PS_OPTION_TEXT, AT(store), "NAME", "inserts",
	  .help = "With what the stores' names begin." },
	{ "dir", PS_OPTION_TEXT, AT(dir), "DIR", .help = "An empty folder, for other systems." },
	{ "ways", PS_OPTION_TEXT, AT(ways), "LIST", "hash,hash-nowait",
	  .help = "What is measured." },
	{ "threads", PS_OPTION_TEXT, AT(threads), "LIST", "1,8", .help = "Numbers of threads." },
	{ "bulk", PS_OPTION_TEXT, AT(bulk), "LIST",
	  .help = "Numbers of keys to insert in one transaction, instead of threads." },
	{ "spoil", PS_OPTION_FLAG, AT(spoil),
	  .help = "Expects another value than was inserted: the check must fail." },
	{ "spin-us", PS_OPTION_NUMBER, AT(spin_us), "N",
	  .help = "Microseconds a commit spins before it sleeps. Default: 50." },
	ROUND_OPTION_ROWS,
	JSON_OPTION_ROW,
};

/* A table, and the content that it must have. */
struct way {
	const struct inserts *table;
	struct inserts_content content;
	bool open;
};

/* A table measured with a number of threads, or with a number of keys in one transaction. */
static struct series {
	struct way *way;
	unsigned threads;
	uint64_t bulk; /* keys of a transaction; 0: one */
	char name[32];
} series[WAYS_MAX * COUNTS_MAX];
static struct measured *measured[WAYS_MAX * COUNTS_MAX];
static struct way ways[WAYS_MAX];
static unsigned series_count, way_count;
static _Atomic bool stop;

struct writer {
	pthread_t thread;
	const struct inserts *table;
	uint64_t first, done; /* it inserts every THREADS_MAX-th number from `first` on */
	uint64_t busy_ns;
	int status;
	struct ps_histogram latency;
	char why[INSERTS_WHY];
};

static struct writer writers[THREADS_MAX];

static void *run_writer(void *arg)
{
	struct writer *w = arg;
	uint64_t before = clock_ns(), busy = clock_thread_ns();

	while (!w->status && !atomic_load_explicit(&stop, memory_order_relaxed)) {
		const uint64_t number = w->first + w->done * THREADS_MAX;
		uint64_t after;

		w->status = w->table->insert(inserts_key(number), &number, w->why);
		w->done += !w->status;
		after = clock_ns();
		ps_histogram_add(&w->latency, after - before);
		before = after;
	}
	w->busy_ns = clock_thread_ns() - busy;
	return NULL;
}

static void note_round(struct measured *m, unsigned threads, uint64_t took)
{
	uint64_t busy = 0;

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

/* Runs the threads of one round. Each inserts numbers of its own that the table does not have yet.
 * Returns how many threads could be started. */
static unsigned run_threads(struct series *s)
{
	const struct timespec length = { options.round_ms / 1000,
		                         options.round_ms % 1000 * 1000000L };
	static uint64_t rounds;
	unsigned started = 0;

	atomic_store(&stop, false);
	for (rounds++; started < s->threads; started++) {
		struct writer *w = &writers[started];

		memset(w, 0, sizeof(*w));
		w->table = s->way->table;
		w->first = rounds << 40 | started;
		ps_histogram_clear(&w->latency);
		if (pthread_create(&w->thread, NULL, run_writer, w))
			break;
	}
	if (started == s->threads)
		nanosleep(&length, NULL);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < started; i++)
		pthread_join(writers[i].thread, NULL);
	return started;
}

/* Adds `count` inserted numbers, every `step`-th from `first` on, to the expected content. */
static void expect(struct way *way, uint64_t first, uint64_t count, uint64_t step)
{
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t number = first + i * step, key = inserts_key(number);

		inserts_add(&way->content, &key, &number);
	}
}

static int run_bulk(struct series *s, struct measured *m)
{
	static uint64_t next;
	const uint64_t first = next, start = clock_ns(), busy = clock_thread_ns();
	char why[INSERTS_WHY];
	uint64_t took;

	if (s->way->table->bulk(first, s->bulk, why))
		return program_fail(s->name, why);
	took = clock_ns() - start;
	m->busy_rates[m->rounds] = (double)s->bulk * 1e9 / (double)(clock_thread_ns() - busy + 1);
	m->rates[m->rounds] = (double)s->bulk * 1e9 / (double)(took + !took);
	ps_histogram_add(&m->latency, took);
	m->medians[m->rounds++] = took;
	next += s->bulk;
	expect(s->way, first, s->bulk, 1);
	return 0;
}

static int run_round(struct series *s, struct measured *m)
{
	const struct inserts *table = s->way->table;
	const uint64_t start = clock_ns();
	const unsigned started = run_threads(s);
	char why[INSERTS_WHY];

	for (unsigned i = 0; i < started; i++)
		if (writers[i].status)
			return program_fail(s->name, writers[i].why);
	if (started < s->threads)
		return program_fail(s->name, "a thread cannot be started");
	if (table->settle && table->settle(why))
		return program_fail(s->name, why);
	note_round(m, started, clock_ns() - start);
	for (unsigned i = 0; i < started; i++)
		expect(s->way, writers[i].first, writers[i].done, THREADS_MAX);
	return 0;
}

/* --- all tables --- */

static int measure_all(void)
{
	int (*const run)(struct series * s, struct measured * m) = options.bulk ? run_bulk
	                                                                        : run_round;
	int status = 0;

	/* The first round of each warms up and is discarded. */
	for (unsigned i = 0; i < series_count && !status; i++) {
		status = run(&series[i], measured[i]);
		ps_histogram_clear(&measured[i]->latency);
		measured[i]->rounds = 0;
	}
	for (uint64_t round = 0; round < options.rounds; round++)
		for (unsigned i = 0; i < series_count && !status; i++)
			status = run(&series[i], measured[i]);
	return status;
}

static int check_all(void)
{
	char why[INSERTS_WHY];

	if (options.spoil)
		ways[0].content.digest ^= 1;
	for (unsigned i = 0; i < way_count; i++) {
		struct inserts_content found = ways[i].content;

		if (ways[i].table->content(&found, why))
			return program_fail(ways[i].table->name, why);
		if (found.keys != ways[i].content.keys)
			return program_refute(ways[i].table->name,
			                      "it has not the keys that were inserted");
		if (found.digest != ways[i].content.digest)
			return program_refute(ways[i].table->name,
			                      "its values are not those that were inserted");
	}
	return 0;
}

/* Returns the number of keys of the largest bulk transaction, or 0 without --bulk. */
static uint64_t series_most(void)
{
	uint64_t most = 0;

	for (unsigned i = 0; i < series_count; i++)
		if (series[i].bulk > most)
			most = series[i].bulk;
	return most;
}

static int open_all(void)
{
	const struct inserts_place place = { options.mirrors, options.store, options.dir,
		                             options.spin_us, series_most() };
	char why[INSERTS_WHY];

	for (unsigned i = 0; i < way_count; i++) {
		ways[i].open = true;
		if (ways[i].table->open(&place, why))
			return program_fail(ways[i].table->name, why);
	}
	return 0;
}

static int choose_series(const uint64_t *numbers, unsigned counts)
{
	for (unsigned i = 0; i < counts; i++) {
		for (unsigned k = 0; k < way_count; k++) {
			struct series *s = &series[series_count];

			if (options.bulk && !ways[k].table->bulk)
				return program_fail(ways[k].table->name, "has no --bulk");
			s->way = &ways[k];
			s->threads = options.bulk ? 1 : (unsigned)numbers[i];
			s->bulk = options.bulk ? numbers[i] : 0;
			snprintf(s->name, sizeof(s->name), "%s %" PRIu64, ways[k].table->name,
			         numbers[i]);
			measured[series_count++] = measured_new(s->name, NULL, NULL);
		}
	}
	return 0;
}

/* Chooses the tables of --ways, each with each number of threads or keys. Returns an exit
 * status. */
static int choose(void)
{
	const struct inserts *const tables[] = { &inserts_hash, &inserts_hash_nowait,
		                                 &inserts_bdb,  &inserts_bdb_tree,
		                                 &inserts_lmdb, &inserts_bare };
	uint64_t numbers[COUNTS_MAX];
	unsigned counts = options.bulk
	                          ? list_numbers(options.bulk, 10000000, COUNTS_MAX, numbers)
	                          : list_numbers(options.threads, THREADS_MAX, COUNTS_MAX, numbers);

	for (unsigned i = 0; i < WAYS_MAX; i++)
		if (tables[i] && list_has(options.ways, tables[i]->name))
			ways[way_count++].table = tables[i];
	if (!counts || !way_count || !options.mirrors)
		return program_fail("inserts",
		                    "needs --mirrors, --ways that are built in, and up to "
		                    "8 numbers of threads, or of keys (see --help)");
	return choose_series(numbers, counts);
}

static void print_json(void)
{
	struct ps_json json = { .out = stdout };

	ps_json_begin(&json, NULL, '{');
	ps_json_begin(&json, "does", '{');
	for (unsigned i = 0; i < way_count; i++)
		ps_json_text(&json, ways[i].table->name, ways[i].table->does);
	ps_json_end(&json, '}');
	ps_json_begin(&json, "ways", '{');
	measured_json_all(&json, measured, series_count);
	ps_json_end(&json, '}');
	ps_json_end(&json, '}');
}

int main(int argc, char **argv)
{
	int status;

	OPTIONS_PARSE(argc, argv);
	status = choose();
	if (!status)
		status = open_all();
	if (!status)
		status = measure_all();
	if (!status)
		status = check_all();
	if (!status && options.json)
		print_json();
	else if (!status)
		measured_print(stdout, measured, series_count);
	for (unsigned i = 0; i < way_count; i++)
		if (ways[i].open)
			ways[i].table->close();
	measured_free_all(measured, series_count);
	return status;
}
