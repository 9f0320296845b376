/*
 * contract_env.h - the contract of env.h, clause by clause: what every env must
 * do. test_contract_env.c has the real one and the simulator's keep it; a clause that one
 * of them breaks is one on which no schedule of the simulator shows anything. The unit tests' own
 * (env_direct.c) keeps those that its test names.
 *
 * Each env comes with a stage: a mirror that answers every request with a refusal, as soon as it
 * may.
 */
#ifndef PERSEAS_TESTS_CONTRACT_ENV_H
#define PERSEAS_TESTS_CONTRACT_ENV_H

#include "../../client/core/env.h"
#include "contract.h"

struct stage {
	struct ps_env *env;
	struct ps_address mirror, nobody; /* nobody listens at `nobody` */
	uint64_t short_ns;                /* what a clause waits for in vain */
	/* Makes the mirror hold its answers. It gives signs of progress when told to, and answers
	 * after let_go, once `requests` of them have arrived. */
	void (*hold)(struct stage *stage);
	void (*sign)(struct stage *stage, uint64_t done);
	void (*let_go)(struct stage *stage, unsigned requests);
	/* Makes the mirror silent, like a stopped process. */
	void (*stop)(struct stage *stage);
	/* Make the mirror send an answer that nobody asked for, or end the connection. Return after
	 * it arrived. */
	void (*stray)(struct stage *stage);
	void (*end)(struct stage *stage);
};

struct clause {
	const char *name;
	void (*check)(struct stage *stage);
};

extern const struct clause env_clauses[];
extern const unsigned env_clause_count;

#endif
