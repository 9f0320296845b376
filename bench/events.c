/*
 * events - measures single events of a transaction that declares nothing, as in Rhino's table 2.
 * Page faults are measured three ways: handled by the kernel; handled by the program, which
 * protects pages with mprotect(2) and handles SIGSEGV; and in memory that has to be read from a
 * mirror.
 */
#include "clock.h"
#include "fabric.h"
#include "measure.h"
#include "options.h"
#include "work.h"
#include "../client/perseas.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, AROUND = 64 << 10, GRANULE = 128 << 10, MAKE_MS = 30000, SAMPLES_MAX = 10000 };

static struct options {
	const char *mirrors, *store, *fabric;
	uint64_t size, cpu, rounds, samples;
	bool spoil, json;
} options = { .cpu = UINT64_MAX };

static const char about[] =
	"Transactions with PERSEAS_TRACK that store to the first 8 bytes of a page, and faults:\n\n"
	"  null call             getppid(2)\n"
	"  begin                 perseas_begin\n"
	"  commit (ro)           perseas_commit, nothing was stored\n"
	"  commit (8byte)        perseas_commit, 8 bytes were\n"
	"  read, warm, kernel    a page that is in memory, and in no page table\n"
	"  write, warm, kernel   a page of the segment, the first time since the last commit\n"
	"  read, warm, signal    a page without any right, which a handler of SIGSEGV gives\n"
	"  write, warm, signal   a page that may be read only, in the same way\n"
	"  read, cold            a page that comes from a mirror (PERSEAS_RECOVERY_ON_DEMAND)\n"
	"  write, cold           the same\n\n"
	"It prints the median of each in us. In the end the store must have what was stored.\n";

static const struct ps_option rows[] = {
	{ "mirrors", PS_OPTION_TEXT, AT(mirrors), "LIST", .help = "Where the store is made." },
	{ "store", PS_OPTION_TEXT, AT(store), "NAME", "events", .help = "Its name." },
	{ "size", PS_OPTION_SIZE, AT(size), "BYTES", "16M", 1 << 20, (uint64_t)1 << 34,
	  .help = "Bytes of the segment." },
	{ "samples", PS_OPTION_NUMBER, AT(samples), "N", "200", 1, SAMPLES_MAX,
	  .help = "Of each event in a round." },
	{ "spoil", PS_OPTION_FLAG, AT(spoil),
	  .help = "Stores something else before the store is checked, which must find it." },
	CPU_OPTION_ROW,
	FABRIC_OPTION_ROW,
	ROUNDS_OPTION_ROW,
	JSON_OPTION_ROW,
};

enum event {
	NULL_CALL,
	BEGIN,
	COMMIT_NOTHING,
	COMMIT_WORD,
	READ_KERNEL,
	WRITE_KERNEL,
	READ_SIGNAL,
	WRITE_SIGNAL,
	READ_COLD,
	WRITE_COLD,
	EVENTS
};

static const char *const names[EVENTS] = {
	"null call",          "begin",
	"commit (ro)",        "commit (8byte)",
	"read, warm, kernel", "write, warm, kernel",
	"read, warm, signal", "write, warm, signal",
	"read, cold",         "write, cold",
};

static double samples[EVENTS][SAMPLES_MAX], medians[EVENTS][MEASURE_ROUNDS_MAX];
static unsigned taken[EVENTS], rounds[EVENTS];

static perseas_t *p;
static uint8_t *memory;
static uint64_t draws = WORK_SEED, stored; /* `stored`: transactions that stored a word */

static void note(enum event event, uint64_t began)
{
	if (taken[event] < options.samples)
		samples[event][taken[event]++] = (double)(clock_ns() - began) / 1e3;
}

static void end_round(void)
{
	for (unsigned i = 0; i < EVENTS; i++) {
		if (taken[i])
			medians[i][rounds[i]++] = measured_summary(samples[i], taken[i]).median;
		taken[i] = 0;
	}
}

static uint8_t *random_page(uint8_t *area, uint64_t size)
{
	return area + work_random(&draws) % (size / PAGE) * PAGE;
}

static void store(uint8_t *at, uint64_t word)
{
	*(volatile uint64_t *)at = word;
}

/* --- the store --- */

