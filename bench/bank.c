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

int bank_transact(struct bank *bank, struct engine *engine, const struct bank_transfer *transfer)
{
	const struct engine_ops *ops = engine->ops;
	int64_t *account = &bank->accounts[transfer->account].balance;
	int64_t *teller = &bank->tellers[transfer->teller].balance;
	int64_t *branch = &bank->branches[transfer->branch].balance;
	struct bank_history *history = history_of(bank, transfer->number);
	int code;

	if ((code = ops->begin(engine)) || (code = ops->range(engine, account, sizeof(*account))) ||
	    (code = ops->range(engine, teller, sizeof(*teller))) ||
	    (code = ops->range(engine, branch, sizeof(*branch))) ||
	    (code = ops->range(engine, history, sizeof(*history))))
		return code;
	post(bank, transfer);
	return ops->commit(engine);
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
	uint64_t total = 0;        /* unsigned: it may wrap around when the bytes are wrong */

	for (unsigned i = 0; i < count; i++)
		total += (uint64_t)balances[i].balance;
	return (int64_t)total;
}

bool bank_check(const struct bank *bank, const struct bank_plan *plan, char *why,
                unsigned why_size)
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
