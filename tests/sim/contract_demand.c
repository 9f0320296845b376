/*
 * contract_demand.c - runs one clause of the contract of recovery on demand with the simulator's
 * pager, in a world without mirrors: what they say is the clause's own. contract.h says what this
 * pager cannot do.
 */
#include "contract.h"

#include "../../client/core/demand.h"
#include "../support/contract_demand.h"
#include "env_sim.h"
#include "schedule.h"

struct sim_stage {
	struct demand_stage stage; /* first */
	const struct demand_clause *clause;
};

/* Nobody is held up by touching it: so it is asked for first. */
static int look(struct perseas *p, const uint8_t *at)
{
	const uint64_t start = (uint64_t)(uintptr_t)at;

	return ps_demand_bring(p, start, start + 1) ? -1 : *at;
}

static void run(void *arg)
{
	struct sim_stage *s = arg;

	s->clause->check(&s->stage);
}

void sim_contract_demand(unsigned clause)
{
	static uint64_t counts[SIM_COUNTS_MAX];
	struct sim_world w = { .counts = counts };
	struct sim_stage s = {
		.clause = &demand_clauses[clause],
		.stage = { .address = "sim://0", .short_ns = 100 * SIM_MS, .look = look }
	};
	struct sim_owner *o;

	sim_world_begin(&w, 1);
	w.schedule = sim_alloc(&w, sizeof(*w.schedule));
	o = sim_owner_new(&w, run, &s);
	s.stage.env = &o->env;
	while (!sim_owner_ended(o) && sim_step(&w))
		;
	if (!sim_owner_ended(o) && !clause_broken[0])
		snprintf(clause_broken, sizeof(clause_broken), "it does not end");
	sim_world_free(&w);
	coroutines_free();
}
