/*
 * load_map.h - the first page of a segment that knows its regions: where each is in the segment,
 * and at which address it is to be. segment.c writes and reads it. What it says may come from
 * anywhere, and is checked here before it is used; nothing here maps anything.
 */
#ifndef PERSEAS_RDS_LOAD_MAP_H
#define PERSEAS_RDS_LOAD_MAP_H

#include "rvm_segment.h"

#include <stdint.h>

/* How many regions a page has room for, and the bytes that so many take. */
uint64_t ps_rds_map_most(void);
uint64_t ps_rds_map_length(uint64_t count);

/* RVM_ERANGE or RVM_EVM_OVERLAP for lengths and addresses that cannot be; *end is where the last
 * region ends in the segment. */
rvm_return_t ps_rds_regions_fault(const rvm_region_def_t *regions, uint64_t count, uint64_t *end);

/* Writes regions that have their offsets to a page that has room for them. */
void ps_rds_map_put(void *page, const rvm_region_def_t *regions, uint64_t count);

struct ps_rds_map {
	rvm_region_def_t *regions; /* of malloc, the caller's */
	uint64_t count, end;
};

/* Reads a page, which is aligned as one. After an error, which names the segment, *read is zeros:
 * RVM_ESEGMENT_HDR, RVM_EVERSION_SKEW, RVM_EOVERLAP, RVM_ERANGE, RVM_EVM_OVERLAP,
 * RVM_ENO_MEMORY. */
rvm_return_t ps_rds_map_read(const void *page, const char *name, struct ps_rds_map *read);

/* segment.c: unmaps one region, as rvm_release_segment does with all; then its vmaddr is NULL. */
rvm_return_t ps_rds_unmap(rvm_region_def_t *region);

#endif
