/*
 * heap_rig.h - what the tests of the heap share: an owner with a heap, and transactions of one
 * step. Every test ends with a check of the heap by the owner that worked with it, and by the next.
 */
#ifndef PERSEAS_TESTS_HEAP_RIG_H
#define PERSEAS_TESTS_HEAP_RIG_H

#include "owner.h"

#include "../../client/heap/format.h"

enum { POINT = 7, LINE = 9 }; /* types */

static inline perseas_heap_t *heap_of(struct owner *o)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	perseas_heap_t *heap;

	options.flags = PERSEAS_HEAP_CREATE;
	options.first = 2 * PS_CHUNK;
	if (perseas_heap_open(o->p, "h", &options, &heap))
		fail_msg("%s", perseas_message(o->p));
	return heap;
}

static inline perseas_tx_t *begin(struct owner *o)
{
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(o->p, 0, &tx), 0);
	return tx;
}

static inline uint8_t *take(struct owner *o, perseas_tx_t *tx, size_t size, uint64_t type)
{
	void *addr;

	if (perseas_alloc(tx, heap_of(o), size, type, &addr))
		fail_msg("%s", perseas_message(o->p));
	memset(addr, (int)(uintptr_t)addr >> 4, size);
	return addr;
}

/* An object that is committed. */
static inline uint8_t *made(struct owner *o, size_t size, uint64_t type)
{
	perseas_tx_t *tx = begin(o);
	uint8_t *addr = take(o, tx, size, type);

	assert_int_equal(perseas_commit(tx, 0), 0);
	return addr;
}

static inline void checked(struct owner *o)
{
	if (perseas_heap_check(heap_of(o)))
		fail_msg("%s", perseas_message(o->p));
}

static inline struct perseas_heap_stat figures(struct owner *o)
{
	struct perseas_heap_stat stat;

	assert_int_equal(perseas_heap_stat(heap_of(o), &stat), 0);
	return stat;
}

/* The next owner finds a whole heap with so many objects. */
static inline void next_finds(struct owner *o, uint64_t objects)
{
	checked(o);
	owner_reopen(o);
	checked(o);
	assert_int_equal(figures(o).objects, objects);
}

#endif