static int open_store(uint32_t flags, uint32_t recovery)
{
	struct perseas_options how = PERSEAS_OPTIONS_INIT;

	how.flags = flags;
	how.recovery = recovery;
	how.connect_timeout_ms = MAKE_MS;
	if (perseas_open(options.store, options.mirrors, &how, &p))
		return program_fail("open", perseas_message(NULL));
	return 0;
}

static int map_store(uint64_t size)
{
	void *addr;

	if (perseas_map(p, "segment", size, &addr))
		return program_fail("map", perseas_message(p));
	memory = addr;
	return 0;
}

static int make_store(void)
{
	int status = open_store(PERSEAS_CREATE | PERSEAS_TRACKED, 0);

	if (!status)
		status = fabric_check(p, options.fabric);
	if (!status)
		status = map_store(options.size);
	if (status)
		return status;
	memset(memory, 1, options.size);
	for (uint64_t at = 0; at < options.size; at += PAGE)
		store(memory + at, 0);
	return perseas_publish(p) ? program_fail("publish", perseas_message(p)) : 0;
}

static int reopen_store(uint32_t flags, uint32_t recovery)
{
	const int rc = perseas_close(p);

	p = NULL;
	if (rc)
		return program_fail("close", perseas_error_name(rc));
	if (open_store(flags, recovery))
		return 2;
	return map_store(0);
}

/* --- events in memory --- */

/* Runs a transaction that stores nothing, or increments the first word of a page. The words of all
 * pages add up to the number of transactions that stored one. */
static int transact(bool stores)
{
	uint8_t *page = random_page(memory, options.size);
	perseas_tx_t *tx;
	uint64_t began = clock_ns();
	int rc = perseas_begin(p, PERSEAS_TRACK, &tx);

	note(BEGIN, began);
	if (rc)
		return program_fail("begin", perseas_message(p));
	if (stores) {
		const uint64_t word = *(volatile uint64_t *)page + 1;

		began = clock_ns();
		store(page, word);
		note(WRITE_KERNEL, began);
		stored++;
	}
	began = clock_ns();
	rc = perseas_commit(tx, 0);
	note(stores ? COMMIT_WORD : COMMIT_NOTHING, began);
	return rc ? program_fail("commit", perseas_message(p)) : 0;
}

static void call_null(void)
{
	const uint64_t began = clock_ns();

	syscall(SYS_getppid);
	note(NULL_CALL, began);
}

/* A file in memory, so that a page stays in memory when it is removed from the page table. */
static struct {
	uint8_t *memory;
	uint64_t size;
	volatile int rights; /* access that the signal handler grants */
} area = { .size = 4 << 20 };

static void give_rights(int number, siginfo_t *info, void *context)
{
	const uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1);

	(void)context;
	if (page - (uintptr_t)area.memory >= area.size ||
	    mprotect((void *)page, PAGE, area.rights)) {
		signal(number, SIG_DFL);
		raise(number);
	}
}

