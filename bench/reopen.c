/*
 * reopen - measures how long it takes to open a store and to read its segment from the mirrors.
 */
#include "area.h"
#include "clock.h"
#include "fabric.h"
#include "measure.h"
#include "options.h"
#include "../client/core/bytes.h"
#include "../client/perseas.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAKE_MS = 30000 }; /* how long to wait for a mirror to allocate memory on a busy host */

static struct options {
	const char *mirrors, *store, *fabric;
	uint64_t size, rounds;
	bool make, json, copy;
} options;

static const char about[] =
	"Opens a store with one segment, maps the segment, closes it, again and again. Mapping\n"
	"reads the segment from a mirror; every word of it is checked.\n\n"
	"--make makes the store and its segment first, and fills it. --against-copy also copies\n"
	"as many bytes in every round: to memory that is new, as the segment's is, and, then, to\n"
	"the same memory again.\n";

static const struct ps_option rows[] = {
	{ "mirrors", PS_OPTION_TEXT, AT(mirrors), "LIST", .help = "Where the store is." },
	{ "store", PS_OPTION_TEXT, AT(store), "NAME", "reopen", .help = "The store." },
	{ "make", PS_OPTION_FLAG, AT(make), .help = "Makes the store before the first round." },
	{ "size", PS_OPTION_SIZE, AT(size), "BYTES", "128M",
	  .help = "Bytes of the segment that is made." },
	{ "against-copy", PS_OPTION_FLAG, AT(copy),
	  .help = "Copies as many bytes in memory, too." },
	FABRIC_OPTION_ROW,
	ROUNDS_OPTION_ROW,
	JSON_OPTION_ROW,
};

/* The measured values, in the order of the table: the name in JSON, the name for people, and the
 * unit in which people read it. */
enum figure { OPEN_MS, MAP_MS, BYTES_S, COPY_NEW_MS, COPY_BESIDE_MS, COPY_MS, FIGURES };
static struct {
	const char *json, *name;
	double unit;
	double rounds[MEASURE_ROUNDS_MAX];
} figures[FIGURES] = {
	[OPEN_MS] = { "open_ms", "open_ms", 1, { 0 } },
	[MAP_MS] = { "map_ms", "map_ms", 1, { 0 } },
	[BYTES_S] = { "bytes_s", "MB/s", 1e6, { 0 } },
	/* Copies of as many bytes: to memory not yet allocated, by one processor and, as in
	 * recovery, by several; and to memory that is allocated. */
	[COPY_NEW_MS] = { "copy_new_ms", "copy_new_ms", 1, { 0 } },
	[COPY_BESIDE_MS] = { "copy_beside_ms", "copy_beside_ms", 1, { 0 } },
	[COPY_MS] = { "copy_ms", "copy_ms", 1, { 0 } },
};
static uint64_t segment_size;
static struct ps_json json;

/* Records how long something took since `start`. Returns the current time. */
static uint64_t note_ms(enum figure figure, uint64_t round, uint64_t start)
{
	uint64_t now = clock_ns();

	figures[figure].rounds[round] = (double)(now - start) / 1e6;
	return now;
}

static int give_up(perseas_t *p, const char *what)
{
	program_fail(what, perseas_message(p));
	perseas_close(p);
	return 2;
}

/* Returns the expected word at `index` of the segment. */
static uint64_t word_at(uint64_t index)
{
	return (index + 1) * 0x9e3779b97f4a7c15u;
}

static int make_store(void)
{
	struct perseas_options how = PERSEAS_OPTIONS_INIT;
	uint64_t *words;
	void *memory;
	perseas_t *p;

	how.flags = PERSEAS_CREATE;
	how.connect_timeout_ms = MAKE_MS;
	if (perseas_open(options.store, options.mirrors, &how, &p))
		return give_up(NULL, "open");
	if (perseas_map(p, "segment", options.size, &memory))
		return give_up(p, "map");
	words = memory;
	for (uint64_t i = 0; i < options.size / sizeof(*words); i++)
		words[i] = word_at(i);
	if (perseas_publish(p) || perseas_flush(p))
		return give_up(p, "publish");
	return perseas_close(p);
}

