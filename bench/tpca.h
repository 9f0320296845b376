/*
 * tpca.h - the variant of TPC-A that RVM was measured with (Satyanarayanan and others, "Lightweight
 * Recoverable Virtual Memory", 1994, section 7.1.1). Accounts of 128 bytes and an audit trail with
 * records of 64 bytes take about half of the memory each; the size of the workload is a parameter.
 * There are few tellers and branches. The trail is written sequentially and wraps around. Accounts
 * are accessed sequentially, at random, or with locality: 70 % of the transactions access 5 % of
 * the pages, 25 % another 15 %, and 5 % the rest.
 */
#ifndef PERSEAS_BENCH_TPCA_H
#define PERSEAS_BENCH_TPCA_H

#include "bank.h"

#include <assert.h>

enum { TPCA_ACCOUNTS, TPCA_TELLERS, TPCA_BRANCHES, TPCA_TRAIL, TPCA_TABLES };

enum {
	TPCA_PAGE = 32,                       /* accounts on a page of 4 KiB */
	TPCA_ACCOUNTS_LEAST = 20 * TPCA_PAGE, /* fewest accounts with which no part of the localized
	                                         pattern is empty */
	TPCA_TELLER_COUNT = 100,
	TPCA_BRANCH_COUNT = 10,
};

struct tpca_record {
	uint64_t number; /* of the transaction, from 1 */
	int64_t amount;
	int64_t balance; /* of the account, after the transaction */
	uint32_t account, teller, branch, zero[7];
};
static_assert(sizeof(struct tpca_record) == 64, "record layout");

/* Each returns the account of the next transaction; `done` transactions precede it. */
uint32_t tpca_sequential(uint64_t *state, uint64_t done, uint32_t accounts);
uint32_t tpca_random(uint64_t *state, uint64_t done, uint32_t accounts);
uint32_t tpca_localized(uint64_t *state, uint64_t done, uint32_t accounts);

/* The workloads "tpca-sequential", "tpca-random" and "tpca-localized". Their size is the number of
 * accounts, 256 bytes of memory each. */
extern const struct work tpca_sequential_work, tpca_random_work, tpca_localized_work;

/* The workload "tpca-layered": accesses accounts with locality, like tpca-localized, but declares
 * each row three times, as layered programs do (section 5.2 of the paper): two nested callers
 * declare the whole row, and the innermost function declares what it changes. */
extern const struct work tpca_layered_work;

#endif
