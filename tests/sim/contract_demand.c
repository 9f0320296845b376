/*
 * contract_demand.c - runs one clause of the contract of recovery on demand with the simulator's
 * pager, in a world without mirrors: what they say is the clause's own. contract.h says what this
 * pager cannot do.
 */
#include "contract.h"

#include "../../client/core/demand.h"
#include "../support/contract_demand.h"
#include "env_sim.h"

struct sim_stage {
	struct demand_stage stage; /* first */
	const struct demand_clause *clause;
};

/* Asks whether the byte is there before it is touched, so that the touch never blocks. */
static int look(struct perseas *p, const uint8_t *at)
{
	const uint64_t start = (uint64_t)(uintptr_t)at;

	return ps_demand_await(p, start, start + 1) ? -1 : *at;
}

static void run(void *arg)
{
	struct sim_stage *s = arg;

	s->clause->check(&s->stage);
}

void sim_contract_demand(unsigned clause)
{
	struct sim_world w = { 0 };
	struct sim_stage s = {
		.clause = &demand_clauses[clause],
		.stage = { .address = "sim://0", .short_ns = 100 * SIM_MS, .look = look }
	};

	sim_contract_begin(&w, 0);
	s.stage.env = &sim_owner_new(&w, run, &s)->env;
	sim_contract_end(&w);
}
