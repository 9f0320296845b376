/*
 * found - compares ways to find out what a transaction changed with declaring it. The ways take
 * turns, each on its own store. A transaction stores one word in each of some pages.
 */
#include "clock.h"
#include "fabric.h"
#include "measure.h"
#include "options.h"
#include "work.h"
#include "../client/perseas.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, PAGES_MAX = 1024, WAYS_MAX = 8, MAKE_MS = 30000 };

static struct options {
	const char *mirrors, *store, *fabric, *ways;
	uint64_t size, pages, cpu, rounds;
	uint32_t round_ms;
	bool json;
} options = { .cpu = UINT64_MAX };

static const char about[] =
	"Transactions store 8 bytes to each of --pages pages, chosen at random, of a segment. The\n"
	"ways in which the library learns of it take turns:\n\n"
	"  declared     set_range of the 8 bytes\n"
	"  whole-pages  set_range of each page\n"
	"  tracked      nothing is declared: PERSEAS_TRACK, by the pages that were written\n"
	"  tracked-all  the same, comparing all memory (PERSEAS_WRITTEN_PAGES=off)\n"
	"  checked      as declared, with PERSEAS_CHECK_WRITES by the pages that were written\n"
	"  checked-all  the same, comparing all memory (PERSEAS_WRITTEN_PAGES=off)\n";

static const struct ps_option rows[] = {
	{ "mirrors", PS_OPTION_TEXT, AT(mirrors), "LIST", .help = "Where the stores are." },
	{ "store", PS_OPTION_TEXT, AT(store), "NAME", "found",
	  .help = "With what the stores' names begin." },
	{ "ways", PS_OPTION_TEXT, AT(ways), "LIST", "declared,checked,checked-all",
	  .help = "Which ways." },
	{ "size", PS_OPTION_SIZE, AT(size), "BYTES", "64M", (uint64_t)PAGES_MAX *PAGE,
	  .help = "Bytes of the segment." },
	{ "pages", PS_OPTION_NUMBER, AT(pages), "N", "1", 1, PAGES_MAX,
	  .help = "Pages of a transaction." },
	CPU_OPTION_ROW,
	FABRIC_OPTION_ROW,
	ROUND_OPTION_ROWS,
	JSON_OPTION_ROW,
};

static const struct about_way {
	const char *name;
	uint32_t flags; /* of perseas_options */
	bool whole;     /* declares whole pages instead of words */
	bool off;       /* sets PERSEAS_WRITTEN_PAGES=off */
	bool tracks;    /* declares nothing */
} known[] = {
	{ .name = "declared" },
	{ .name = "whole-pages", .whole = true },
	{ .name = "tracked", .flags = PERSEAS_TRACKED, .tracks = true },
	{ .name = "tracked-all", .flags = PERSEAS_TRACKED, .off = true, .tracks = true },
	{ .name = "checked", .flags = PERSEAS_CHECK_WRITES },
	{ .name = "checked-all", .flags = PERSEAS_CHECK_WRITES, .off = true },
};

struct way {
	const struct about_way *about;
	perseas_t *p;
	uint8_t *memory;
	uint64_t state;
};

static struct way ways[WAYS_MAX];
static struct measured *measured[WAYS_MAX];
static unsigned way_count;

static int change(struct way *way, perseas_tx_t *tx)
{
	for (uint64_t i = 0; i < options.pages; i++) {
		const uint64_t where = work_random(&way->state);
		uint8_t *page = way->memory + where % (options.size / PAGE) * PAGE;
		uint8_t *word = page + (where >> 32) % (PAGE / 8) * 8;
		int rc = 0;

		if (way->about->whole)
			rc = perseas_set_range(tx, page, PAGE);
		else if (!way->about->tracks)
			rc = perseas_set_range(tx, word, 8);
		if (rc)
			return rc;
		memcpy(word, &where, sizeof(where));
	}
	return 0;
}

static int step(void *ctx)
{
	struct way *way = ctx;
	perseas_tx_t *tx;
	int rc = perseas_begin(way->p, way->about->tracks ? PERSEAS_TRACK : 0, &tx);

	if (!rc)
		rc = change(way, tx);
	return rc ? rc : perseas_commit(tx, 0);
}

static int open_way(struct way *way)
{
	struct perseas_options how = PERSEAS_OPTIONS_INIT;
	char name[64];
	void *memory;

	snprintf(name, sizeof(name), "%s-%s", options.store, way->about->name);
	how.flags = PERSEAS_CREATE | way->about->flags;
	how.connect_timeout_ms = MAKE_MS;
	if (way->about->off)
		setenv("PERSEAS_WRITTEN_PAGES", "off", 1);
	else
		unsetenv("PERSEAS_WRITTEN_PAGES");
	if (perseas_open(name, options.mirrors, &how, &way->p))
		return program_fail("open", perseas_message(NULL));
	if (perseas_map(way->p, "segment", options.size, &memory))
		return program_fail("map", perseas_message(way->p));
	way->memory = memset(memory, 1, options.size);
	way->state = WORK_SEED;
	if (perseas_publish(way->p))
		return program_fail("publish", perseas_message(way->p));
	return fabric_check(way->p, options.fabric);
}

static int choose_ways(void)
{
	const char *list = options.ways;
	char word[LIST_WORD];

	while (list_next(&list, word)) {
		struct way *way = &ways[way_count];

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (!strcmp(word, known[i].name))
				way->about = &known[i];
		if (!way->about || way_count == WAYS_MAX - 1)
			return program_fail("--ways", "see --help for what there is");
		measured[way_count++] = measured_new(way->about->name, step, way);
	}
	return 0;
}

static int measure_all(void)
{
	const struct measured *failed;
	const struct measure_plan plan = { .rounds = options.rounds,
		                           .seconds = options.round_ms / 1e3 };

	for (unsigned i = 0; i < way_count; i++)
		if (measure_warm_up(measured[i], plan.seconds))
			return program_fail(ways[i].about->name, perseas_message(ways[i].p));
	failed = measure_in_turn(measured, way_count, &plan);
	if (failed)
		return program_fail(failed->name, perseas_error_name(failed->code));
	return 0;
}

static void print(void)
{
	struct ps_json json = { .out = stdout };

	if (!options.json) {
		measured_print(stdout, measured, way_count);
		for (unsigned i = 1; i < way_count; i++)
			measured_print_ratios(stdout, measured[i], measured[0]);
		return;
	}
	ps_json_begin(&json, NULL, '{');
	ps_json_number(&json, "bytes", options.size);
	ps_json_number(&json, "pages", options.pages);
	ps_json_begin(&json, "ways", '{');
	measured_json_all(&json, measured, way_count);
	ps_json_end(&json, '}');
	ps_json_begin(&json, "reports", '{');
	for (unsigned i = 0; i < way_count; i++)
		ps_json_text(&json, ways[i].about->name, perseas_report(ways[i].p));
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
		status = choose_ways();
	for (unsigned i = 0; i < way_count && !status; i++)
		status = open_way(&ways[i]);
	if (!status)
		status = measure_all();
	if (!status)
		print();
	for (unsigned i = 0; i < way_count; i++)
		perseas_close(ways[i].p);
	measured_free_all(measured, way_count);
	return status;
}
