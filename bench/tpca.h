/*
 * tpca.h - the variant of TPC-A that RVM was measured with (Satyanarayanan and others, "Lightweight
 * Recoverable Virtual Memory", 1994, section 7.1.1): accounts of 128 bytes and an audit trail of
 * 64 bytes a record, each about half of the memory, whose size is a parameter; tellers and branches
 * are few. The trail is written in sequence, with wrap-around. Accounts are taken in sequence, or
 * at random, or with locality: 70 % of the transactions take one of 5 % of the pages, 25 % one
 * of other 15 %, and 5 % one of the rest.
 */
#ifndef PERSEAS_BENCH_TPCA_H
#define PERSEAS_BENCH_TPCA_H

#include "bank.h"

#include <assert.h>

enum { TPCA_ACCOUNTS, TPCA_TELLERS, TPCA_BRANCHES, TPCA_TRAIL, TPCA_TABLES };

enum {
	TPCA_PAGE = 32,                       /* accounts on 4 KiB */
	TPCA_ACCOUNTS_LEAST = 20 * TPCA_PAGE, /* no part of the localized pattern is empty */
	TPCA_TELLER_COUNT = 100,
	TPCA_BRANCH_COUNT = 10,
};

struct tpca_record {
	uint64_t number; /* of the transaction, from 1 */
	int64_t amount;
	int64_t balance; /* of the account, after it */
	uint32_t account, teller, branch, zero[7];
};
static_assert(sizeof(struct tpca_record) == 64, "record layout");

/* The account of the next transaction. */
uint32_t tpca_sequential(uint64_t *state, uint64_t done, uint32_t accounts);
uint32_t tpca_random(uint64_t *state, uint64_t done, uint32_t accounts);
uint32_t tpca_localized(uint64_t *state, uint64_t done, uint32_t accounts);

/* "tpca-sequential" and so on. Their size is the accounts', 256 bytes of memory each. */
extern const struct work tpca_sequential_work, tpca_random_work, tpca_localized_work;

/* "tpca-layered": localized, and each row is declared whole by two functions, of which one calls
 * the other, and that a third, which declares what it changes: as programs in layers do (section
 * 5.2 of the paper). */
extern const struct work tpca_layered_work;

#endif
