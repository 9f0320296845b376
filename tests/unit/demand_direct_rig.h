/*
 * demand_direct_rig.h - the fixture of resync_rig.h, opened on demand: nothing is fetched until the
 * gate of pager_direct.h is opened.
 */
#ifndef PERSEAS_TESTS_DEMAND_DIRECT_RIG_H
#define PERSEAS_TESTS_DEMAND_DIRECT_RIG_H

#include "resync_rig.h"

#include "../support/pager_direct.h"

enum { GRANULES = (BIG + PAGER_GRANULE - 1) / PAGER_GRANULE };

static inline void open_on_demand(struct fixture *f)
{
	f->o->options.recovery = PERSEAS_RECOVERY_ON_DEMAND;
	pager_direct_use(f->o->d);
	pager_gate.mirrors = 0;
	owner_reopen(f->o);
	map_big(f);
}

static inline int setup_on_demand(void **state, unsigned mirrors, uint32_t acks)
{
	int rc = setup_of(state, mirrors, acks, true);

	open_on_demand(*state);
	return rc;
}

/* The first granule of each segment is here, fetched from these mirrors. */
static inline void fetch_some(struct fixture *f, uint32_t mirrors)
{
	const uint64_t start = (uint64_t)(uintptr_t)f->o->bytes;
	const uint64_t big = (uint64_t)(uintptr_t)f->big;

	pager_gate.mirrors = mirrors;
	pager_gate.lanes = 1 << PS_FAULT_LANE;
	pager_gate.below = 1;
	assert_int_equal(ps_demand_await(f->o->p, start, start + SIZE), 0);
	assert_int_equal(ps_demand_await(f->o->p, big, big + 1), 0);
	pager_gate.mirrors = 0;
	pager_gate.lanes = ~0U;
	pager_gate.below = UINT64_MAX;
	assert_int_equal(pager_gate.fills, 2);
}

static inline void fetch_all(struct fixture *f, uint32_t mirrors)
{
	pager_gate.mirrors = mirrors;
	assert_int_equal(perseas_wait_whole(f->o->p, -1), 0);
	assert_memory_equal(f->o->bytes, f->ledger->accounts, SIZE);
	assert_memory_equal(f->big, f->ledger->big, BIG);
}

#endif
