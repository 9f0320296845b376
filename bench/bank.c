/*
 * bank.c - debit-credit.
 */
#include "bank.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN_SEED 0x9e3779b97f4a7c15u

/* Marsaglia's xorshift64 with a multiplied output; enough for picking accounts. */
static inline uint64_t plan_random(struct bank_plan *plan)
{
	uint64_t x = plan->state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	plan->state = x;
	return x * 0x2545f4914f6cdd1du;
}

void bank_plan_init(struct bank_plan *plan)
{
	plan->state = PLAN_SEED;
	plan->done = 0;
	plan->sum = 0;
}

void bank_plan_next(struct bank_plan *plan, struct bank_transfer *transfer)
{
	uint64_t bits = plan_random(plan);

	/* Different bits for each choice: 32 for the account, 12 for the teller, 20 for the
	 * amount. */
	transfer->account = (uint32_t)((bits >> 32) * BANK_ACCOUNTS >> 32);
	transfer->teller = (uint32_t)((bits >> 20 & 0xfff) * BANK_TELLERS >> 12);
	transfer->branch = transfer->teller / (BANK_TELLERS / BANK_BRANCHES);
	transfer->amount = (int64_t)(bits & 0xfffff) - 0x80000;
	transfer->number = ++plan->done;
	plan->sum += transfer->amount;
}

void bank_plan_skip(struct bank_plan *plan, uint64_t done)
{
	struct bank_transfer transfer;

	while (plan->done < done)
		bank_plan_next(plan, &transfer);
}

static inline struct bank_history *history_of(struct bank *bank, uint64_t number)
{
	return &bank->history[(number - 1) % BANK_HISTORY];
}

static inline void post(struct bank *bank, const struct bank_transfer *transfer)
{
	struct bank_history *history = history_of(bank, transfer->number);

	history->number = transfer->number;
	history->amount = transfer->amount;
	history->account_balance = bank->accounts[transfer->account].balance += transfer->amount;
	history->teller_balance = bank->tellers[transfer->teller].balance += transfer->amount;
	history->branch_balance = bank->branches[transfer->branch].balance += transfer->amount;
	history->account = transfer->account;
	history->teller = transfer->teller;
	history->branch = transfer->branch;
}

void bank_post(struct bank *bank, const struct bank_transfer *transfer)
{
	post(bank, transfer);
}

const struct engine_table bank_tables[BANK_TABLES] = {
	[BANK_OF_ACCOUNTS] = { BANK_ACCOUNTS, sizeof(struct bank_balance) },
	[BANK_OF_TELLERS] = { BANK_TELLERS, sizeof(struct bank_balance) },
	[BANK_OF_BRANCHES] = { BANK_BRANCHES, sizeof(struct bank_balance) },
	[BANK_OF_HISTORY] = { BANK_HISTORY, sizeof(struct bank_history) },
};
static_assert(offsetof(struct bank, tellers) == BANK_ACCOUNTS * sizeof(struct bank_balance) &&
                      sizeof(struct bank) == offsetof(struct bank, history) +
                                                     BANK_HISTORY * sizeof(struct bank_history),
              "a bank is its tables, one after the other");

/* Adds to the balance of a row. The new balance. */
static inline int64_t add(struct rows *rows, unsigned table, uint32_t id, int64_t amount)
{
	return rows_add_i64(rows, table, id, offsetof(struct bank_balance, balance), amount);
}

int bank_transact(struct rows *rows, const struct bank_transfer *transfer)
{
	uint64_t place = (transfer->number - 1) % BANK_HISTORY;
	int64_t account, teller, branch;
	struct bank_history *history;

	if (rows_begin(rows))
		return rows->code;
	account = add(rows, BANK_OF_ACCOUNTS, transfer->account, transfer->amount);
	teller = add(rows, BANK_OF_TELLERS, transfer->teller, transfer->amount);
	branch = add(rows, BANK_OF_BRANCHES, transfer->branch, transfer->amount);
	history = rows_new(rows, BANK_OF_HISTORY, place);
	*history = (struct bank_history){
		.number = transfer->number,
		.amount = transfer->amount,
		.account_balance = account,
		.teller_balance = teller,
		.branch_balance = branch,
		.account = transfer->account,
		.teller = transfer->teller,
		.branch = transfer->branch,
	};
	rows_put(rows, BANK_OF_HISTORY, place, history);
	return rows_commit(rows);
}

