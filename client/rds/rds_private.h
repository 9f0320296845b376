/*
 * rds_private.h - internal names of RDS that Coda's rvm_basher and rdsinit use. New programs need
 * none of them.
 *
 * A program may declare the variables itself instead, as rvm_basher does. Other internal names of
 * RDS are missing: the layout of a heap is different.
 */
#ifndef PERSEAS_RDS_PRIVATE_H
#define PERSEAS_RDS_PRIVATE_H

#include "rds.h"
#include "rvm_segment.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The regions of the heap that rds_load_heap or rds_zap_heap loaded: first the heap, then the
 * static data. NULL and 0 while no heap is loaded. The program only reads them. */
extern rvm_region_def_t *RegionDefs;
extern unsigned long NRegionDefs;

/* Ignored: a program may set it. */
extern rvm_bool_t rds_testsw;

/* The links and the guard of a free block. The smallest chunk, RDS_MIN_CHUNK_SIZE, holds both. */
typedef unsigned long guard_t; /* mark at the block's end */
typedef struct {
	guard_t mark;
	unsigned long next, previous;
} free_block_t;

#ifdef __cplusplus
}
#endif

#endif
