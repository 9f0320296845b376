/*
 * worker.c - an owner that runs transactions until its input ends or it is killed, to measure what
 * its clients and standbys notice. With --standby it first waits until the store has no owner.
 * bench/worker.py starts it.
 */
#include "clock.h"
#include "fabric.h"
#include "options.h"
#include "work.h"
#include "../client/perseas.h"
#include "../proto/base/json.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static struct options {
	const char *mirrors, *store, *fabric;
	uint64_t size, bytes, resync_rate, acks, ring, pace, part, permille;
	bool make, no_pace, demand, standby, warm, lacks_mirrors;
} options;

static const uint64_t NO_LIMIT = (uint64_t)1 << 40; /* bytes per second */

static const char about[] =
	"Opens a store, maps its one segment, and runs transactions. Each counts up the number at\n"
	"the beginning of the segment, and changes one range at a random place.\n\n"
	"A line of JSON says when it began, opened, mapped and committed first (ns of the\n"
	"monotonic clock), and which number it found. Then each line of input is answered by one\n"
	"that tells how far it is; `longest_ns` is of the transactions since the line before. A\n"
	"number N in that line has its transactions change, one after the other, only N in a\n"
	"thousand of the granules of 64 KiB, drawn at random and the same in every run; 0: all.\n"
	"It ends with its input.\n\n"
	"With --standby it opens the store when that has no owner. Until then each line of input\n"
	"is answered by the standby's state, and by how much of the memory its copy has (bytes).\n";

static const struct ps_option rows[] = {
	{ "mirrors", PS_OPTION_TEXT, AT(mirrors), "LIST", .help = "Where the store is." },
	{ "store", PS_OPTION_TEXT, AT(store), "NAME", "worker", .help = "The store." },
	{ "make", PS_OPTION_FLAG, AT(make), .help = "Makes it, with a segment that is full." },
	{ "size", PS_OPTION_SIZE, AT(size), "BYTES", "64M", 8192,
	  .help = "Bytes of the segment that is made." },
	{ "bytes", PS_OPTION_SIZE, AT(bytes), "N", "256", 1, 4096,
	  .help = "Bytes of a transaction's range." },
	{ "acks", PS_OPTION_NUMBER, AT(acks), "W",
	  .help = "W of a store that is made. Default: a majority." },
	{ "resync-rate", PS_OPTION_SIZE, AT(resync_rate), "BYTES", "0",
	  .help = "Bytes a second; 0: no limit." },
	{ "ring", PS_OPTION_SIZE, AT(ring), "BYTES", .help = "Bytes of the owner's ring." },
	{ "pace", PS_OPTION_NUMBER, AT(pace), "MS", .unit = "milliseconds",
	  .help = "How long to wait for a mirror that lags." },
	{ "no-pace", PS_OPTION_FLAG, AT(no_pace), .help = "Waits for no mirror that lags." },
	{ "part", PS_OPTION_NUMBER, AT(part), "N", "1", 1, .help = "Changes an Nth of it." },
	{ "permille", PS_OPTION_NUMBER, AT(permille), "N", "0", .high = 1000,
	  .help = "Changes N in a thousand granules until a line says another number; 0: all." },
	{ "demand", PS_OPTION_FLAG, AT(demand), .help = "Has memory come on demand." },
	{ "lacks-mirrors", PS_OPTION_FLAG, AT(lacks_mirrors),
	  .help = "Begins although mirrors are down." },
	{ "standby", PS_OPTION_FLAG, AT(standby), .help = "Waits until the store has no owner." },
	{ "warm", PS_OPTION_FLAG, AT(warm),
	  .help = "With --standby: keeps a copy of the memory meanwhile, as fast as it can." },
	FABRIC_OPTION_ROW,
};

enum { GRANULE = 64 << 10 }; /* the unit in which the library notes what changed */

struct worker {
	perseas_t *p;
	uint8_t *memory; /* the segment */
	uint64_t size, state;
	/* The granules of the segment in random order, without the first one, which has the
	 * number. */
	uint32_t *drawn;
	uint64_t drawn_count;
	_Atomic uint64_t among;  /* how many of `drawn` are changed; 0: any place is */
	_Atomic uint64_t number; /* of the last acknowledged transaction */
	_Atomic uint64_t longest;
	_Atomic bool stop;
	_Atomic int code; /* error that stopped the worker */
};

/* When the worker reached each step of its start. */
struct times {
	uint64_t began, opened, mapped, committed;
};

