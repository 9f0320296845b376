/*
 * test_contract_demand.c - has recovery on demand (client/core/demand.h) keep its contract with the
 * real pager (pager_uffd.c). test_contract_demand_sim.c does the same with the simulator's.
 */
#include "../support/contract_demand.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static sigjmp_buf way_out;

static void on_bus(int number)
{
	(void)number;
	siglongjmp(way_out, 1);
}

static int look(struct perseas *p, const uint8_t *at)
{
	const struct sigaction action = { .sa_handler = on_bus }, usual = { .sa_handler = SIG_DFL };
	volatile int found = -1;

	(void)p;
	sigaction(SIGBUS, &action, NULL);
	if (!sigsetjmp(way_out, 1))
		found = *(const volatile uint8_t *)at;
	sigaction(SIGBUS, &usual, NULL);
	return found;
}

static void the_real_pager_keeps_the_contract(void **state)
{
	struct demand_stage stage = { .address = "unix:///nobody",
		                      .short_ns = 300000000,
		                      .look = look };

	(void)state;
	/* Far more than it takes: a clause that waits for ever ends. */
	alarm(120);
	for (unsigned i = 0; i < demand_clause_count; i++) {
		stage.env = ps_env_posix(NULL, NULL);
		assert_non_null(stage.env);
		demand_clauses[i].check(&stage);
		if (demand_clause_broken[0])
			fail_msg("%s: %s", demand_clauses[i].name, demand_clause_broken);
		stage.env->ops->free(stage.env);
	}
	alarm(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_real_pager_keeps_the_contract),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
