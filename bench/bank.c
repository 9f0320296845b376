/*
 * bank.c - the debit-credit workload.
 */
#include "bank.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ACCOUNTS_LEAST = 1024, ACCOUNTS_MOST = 1 << 27 };

/* Returns the number of accounts. Size 1 means the standard bank. */
static uint64_t accounts_of(uint64_t size)
{
	return size == 1 ? BANK_ACCOUNTS : size;
}

void bank_plan_next(struct work_plan *plan, struct bank_transfer *transfer)
{
	uint64_t bits = work_random(&plan->state);

	/* Each choice uses other bits: 32 for the account, 12 for the teller, 20 for the amount. */
	transfer->account = (uint32_t)((bits >> 32) * accounts_of(plan->size) >> 32);
	transfer->teller = (uint32_t)((bits >> 20 & 0xfff) * BANK_TELLERS >> 12);
	transfer->branch = transfer->teller / (BANK_TELLERS / BANK_BRANCHES);
	transfer->amount = (int64_t)(bits & 0xfffff) - 0x80000;
	transfer->number = ++plan->done;
	plan->sums[0] += transfer->amount;
}

void bank_plan_skip(struct work_plan *plan, uint64_t done)
{
	struct bank_transfer transfer;

	while (plan->done < done)
		bank_plan_next(plan, &transfer);
}

static_assert(offsetof(struct bank, tellers) == BANK_ACCOUNTS * sizeof(struct bank_balance) &&
                      sizeof(struct bank) == offsetof(struct bank, history) +
                                                     BANK_HISTORY * sizeof(struct bank_history),
              "a bank is its tables, one after the other");

static unsigned bank_tables(uint64_t size, struct engine_table *table)
{
	const struct engine_table all[BANK_TABLES] = {
		[BANK_OF_ACCOUNTS] = { accounts_of(size), sizeof(struct bank_balance) },
		[BANK_OF_TELLERS] = { BANK_TELLERS, sizeof(struct bank_balance) },
		[BANK_OF_BRANCHES] = { BANK_BRANCHES, sizeof(struct bank_balance) },
		[BANK_OF_HISTORY] = { BANK_HISTORY, sizeof(struct bank_history) },
	};

	if (size != 1 && (size < ACCOUNTS_LEAST || size > ACCOUNTS_MOST))
		return 0;
	memcpy(table, all, sizeof(all));
	return BANK_TABLES;
}

static int bank_step(void *ctx)
{
	struct work_run *run = ctx;
	struct rows *rows = &run->rows;
	struct bank_transfer transfer;
	struct bank_history made, *history;
	uint64_t place;

	bank_plan_next(&run->plan, &transfer);
	place = (transfer.number - 1) % BANK_HISTORY;
	if (rows_begin(rows))
		return rows->code;
	made = (struct bank_history){
		.number = transfer.number,
		.amount = transfer.amount,
		.account_balance = bank_add(rows, BANK_OF_ACCOUNTS, transfer.account,
		                            transfer.amount),
		.teller_balance = bank_add(rows, BANK_OF_TELLERS, transfer.teller, transfer.amount),
		.branch_balance = bank_add(rows, BANK_OF_BRANCHES, transfer.branch,
		                           transfer.amount),
		.account = transfer.account,
		.teller = transfer.teller,
		.branch = transfer.branch,
	};
	history = rows_new(rows, BANK_OF_HISTORY, place);
	*history = made;
	rows_put(rows, BANK_OF_HISTORY, place, history);
	return rows_commit(rows);
}

static uint64_t count_history(const struct bank_history *history)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < BANK_HISTORY; i++)
		if (history[i].number > count)
			count = history[i].number;
	for (unsigned i = 0; i < BANK_HISTORY; i++)
		if (history[i].number != bank_number_at(i, BANK_HISTORY, count))
			return BANK_NO_COUNT;
	return count;
}

uint64_t bank_count(const struct bank *bank)
{
	return count_history(bank->history);
}

bool bank_check(const struct work_plan *plan, const void *image, char *why, unsigned why_size)
{
	static const struct work_column columns[] = {
		{ "accounts", BANK_COLUMN(BANK_OF_ACCOUNTS) },
		{ "tellers", BANK_COLUMN(BANK_OF_TELLERS) },
		{ "branches", BANK_COLUMN(BANK_OF_BRANCHES) },
	};
	const struct rows view = work_view(&bank_work, plan->size, image);
	uint64_t count = count_history(rows_at(&view, BANK_OF_HISTORY, 0));

	if (count == BANK_NO_COUNT) {
		snprintf(why, why_size, "the history contradicts itself");
		return false;
	}
	if (!work_check_columns(&bank_work, plan, image, columns, 3, why, why_size))
		return false;
	if (count != plan->done)
		snprintf(why, why_size, "the history ends at %" PRIu64 ", not at %" PRIu64, count,
		         plan->done);
	return count == plan->done;
}

const struct work bank_work = {
	.name = "debit-credit",
	.sizes = "accounts of 128 bytes: 1024 to 128M; or 1 for the usual 400K",
	.size = 1,
	.tables = bank_tables,
	.step = bank_step,
	.check = bank_check,
};
