/*
 * compare - runs one workload on several engines in turn.
 */
#include "fabric.h"
#include "measure.h"
#include "options.h"
#include "work.h"
#include "../client/perseas.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CONTENDERS_MAX = 16, PATH = 4096 };

static struct options {
	const char *work, *engines, *fabric;
	uint32_t round_ms, warm_up_ms;
	uint64_t size, rounds, settled, transactions, cpu, redis_port;
	bool json, dry_run, apart, spoil, busy;
	struct engine_options engine;
} options = {
	.warm_up_ms = UINT32_MAX,
	.cpu = UINT64_MAX,
	.engine = { .segment = "work", .patience_ms = 60000 },
};

static const char about[] =
	"Runs one workload on several engines. They take turns, round by round; each round is\n"
	"half a pass without a clock, for the rate, and half a pass with one, for the latencies:\n"
	"reading the clock costs 25 to 50 ns a transaction. The transactions are the same on\n"
	"every engine, and what each holds in the end is checked: the sums, and every byte.\n"
	"Where memory does not hold them all at once, --apart runs one after another, and keeps\n"
	"what each held in a file in /var/tmp until it is checked.\n\n"
	"Workloads: debit-credit, order-entry, synthetic, ranges, tpca-sequential, tpca-random,\n"
	"tpca-localized, tpca-layered. Engines: perseas (over --mirrors), nowait-8, -64 and\n"
	"-1000 (the same, so many commits waited for at once), gathered-1000 (held back for a\n"
	"millisecond, too, and sent as one), flying-32 (32 commits on their way all the time),\n"
	"rvm (RVM's interface on the same mirrors, with flush), rvm-no-flush (the same with\n"
	"no_flush, and a flush for each 1000), pages (whole pages are declared), tracked\n"
	"(nothing is: PERSEAS_TRACK), local (undo log in this process),\n"
	"copies (the three copies that a mirror takes, and nothing else), none (no\n"
	"transactions), pingpong and unix-pingpong (no transactions, but the round trip of\n"
	"--ping-bytes over bare TCP on the loopback, or Unix sockets, to a process on another\n"
	"processor for each: the near end spins for --spin-us, the far one for --far-spin-us,\n"
	"which should be what the mirrors were given), and those of bench/peers/ when they are\n"
	"built in. Ratios are the first engine's to each other.\n\n"
	"Exit status: 0, 1 when a check failed, 2 when it could not run.\n";

static const struct ps_option rows[] = {
	{ "work", PS_OPTION_TEXT, AT(work), "NAME", "debit-credit", .help = "The workload." },
	{ "size", PS_OPTION_SIZE, AT(size), "N", .help = "Size of the workload, in its terms." },
	{ "engines", PS_OPTION_TEXT, AT(engines), "LIST", "perseas,local,none",
	  .help = "What is compared." },
	{ "mirrors", PS_OPTION_TEXT, AT(engine.mirrors), "LIST", .help = "Those of perseas." },
	{ "store", PS_OPTION_TEXT, AT(engine.store), "NAME", "compare",
	  .help = "Store that is made there." },
	{ "dir", PS_OPTION_TEXT, AT(engine.dir), "FOLDER",
	  .help = "Folder for engines that keep files." },
	{ "redis-port", PS_OPTION_NUMBER, AT(redis_port), "N", .high = UINT16_MAX,
	  .help = "Port of a server with a replica." },
	ROUND_OPTION_ROWS,
	{ "settled", PS_OPTION_NUMBER, AT(settled), "PERCENT", .high = 100,
	  .help = "Ends after three rounds or more, when the rates of no engine differ by more "
	          "than that, without the fastest and the slowest quarter. Default: all rounds "
	          "are run." },
	{ "busy", PS_OPTION_FLAG, AT(busy),
	  .help = "Has --settled look at rates of processor time: for systems that wait for "
	          "nobody." },
	{ "warm-up", PS_OPTION_SECONDS, AT(warm_up_ms), "S",
	  .help = "Time before the rounds. Default: half of --seconds." },
	{ "transactions", PS_OPTION_NUMBER, AT(transactions), "N",
	  .help = "At most, in half a round." },
	ENGINE_OPTION_ROWS,
	{ "far-spin-us", PS_OPTION_NUMBER, AT(engine.far_spin_us), "N", "0",
	  .help = "The same of the ping-pong's far end." },
	{ "ping-bytes", PS_OPTION_SIZE, AT(engine.ping_bytes), "N", "256", 1, 1 << 20,
	  .help = "Bytes of the ping-pong's messages." },
	FABRIC_OPTION_ROW,
	CPU_OPTION_ROW,
	{ "apart", PS_OPTION_FLAG, AT(apart),
	  .help = "Runs one after another, none beside another's memory." },
	{ "spoil", PS_OPTION_FLAG, AT(spoil),
	  .help = "Changes a byte of the first engine before the check, which must fail." },
	{ "dry-run", PS_OPTION_FLAG, AT(dry_run),
	  .help = "Only looks whether it could do all this." },
	JSON_OPTION_ROW,
};

