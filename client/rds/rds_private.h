/*
 * rds_private.h - names from the inside of RDS that tests and tools of other RDS use: Coda's
 * rvm_basher and rdsinit. New programs need none of them.
 *
 * A program may declare the variables itself instead, as rvm_basher does. Nothing else of what
 * other headers of this name declare is here: the layout of a heap is another one.
 */
#ifndef PERSEAS_RDS_PRIVATE_H
#define PERSEAS_RDS_PRIVATE_H

#include "rds.h"
#include "rvm_segment.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The regions of the heap that rds_load_heap or rds_zap_heap loaded: first the heap, then the
 * static data. NULL and 0 before, and after rds_unload_heap. The program only reads them. */
extern rvm_region_def_t *RegionDefs;
extern unsigned long NRegionDefs;

/* A program may set it. The library does not read it. */
extern rvm_bool_t rds_testsw;

/* The links and the guard of a free block. The smallest chunk, RDS_MIN_CHUNK_SIZE, holds both. */
typedef unsigned long guard_t; /* at the block's end */
typedef struct {
	guard_t mark;
	unsigned long next, previous;
} free_block_t;

#ifdef __cplusplus
}
#endif

#endif
