/*
 * debit-credit - measures the debit-credit workload, or runs it as a process to be killed,
 * or checks what was left of it.
 */
#include "bank.h"
#include "clock.h"
#include "measure.h"
#include "options.h"
#include "oracle.h"
#include "pinger.h"
#include "../client/perseas.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct options {
	const char *against, *oracle;
	uint32_t round_ms;
	uint64_t rounds, transactions, cpu;
	bool json, verify, go_on;
	struct engine_options engine;
} options = {
	.round_ms = UINT32_MAX,
	.cpu = UINT64_MAX,
	.engine = { .segment = "bank" },
};

static const char about[] =
	"Adds amounts to the balances of an account (409600 of 128 bytes: 50 MiB), a teller (40)\n"
	"and a branch (4), and writes a history record of 64 bytes (ring of 2 MiB), in\n"
	"transactions of four ranges. The i-th transaction is the same in every run.\n\n"
	"Each round is half a pass without a clock, for the rate, and half a pass with one, for\n"
	"the latencies: reading the clock costs 25 to 50 ns a transaction. What is compared\n"
	"takes turns, round by round. The sums of the balances are checked at the end.\n\n"
	"With --oracle it does not measure but runs until --seconds, --transactions or SIGTERM;\n"
	"after each commit that returned 0 the file says how many there were, also when this\n"
	"process is killed. With --verify it opens the store, works out from the history how\n"
	"many transactions it holds, computes what every byte must be, and compares; with\n"
	"--oracle also that none that was acknowledged is missing, and at most one that was not\n"
	"is there.\n\n"
	"Exit status: 0, 1 when a check failed, 2 when it could not run.\n";

static const struct ps_option rows[] = {
	{ "mirrors", PS_OPTION_TEXT, AT(engine.mirrors), "LIST",
	  .help = "Runs on libperseas over these." },
	{ "store", PS_OPTION_TEXT, AT(engine.store), "NAME", "bench",
	  .help = "Store, made when it is not there." },
	{ "against", PS_OPTION_TEXT, AT(against), "local",
	  .help = "Does the same with Vista's scheme." },
	{ "seconds", PS_OPTION_SECONDS, AT(round_ms), "S",
	  .help = "Length of a round, by default 1; with --oracle of all." },
	ROUNDS_OPTION_ROW,
	{ "transactions", PS_OPTION_NUMBER, AT(transactions), "N",
	  .help = "At most, in each half of a round; with --oracle in all." },
	ENGINE_OPTION_ROWS,
	{ "patience", PS_OPTION_SECONDS, AT(engine.patience_ms), "S", "60",
	  .help = "How long to wait for a commit in doubt." },
	CPU_OPTION_ROW,
	{ "takeover", PS_OPTION_FLAG, AT(engine.takeover), .help = "Fences a live owner." },
	{ "continue", PS_OPTION_FLAG, AT(go_on),
	  .help = "Goes on with the bank that the store holds." },
	{ "oracle", PS_OPTION_TEXT, AT(oracle), "FILE",
	  .help = "File that counts what was acknowledged." },
	{ "verify", PS_OPTION_FLAG, AT(verify), .help = "Checks what the store holds." },
	JSON_OPTION_ROW,
};

/* A bank, what runs it, and where it is. */
struct desk {
	struct rows rows;
	const struct bank *bank; /* in memory: both engines give that */
	struct bank_plan plan;
};

static int complain(int status, const char *what, const char *why)
{
	fprintf(stderr, "debit-credit: %s: %s\n", what, why);
	return status;
}

static int engine_failed(const struct desk *desk, int code)
{
	if (desk->rows.ops->handle(desk->rows.engine))
		fprintf(stderr, "debit-credit: %s\n", perseas_error_name(code));
	return complain(2, desk->rows.ops->name, rows_why(&desk->rows));
}

static int check(const struct desk *desk)
{
	char why[256];

	if (bank_check(desk->bank, &desk->plan, why, sizeof(why)))
		return 0;
	return complain(1, desk->rows.ops->name, why);
}

/* Opens the engine, and the plan at the point where its bank is. An exit status. */
static int desk_open(struct desk *desk, const struct engine_ops *ops)
{
	char why[ENGINE_WHY];
	uint64_t done;

	if (rows_open(&desk->rows, ops, &options.engine, bank_tables, BANK_TABLES, why))
		return complain(2, ops->name, why);
	desk->bank = (const struct bank *)desk->rows.memory;
	bank_plan_init(&desk->plan);
	done = bank_count(desk->bank);
	if (done == BANK_NO_COUNT)
		return check(desk);
	if (done && !options.go_on)
		return complain(2, options.engine.store,
		                "it holds a bank already; give --continue, or another --store");
	bank_plan_skip(&desk->plan, done);
	return check(desk);
}

