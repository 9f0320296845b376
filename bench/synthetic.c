/*
 * synthetic - transactions of one range, of 8 bytes to 1 MiB, at random places.
 */
#include "fabric.h"
#include "measure.h"
#include "options.h"
#include "pinger.h"
#include "work.h"
#include "../client/perseas.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { MEMORY = 50 << 20, CONTENDERS_MAX = 3, SIZES_MAX = 32 };

static struct options {
	const char *against, *sizes, *fabric;
	uint32_t round_ms;
	uint64_t rounds, transactions, cpu, far_spin_us, ping_bytes;
	bool json;
	struct engine_options engine;
} options = {
	.cpu = UINT64_MAX,
	.engine = { .segment = "synthetic", .patience_ms = 60000 },
};

static const char about[] =
	"Transactions that change one range at a random place of 50 MiB, for several sizes.\n\n"
	"Each round is half a pass without a clock, for the rate, and half a pass with one, for\n"
	"the latencies: reading the clock costs 25 to 50 ns a transaction. What is compared\n"
	"takes turns, round by round.\n\n"
	"--against pingpong compares with the round trip of --ping-bytes over bare TCP on the\n"
	"loopback, to a process on another processor, and unix-pingpong over Unix sockets; the\n"
	"near end spins for --spin-us, the far one for --far-spin-us, which should be what the\n"
	"mirrors were given. Without mirrors they are measured alone. How many bytes a commit\n"
	"sends is told at the end.\n";

static const struct ps_option rows[] = {
	{ "mirrors", PS_OPTION_TEXT, AT(engine.mirrors), "LIST",
	  .help = "Runs on libperseas over these." },
	{ "store", PS_OPTION_TEXT, AT(engine.store), "NAME", "synthetic",
	  .help = "Store, made when it is missing." },
	{ "against", PS_OPTION_TEXT, AT(against), "LIST",
	  .help = "Of local, pingpong and unix-pingpong." },
	{ "sizes", PS_OPTION_TEXT, AT(sizes), "LIST", "8,64,256,1K,4K,16K,64K,256K,1M",
	  .help = "Bytes of a transaction." },
	ROUND_OPTION_ROWS,
	{ "transactions", PS_OPTION_NUMBER, AT(transactions), "N",
	  .help = "At most, in half a round." },
	ENGINE_OPTION_ROWS,
	{ "far-spin-us", PS_OPTION_NUMBER, AT(far_spin_us), "N", "0",
	  .help = "The same of the ping-pong's far end." },
	{ "ping-bytes", PS_OPTION_SIZE, AT(ping_bytes), "N", "256", 1, 1 << 20,
	  .help = "Bytes of the ping-pong's messages." },
	FABRIC_OPTION_ROW,
	{ "takeover", PS_OPTION_FLAG, AT(engine.takeover), .help = "Fences a live owner." },
	CPU_OPTION_ROW,
	JSON_OPTION_ROW,
};

/* Memory, what runs transactions on it, and where the next one goes. */
struct writer {
	struct engine *engine;
	uint8_t *memory;
	size_t size; /* of a transaction */
	uint64_t state;
	uint8_t fill;
};

/* What takes part: engines, and the ping-pong, which is no engine. */
struct contest {
	struct writer writers[2];
	unsigned writer_count;
	struct pinger *pinger;
};

static int writer_step(void *ctx)
{
	struct writer *writer = ctx;
	const struct engine_ops *ops = writer->engine->ops;
	uint8_t *at = writer->memory +
	              work_below(&writer->state, (uint32_t)(MEMORY - writer->size));
	int code;

	if ((code = ops->begin(writer->engine)) ||
	    (code = ops->range(writer->engine, at, writer->size)))
		return code;
	memset(at, writer->fill++, writer->size);
	return ops->commit(writer->engine);
}

static int writer_open(struct writer *writer, const struct engine_ops *ops)
{
	char why[ENGINE_WHY];
	void *memory;

	writer->engine = engine_open(ops, &options.engine, MEMORY, &memory, why);
	if (!writer->engine)
		return program_fail(ops->name, why);
	writer->memory = memory;
	writer->state = WORK_SEED;
	return 0;
}

/* The store's handle, NULL without mirrors. */
static struct perseas *store_handle(const struct contest *contest)
{
	struct engine *engine = contest->writers[0].engine;

	return engine ? engine->handle : NULL;
}

static int check_fabric(const struct contest *contest)
{
	char why[512];

	if (!options.fabric)
		return 0;
	if (!store_handle(contest))
		return program_fail("--fabric", "is for --mirrors");
	if (fabric_check(store_handle(contest), options.fabric, why, sizeof(why)))
		return program_fail("--fabric", why);
	return 0;
}

