/*
 * huge_pages.h - memory in huge pages, which the kernel keeps for those who ask for them
 * (vm.nr_hugepages; Documentation/admin-guide/mm/hugetlbpage.rst). What lies in ordinary memory is
 * freed at the end of a process by the size of it, also in large pages, since the kernel looks at
 * every 4 KiB; a huge page goes back as a whole, so that a killed owner's kernel is done sooner.
 * segment.c asks for them, where PERSEAS_HUGE_PAGES=on is set.
 */
#ifndef PERSEAS_CLIENT_HUGE_PAGES_H
#define PERSEAS_CLIENT_HUGE_PAGES_H

#include "handle.h"

/* Could this memory lie in huge pages, if the kernel has enough of them? Where a handle looks for
 * what was stored to single pages, none does. */
bool ps_huge_suits(const struct perseas *p, uint64_t address, uint64_t size);

/* Maps so many bytes of them there, which a child does not get: over the addresses that are kept
 * there (is_kept), else where nothing is. None can be missing when it is touched: all have been;
 * or, where they come on demand, one like them. False: memory is to be ordinary; of what was kept
 * the addresses may be free now (before Linux 5.16). */
bool ps_huge_map(uint64_t address, uint64_t size, bool is_kept, bool on_demand);

/* Says in the handle's report what the kernel has of them for the segments that are published.
 * Exclusive. */
void ps_huge_report(struct perseas *p);

#endif
