/*
 * objects.h - a heap whose objects follow from the number of the last transaction, for medley.c.
 */
#ifndef PERSEAS_DRILLS_OBJECTS_H
#define PERSEAS_DRILLS_OBJECTS_H

#include "owner.h"
#include "../../client/perseas_heap.h"

struct shelf; /* what the root leads to */

struct objects {
	perseas_t *p;
	perseas_heap_t *heap;
	struct shelf *shelf;
};

/* Opens the heap, and makes it where there is none. 0 or PERSEAS_E… */
int objects_open(struct objects *o, perseas_t *p);

/* The number of the last transaction that is there; 0: there was none. */
uint64_t objects_count(const struct objects *o);

/* One transaction after another up to number `last`: an object is freed and one is allocated, with
 * one beside it that a roll-back takes back; each third is aborted, and tried again. They are begun
 * and acknowledged in the page. flags: those of perseas_commit. 0 or PERSEAS_E… */
int objects_change(struct objects *o, uint64_t last, unsigned flags, struct page *page);

/* Are there just the objects that the count says, with all of their bytes, in a heap that is whole?
 * If not, it says on standard error what is wrong. */
bool objects_check(struct objects *o);

#endif