struct contest {
	const struct work *work;
	uint64_t size;
	unsigned count;
	const struct engine_ops *ops[CONTENDERS_MAX];
	struct work_run runs[CONTENDERS_MAX];
	struct measured *m[CONTENDERS_MAX];
	char configurations[CONTENDERS_MAX][ENGINE_SETUP];
	struct engine_counts counts[CONTENDERS_MAX]; /* for engines with mirrors */
	double bytes_a_commit[CONTENDERS_MAX];       /* bytes sent to all mirrors for each commit; 0
	                                                without mirrors */
};

static int read_engines(struct contest *contest)
{
	const char *list = options.engines;
	char name[LIST_WORD];

	while (list_next(&list, name)) {
		if (contest->count == CONTENDERS_MAX)
			return program_fail("--engines", "lists more than 16");
		if (!(contest->ops[contest->count++] = engine_by_name(name)))
			return program_fail(name, "is not an engine of this build (see --help)");
		if (engine_needs_mirrors(contest->ops[contest->count - 1]) &&
		    !options.engine.mirrors)
			return program_fail("--mirrors",
			                    "is missing; it lists the mirrors of perseas");
	}
	return 0;
}

static int read_options(struct contest *contest)
{
	contest->work = work_by_name(options.work);
	if (!contest->work)
		return program_fail(options.work, "is not a workload (see --help)");
	contest->size = options.size ? options.size : contest->work->size;
	if (!work_bytes(contest->work, contest->size))
		return program_fail("--size", contest->work->sizes);
	if (options.fabric && !options.engine.mirrors)
		return program_fail("--fabric", "is for --mirrors");
	if (options.warm_up_ms == UINT32_MAX)
		options.warm_up_ms = options.round_ms / 2;
	options.engine.redis_port = (uint16_t)options.redis_port;
	options.engine.far_cpu = cpu_other(options.cpu == UINT64_MAX ? 0 : (int)options.cpu);
	return program_pin(options.cpu) ? 2 : read_engines(contest);
}

/* Returns the library's handle, or NULL if the engine is another one or was closed. */
static struct perseas *run_handle(const struct work_run *run)
{
	return run->rows.engine ? run->rows.engine->handle : NULL;
}

/* Updates how many bytes were sent to an engine's mirrors for each commit since the last call, and
 * checks their fabric: a mirror that reconnected may be on another. Returns an exit status. */
static int look_at_mirrors(struct contest *contest, unsigned i)
{
	struct engine_counts *counts = &contest->counts[i], before = *counts;
	struct engine *engine = contest->runs[i].rows.engine;
	struct perseas *p = run_handle(&contest->runs[i]);

	if (!engine || !contest->ops[i]->counts)
		return 0;
	contest->ops[i]->counts(engine, counts);
	if (counts->commits > before.commits)
		contest->bytes_a_commit[i] = (double)(counts->sent - before.sent) /
		                             (double)(counts->commits - before.commits);
	return options.fabric && p ? fabric_check(p, options.fabric) : 0;
}

/* Opens an engine with its own folder and fills its tables. Returns an exit status. */
static int open_run(struct contest *contest, unsigned i)
{
	const struct engine_ops *ops = contest->ops[i];
	struct engine_options engine = options.engine;
	char path[PATH], why[WORK_WHY];

	if (engine.dir) {
		snprintf(path, sizeof(path), "%s/%s", engine.dir, ops->name);
		if (mkdir(path, 0700))
			return program_fail(path, strerror(errno));
		engine.dir = path;
	}
	if (work_open(&contest->runs[i], contest->work, contest->size, ops, &engine, why))
		return program_fail(ops->name, why);
	memcpy(contest->configurations[i], contest->runs[i].rows.engine->setup, ENGINE_SETUP);
	contest->m[i] = measured_new(ops->name, contest->work->step, &contest->runs[i]);
	return look_at_mirrors(contest, i);
}

/* Measures `count` engines from `first` on in turn. Returns an exit status. */
static int run_rounds(struct contest *contest, unsigned first, unsigned count)
{
	const struct measure_plan plan = { .rounds = options.rounds,
		                           .seconds = options.round_ms / 1000.0,
		                           .steps = options.transactions,
		                           .spread = (double)options.settled / 100,
		                           .busy = options.busy };
	const struct measured *failed = NULL;
	const struct work_run *run;
	int status = 0;

	for (unsigned i = first; i < first + count && !failed; i++)
		if (measure_warm_up(contest->m[i], options.warm_up_ms / 1000.0))
			failed = contest->m[i];
	if (!failed)
		failed = measure_in_turn(contest->m + first, count, &plan);
	if (failed) {
		run = failed->ctx;
		return program_fail(failed->name, rows_why(&run->rows));
	}
	for (unsigned i = first; i < first + count && !status; i++)
		status = look_at_mirrors(contest, i);
	return status;
}

