/*
 * reopen - how long it takes to open a store and to read its segment from the mirrors.
 */
#include "clock.h"
#include "fabric.h"
#include "measure.h"
#include "options.h"
#include "../client/perseas.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct {
	const char *mirrors, *store, *fabric;
	uint64_t size, rounds;
	bool make, json;
} options = {
	.store = "reopen",
	.size = 128 << 20,
	.rounds = 5,
};

static const char about[] =
	"Opens a store with one segment, maps the segment, closes it, again and again. Mapping\n"
	"reads the segment from a mirror; every word of it is checked.\n\n"
	"--make makes the store and its segment first, and fills it.\n";

static const struct option_row rows[] = {
	{ "mirrors", OPTION_TEXT, &options.mirrors, "LIST  where the store is" },
	{ "store", OPTION_TEXT, &options.store, "NAME  (reopen)" },
	{ "make", OPTION_FLAG, &options.make, "the store, before the first round" },
	{ "size", OPTION_NUMBER, &options.size, "BYTES  of the segment that is made (128M)" },
	{ "fabric", OPTION_TEXT, &options.fabric, "NAME  fails when a mirror is on another" },
	{ "rounds", OPTION_NUMBER, &options.rounds, "N  (5)" },
	{ "json", OPTION_FLAG, &options.json, "one JSON object on standard output" },
	{ NULL, OPTION_FLAG, NULL, NULL },
};

/* What one round found. */
struct opening {
	double open_s, map_s;
	uint64_t size;
};

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "reopen: %s: %s\n", what, why);
	return 2;
}

static int refuse(perseas_t *p, const char *what)
{
	complain(what, perseas_message(p));
	perseas_close(p);
	return 2;
}

/* The word at `index` of the segment. */
static uint64_t word(uint64_t index)
{
	return (index + 1) * 0x9e3779b97f4a7c15u;
}

static int make(void)
{
	struct perseas_options how = PERSEAS_OPTIONS_INIT;
	uint64_t *words;
	void *memory;
	perseas_t *p;

	how.flags = PERSEAS_CREATE;
	if (perseas_open(options.store, options.mirrors, &how, &p))
		return refuse(NULL, "open");
	if (perseas_map(p, "segment", options.size, &memory))
		return refuse(p, "map");
	words = memory;
	for (uint64_t i = 0; i < options.size / sizeof(*words); i++)
		words[i] = word(i);
	if (perseas_publish(p) || perseas_flush(p))
		return refuse(p, "publish");
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
		return refuse(NULL, "open");
	opened = clock_ns();
	if (perseas_map(p, "segment", 0, &memory))
		return refuse(p, "map");
	mapped = clock_ns();
	perseas_segment(p, "segment", &info);
	words = memory;
	for (uint64_t i = 0; i < info.size / sizeof(*words); i++) {
		if (words[i] != word(i)) {
			perseas_close(p);
			return complain("segment", "what was read is not what was written");
		}
	}
	*found = (struct opening){ (double)(opened - start) / 1e9,
		                   (double)(mapped - opened) / 1e9, info.size };
	if (fabric_check(p, options.fabric, why, sizeof(why))) {
		perseas_close(p);
		return complain("fabric", why);
	}
	if (last && options.json) {
		printf("{");
		fabric_json(stdout, p);
	} else if (last) {
		fabric_print(stdout, p);
	}
	return perseas_close(p);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct measured_ratio summarise(double *values, uint64_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return (struct measured_ratio){ (values[count / 2] + values[(count - 1) / 2]) / 2,
		                        values[0], values[count - 1] };
}

static void print(const char *name, double *values, double unit)
{
	struct measured_ratio ratio = summarise(values, options.rounds);

	if (options.json) {
		printf(", \"%s\": ", name);
		measured_ratio_json(stdout, &ratio);
	} else {
		printf("%-12s %10.1f (%.1f - %.1f)\n", name, ratio.median / unit,
		       ratio.least / unit, ratio.most / unit);
	}
}

int main(int argc, char **argv)
{
	double opens[MEASURE_ROUNDS_MAX], maps[MEASURE_ROUNDS_MAX], bytes[MEASURE_ROUNDS_MAX];
	struct opening found = { 0, 0, 0 };

	options_parse(argc, argv, about, rows);
	if (!options.mirrors)
		return complain("--mirrors", "is missing; it lists the mirrors (see --help)");
	if (!options.rounds || options.rounds > MEASURE_ROUNDS_MAX)
		return complain("--rounds", "is 1 to 101");
	if (options.make && make())
		return 2;
	for (uint64_t i = 0; i < options.rounds; i++) {
		if (open_once(&found, i + 1 == options.rounds))
			return 2;
		opens[i] = found.open_s * 1e3;
		maps[i] = found.map_s * 1e3;
		bytes[i] = (double)found.size / found.map_s;
	}
	print("open_ms", opens, 1);
	print("map_ms", maps, 1);
	print(options.json ? "bytes_s" : "MB/s", bytes, options.json ? 1 : 1e6);
	if (options.json)
		printf(", \"bytes\": %llu}\n", (unsigned long long)found.size);
	return 0;
}
