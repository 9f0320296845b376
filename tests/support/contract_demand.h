/*
 * contract_demand.h - the contract of recovery on demand (client/core/demand.h), clause by clause:
 * what holds whoever brings the pager. test_contract_demand.c has the real one (pager_uffd.c) keep
 * it, and test_contract_demand_sim.c the simulator's (tests/sim/pager_sim.c); a clause that the
 * latter breaks is one on which no schedule shows anything.
 *
 * Memory, the fetching thread and its sleep are those of the pager. What it is told by mirrors is
 * the clauses' own: they say when an answer comes, and what it holds.
 */
#ifndef PERSEAS_TESTS_CONTRACT_DEMAND_H
#define PERSEAS_TESTS_CONTRACT_DEMAND_H

#include "../../client/core/env.h"
#include "contract.h"

struct demand_stage {
	struct ps_env *env;
	const char *address; /* of a mirror; nobody connects */
	uint64_t short_ns;   /* what a clause waits for in vain */
	/* The application touches a byte, which may be missing: the byte, or -1 if it may not. */
	int (*look)(struct perseas *p, const uint8_t *at);
};

struct demand_clause {
	const char *name;
	void (*check)(struct demand_stage *stage);
};

extern const struct demand_clause demand_clauses[];
extern const unsigned demand_clause_count;

#endif