/* The number that must stand at a place of the history after `count` transfers. */
static uint64_t number_at(unsigned place, uint64_t count)
{
	uint64_t laps;

	if (count <= place)
		return 0;
	laps = (count - 1 - place) / BANK_HISTORY;
	return laps * BANK_HISTORY + place + 1;
}

uint64_t bank_count(const struct bank *bank)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < BANK_HISTORY; i++)
		if (bank->history[i].number > count)
			count = bank->history[i].number;
	for (unsigned i = 0; i < BANK_HISTORY; i++)
		if (bank->history[i].number != number_at(i, count))
			return BANK_NO_COUNT;
	return count;
}

static int64_t sum(const struct bank_balance *balances, unsigned count)
{
	uint64_t total = 0; /* unsigned: it may wrap around when the bytes are wrong */

	for (unsigned i = 0; i < count; i++)
		total += (uint64_t)balances[i].balance;
	return (int64_t)total;
}

bool bank_check(const struct bank *bank, const struct bank_plan *plan, char *why, unsigned why_size)
{
	const struct {
		const char *name;
		int64_t sum;
	} sums[] = {
		{ "accounts", sum(bank->accounts, BANK_ACCOUNTS) },
		{ "tellers", sum(bank->tellers, BANK_TELLERS) },
		{ "branches", sum(bank->branches, BANK_BRANCHES) },
	};
	uint64_t count = bank_count(bank);

	if (count == BANK_NO_COUNT) {
		snprintf(why, why_size, "the history contradicts itself");
		return false;
	}
	for (unsigned i = 0; i < 3; i++) {
		if (sums[i].sum == plan->sum)
			continue;
		snprintf(why, why_size, "the %s add up to %" PRId64 ", not to %" PRId64,
		         sums[i].name, sums[i].sum, plan->sum);
		return false;
	}
	if (count != plan->done) {
		snprintf(why, why_size, "the history ends at %" PRIu64 ", not at %" PRIu64, count,
		         plan->done);
		return false;
	}
	return true;
}

/* Says where two banks differ first, and in how many bytes. */
static void describe(const struct bank *bank, const struct bank *wanted, char *why,
                     unsigned why_size)
{
	const uint8_t *a = (const uint8_t *)bank;
	const uint8_t *b = (const uint8_t *)wanted;
	size_t first = sizeof(*bank), count = 0;

	for (size_t i = sizeof(*bank); i-- > 0;) {
		if (a[i] != b[i]) {
			first = i;
			count++;
		}
	}
	snprintf(why, why_size, "%zu bytes are not what they must be, the first at offset %zu",
	         count, first);
}

bool bank_compare(const struct bank *bank, uint64_t done, char *why, unsigned why_size)
{
	struct bank *wanted = calloc(1, sizeof(*wanted));
	struct bank_transfer transfer;
	struct bank_plan plan;
	bool same;

	if (!wanted) {
		snprintf(why, why_size, "out of memory");
		return false;
	}
	bank_plan_init(&plan);
	while (plan.done < done) {
		bank_plan_next(&plan, &transfer);
		post(wanted, &transfer);
	}
	same = !memcmp(bank, wanted, sizeof(*bank));
	if (!same)
		describe(bank, wanted, why, why_size);
	free(wanted);
	return same;
}

/* --- as a workload ------------------------------------------------------------------ */

static unsigned tables(uint64_t size, struct engine_table *table)
{
	if (size != 1)
		return 0;
	memcpy(table, bank_tables, sizeof(bank_tables));
	return BANK_TABLES;
}

static void plan_init(void *plan, uint64_t size)
{
	(void)size;
	bank_plan_init(plan);
}

static int step(void *ctx)
{
	struct work_run *run = ctx;
	struct bank_transfer transfer;

	bank_plan_next(run->plan, &transfer);
	return bank_transact(&run->rows, &transfer);
}

static uint64_t done(const void *plan)
{
	return ((const struct bank_plan *)plan)->done;
}

static bool check(const void *plan, const void *image, char *why, unsigned why_size)
{
	return bank_check(image, plan, why, why_size);
}

const struct work bank_work = {
	.name = "debit-credit",
	.sizes = "1",
	.size = 1,
	.plan_size = sizeof(struct bank_plan),
	.tables = tables,
	.plan_init = plan_init,
	.step = step,
	.done = done,
	.check = check,
};
