/*
 * test_demand_refuse.c - missing memory that is refused where some of it is here, with real mirrors
 * and pages, in a store without shadows. What is here stays, and the process lives.
 */
#include "demand_rig.h"

#include "../../client/demand/demand.h"

static _Atomic uint64_t late; /* an address at which somebody is said to wait; 0: nobody */

static bool fault(struct ps_pager *pager, uint64_t *address)
{
	*address = atomic_exchange(&late, 0);
	return *address || ps_pager_uffd.fault(pager, address);
}

static atomic_bool poor;

/* There is memory for the first page of what comes, and no more; none for a page alone. */
static uint32_t fill(struct ps_pager *pager, uint8_t *to, const uint8_t *bytes, uint32_t length,
                     bool watched)
{
	if (!atomic_load(&poor))
		return ps_pager_uffd.fill(pager, to, bytes, length, watched);
	return length > PS_PAGE ? rig_fill_part(pager, to, bytes, PS_PAGE, length, watched) : 0;
}

static void change(struct ps_env_ops *ops)
{
	(void)ops;
	rig_pager.fault = fault;
	rig_pager.fill = fill;
}

static int setup(void **state)
{
	const int rc = rig_setup(state, false);
	struct rig *rig = *state;

	rig->change = change;
	return rc;
}

static int teardown(void **state)
{
	atomic_store(&poor, false);
	return rig_teardown(state);
}

struct unit_fixture unit_fixture = { setup, teardown };

/* A page can come while the kernel tells that somebody waits for it. */
TEST(test_a_fault_is_told_when_the_page_is_here, struct rig *rig)
{
	uint64_t before;

	rig_begin(rig);
	rig_fetch(rig);
	before = rig_stat(rig).faults;
	atomic_store(&late, (uint64_t)(uintptr_t)(rig->bytes + 8200));
	assert_int_equal(perseas_prefetch(rig->p, rig->bytes, 1), 0);
	RIG_UNTIL(rig_stat(rig).faults > before);
	assert_int_equal(rig_put(rig, 8192, 100, 9), 0);
	assert_int_equal(rig_look(rig->bytes + 8200), 9);
	assert_int_equal(rig_look(rig->bytes + 8300), rig_byte(8300));
}

/* What came of a granule was confirmed, and stays; what did not ends an access. */
TEST(test_who_is_fenced_keeps_a_part_of_a_granule, struct rig *rig)
{
	perseas_tx_t *tx;

	rig_begin(rig);
	atomic_store(&poor, true);
	atomic_store(&rig_shut, false);
	assert_int_equal(rig_look(rig->bytes + 100), rig_byte(100));
	assert_int_equal(perseas_begin(rig->p, 0, &tx), 0);
	rig_be_fenced(rig);
	for (unsigned tries = 0; tries < 2; tries++) {
		assert_int_equal(rig_look(rig->bytes + PS_PAGE + 100), -1);
		assert_int_equal(rig_look(rig->bytes + 100), rig_byte(100));
	}
	assert_int_equal(perseas_set_range(tx, rig->bytes + 100, 1), PERSEAS_EFENCED);
	assert_int_equal(perseas_abort(tx), 0);
	rig->bytes[100] = 1;
	assert_int_equal(rig_look(rig->bytes + 101), rig_byte(101));
}

/* Mirrors give what is missing, and must not be blamed. */
TEST(test_who_has_no_memory_is_told_so, struct rig *rig)
{
	rig_begin(rig);
	atomic_store(&poor, true);
	atomic_store(&rig_shut, false);
	assert_int_equal(rig_look(rig->bytes + 100), rig_byte(100));
	RIG_UNTIL(rig->waits > 0);
	assert_non_null(strstr(rig->told, "this host has no memory"));
	assert_int_equal(perseas_wait_whole(rig->p, 0), PERSEAS_EUNREACHABLE);
	assert_non_null(strstr(perseas_message(rig->p), "this host has no memory"));
	atomic_store(&poor, false);
	rig_fetch_unchanged(rig);
}