static bool is_right(const uint64_t *words)
{
	for (uint64_t i = 0; i < segment_size / sizeof(*words); i++)
		if (words[i] != word_at(i))
			return false;
	return true;
}

/* Maps the segment and checks its contents. Returns an exit status. */
static int read_segment(perseas_t *p, uint64_t round, uint64_t opened)
{
	struct perseas_segment_info info;
	void *memory;

	if (perseas_map(p, "segment", 0, &memory))
		return program_fail("map", perseas_message(p));
	note_ms(MAP_MS, round, opened);
	perseas_segment(p, "segment", &info);
	segment_size = info.size;
	figures[BYTES_S].rounds[round] = (double)info.size * 1e3 / figures[MAP_MS].rounds[round];
	if (!is_right(memory))
		return program_fail("segment", "what was read is not what was written");
	return fabric_check(p, options.fabric);
}

static int open_once(uint64_t round)
{
	uint64_t start = clock_ns();
	perseas_t *p;
	int status;

	if (perseas_open(options.store, options.mirrors, NULL, &p))
		return program_fail("open", perseas_message(NULL));
	status = read_segment(p, round, note_ms(OPEN_MS, round, start));
	if (!status && round + 1 == options.rounds && options.json) {
		ps_json_begin(&json, NULL, '{');
		fabric_json(&json, p);
	} else if (!status && round + 1 == options.rounds) {
		fabric_print(stdout, p);
	}
	perseas_close(p);
	return status;
}

static int copy_once(const uint8_t *from, uint64_t round)
{
	uint64_t start = clock_ns();
	void *to = area_new(segment_size);

	if (!from || !to)
		return program_fail("memory", strerror(errno));
	memcpy(to, from, segment_size);
	start = note_ms(COPY_NEW_MS, round, start);
	memcpy(to, from, segment_size);
	/* Keeps the compiler from dropping the copies. */
	__asm__ volatile("" : : "r"(to) : "memory");
	note_ms(COPY_MS, round, start);
	area_free(to, segment_size);
	to = area_new(segment_size);
	if (!to)
		return program_fail("memory", strerror(errno));
	start = clock_ns();
	ps_copy_parallel(to, from, segment_size);
	note_ms(COPY_BESIDE_MS, round, start);
	area_free(to, segment_size);
	return 0;
}

static void print_figure(enum figure figure)
{
	double *rounds = figures[figure].rounds, unit = figures[figure].unit;
	struct measured_ratio ratio;

	if (options.json) {
		ps_json_begin(&json, figures[figure].json, '{');
		measured_numbers_json(&json, "rounds", rounds, (unsigned)options.rounds);
	}
	ratio = measured_summary(rounds, (unsigned)options.rounds);
	if (options.json) {
		ps_json_real(&json, "median", ratio.median);
		ps_json_real(&json, "min", ratio.least);
		ps_json_real(&json, "max", ratio.most);
		ps_json_end(&json, '}');
	} else {
		printf("%-12s %10.1f (%.1f - %.1f)\n", figures[figure].name, ratio.median / unit,
		       ratio.least / unit, ratio.most / unit);
	}
}

int main(int argc, char **argv)
{
	uint8_t *from = NULL;

	OPTIONS_PARSE(argc, argv);
	if (!options.mirrors)
		return program_fail("--mirrors", "is missing; it lists the mirrors (see --help)");
	if (options.make && make_store())
		return 2;
	json.out = stdout;
	for (uint64_t i = 0; i < options.rounds; i++) {
		if (open_once(i))
			return 2;
		if (options.copy && !from)
			from = area_filled(segment_size, 0xa5);
		if (options.copy && copy_once(from, i))
			return 2;
	}
	for (enum figure i = 0; i < (options.copy ? FIGURES : COPY_NEW_MS); i++)
		print_figure(i);
	if (options.json) {
		ps_json_number(&json, "bytes", segment_size);
		ps_json_end(&json, '}');
	}
	return 0;
}
