/*
 * test_heap_names.c - the application has segments of names that a heap is to have.
 */
#include "heap_rig.h"

struct unit_fixture unit_fixture = { owner_setup_one, owner_teardown };

/* The application has a segment of a name that the heap needs: it is told so, and not made wait. */
static void name_taken(struct owner *o, const char *name, size_t size, bool publish)
{
	perseas_heap_t *heap = heap_of(o);
	struct perseas_segment_info info;
	perseas_tx_t *tx = begin(o);
	void *at, *taken;

	assert_int_equal(perseas_reserve(tx, heap, PS_CHUNK, POINT, &at), 0);
	assert_int_equal(perseas_map(o->p, name, size, &taken), 0);
	assert_true(!publish || !perseas_publish(o->p));
	assert_int_equal(perseas_reserve(tx, heap, 2 * PS_CHUNK, POINT, &at), PERSEAS_EHEAP);
	assert_non_null(strstr(perseas_message(o->p), name));
	assert_non_null(strstr(perseas_message(o->p), "no part of it"));
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(perseas_segment(o->p, name, &info), 0);
	assert_true(info.size == size && info.published == publish);
	next_finds(o, 1);
}

TEST(test_a_name_that_the_heap_needs_is_taken, struct owner *o)
{
	name_taken(o, "h.meta.1", PS_PAGE, false);
}

/* As large as the heap's own would be: it does not become that. */
TEST(test_the_name_of_its_objects_is_taken, struct owner *o)
{
	name_taken(o, "h.heap.1", 2 * PS_CHUNK, true);
}

/* Once it is gone, the heap grows, and a heap can be made. */
TEST(test_a_name_that_was_taken, struct owner *o)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	perseas_heap_t *heap;
	perseas_tx_t *tx;
	void *draft, *at;

	options.flags = PERSEAS_HEAP_CREATE;
	assert_int_equal(perseas_map(o->p, "h.heap.0", PS_PAGE, &draft), 0);
	assert_int_equal(perseas_heap_open(o->p, "h", &options, &heap), PERSEAS_EHEAP);
	assert_non_null(strstr(perseas_message(o->p), "'h.heap.0'"));
	assert_int_equal(perseas_unmap(o->p, draft), 0);
	heap = heap_of(o);
	assert_int_equal(perseas_map(o->p, "h.meta.1", PS_PAGE, &draft), 0);
	tx = begin(o);
	assert_int_equal(perseas_reserve(tx, heap, 3 * PS_CHUNK, POINT, &at), PERSEAS_EHEAP);
	assert_int_equal(perseas_unmap(o->p, draft), 0);
	assert_int_equal(perseas_reserve(tx, heap, 3 * PS_CHUNK, POINT, &at), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	next_finds(o, 1);
}
