/*
 * test_contract_demand_sim.c - has recovery on demand (client/core/demand.h) keep its contract with
 * the simulator's pager (tests/sim/pager_sim.c), for what schedules show is shown by it alone.
 */
#include "../sim/contract.h"
#include "../support/contract_demand.h"
#include "../support/unit.h"

TEST(the_simulated_pager_keeps_the_contract)
{
	for (unsigned i = 0; i < demand_clause_count; i++) {
		sim_contract_demand(i);
		if (clause_broken[0])
			fail_msg("%s: %s", demand_clauses[i].name, clause_broken);
	}
}
