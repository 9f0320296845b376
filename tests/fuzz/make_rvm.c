/*
 * make_rvm.c - writes the seeds of fuzz_rvm_table: a table that is empty, one of two segments in
 * three parts, and one that is full.
 */
#include "../../client/rvm/table.h"
#include "rvm_run.h"
#include "seed_file.h"

#include <string.h>

/* Finds the next run of words that are not zero. Returns false at the end. */
static bool next_run(const struct ps_rvm_table *table, struct rvm_run *run)
{
	static const uint8_t zeros[8];
	const uint8_t *bytes = (const uint8_t *)table;
	uint32_t at = run->at + run->len;

	while (at < sizeof(*table) && !memcmp(bytes + at, zeros, sizeof(zeros)))
		at += sizeof(zeros);
	run->at = at;
	while (at < sizeof(*table) && memcmp(bytes + at, zeros, sizeof(zeros)) != 0)
		at += sizeof(zeros);
	run->len = at - run->at;
	return run->len > 0;
}

static void write_table(const char *name, const struct ps_rvm_table *table)
{
	FILE *file = seed_open("rvm_table", name);
	struct rvm_run run = { 0 };

	while (next_run(table, &run)) {
		seed_add(file, &run, sizeof(run));
		seed_add(file, (const uint8_t *)table + run.at, run.len);
	}
	seed_close(file);
}

static void name_segment(struct ps_rvm_table *table, unsigned row, const char *name,
                         uint64_t length)
{
	snprintf(table->segments[row].name, PS_RVM_NAME, "%s%u", name, row);
	table->segments[row].length = length;
}

static void fill(struct ps_rvm_table *table)
{
	table->next = PS_RVM_PIECES + 1;
	for (unsigned i = 0; i < PS_RVM_SEGMENTS; i++)
		name_segment(table, i, "/var/lib/bank/data", 8192);
	for (unsigned i = 0; i < PS_RVM_PIECES; i++)
		table->pieces[i] = (struct ps_rvm_piece_row){ i + 1, (uint64_t)(i % 2) * 4096, 4096,
			                                      i / 2, 0 };
}

int main(int argc, char **argv)
{
	static struct ps_rvm_table table = { .magic = "PSRVM\0\0\1", .next = 1 };

	corpus_take(argc, argv);
	write_table("empty", &table);
	table.next = 10;
	name_segment(&table, 3, "data", 100000);
	name_segment(&table, 5, "other", 5000);
	table.pieces[0] = (struct ps_rvm_piece_row){ 1, 0, 8192, 3, 0 };
	table.pieces[7] = (struct ps_rvm_piece_row){ 9, 8192, 4096, 3, 0 };
	table.pieces[119] = (struct ps_rvm_piece_row){ 2, 0, 5000, 5, 0 };
	write_table("parts", &table);
	fill(&table);
	write_table("full", &table);
	return 0;
}
