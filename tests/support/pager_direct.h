/*
 * pager_direct.h - recovery on demand for owners of env_direct.h. The threads that fetch run only
 * in the turns that a test gives them, while the test waits, so that everything is in an order that
 * the test decides. Missing memory is filled with what no mirror has, and holds nobody up.
 */
#ifndef PERSEAS_TESTS_PAGER_DIRECT_H
#define PERSEAS_TESTS_PAGER_DIRECT_H

#include "env_direct.h"
#include "pager_source.h"

enum { PAGER_GRANULE = 64 << 10 };

/* Says what may be fetched. There is one owner at a time. */
extern struct pager_gate {
	uint32_t mirrors; /* that are asked */
	uint32_t lanes;   /* that ask, a bit for each enum ps_lane */
	uint32_t held;    /* whose second status is asked for later, and whose answer comes then */
	uint64_t below;   /* offsets in a segment */
	unsigned budget;  /* so many are asked for still */
	unsigned asks;    /* so many were asked for */
	unsigned fills;
} pager_gate;

/* Owners that open from now on can recover on demand; the gate is open. */
void pager_direct_use(struct direct *d);

/* Lets the pager run `count` times, a millisecond apart. */
void pager_direct_turns(struct direct *d, unsigned count);

#endif
