/*
 * debit-credit - runs the debit-credit workload in a process that a test may kill, or checks the
 * store that the process left. `compare` measures the workload.
 */
#include "bank.h"
#include "clock.h"
#include "options.h"
#include "../client/perseas.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ORACLE_SIZE = 4096 };

static struct options {
	const char *oracle;
	uint32_t ms;
	uint64_t transactions, cpu;
	bool json, verify, go_on;
	struct engine_options engine;
} options = {
	.cpu = UINT64_MAX,
	.engine = { .segment = "bank" },
};

static const char about[] =
	"Adds amounts to the balances of an account (409600 of 128 bytes: 50 MiB), a teller (40)\n"
	"and a branch (4), and writes a history record of 64 bytes (ring of 2 MiB), in\n"
	"transactions of four ranges. The i-th transaction is the same in every run.\n\n"
	"It runs until --seconds, --transactions or SIGTERM. With --oracle, after each commit\n"
	"that returned 0 the file says how many there were, also when this process is killed.\n"
	"The sums of the balances are checked at the end. With --verify it opens the store,\n"
	"works out from the history how many transactions it holds, computes what every byte\n"
	"must be, and compares; with --oracle also that none that was acknowledged is missing,\n"
	"and at most one that was not is there.\n\n"
	"Exit status: 0, 1 when a check failed, 2 when it could not run.\n";

static const struct ps_option rows[] = {
	{ "mirrors", PS_OPTION_TEXT, AT(engine.mirrors), "LIST", .help = "Where the store is." },
	{ "store", PS_OPTION_TEXT, AT(engine.store), "NAME", "bench",
	  .help = "Store, made when it is not there." },
	{ "seconds", PS_OPTION_SECONDS, AT(ms), "S", .help = "How long. Default: no limit." },
	{ "transactions", PS_OPTION_NUMBER, AT(transactions), "N", .help = "At most." },
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

static int engine_failed(const struct work_run *run)
{
	if (run->rows.engine->handle)
		fprintf(stderr, "debit-credit: %s\n", perseas_error_name(run->rows.code));
	return program_fail(run->rows.ops->name, rows_why(&run->rows));
}

static int check_bank(const struct work_run *run)
{
	char why[256];

	if (bank_check(&run->plan, run->rows.memory, why, sizeof(why)))
		return 0;
	return program_refute(run->rows.ops->name, why);
}

/* Opens the engine and advances the plan to the state of its bank. Returns an exit status. */
static int open_bank(struct work_run *run, const struct engine_ops *ops)
{
	char why[WORK_WHY];
	uint64_t done;

	if (work_attach(run, &bank_work, 1, ops, &options.engine, why))
		return program_fail(ops->name, why);
	done = bank_count((const struct bank *)run->rows.memory);
	if (done == BANK_NO_COUNT)
		return check_bank(run);
	if (done && !options.go_on)
		return program_fail(options.engine.store, "it holds a bank already; give "
		                                          "--continue, or another --store");
	bank_plan_skip(&run->plan, done);
	return check_bank(run);
}

/* --- running until killed ------------------------------------------------------------ */

static volatile sig_atomic_t stopped;

static void note_signal(int signal)
{
	(void)signal;
	stopped = 1;
}

/*
 * Maps the oracle file, whose page counts the transactions that were acknowledged to this process.
 * The page is in the system's page cache, so the count survives if the process is killed, and it
 * does not depend on the store that it checks. It is never unmapped. Returns NULL on failure, after
 * it printed the reason.
 */
static _Atomic uint64_t *open_oracle(void)
{
	int fd = open(options.oracle, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *page = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, ORACLE_SIZE))
		page = mmap(NULL, ORACLE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		program_fail(options.oracle, strerror(errno));
	if (fd >= 0)
		close(fd);
	return page == MAP_FAILED ? NULL : page;
}

static int run_until_stopped(struct work_run *run, _Atomic uint64_t *oracle)
{
	uint64_t ns = options.ms ? (uint64_t)options.ms * 1000000 : UINT64_MAX;
	uint64_t first = run->plan.done, start = clock_ns();
	uint64_t most = options.transactions ? options.transactions : UINT64_MAX;
	uint64_t done = 0;
	double elapsed;

	while (!stopped && done < most && (done % 64 || clock_ns() - start < ns)) {
		if (bank_work.step(run))
			return engine_failed(run);
		done++;
		atomic_store_explicit(oracle, first + done, memory_order_release);
	}
	elapsed = (double)(clock_ns() - start) / 1e9;
	printf(options.json ? "{\"transactions\": %" PRIu64 ", \"seconds\": %.3f, \"rate\": %.0f, "
	                      "\"total\": %" PRIu64 "}\n"
	                    : "%" PRIu64 " transactions in %.3f s: %.0f a second; %" PRIu64
	                      " in all\n",
	       done, elapsed, (double)done / elapsed, run->plan.done);
	return check_bank(run);
}

static int run_bank(void)
{
	struct sigaction on_stop = { .sa_handler = note_signal };
	_Atomic uint64_t unseen = 0, *oracle = options.oracle ? open_oracle() : &unseen;
	struct work_run run = { 0 };
	int status;

	if (!oracle)
		return 2;
	sigaction(SIGTERM, &on_stop, NULL);
	sigaction(SIGINT, &on_stop, NULL);
	status = open_bank(&run, &engine_perseas);
	if (!status && run.plan.done < *oracle)
		status = program_refute(options.oracle, "acknowledged transactions are missing");
	if (!status) {
		*oracle = run.plan.done;
		status = run_until_stopped(&run, oracle);
	}
	work_close(&run);
	return status;
}

/* --- checking the store afterward ---------------------------------------------------- */

/* Opens the store and maps its bank. Sets *bank to NULL if no bank was ever published. Returns an
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
		return program_fail(perseas_error_name(code), perseas_message(NULL));
	code = perseas_map(*p, options.engine.segment, 0, &memory);
	if (code == PERSEAS_ENOSEGMENT)
		return 0;
	if (code)
		return program_fail(perseas_error_name(code), perseas_message(*p));
	*bank = memory;
	return 0;
}

/* Checks that the bank contains exactly the first `done` transactions, and that these are the ones
 * that the oracle counts, plus at most one more. Returns an exit status. */
static int compare_bank(const struct bank *bank, uint64_t done)
{
	char why[WORK_WHY];
	uint64_t acked = done;

	if (done == BANK_NO_COUNT)
		return program_refute("the bank", "its history contradicts itself");
	if (bank && !work_compare(&bank_work, 1, bank, done, why))
		return program_refute("the bank", why);
	if (options.oracle) {
		_Atomic uint64_t *oracle = open_oracle();

		if (!oracle)
			return 2;
		acked = *oracle;
	}
	if (done < acked || done > acked + 1) {
		snprintf(why, sizeof(why), "%" PRIu64 " were acknowledged, %" PRIu64 " are there",
		         acked, done);
		return program_refute("transactions", why);
	}
	return 0;
}

static int verify_bank(void)
{
	const struct bank *bank;
	perseas_t *p = NULL;
	uint64_t start = clock_ns(), done = 0;
	int status = open_left(&p, &bank);
	double opened = (double)(clock_ns() - start) / 1e6;

	if (!status) {
		done = bank ? bank_count(bank) : 0;
		status = compare_bank(bank, done);
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
	if (!options.engine.mirrors)
		return program_fail("--mirrors", "is missing; it lists the mirrors (see --help)");
	if (program_pin(options.cpu))
		return 2;
	return options.verify ? verify_bank() : run_bank();
}