static int make_area(void)
{
	const int file = memfd_create("events", MFD_CLOEXEC);
	struct sigaction handler = { .sa_sigaction = give_rights, .sa_flags = SA_SIGINFO };

	if (file < 0 || ftruncate(file, (off_t)area.size) || sigaction(SIGSEGV, &handler, NULL))
		return program_fail("memory", "cannot be had");
	area.memory = mmap(NULL, area.size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (area.memory == MAP_FAILED)
		return program_fail("memory", "cannot be had");
	madvise(area.memory, area.size, MADV_NOHUGEPAGE);
	memset(area.memory, 1, area.size);
	return 0;
}

static void read_by_kernel(void)
{
	uint8_t *page = random_page(area.memory, area.size);
	uint8_t *from = (uint8_t *)((uintptr_t)page & ~(uintptr_t)(AROUND - 1)),
		*to = from + AROUND;
	uint64_t began;

	/* The kernel maps neighboring pages along with one that faults, so none of them may be in
	 * the page table. Pages outside of the area are not ours to drop. */
	from = from < area.memory ? area.memory : from;
	to = to > area.memory + area.size ? area.memory + area.size : to;
	madvise(from, (size_t)(to - from), MADV_DONTNEED);
	began = clock_ns();
	(void)*(volatile uint64_t *)page;
	note(READ_KERNEL, began);
}

static int fault_by_signal(bool writes)
{
	uint8_t *page = random_page(area.memory, area.size);
	uint64_t began;

	store(page, 1);
	area.rights = writes ? PROT_READ | PROT_WRITE : PROT_READ;
	if (mprotect(page, PAGE, writes ? PROT_READ : PROT_NONE))
		return program_fail("mprotect", "failed");
	began = clock_ns();
	if (writes)
		store(page, 2);
	else
		(void)*(volatile uint64_t *)page;
	note(writes ? WRITE_SIGNAL : READ_SIGNAL, began);
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	return 0;
}

static int measure_warm(void)
{
	int status = 0;

	for (uint64_t i = 0; i < options.samples && !status; i++) {
		call_null();
		read_by_kernel();
		status = fault_by_signal(false);
		if (!status)
			status = fault_by_signal(true);
		if (!status)
			status = transact(false);
		if (!status)
			status = transact(true);
	}
	return status;
}

/* --- memory that is missing --- */

static uint64_t count_faults(void)
{
	struct perseas_stat stat;

	return perseas_stat(p, &stat) ? 0 : stat.faults;
}

/* Measures faults in a store that is recovered on demand. The library fetches the rest in the
 * background: memory that has arrived already is not a sample. */
static int measure_cold(bool writes)
{
	const uint64_t granules = options.size / GRANULE;
	perseas_tx_t *tx;
	int rc;

	if (reopen_store(0, PERSEAS_RECOVERY_ON_DEMAND))
		return 2;
	rc = perseas_begin(p, 0, &tx);
	for (uint64_t i = 0; i < granules && !rc; i++) {
		/* Goes backward, because the background fetch goes forward. */
		uint8_t *at = memory + (granules - 1 - i) * GRANULE;
		const uint64_t before = count_faults(), began = clock_ns();

		if (writes)
			store(at + 8, 0x0101010101010101);
		else
			(void)*(volatile uint64_t *)at;
		if (count_faults() > before)
			note(writes ? WRITE_COLD : READ_COLD, began);
	}
	if (!rc)
		rc = perseas_abort(tx);
	return rc ? program_fail("memory that is missing", perseas_message(p)) : 0;
}

/* --- all events --- */

static int measure_all(void)
{
	int status = make_area();

	for (uint64_t i = 0; i < options.rounds && !status; i++) {
		status = measure_warm();
		if (!status)
			status = measure_cold(false);
		if (!status)
			status = measure_cold(true);
		end_round();
		if (!status)
			status = reopen_store(PERSEAS_TRACKED, 0);
	}
	return status;
}

/* Checks that the words add up to the transactions that stored one, and that no other byte changed.
 * Returns an exit status. */
static int check(void)
{
	uint64_t sum = 0;

	if (options.spoil && transact(true))
		return 2;
	stored -= options.spoil;
	if (reopen_store(0, 0))
		return 2;
	for (uint64_t at = 0; at < options.size; at += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, memory + at, sizeof(word));
		if (at % PAGE == 0)
			sum += word;
		else if (word != 0x0101010101010101)
			return program_refute("the store", "has bytes that nobody stored");
	}
	return sum == stored ? 0
	                     : program_refute("the store", "has not the words that were stored");
}

static void print(void)
{
	struct ps_json json = { .out = stdout };

	if (!options.json) {
		for (unsigned i = 0; i < EVENTS; i++) {
			struct measured_ratio us = measured_summary(medians[i], rounds[i]);

			printf("%-22s %10.3f us (%.3f - %.3f)\n", names[i], us.median, us.least,
			       us.most);
		}
		return;
	}
	ps_json_begin(&json, NULL, '{');
	ps_json_begin(&json, "events", '{');
	for (unsigned i = 0; i < EVENTS; i++)
		measured_numbers_json(&json, names[i], medians[i], rounds[i]);
	ps_json_end(&json, '}');
	ps_json_end(&json, '}');
}

int main(int argc, char **argv)
{
	int status;

	OPTIONS_PARSE(argc, argv);
	if (!options.mirrors)
		return program_fail("--mirrors", "is missing; it lists the mirrors (see --help)");
	status = program_pin(options.cpu);
	if (!status)
		status = make_store();
	if (!status)
		status = measure_all();
	if (!status)
		status = check();
	if (!status)
		print();
	perseas_close(p);
	return status;
}
