/*
 * objects.h - a heap whose objects follow from the number of the last transaction, for medley.c.
 */
#ifndef PERSEAS_DRILLS_OBJECTS_H
#define PERSEAS_DRILLS_OBJECTS_H

#include "owner.h"
#include "../../client/perseas_heap.h"

struct shelf; /* the object that the root refers to */

struct objects {
	perseas_t *p;
	perseas_heap_t *heap;
	struct shelf *shelf;
};

/* Opens the heap, or creates it if it does not exist. Returns 0 or PERSEAS_E… */
int objects_open(struct objects *o, perseas_t *p);

/* Returns the number of the last transaction in the heap; 0: none. */
uint64_t objects_count(const struct objects *o);

/* Runs transactions up to number `last`. Each frees an object and allocates one, and allocates
 * another that a rollback to a savepoint removes; every third is aborted and run again. Counts
 * transactions begun and acknowledged in the page. `flags` are for perseas_commit. Returns 0 or
 * PERSEAS_E… */
int objects_change(struct objects *o, uint64_t last, unsigned flags, struct page *page);

/* Returns true if the heap is consistent and has exactly the objects and bytes that the count
 * implies. Otherwise prints on standard error what is wrong. */
bool objects_check(struct objects *o);

#endif
