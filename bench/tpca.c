/*
 * tpca.c - RVM's variant of TPC-A.
 */
#include "tpca.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef uint32_t (*pattern_fn)(uint64_t *state, uint64_t done, uint32_t accounts);

uint32_t tpca_sequential(uint64_t *state, uint64_t done, uint32_t accounts)
{
	(void)state;
	return (uint32_t)(done % accounts);
}

uint32_t tpca_random(uint64_t *state, uint64_t done, uint32_t accounts)
{
	(void)done;
	return work_below(state, accounts);
}

uint32_t tpca_localized(uint64_t *state, uint64_t done, uint32_t accounts)
{
	uint32_t pages = accounts / TPCA_PAGE;
	uint32_t hot = pages / 20, warm = pages * 3 / 20;
	uint32_t kind = work_below(state, 100);
	uint32_t first = 0, count = hot;

	(void)done;
	if (kind >= 95) {
		first = hot + warm;
		count = pages - first;
	} else if (kind >= 70) {
		first = hot;
		count = warm;
	}
	return first * TPCA_PAGE + work_below(state, count * TPCA_PAGE);
}

static unsigned tpca_tables(uint64_t size, struct engine_table *table)
{
	const uint32_t balance = sizeof(struct bank_balance);

	if (size < TPCA_ACCOUNTS_LEAST || size >> 28 || size % TPCA_PAGE)
		return 0;
	table[TPCA_ACCOUNTS] = (struct engine_table){ size, balance };
	table[TPCA_TELLERS] = (struct engine_table){ TPCA_TELLER_COUNT, balance };
	table[TPCA_BRANCHES] = (struct engine_table){ TPCA_BRANCH_COUNT, balance };
	table[TPCA_TRAIL] = (struct engine_table){ 2 * size, sizeof(struct tpca_record) };
	return TPCA_TABLES;
}

/* Adds to the balance of a row. With `layers`, declares the whole row twice before, as two callers
 * would. Returns the new balance. */
static inline int64_t add_to(struct rows *rows, unsigned table, uint32_t id, int64_t amount,
                             bool layers)
{
	for (int i = 0; i < 2 && layers && rows->memory; i++)
		rows_write(rows, table, id, 0, sizeof(struct bank_balance));
	return bank_add(rows, table, id, amount);
}

static inline int tpca_step(struct work_run *run, pattern_fn pattern, bool layers)
{
	struct rows *rows = &run->rows;
	struct work_plan *plan = &run->plan;
	struct tpca_record record = { 0 }, *row;
	uint64_t place = plan->done % (2 * plan->size);

	record.account = pattern(&plan->state, plan->done, (uint32_t)plan->size);
	record.teller = work_below(&plan->state, TPCA_TELLER_COUNT);
	record.branch = record.teller / (TPCA_TELLER_COUNT / TPCA_BRANCH_COUNT);
	record.amount = (int64_t)work_below(&plan->state, 1 << 20) - (1 << 19);
	record.number = ++plan->done;
	plan->sums[0] += record.amount;
	if (rows_begin(rows))
		return rows->code;
	record.balance = add_to(rows, TPCA_ACCOUNTS, record.account, record.amount, layers);
	add_to(rows, TPCA_TELLERS, record.teller, record.amount, layers);
	add_to(rows, TPCA_BRANCHES, record.branch, record.amount, layers);
	row = rows_new(rows, TPCA_TRAIL, place);
	*row = record;
	rows_put(rows, TPCA_TRAIL, place, row);
	return rows_commit(rows);
}

static bool check_trail(const struct tpca_record *trail, uint64_t records, uint64_t count,
                        char *why, unsigned why_size)
{
	for (uint64_t i = 0; i < records; i++) {
		uint64_t wanted = bank_number_at(i, records, count);

		if (trail[i].number == wanted)
			continue;
		snprintf(why, why_size,
		         "record %" PRIu64 " of the trail is of transaction %" PRIu64
		         ", not of %" PRIu64,
		         i, trail[i].number, wanted);
		return false;
	}
	return true;
}

static bool tpca_check(const struct work_plan *plan, const void *image, char *why,
                       unsigned why_size)
{
	static const struct work_column columns[] = {
		{ "accounts", BANK_COLUMN(TPCA_ACCOUNTS) },
		{ "tellers", BANK_COLUMN(TPCA_TELLERS) },
		{ "branches", BANK_COLUMN(TPCA_BRANCHES) },
	};
	const struct rows view = work_view(&tpca_random_work, plan->size, image);

	return work_check_columns(&tpca_random_work, plan, image, columns, 3, why, why_size) &&
	       check_trail(rows_at(&view, TPCA_TRAIL, 0), view.tables[TPCA_TRAIL].count, plan->done,
	                   why, why_size);
}

#define TPCA_WORK(label, pattern, layers)                                                     \
	static int step_##label(void *run)                                                    \
	{                                                                                     \
		return tpca_step(run, tpca_##pattern, layers);                                \
	}                                                                                     \
	const struct work tpca_##label##_work = {                                             \
		.name = "tpca-" #label,                                                       \
		.sizes = "accounts, 256 bytes of memory each: a multiple of 32, from 640 on", \
		.size = 256 << 10,                                                            \
		.tables = tpca_tables,                                                        \
		.step = step_##label,                                                         \
		.check = tpca_check,                                                          \
	}

TPCA_WORK(sequential, sequential, false);
TPCA_WORK(random, random, false);
TPCA_WORK(localized, localized, false);
TPCA_WORK(layered, localized, true);
