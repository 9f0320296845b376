/*
 * test_heap_names.c - the application has segments of names that a heap is to have.
 */
#include "heap_rig.h"

struct unit_fixture unit_fixture = { owner_setup_one, owner_teardown };

/* The application has a segment of a name that the heap needs: it is told so, and not made wait. */
static void name_taken(struct owner *o, const char *name, size_t size, bool publish)
{
	struct perseas_segment_info info;
	perseas_tx_t *tx;
	void *at;

	reserved(o, 1, POINT);
	assert_int_equal(perseas_map(o->p, name, size, &at), 0);
	assert_true(!publish || !perseas_publish(o->p));
	tx = begin(o);
	assert_int_equal(perseas_reserve(tx, heap_of(o), 2 * PS_CHUNK, POINT, &at), PERSEAS_EHEAP);
	assert_says(o, name);
	assert_says(o, "is not part of it");
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(perseas_segment(o->p, name, &info), 0);
	assert_true(info.size == size && info.published == publish);
	next_finds(o, 1);
}

TEST(test_a_name_that_the_heap_needs_is_taken, struct owner *o)
{
	name_taken(o, "h.meta.1", PS_PAGE, false);
}

/* The segment is as large as the heap's own would be, but does not become the heap's. */
TEST(test_the_name_of_its_objects_is_taken, struct owner *o)
{
	name_taken(o, "h.heap.1", 2 * PS_CHUNK, true);
}

/* Once it is gone, the heap grows, and a heap can be made. */
TEST(test_a_name_that_was_taken, struct owner *o)
{
	perseas_heap_t *heap;
	perseas_tx_t *tx;
	void *draft, *at;

	assert_int_equal(perseas_map(o->p, "h.heap.0", PS_PAGE, &draft), 0);
	assert_int_equal(open_heap(o, "h", 0, 0, &heap), PERSEAS_EHEAP);
	assert_says(o, "'h.heap.0'");
	assert_int_equal(perseas_unmap(o->p, draft), 0);
	heap = heap_of(o);
	assert_int_equal(perseas_map(o->p, "h.meta.1", PS_PAGE, &draft), 0);
	tx = begin(o);
	assert_int_equal(perseas_reserve(tx, heap, 3 * PS_CHUNK, POINT, &at), PERSEAS_EHEAP);
	assert_int_equal(perseas_unmap(o->p, draft), 0);
	assert_int_equal(perseas_reserve(tx, heap, 3 * PS_CHUNK, POINT, &at), 0);
	commit_finds(o, tx, 1);
}
