/*
 * bank.h - the debit-credit workload: the variant of TPC-B that RVM, Vista and PERSEAS were
 * measured with. A transaction adds an amount to the balances of an account, of a teller and
 * of the teller's branch, and writes a record of it into a ring.
 *
 * The i-th transfer is the same in every run, and every transfer leaves its number in the
 * history: whoever finds a bank in memory can say how many transfers it holds, and what every
 * byte of it must be.
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
	uint8_t rest[120]; /* what else a bank knows; never touched */
};
static_assert(sizeof(struct bank_balance) == 128, "account layout");

struct bank_history {
	uint64_t number; /* of the transfer, from 1; 0: none yet */
	int64_t amount;
	int64_t account_balance; /* after it */
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

/* The next transfer of the sequence; the plan's first sum is that of their amounts. */
void bank_plan_next(struct work_plan *plan, struct bank_transfer *transfer);

/* Skips to after transfer number `done`. */
void bank_plan_skip(struct work_plan *plan, uint64_t done);

/* The tables of a bank: in memory they lie as in struct bank. */
enum { BANK_OF_ACCOUNTS, BANK_OF_TELLERS, BANK_OF_BRANCHES, BANK_OF_HISTORY, BANK_TABLES };

/* The workload "debit-credit". Its size is the accounts'; 1 stands for BANK_ACCOUNTS, of which a
 * struct bank is. */
extern const struct work bank_work;

#define BANK_NO_COUNT UINT64_MAX

/* How many transfers the bank holds, by its history. BANK_NO_COUNT: it is not the history of
 * any number of transfers. */
uint64_t bank_count(const struct bank *bank);

/*
 * Do the accounts, the tellers and the branches each add up to what the plan says, and does
 * the history end where the plan is? False: a sentence in `why`.
 */
bool bank_check(const struct work_plan *plan, const void *bank, char *why, unsigned why_size);

/* --- what tpca.c takes of it --- */

/* A column of balances, which add up to the plan's first sum. */
#define BANK_COLUMN(table) WORK_COLUMN(table, bank_balance, balance), 0, WORK_NO_SUM, 0

/* The number that must stand at a place of a ring of so many records after `count` of them. */
static inline uint64_t bank_number_at(uint64_t place, uint64_t ring, uint64_t count)
{
	return count <= place ? 0 : (count - 1 - place) / ring * ring + place + 1;
}

/* Adds to the balance of a row. The new balance. */
static inline int64_t bank_add(struct rows *rows, unsigned table, uint32_t id, int64_t amount)
{
	return rows_add_i64(rows, table, id, offsetof(struct bank_balance, balance), amount);
}

#endif
