/*
 * reopen - how long it takes to open a store and to read its segment from the mirrors.
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

enum { MAKE_MS = 30000 }; /* for a mirror to find the memory, on a host that is busy */

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

/* What one round found. */
struct opening {
	double open_s, map_s;
	uint64_t size;
};

static int give_up(perseas_t *p, const char *what)
{
	program_fail(what, perseas_message(p));
	perseas_close(p);
	return 2;
}

/* The word at `index` of the segment. */
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

static int open_once(struct opening *found, bool last)
{
	char why[512];
	uint64_t start = clock_ns(), opened, mapped;
	struct perseas_segment_info info;
	const uint64_t *words;
	void *memory;
	perseas_t *p;

	if (perseas_open(options.store, options.mirrors, NULL, &p))
		return give_up(NULL, "open");
	opened = clock_ns();
	if (perseas_map(p, "segment", 0, &memory))
		return give_up(p, "map");
	mapped = clock_ns();
	perseas_segment(p, "segment", &info);
	words = memory;
	for (uint64_t i = 0; i < info.size / sizeof(*words); i++) {
		if (words[i] != word_at(i)) {
			perseas_close(p);
			return program_fail("segment", "what was read is not what was written");
		}
	}
	*found = (struct opening){ (double)(opened - start) / 1e9, (double)(mapped - opened) / 1e9,
		                   info.size };
	if (fabric_check(p, options.fabric, why, sizeof(why))) {
		perseas_close(p);
		return program_fail("fabric", why);
	}
	if (last && options.json) {
		printf("{");
		fabric_json(stdout, p);
	} else if (last) {
		fabric_print(stdout, p);
	}
	return perseas_close(p);
}

/* What a copy of the segment's size takes, in s: to memory that is not there yet, by one processor
 * and as recovery does it, by several; and to memory that is there. */
struct copying {
	double new_s, beside_s, again_s;
};

static int copy_once(const uint8_t *from, uint64_t size, struct copying *took)
{
	uint64_t start = clock_ns(), middle;
	void *to = area_new(size);

	if (!to)
		return program_fail("memory", strerror(errno));
	memcpy(to, from, size);
	middle = clock_ns();
	took->new_s = (double)(middle - start) / 1e9;
	memcpy(to, from, size);
	/* The compiler may not leave the copies out. */
	__asm__ volatile("" : : "r"(to) : "memory");
	took->again_s = (double)(clock_ns() - middle) / 1e9;
	area_free(to, size);
	to = area_new(size);
	if (!to)
		return program_fail("memory", strerror(errno));
	start = clock_ns();
	ps_copy_beside(to, from, size);
	took->beside_s = (double)(clock_ns() - start) / 1e9;
	area_free(to, size);
	return 0;
}

static void print_figures(const char *name, double *values, double unit)
{
	struct measured_ratio ratio;

	if (options.json) {
		printf(", \"%s\": {", name);
		measured_numbers_json(stdout, "rounds", values, (unsigned)options.rounds);
	}
	ratio = measured_summary(values, (unsigned)options.rounds);
	if (options.json)
		printf(", \"median\": %.6g, \"min\": %.6g, \"max\": %.6g}", ratio.median,
		       ratio.least, ratio.most);
	else
		printf("%-12s %10.1f (%.1f - %.1f)\n", name, ratio.median / unit,
		       ratio.least / unit, ratio.most / unit);
}

/* The figures of all rounds. */
static struct {
	double opens[MEASURE_ROUNDS_MAX], maps[MEASURE_ROUNDS_MAX], bytes[MEASURE_ROUNDS_MAX];
	double copies_new[MEASURE_ROUNDS_MAX], copies_again[MEASURE_ROUNDS_MAX];
	double copies_beside[MEASURE_ROUNDS_MAX];
} figures;

static int run_rounds(struct opening *found)
{
	struct copying copying = { 0, 0, 0 };
	uint8_t *from = NULL;

	for (uint64_t i = 0; i < options.rounds; i++) {
		if (open_once(found, i + 1 == options.rounds))
			return 2;
		figures.opens[i] = found->open_s * 1e3;
		figures.maps[i] = found->map_s * 1e3;
		figures.bytes[i] = (double)found->size / found->map_s;
		if (!options.copy)
			continue;
		if (!from && !(from = area_filled(found->size, 0xa5)))
			return program_fail("memory", strerror(errno));
		if (copy_once(from, found->size, &copying))
			return 2;
		figures.copies_new[i] = copying.new_s * 1e3;
		figures.copies_beside[i] = copying.beside_s * 1e3;
		figures.copies_again[i] = copying.again_s * 1e3;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct opening found = { 0, 0, 0 };

	OPTIONS_PARSE(argc, argv);
	if (!options.mirrors)
		return program_fail("--mirrors", "is missing; it lists the mirrors (see --help)");
	if ((options.make && make_store()) || run_rounds(&found))
		return 2;
	print_figures("open_ms", figures.opens, 1);
	print_figures("map_ms", figures.maps, 1);
	print_figures(options.json ? "bytes_s" : "MB/s", figures.bytes, options.json ? 1 : 1e6);
	if (options.copy) {
		print_figures("copy_new_ms", figures.copies_new, 1);
		print_figures("copy_beside_ms", figures.copies_beside, 1);
		print_figures("copy_ms", figures.copies_again, 1);
	}
	if (options.json)
		printf(", \"bytes\": %llu}\n", (unsigned long long)found.size);
	return 0;
}