static int run_together(struct contest *contest)
{
	int status = 0;

	for (unsigned forks = 2; forks-- > 0;)
		for (unsigned i = 0; i < contest->count && !status; i++)
			if (contest->ops[i]->forks == forks)
				status = open_run(contest, i);
	return status ? status : run_rounds(contest, 0, contest->count);
}

/* Measures one engine after the other, so that only one has memory at a time. */
static int run_apart(struct contest *contest)
{
	char why[WORK_WHY];
	int status = 0;

	for (unsigned i = 0; i < contest->count && !status; i++) {
		status = open_run(contest, i);
		if (!status)
			status = run_rounds(contest, i, 1);
		if (!status && (status = work_let_go(&contest->runs[i], why)))
			program_fail("check", why);
	}
	return status;
}

/* Flips a bit, which the check must find. Works on memory engines only: changing a row would need a
 * transaction. */
static int spoil(const struct work_run *run)
{
	uint8_t *image = run->kept ? run->kept : run->rows.memory;

	if (!image)
		return program_fail("--spoil", "needs a first engine that gives memory");
	image[work_bytes(run->work, run->plan.size) / 2] ^= 1;
	return 0;
}

static void counts_json(struct ps_json *json, const struct contest *contest, unsigned i)
{
	const struct engine_counts *counts = &contest->counts[i];

	ps_json_real(json, "bytes_a_commit", contest->bytes_a_commit[i]);
	ps_json_number(json, "commits", counts->commits);
	ps_json_number(json, "sent", counts->sent);
	ps_json_number(json, "saved_within", counts->within);
	ps_json_number(json, "saved_between", counts->between);
}

static void print_json(const struct contest *contest)
{
	struct ps_json json = { .out = stdout };

	ps_json_begin(&json, NULL, '{');
	ps_json_text(&json, "work", contest->work->name);
	ps_json_number(&json, "size", contest->size);
	ps_json_number(&json, "bytes", work_bytes(contest->work, contest->size));
	ps_json_begin(&json, "engines", '{');
	measured_json_all(&json, contest->m, contest->count);
	ps_json_end(&json, '}');
	ps_json_begin(&json, "about", '{');
	for (unsigned i = 0; i < contest->count; i++) {
		ps_json_begin(&json, contest->ops[i]->name, '{');
		ps_json_text(&json, "survives", contest->ops[i]->survives);
		ps_json_text(&json, "configuration", contest->configurations[i]);
		if (contest->bytes_a_commit[i] > 0)
			counts_json(&json, contest, i);
		ps_json_end(&json, '}');
	}
	ps_json_end(&json, '}');
	for (unsigned i = 0; i < contest->count; i++)
		if (run_handle(&contest->runs[i]))
			fabric_json(&json, run_handle(&contest->runs[i]));
	ps_json_end(&json, '}');
}

static void print_text(const struct contest *contest)
{
	printf("%s, size %" PRIu64 ", %" PRIu64 " bytes, %u rounds\n", contest->work->name,
	       contest->size, work_bytes(contest->work, contest->size), contest->m[0]->rounds);
	measured_print(stdout, contest->m, contest->count);
	for (unsigned i = 1; i < contest->count; i++)
		measured_print_ratios(stdout, contest->m[0], contest->m[i]);
	for (unsigned i = 0; i < contest->count; i++) {
		printf("%s survives the end of: %s. %s\n", contest->m[i]->name,
		       contest->ops[i]->survives, contest->configurations[i]);
		if (contest->bytes_a_commit[i] > 0)
			printf("%.1f bytes were sent for each commit\n",
			       contest->bytes_a_commit[i]);
		if (run_handle(&contest->runs[i]))
			fabric_print(stdout, run_handle(&contest->runs[i]));
	}
	printf("every sum and every byte is right\n");
}

static int run_contest(struct contest *contest)
{
	char why[WORK_WHY];
	int status = options.apart ? run_apart(contest) : run_together(contest);

	if (!status && options.spoil)
		status = spoil(&contest->runs[0]);
	if (!status && (status = work_check(contest->runs, contest->count, why)))
		program_fail("check", why);
	if (!status && options.json)
		print_json(contest);
	else if (!status)
		print_text(contest);
	for (unsigned i = 0; i < contest->count; i++)
		work_close(&contest->runs[i]);
	measured_free_all(contest->m, contest->count);
	return status;
}

int main(int argc, char **argv)
{
	struct contest contest = { 0 };
	int status;

	OPTIONS_PARSE(argc, argv);
	status = read_options(&contest);
	return status || options.dry_run ? status : run_contest(&contest);
}