static int desk_step(void *ctx)
{
	struct desk *desk = ctx;
	struct bank_transfer transfer;

	bank_plan_next(&desk->plan, &transfer);
	return bank_transact(&desk->rows, &transfer);
}

/* --- measuring ---------------------------------------------------------------------- */

enum { CONTENDERS = 2 };

static void print_store(const struct desk *desk)
{
	struct perseas *p = desk->rows.ops->handle(desk->rows.engine);
	struct perseas_stat stat;

	if (!p || perseas_stat(p, &stat))
		return;
	if (options.json)
		printf("\"mirrors\": %u, \"acks\": %u, \"live\": %u, \"commits\": %" PRIu64
		       ", \"bytes_sent\": %" PRIu64 ", \"dropped\": %" PRIu64
		       ", \"reconnects\": %" PRIu64 ", \"allocations\": %" PRIu64 ", ",
		       stat.mirrors, stat.acks, stat.live, stat.commits, stat.bytes_sent,
		       stat.dropped, stat.reconnects, stat.allocations);
	else
		printf("store %s: %u of %u mirrors live, W = %u; %" PRIu64 " commits, %.0f bytes "
		       "sent for each, %" PRIu64 " allocations\n",
		       options.engine.store, stat.live, stat.mirrors, stat.acks, stat.commits,
		       (double)stat.bytes_sent / (double)(stat.commits + !stat.commits),
		       stat.allocations);
}

static void print_measured(struct measured *const *m, unsigned count)
{
	struct measured_ratio rate, latency;

	if (!options.json) {
		measured_print(stdout, m, count);
		if (count > 1)
			measured_print_ratios(stdout, m[0], m[1]);
		return;
	}
	measured_json_all(stdout, m, count);
	if (count < 2)
		return;
	rate = measured_rate_ratio(m[0], m[1]);
	latency = measured_latency_ratio(m[0], m[1]);
	printf(", \"rate_ratio\": ");
	measured_ratio_json(stdout, &rate);
	printf(", \"p50_ratio\": ");
	measured_ratio_json(stdout, &latency);
}

static int run_rounds(struct measured *const *m, struct desk *desks, unsigned count)
{
	double seconds = options.round_ms == UINT32_MAX ? 1 : options.round_ms / 1000.0;
	const struct measured *failed = measure_in_turn(m, count, options.rounds, seconds,
	                                                options.transactions);

	if (failed)
		return engine_failed(failed->ctx, failed->code);
	for (unsigned i = 0; i < count; i++)
		if (check(&desks[i]))
			return 1;
	return 0;
}

static void print_results(struct measured *const *m, const struct desk *desks, unsigned count)
{
	if (options.json)
		printf("{\"workload\": \"debit-credit\", ");
	else
		printf("debit-credit: 4 ranges, 88 bytes; %u rounds\n", m[0]->rounds);
	print_store(&desks[0]);
	print_measured(m, count);
	if (options.json)
		printf("}\n");
	else
		printf("the sums of accounts, tellers and branches are right\n");
}

static int measure(void)
{
	const struct engine_ops *ops[CONTENDERS];
	struct measured *m[CONTENDERS] = { NULL, NULL };
	struct desk desks[CONTENDERS] = { 0 };
	unsigned count = 0;
	int status = 0;

	if (options.engine.mirrors)
		ops[count++] = &engine_perseas;
	if (options.against)
		ops[count++] = &engine_local;
	for (unsigned i = 0; i < count && !status; i++) {
		status = desk_open(&desks[i], ops[i]);
		m[i] = measured_new(ops[i]->name, desk_step, &desks[i]);
		if (!status && !m[i])
			status = complain(2, ops[i]->name, strerror(errno));
	}
	if (!status)
		status = run_rounds(m, desks, count);
	if (!status)
		print_results(m, desks, count);
	for (unsigned i = 0; i < count; i++) {
		measured_free(m[i]);
		rows_close(&desks[i].rows);
	}
	return status;
}

/* --- a process to be killed --------------------------------------------------------- */

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

static struct oracle *open_oracle(void)
{
	struct oracle *oracle = oracle_open(options.oracle);

	if (!oracle)
		complain(2, options.oracle, strerror(errno));
	return oracle;
}