static int draw_granules(struct worker *w)
{
	uint64_t state = WORK_SEED, other;

	w->drawn_count = w->size > GRANULE ? w->size / GRANULE - 1 : 0;
	w->drawn = malloc((w->drawn_count + 1) * sizeof(*w->drawn));
	if (!w->drawn)
		return program_fail("memory", "the list of granules could not be allocated");
	for (uint64_t i = 0; i < w->drawn_count; i++) {
		other = work_random(&state) % (i + 1);
		w->drawn[i] = w->drawn[other];
		w->drawn[other] = (uint32_t)i + 1;
	}
	return 0;
}

static uint8_t *choose_place(struct worker *w)
{
	const uint64_t among = w->among, part = w->size / options.part, first = sizeof(w->number);

	if (!among)
		return w->memory + first + work_random(&w->state) % (part - first - options.bytes);
	return w->memory + (uint64_t)w->drawn[w->number % among] * GRANULE +
	       work_random(&w->state) % (GRANULE - options.bytes);
}

static int change_range(struct worker *w)
{
	uint64_t number = w->number + 1, start = clock_ns(), took;
	uint8_t *at = choose_place(w);
	perseas_tx_t *tx;
	int rc = perseas_begin(w->p, 0, &tx);

	if (rc)
		return rc;
	if ((rc = perseas_set_range(tx, w->memory, sizeof(number))) ||
	    (rc = perseas_set_range(tx, at, options.bytes))) {
		perseas_abort(tx);
		return rc;
	}
	memcpy(w->memory, &number, sizeof(number));
	memset(at, (int)number, options.bytes);
	rc = perseas_commit(tx, 0);
	/* Measured from begin on, which may wait for a lock. */
	took = clock_ns() - start;
	if (rc)
		return rc;
	w->number = number;
	if (took > w->longest)
		w->longest = took;
	return 0;
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;

	while (!w->stop && !w->code)
		w->code = change_range(w);
	return NULL;
}

/* Writes every page of the segment, so that the library cannot skip any. */
static int fill_segment(struct worker *w)
{
	memset(w->memory + sizeof(uint64_t), 0xa5, w->size - sizeof(uint64_t));
	return perseas_publish(w->p);
}

static void set_options(struct perseas_options *how)
{
	how->flags = options.make ? PERSEAS_CREATE : 0;
	how->acks = (uint32_t)options.acks;
	how->resync_rate = options.resync_rate;
	how->ring_size = options.ring;
	how->recovery = options.demand ? PERSEAS_RECOVERY_ON_DEMAND : PERSEAS_RECOVERY_READ_FIRST;
	how->pace_ms = options.no_pace ? UINT32_MAX : (uint32_t)options.pace;
	how->warm = options.warm;
	how->warm_rate = NO_LIMIT;
}

static void tell_standing(perseas_standby_t *standby)
{
	struct ps_json json = { .out = stdout, .one_line = true };
	struct perseas_standby_stat stat;

	perseas_standby_stat(standby, &stat);
	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "state", perseas_standby_state_name(stat.state));
	ps_json_number(&json, "reached", stat.reached);
	ps_json_number(&json, "memory", stat.memory);
	ps_json_number(&json, "warm", stat.warm);
	ps_json_text(&json, "error", "");
	ps_json_end(&json, '}');
	fflush(stdout);
}

/* Waits until the store can be opened, and answers lines of input in the meantime. A client waits
 * for each answer, so stdio never buffers a second line. Returns false if the input ended. */
static bool await_store(perseas_standby_t *standby)
{
	struct pollfd fds[] = { { .fd = perseas_standby_fd(standby), .events = POLLIN },
		                { .fd = STDIN_FILENO, .events = POLLIN } };
	char line[64];

	for (;;) {
		poll(fds, 2, -1);
		if (fds[0].revents)
			return true;
		if (fds[1].revents && !fgets(line, sizeof(line), stdin))
			return false;
		if (fds[1].revents)
			tell_standing(standby);
	}
}

static int open_by_standby(const struct perseas_options *how, perseas_t **p)
{
	perseas_standby_t *standby;
	int status = 0;

	if (perseas_standby(options.store, options.mirrors, how, &standby))
		return program_fail("standby", perseas_message(NULL));
	if (!await_store(standby))
		status = program_fail("standby", "its input ended before the store was its own");
	else if (perseas_standby_wait(standby, -1, p))
		status = program_fail("open", perseas_message(NULL));
	perseas_standby_close(standby);
	return status;
}

