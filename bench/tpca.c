/*
 * tpca.c - RVM's variant of TPC-A.
 */
#include "tpca.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef uint32_t (*pattern_fn)(uint64_t *state, uint64_t done, uint32_t accounts);

struct plan {
	uint64_t state;
	uint64_t done;
	int64_t sum;
	uint32_t accounts;
};

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

static unsigned tables(uint64_t size, struct engine_table *table)
{
	const uint32_t balance = sizeof(struct tpca_balance);

	if (size < TPCA_ACCOUNTS_LEAST || size >> 28 || size % TPCA_PAGE)
		return 0;
	table[TPCA_ACCOUNTS] = (struct engine_table){ size, balance };
	table[TPCA_TELLERS] = (struct engine_table){ TPCA_TELLER_COUNT, balance };
	table[TPCA_BRANCHES] = (struct engine_table){ TPCA_BRANCH_COUNT, balance };
	table[TPCA_TRAIL] = (struct engine_table){ 2 * size, sizeof(struct tpca_record) };
	return TPCA_TABLES;
}

static void plan_init(void *ctx, uint64_t size)
{
	struct plan *plan = ctx;

	*plan = (struct plan){ .state = WORK_SEED, .accounts = (uint32_t)size };
}

/* Adds to the balance of a row. The new balance. */
static inline int64_t add(struct rows *rows, unsigned table, uint32_t id, int64_t amount)
{
	return rows_add_i64(rows, table, id, offsetof(struct tpca_balance, balance), amount);
}

static inline int transact(struct work_run *run, pattern_fn pattern)
{
	struct rows *rows = &run->rows;
	struct plan *plan = run->plan;
	struct tpca_record record = { 0 }, *row;
	uint64_t place = plan->done % (2 * (uint64_t)plan->accounts);

	record.account = pattern(&plan->state, plan->done, plan->accounts);
	record.teller = work_below(&plan->state, TPCA_TELLER_COUNT);
	record.branch = record.teller / (TPCA_TELLER_COUNT / TPCA_BRANCH_COUNT);
	record.amount = (int64_t)work_below(&plan->state, 1 << 20) - (1 << 19);
	record.number = ++plan->done;
	plan->sum += record.amount;
	if (rows_begin(rows))
		return rows->code;
	record.balance = add(rows, TPCA_ACCOUNTS, record.account, record.amount);
	add(rows, TPCA_TELLERS, record.teller, record.amount);
	add(rows, TPCA_BRANCHES, record.branch, record.amount);
	row = rows_new(rows, TPCA_TRAIL, place);
	*row = record;
	rows_put(rows, TPCA_TRAIL, place, row);
	return rows_commit(rows);
}

static int step_sequential(void *run)
{
	return transact(run, tpca_sequential);
}

static int step_random(void *run)
{
	return transact(run, tpca_random);
}

static int step_localized(void *run)
{
	return transact(run, tpca_localized);
}

static uint64_t done(const void *plan)
{
	return ((const struct plan *)plan)->done;
}

static bool check_sum(const char *name, const struct tpca_balance *rows, uint64_t count,
                      int64_t wanted, char *why, unsigned why_size)
{
	uint64_t total = 0; /* unsigned: it may wrap around when the bytes are wrong */

	for (uint64_t i = 0; i < count; i++)
		total += (uint64_t)rows[i].balance;
	if ((int64_t)total == wanted)
		return true;
	snprintf(why, why_size, "the %s add up to %" PRId64 ", not to %" PRId64, name,
	         (int64_t)total, wanted);
	return false;
}

static bool check_trail(const struct tpca_record *trail, uint64_t records, uint64_t count,
                        char *why, unsigned why_size)
{
	for (uint64_t i = 0; i < records; i++) {
		uint64_t wanted = count <= i ? 0 : (count - 1 - i) / records * records + i + 1;

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

static bool check(const void *ctx, const void *image, char *why, unsigned why_size)
{
	const struct plan *plan = ctx;
	struct engine_table table[TPCA_TABLES];
	uint64_t at[TPCA_TABLES + 1];
	const uint8_t *bytes = image;

	rows_lay_out(table, tables(plan->accounts, table), at);
	return check_sum("accounts", (const void *)(bytes + at[TPCA_ACCOUNTS]),
	                 table[TPCA_ACCOUNTS].count, plan->sum, why, why_size) &&
	       check_sum("tellers", (const void *)(bytes + at[TPCA_TELLERS]),
	                 table[TPCA_TELLERS].count, plan->sum, why, why_size) &&
	       check_sum("branches", (const void *)(bytes + at[TPCA_BRANCHES]),
	                 table[TPCA_BRANCHES].count, plan->sum, why, why_size) &&
	       check_trail((const void *)(bytes + at[TPCA_TRAIL]), table[TPCA_TRAIL].count,
	                   plan->done, why, why_size);
}

#define TPCA_WORK(pattern)                                                                    \
	const struct work tpca_##pattern##_work = {                                           \
		.name = "tpca-" #pattern,                                                     \
		.sizes = "accounts, 256 bytes of memory each: a multiple of 32, from 640 on", \
		.size = 256 << 10,                                                            \
		.plan_size = sizeof(struct plan),                                             \
		.tables = tables,                                                             \
		.plan_init = plan_init,                                                       \
		.step = step_##pattern,                                                       \
		.done = done,                                                                 \
		.check = check,                                                               \
	}

TPCA_WORK(sequential);
TPCA_WORK(random);
TPCA_WORK(localized);
