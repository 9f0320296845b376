/*
 * trim_rig.h - a heap of several extents that can give some back, and what its mirrors have then:
 * what the tests of perseas_heap_trim share.
 */
#ifndef PERSEAS_TESTS_TRIM_RIG_H
#define PERSEAS_TESTS_TRIM_RIG_H

#include "heap_rig.h"

#include "../../server/store/store_private.h"

/* The heap begins with 2 chunks, and doubles: extents of 2, 2, 4 and 8 chunks. */
enum { FIRST = 2, MANY = 10, ALL = 16 };

static inline int setup(void **state)
{
	return setup_heap(state, 3, 0, false);
}

static inline int setup_staged(void **state)
{
	return setup_heap(state, 3, 0, true);
}

/* Objects of a chunk each, so many. */
static inline void fill(struct owner *o, void **objects, unsigned count)
{
	perseas_tx_t *tx = begin(o);

	for (unsigned i = 0; i < count; i++)
		if (perseas_reserve(tx, heap_of(o), PS_CHUNK, LINE, &objects[i]))
			fail_msg("%s", perseas_message(o->p));
	assert_int_equal(perseas_commit(tx, 0), 0);
}

/* Frees objects [from, to). */
static inline void release(struct owner *o, void **objects, unsigned from, unsigned to)
{
	perseas_tx_t *tx = begin(o);

	for (unsigned i = from; i < to; i++)
		assert_int_equal(perseas_free(tx, heap_of(o), objects[i]), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
}

/* A heap of four extents, with objects in the first one. */
static inline void shrinkable(struct owner *o, void **objects)
{
	fill(o, objects, MANY);
	assert_int_equal(figures(o).extents, 4);
	release(o, objects, FIRST, MANY);
}

/* Gives back so many chunks, and nothing else happens where that is 0. */
static inline void trimmed(struct owner *o, uint64_t keep, unsigned chunks)
{
	const uint64_t seq = o->p->commit.seq, size = figures(o).size;
	uint64_t given = 1;

	if (perseas_heap_trim(heap_of(o), keep * PS_CHUNK, &given))
		fail_msg("%s", perseas_message(o->p));
	assert_int_equal(given, chunks * PS_CHUNK);
	assert_int_equal(o->p->commit.seq, seq + (chunks > 0));
	assert_int_equal(figures(o).size, size - given);
	checked(o);
}

/* How many segments of heaps each mirror has memory of. */
static inline void assert_on_mirrors(struct owner *o, unsigned segments)
{
	for (unsigned i = 0; i < o->d->count; i++) {
		const Perseas__Header *header = store_find(o->d->mirrors[i].stores, STORE)->header;

		/* Beside "accounts". */
		assert_int_equal(header->n_segments, segments + 1);
	}
}

#endif