static int open_store(perseas_t **p)
{
	struct perseas_options how = PERSEAS_OPTIONS_INIT;

	set_options(&how);
	if (options.standby)
		return open_by_standby(&how, p);
	if (perseas_open(options.store, options.mirrors, &how, p))
		return program_fail("open", perseas_message(NULL));
	return 0;
}

static int open_segment(struct worker *w, struct times *times)
{
	struct perseas_segment_info info;
	void *memory;
	const int status = open_store(&w->p);

	if (status)
		return status;
	times->opened = clock_ns();
	if (!options.lacks_mirrors && fabric_check(w->p, options.fabric))
		return 2;
	if (perseas_map(w->p, "segment", options.make ? options.size : 0, &memory) ||
	    perseas_segment(w->p, "segment", &info))
		return program_fail("map", perseas_message(w->p));
	w->memory = memory;
	w->size = info.size;
	if (options.make && fill_segment(w))
		return program_fail("publish", perseas_message(w->p));
	times->mapped = clock_ns();
	memcpy(&w->number, w->memory, sizeof(uint64_t));
	return 0;
}

/* Ends a line of output with the mirrors' states. */
static void end_line(struct worker *w, struct ps_json *json)
{
	fabric_json(json, w->p);
	ps_json_end(json, '}');
	fflush(stdout);
}

static void tell_start(struct worker *w, const struct times *times)
{
	struct ps_json json = { .out = stdout, .one_line = true };
	struct perseas_stat stat;

	perseas_stat(w->p, &stat);
	ps_json_begin(&json, NULL, '{');
	ps_json_number(&json, "began_ns", times->began);
	ps_json_number(&json, "opened_ns", times->opened);
	ps_json_number(&json, "mapped_ns", times->mapped);
	ps_json_number(&json, "committed_ns", times->committed);
	ps_json_number(&json, "found", w->number - 1);
	ps_json_number(&json, "bytes", w->size);
	ps_json_number(&json, "mended_delta", stat.mended_delta);
	ps_json_number(&json, "mended_whole", stat.mended_whole);
	end_line(w, &json);
}

static void tell_progress(struct worker *w)
{
	struct ps_json json = { .out = stdout, .one_line = true };
	struct perseas_stat stat;

	perseas_stat(w->p, &stat);
	ps_json_begin(&json, NULL, '{');
	ps_json_number(&json, "at_ns", clock_ns());
	ps_json_number(&json, "number", w->number);
	ps_json_number(&json, "longest_ns", atomic_exchange(&w->longest, 0));
	ps_json_number(&json, "live", stat.live);
	ps_json_number(&json, "resyncs", stat.resyncs);
	ps_json_number(&json, "resync_bytes", stat.resync_bytes);
	ps_json_number(&json, "changed_bytes", w->among ? (w->among + 1) * GRANULE : w->size);
	ps_json_number(&json, "dropped", stat.dropped);
	ps_json_number(&json, "paced_ns", stat.paced_ns);
	ps_json_number(&json, "missing", stat.missing);
	ps_json_number(&json, "fetched", stat.fetched);
	ps_json_text(&json, "error", w->code ? perseas_error_name(w->code) : "");
	end_line(w, &json);
}

/* Has the next transactions change so many in a thousand of the granules, and one at least. */
static void change_among(struct worker *w, uint64_t permille)
{
	const uint64_t count = w->drawn_count * permille / 1000;

	w->among = permille && w->drawn_count ? count + !count : 0;
}

static int answer_lines(struct worker *w)
{
	pthread_t thread;
	char line[64];

	if (pthread_create(&thread, NULL, run_worker, w))
		return program_fail("thread", "it could not be started");
	while (fgets(line, sizeof(line), stdin)) {
		if (line[0] != '\n')
			change_among(w, strtoull(line, NULL, 10));
		tell_progress(w);
	}
	w->stop = true;
	pthread_join(thread, NULL);
	return w->code ? program_fail(perseas_error_name(w->code), perseas_strerror(w->code)) : 0;
}

int main(int argc, char **argv)
{
	struct times times = { .began = clock_ns() };
	struct worker w = { .state = WORK_SEED };
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	OPTIONS_PARSE(argc, argv);
	if (!options.mirrors)
		return program_fail("--mirrors", "is missing; it lists the mirrors (see --help)");
	status = open_segment(&w, &times);
	if (!status)
		status = draw_granules(&w);
	change_among(&w, options.permille);
	if (!status && change_range(&w))
		status = program_fail("commit", perseas_message(w.p));
	if (!status) {
		times.committed = clock_ns();
		tell_start(&w, &times);
		status = answer_lines(&w);
	}
	perseas_close(w.p);
	free(w.drawn);
	return status;
}
