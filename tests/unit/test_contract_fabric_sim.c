/*
 * test_contract_fabric_sim.c - has the simulator's fabrics (tests/sim/fabric_sim.c) keep the
 * contract of fabric.h, as far as tests/sim/contract.h says, and that it finds mistakes.
 */
#include "../sim/contract.h"
#include "../sim/mistakes.h"
#include "../support/contract_fabric.h"
#include "../support/unit.h"

static void keep(bool shared)
{
	for (unsigned i = 0; i < fabric_clause_count; i++) {
		clause_broken[0] = '\0';
		sim_contract_fabric(i, shared, 0);
		if (clause_broken[0])
			fail_msg("%s: %s", fabric_clauses[i].name, clause_broken);
	}
}

TEST(the_simulated_stream_keeps_the_contract)
{
	keep(false);
}

TEST(simulated_shared_memory_keeps_the_contract)
{
	keep(true);
}

/* The mistakes of fabrics; some clause must find each. */
TEST(mistakes_of_fabrics_are_found)
{
	static const struct {
		int mistake;
		bool shared;
	} made[] = {
		{ SIM_MISTAKE_SLOT_FIRST, false }, { SIM_MISTAKE_UNDO_LAST, false },
		{ SIM_MISTAKE_EARLY, false },      { SIM_MISTAKE_KEPT, false },
		{ SIM_MISTAKE_UNADOPTED, false },  { SIM_MISTAKE_BLIND, true },
	};

	for (unsigned m = 0; m < sizeof(made) / sizeof(made[0]); m++) {
		clause_broken[0] = '\0';
		for (unsigned i = 0; i < fabric_clause_count && !clause_broken[0]; i++)
			sim_contract_fabric(i, made[m].shared, made[m].mistake);
		if (!clause_broken[0])
			fail_msg("no clause finds that %s", sim_mistakes[made[m].mistake].text);
	}
}