static int run_until_stopped(struct desk *desk, struct oracle *oracle)
{
	const bool bounded = options.round_ms && options.round_ms != UINT32_MAX;
	uint64_t ns = bounded ? (uint64_t)options.round_ms * 1000000 : UINT64_MAX;
	uint64_t first = desk->plan.done, start = clock_ns();
	uint64_t most = options.transactions ? options.transactions : UINT64_MAX;
	uint64_t done = 0;
	double elapsed;

	while (!stopped && done < most && (done % 64 || clock_ns() - start < ns)) {
		int code = desk_step(desk);

		if (code)
			return engine_failed(desk, code);
		done++;
		oracle_note(oracle, first + done);
	}
	elapsed = (double)(clock_ns() - start) / 1e9;
	printf(options.json ? "{\"transactions\": %" PRIu64 ", \"seconds\": %.3f, \"rate\": %.0f, "
	                      "\"total\": %" PRIu64 "}\n"
	                    : "%" PRIu64 " transactions in %.3f s: %.0f a second; %" PRIu64
	                      " in all\n",
	       done, elapsed, (double)done / elapsed, desk->plan.done);
	return check(desk);
}

static int serve(void)
{
	struct sigaction on_stop = { .sa_handler = stop };
	struct oracle *oracle = open_oracle();
	struct desk desk = { 0 };
	int status;

	if (!oracle)
		return 2;
	sigaction(SIGTERM, &on_stop, NULL);
	sigaction(SIGINT, &on_stop, NULL);
	status = desk_open(&desk, &engine_perseas);
	if (!status && desk.plan.done < oracle_read(oracle))
		status = complain(1, options.oracle, "acknowledged transactions are missing");
	if (!status) {
		oracle_note(oracle, desk.plan.done);
		status = run_until_stopped(&desk, oracle);
	}
	rows_close(&desk.rows);
	oracle_close(oracle);
	return status;
}

/* --- checking what was left --------------------------------------------------------- */

/* Maps the bank of a store that is there. *bank is NULL when no bank was ever published. An
 * exit status. */
static int open_left(perseas_t **p, const struct bank **bank)
{
	struct perseas_options how = PERSEAS_OPTIONS_INIT;
	void *memory = NULL;
	int code;

	*bank = NULL;
	how.flags = options.engine.takeover ? PERSEAS_TAKEOVER : 0;
	code = perseas_open(options.engine.store, options.engine.mirrors, &how, p);
	if (code)
		return complain(2, perseas_error_name(code), perseas_message(NULL));
	code = perseas_map(*p, options.engine.segment, 0, &memory);
	if (code == PERSEAS_ENOSEGMENT)
		return 0;
	if (code)
		return complain(2, perseas_error_name(code), perseas_message(*p));
	*bank = memory;
	return 0;
}

/* Holds the bank all of the first `done` transactions, and these are what was promised? */
static int compare(const struct bank *bank, uint64_t done)
{
	char why[256];
	uint64_t acked = done;

	if (done == BANK_NO_COUNT)
		return complain(1, "the bank", "its history contradicts itself");
	if (bank && !bank_compare(bank, done, why, sizeof(why)))
		return complain(1, "the bank", why);
	if (options.oracle) {
		struct oracle *oracle = open_oracle();

		if (!oracle)
			return 2;
		acked = oracle_read(oracle);
		oracle_close(oracle);
	}
	if (done < acked || done > acked + 1) {
		snprintf(why, sizeof(why), "%" PRIu64 " were acknowledged, %" PRIu64 " are there",
		         acked, done);
		return complain(1, "transactions", why);
	}
	return 0;
}

static int verify(void)
{
	const struct bank *bank;
	perseas_t *p = NULL;
	uint64_t start = clock_ns(), done = 0;
	int status = open_left(&p, &bank);
	double opened = (double)(clock_ns() - start) / 1e6;

	if (!status) {
		done = bank ? bank_count(bank) : 0;
		status = compare(bank, done);
	}
	if (status != 2) {
		printf(options.json ? "{\"transactions\": %" PRIu64 ", \"opened_ms\": %.1f, "
		                      "\"bytes\": %zu, \"right\": %s}\n"
		                    : "%" PRIu64 " transactions; opened and read in %.1f ms; "
		                      "%zu bytes compared: all right: %s\n",
		       done, opened, bank ? sizeof(*bank) : 0, status ? "false" : "true");
		fputs(perseas_report(p), options.json ? stderr : stdout);
	}
	perseas_close(p);
	return status;
}

int main(int argc, char **argv)
{
	OPTIONS_PARSE(argc, argv);
	if (options.against && strcmp(options.against, "local"))
		return complain(2, "--against", "takes local");
	if (!options.engine.mirrors && (!options.against || options.oracle || options.verify))
		return complain(2, "--mirrors", "is missing; it lists the mirrors (see --help)");
	if (options.cpu != UINT64_MAX && pin_to_cpu((int)options.cpu))
		return complain(2, "--cpu", strerror(errno));
	if (options.verify)
		return verify();
	return options.oracle ? serve() : measure();
}
