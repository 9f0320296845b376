/*
 * bank.h - the debit-credit workload: the variant of TPC-B that RVM, Vista and PERSEAS were
 * measured with. A transaction adds an amount to the balances of an account, of a teller and of the
 * teller's branch, and writes a record of the transfer into a ring.
 *
 * The i-th transfer is the same in every run, and every transfer stores its number in the history.
 * A bank's history therefore tells how many transfers the bank contains, which determines every
 * byte of it.
 */
#ifndef PERSEAS_BENCH_BANK_H
#define PERSEAS_BENCH_BANK_H

#include "work.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	BANK_ACCOUNTS = 409600, /* of 128 bytes: 50 MiB */
	BANK_TELLERS = 40,
	BANK_BRANCHES = 4,
	BANK_HISTORY = 32768, /* records of 64 bytes: 2 MiB */
};

struct bank_balance {
	int64_t balance;
	uint8_t rest[120]; /* the other data of a real account; never touched */
};
static_assert(sizeof(struct bank_balance) == 128, "account layout");

struct bank_history {
	uint64_t number; /* of the transfer, from 1; 0: the record is unused */
	int64_t amount;
	int64_t account_balance; /* after the transfer */
	int64_t teller_balance;
	int64_t branch_balance;
	uint32_t account;
	uint32_t teller;
	uint32_t branch;
	uint32_t zero[3];
};
static_assert(sizeof(struct bank_history) == 64, "history layout");

struct bank {
	struct bank_balance accounts[BANK_ACCOUNTS];
	struct bank_balance tellers[BANK_TELLERS];
	struct bank_balance branches[BANK_BRANCHES];
	struct bank_history history[BANK_HISTORY];
};

struct bank_transfer {
	uint64_t number; /* from 1 */
	uint32_t account;
	uint32_t teller;
	uint32_t branch;
	int64_t amount;
};

/* Draws the next transfer and adds its amount to the plan's first sum. */
void bank_plan_next(struct work_plan *plan, struct bank_transfer *transfer);

/* Advances the plan until it has drawn transfer number `done`. */
void bank_plan_skip(struct work_plan *plan, uint64_t done);

/* The tables of a bank, in the order of the members of struct bank. */
enum { BANK_OF_ACCOUNTS, BANK_OF_TELLERS, BANK_OF_BRANCHES, BANK_OF_HISTORY, BANK_TABLES };

/* The workload "debit-credit". Its size is the number of accounts; size 1 means BANK_ACCOUNTS, the
 * number that struct bank has. */
extern const struct work bank_work;

#define BANK_NO_COUNT UINT64_MAX

/* Returns how many transfers the bank contains according to its history, or BANK_NO_COUNT if no
 * number of transfers produces that history. */
uint64_t bank_count(const struct bank *bank);

/*
 * Returns true if accounts, tellers and branches each add up to the plan's sum and the history ends
 * with the plan's last transfer. Otherwise returns false with a sentence in `why`.
 */
bool bank_check(const struct work_plan *plan, const void *bank, char *why, unsigned why_size);

/* --- shared with tpca.c --- */

/* Describes a column of balances, which must add up to the plan's first sum. */
#define BANK_COLUMN(table) WORK_COLUMN(table, bank_balance, balance), 0, WORK_NO_SUM, 0

/* Returns the number that the record at `place` has in a ring of `ring` records after `count`
 * transfers. */
static inline uint64_t bank_number_at(uint64_t place, uint64_t ring, uint64_t count)
{
	return count <= place ? 0 : (count - 1 - place) / ring * ring + place + 1;
}

/* Adds `amount` to the balance in row `id` of `table`. Returns the new balance. */
static inline int64_t bank_add(struct rows *rows, unsigned table, uint32_t id, int64_t amount)
{
	return rows_add_i64(rows, table, id, offsetof(struct bank_balance, balance), amount);
}

#endif