static int contest_open(struct contest *contest)
{
	/* The ping-pong forks: before the store is opened. */
	if (list_has(options.against, "pingpong") || list_has(options.against, "unix-pingpong")) {
		int near = options.cpu == UINT64_MAX ? 0 : (int)options.cpu;
		uint64_t spin_us = options.engine.spin_us ? options.engine.spin_us : 50;

		contest->pinger = pinger_new(!list_has(options.against, "pingpong"),
		                             (unsigned)options.ping_bytes,
		                             spin_us == UINT32_MAX ? 0 : spin_us,
		                             options.far_spin_us, other_cpu(near));
		if (!contest->pinger)
			return program_fail("ping-pong", strerror(errno));
	}
	/* The library's own thread inherits this. */
	if (program_pin(options.cpu))
		return 2;
	if (options.engine.mirrors) {
		if (writer_open(&contest->writers[contest->writer_count++], &engine_perseas) ||
		    check_fabric(contest))
			return 2;
	}
	if (list_has(options.against, "local"))
		return writer_open(&contest->writers[contest->writer_count++], &engine_local);
	return 0;
}

static void contest_close(struct contest *contest)
{
	for (unsigned i = 0; i < contest->writer_count; i++)
		engine_close(contest->writers[i].engine);
	pinger_free(contest->pinger);
}

static void print_ratios(struct measured *const *m, unsigned count)
{
	char behind[64];

	for (unsigned i = 1; i < count; i++) {
		snprintf(behind, sizeof(behind), "_%s", m[i]->name);
		if (options.json)
			measured_ratios_json(stdout, m[0], m[i], behind);
		else
			measured_print_ratios(stdout, m[0], m[i]);
	}
}

static void print_size(struct measured *const *m, unsigned count, size_t size, bool first)
{
	if (options.json) {
		printf("%s{\"size\": %zu, ", first ? "" : ", ", size);
		measured_json_all(stdout, m, count);
	} else {
		printf("%zu bytes, %.1f MB/s\n", size, measured_rate(m[0]) * (double)size / 1e6);
		measured_print(stdout, m, count);
	}
	print_ratios(m, count);
	printf("%s", options.json ? "}" : "\n");
	fflush(stdout);
}

static int run_rounds(struct measured *const *m, unsigned count)
{
	const struct measured *failed = measure_in_turn(m, count, options.rounds,
	                                                options.round_ms / 1000.0,
	                                                options.transactions);
	const struct writer *writer;

	if (!failed)
		return 0;
	if (failed->step == pinger_step)
		return program_fail(failed->name, "the far end is gone");
	writer = failed->ctx;
	return program_fail(failed->name, engine_why(writer->engine));
}

static int measure_size(struct contest *contest, size_t size, bool first)
{
	struct measured *m[CONTENDERS_MAX] = { NULL, NULL, NULL };
	unsigned count = 0;
	int status;

	for (unsigned i = 0; i < contest->writer_count; i++) {
		struct writer *writer = &contest->writers[i];

		writer->size = size;
		m[count++] = measured_new(writer->engine->ops->name, writer_step, writer);
	}
	if (contest->pinger)
		m[count++] = measured_new("pingpong", pinger_step, contest->pinger);
	status = run_rounds(m, count);
	if (!status)
		print_size(m, count, size, first);
	measured_free_all(m, count);
	return status;
}

/* Of all sizes together, to all mirrors. */
static double bytes_a_commit(struct perseas *p)
{
	struct perseas_stat stat;

	if (perseas_stat(p, &stat) || !stat.commits)
		return 0;
	return (double)stat.bytes_sent / (double)stat.commits;
}

static void print_end(const struct contest *contest)
{
	struct perseas *p = store_handle(contest);

	if (options.json) {
		printf("]");
		if (p) {
			printf(", \"bytes_a_commit\": %.1f, ", bytes_a_commit(p));
			fabric_json(stdout, p);
		}
		printf("}\n");
	} else if (p) {
		printf("%.1f bytes were sent for each commit\n", bytes_a_commit(p));
		fabric_print(stdout, p);
	}
}

int main(int argc, char **argv)
{
	struct contest contest = { 0 };
	uint64_t sizes[SIZES_MAX];
	unsigned count;
	int status;

	OPTIONS_PARSE(argc, argv);
	count = list_numbers(options.sizes, MEMORY / 2, SIZES_MAX, sizes);
	if (!count)
		return program_fail("--sizes", "takes up to 32 sizes, as 8,4K,1M, to 25M");
	status = contest_open(&contest);
	if (!status && !contest.writer_count && !contest.pinger)
		return program_fail("--mirrors", "is missing; it lists the mirrors (see --help)");
	if (!status && options.json)
		printf("{\"workload\": \"synthetic\", \"sizes\": [");
	for (unsigned i = 0; i < count && !status; i++)
		status = measure_size(&contest, sizes[i], i == 0);
	/* A mirror that came back meanwhile may be on another than at first. */
	if (!status)
		status = check_fabric(&contest);
	if (!status)
		print_end(&contest);
	contest_close(&contest);
	return status;
}
