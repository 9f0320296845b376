/*
 * load_map.h - the load map: the first page of a segment that lists the segment's regions, with
 * their offsets and their addresses in memory. segment.c writes and reads it. Its contents may come
 * from anywhere and are checked here before use. Nothing here maps anything.
 */
#ifndef PERSEAS_RDS_LOAD_MAP_H
#define PERSEAS_RDS_LOAD_MAP_H

#include "rvm_segment.h"

#include <stdint.h>

/* ps_rds_map_max_regions returns the number of regions that a load map can list, and
 * ps_rds_map_length the length in bytes of a load map with `count` regions. */
uint64_t ps_rds_map_max_regions(void);
uint64_t ps_rds_map_length(uint64_t count);

/* Checks the regions' lengths and addresses, and sets *end to the segment's length. Returns
 * RVM_SUCCESS, RVM_ERANGE or RVM_EVM_OVERLAP. */
rvm_return_t ps_rds_check_regions(const rvm_region_def_t *regions, uint64_t count, uint64_t *end);

/* Writes the load map to a page. The regions' offsets must be set, and there must be at most
 * ps_rds_map_max_regions() regions. */
void ps_rds_map_write(void *page, const rvm_region_def_t *regions, uint64_t count);

struct ps_rds_map {
	rvm_region_def_t *regions; /* in allocated memory; the caller frees it */
	uint64_t count, end;
};

/* Reads and checks a load map in a page-aligned page. Returns RVM_SUCCESS, or, with *read all zeros
 * and a message that names the segment, RVM_ESEGMENT_HDR, RVM_EVERSION_SKEW, RVM_EOVERLAP,
 * RVM_ERANGE, RVM_EVM_OVERLAP or RVM_ENO_MEMORY. */
rvm_return_t ps_rds_map_read(const void *page, const char *name, struct ps_rds_map *read);

/* Unmaps one region and sets its vmaddr to NULL. Defined in segment.c. */
rvm_return_t ps_rds_unmap_region(rvm_region_def_t *region);

#endif
