/*
 * contract.h - what the clauses of every contract are written with (contract_env.h,
 * contract_fabric.h, contract_demand.h): a clause ends at the first thing that does not hold, and
 * leaves it for the test that runs it. It knows no contract.
 */
#ifndef PERSEAS_TESTS_CONTRACT_H
#define PERSEAS_TESTS_CONTRACT_H

#include <stdio.h>

/* The first thing that did not hold, or "". */
extern char clause_broken[256];

#define CHECK(what)                                                                             \
	do {                                                                                    \
		if (!(what)) {                                                                  \
			snprintf(clause_broken, sizeof(clause_broken), "line %d: %s", __LINE__, \
			         #what);                                                        \
			return;                                                                 \
		}                                                                               \
	} while (0)

#endif
