/*
 * heap_rig.h - what the tests of the heap share: an owner with a heap, and transactions of one
 * step. Every test ends with a check of the heap by the owner that worked with it, and by the next.
 */
#ifndef PERSEAS_TESTS_HEAP_RIG_H
#define PERSEAS_TESTS_HEAP_RIG_H

#include "owner.h"

#include "../../client/heap/format.h"

enum { POINT = 7, LINE = 9 }; /* types */

/* Sets up an owner whose ring has room for many objects. */
static inline int setup_heap(void **state, unsigned mirrors, uint32_t flags, bool staged)
{
	struct owner *o = owner_new(mirrors);

	o->options.flags = flags;
	o->options.log_size = 1 << 20;
	o->options.ring_size = 8 << 20;
	o->d->staged = staged;
	return owner_setup_of(state, o);
}

/* Opens a heap, or makes it with a first extent of so many bytes that grows up to `most`. */
static inline int open_heap(struct owner *o, const char *name, uint64_t first, uint64_t most,
                            perseas_heap_t **heap)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;

	options.flags = PERSEAS_HEAP_CREATE;
	options.first = first;
	options.most = most;
	return perseas_heap_open(o->p, name, &options, heap);
}

static inline perseas_heap_t *heap_of(struct owner *o)
{
	perseas_heap_t *heap;

	if (open_heap(o, "h", 2 * PS_CHUNK, 0, &heap))
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

/* Returns a committed object. */
static inline uint8_t *made(struct owner *o, size_t size, uint64_t type)
{
	perseas_tx_t *tx = begin(o);
	uint8_t *addr = take(o, tx, size, type);

	assert_int_equal(perseas_commit(tx, 0), 0);
	return addr;
}

/* Returns a committed object of `chunks` chunks in which nothing is stored. */
static inline void *reserved(struct owner *o, unsigned chunks, uint64_t type)
{
	perseas_tx_t *tx = begin(o);
	void *addr;

	if (perseas_reserve(tx, heap_of(o), (size_t)chunks * PS_CHUNK, type, &addr))
		fail_msg("%s", perseas_message(o->p));
	assert_int_equal(perseas_commit(tx, 0), 0);
	return addr;
}

/* Frees an object by a transaction of its own. */
static inline void drop(struct owner *o, void *object)
{
	perseas_tx_t *tx = begin(o);

	assert_int_equal(perseas_free(tx, heap_of(o), object), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
}

/* Sets a root by a transaction of its own. */
static inline void put_root(struct owner *o, const char *name, uint64_t type, void *object)
{
	perseas_tx_t *tx = begin(o);

	assert_int_equal(perseas_root_set(tx, heap_of(o), name, type, object), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
}

static inline void assert_root(struct owner *o, const char *name, uint64_t type, const void *object)
{
	void *addr;

	assert_int_equal(perseas_root(heap_of(o), name, type, &addr), 0);
	assert_ptr_equal(addr, object);
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

/* Commits, and the next owner finds so many objects. */
static inline void commit_finds(struct owner *o, perseas_tx_t *tx, uint64_t objects)
{
	assert_int_equal(perseas_commit(tx, 0), 0);
	next_finds(o, objects);
}

#endif
