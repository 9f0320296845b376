/*
 * test_heap_trim.c - a heap gives the segments back in which nothing is: which ones, and what keeps
 * them.
 */
#include "trim_rig.h"

struct unit_fixture unit_fixture = { setup, owner_teardown };
struct unit_fixture unit_fixture_too = { setup_staged, owner_teardown };

/* --- what goes --- */

TEST(test_what_is_empty_goes_back, struct owner *o)
{
	struct perseas_segment_info info;
	void *objects[MANY];

	shrinkable(o, objects);
	assert_on_mirrors(o, 8);
	trimmed(o, 0, ALL - FIRST);
	assert_on_mirrors(o, 2);
	assert_int_equal(figures(o).extents, 1);
	assert_int_equal(perseas_segment(o->p, "h.heap.1", &info), PERSEAS_ENOSEGMENT);
	assert_int_equal(perseas_segment(o->p, "h.meta.3", &info), PERSEAS_ENOSEGMENT);
	trimmed(o, 0, 0);
	next_finds(o, FIRST);
	assert_int_equal(figures(o).extents, 1);
}

/* The names and the numbers of the segments are used again, for others of another size. */
TEST(test_it_grows_again, struct owner *o)
{
	void *objects[MANY], *more[MANY];

	for (unsigned i = 0; i < 40; i++) {
		shrinkable(o, objects);
		trimmed(o, 0, ALL - FIRST);
		release(o, objects, 0, FIRST);
	}
	fill(o, objects, FIRST);
	fill(o, more, 1);
	memset(more[0], 0x5a, PS_CHUNK);
	assert_int_equal(figures(o).extents, 2);
	next_finds(o, FIRST + 1);
	trimmed(o, 0, 0);
}

/* All that is left has at least so many bytes, and the first pair always stays. */
TEST(test_it_keeps_what_it_is_told_to, struct owner *o)
{
	void *objects[MANY];

	shrinkable(o, objects);
	trimmed(o, 16, 0);
	trimmed(o, 9, 0);
	trimmed(o, 8, 8);
	trimmed(o, 5, 0);
	trimmed(o, 3, 4);
	release(o, objects, 0, FIRST);
	trimmed(o, 0, 2);
	trimmed(o, 0, 0);
	assert_int_equal(figures(o).extents, 1);
	next_finds(o, 0);
}

/* An object of the last pair, or of the one before; also where this owner has not seen it yet. */
TEST(test_an_object_holds_all_before_it, struct owner *o)
{
	void *objects[MANY];

	fill(o, objects, MANY);
	release(o, objects, 0, MANY - 1);
	trimmed(o, 0, 0);
	owner_reopen(o);
	trimmed(o, 0, 0);
	fill(o, objects, FIRST + 1);
	release(o, objects, 0, FIRST);
	trimmed(o, 0, 0);
	next_finds(o, 2);
}

TEST(test_what_is_empty_in_the_middle_stays, struct owner *o)
{
	void *objects[MANY];

	fill(o, objects, MANY);
	/* The third pair has an object, and the second and the fourth have none. */
	release(o, objects, 0, 5);
	release(o, objects, 6, MANY);
	trimmed(o, 0, 8);
	trimmed(o, 0, 0);
	assert_int_equal(figures(o).extents, 3);
	next_finds(o, 1);
}

/* A chunk of small objects, too, and one whose objects were freed before this owner came. */
TEST(test_small_objects_count, struct owner *o)
{
	void *objects[FIRST];
	uint8_t *small;

	fill(o, objects, FIRST);
	small = made(o, 100, POINT);
	trimmed(o, 0, 0);
	owner_reopen(o);
	trimmed(o, 0, 0);
	objects[0] = small;
	release(o, objects, 0, 1);
	owner_reopen(o);
	trimmed(o, 0, FIRST);
	next_finds(o, FIRST);
}

/* --- transactions that are open --- */

/* The transaction allocated there, or freed its own object; it may still commit or abort. */
TEST(test_what_is_allocated_there_keeps_it, struct owner *o)
{
	void *objects[MANY], *at;
	perseas_tx_t *tx;
	uint64_t savepoint;

	fill(o, objects, FIRST);
	for (unsigned i = 0; i < 4; i++) {
		tx = begin(o);
		assert_int_equal(perseas_savepoint(tx, &savepoint), 0);
		assert_int_equal(i % 2 ? perseas_reserve(tx, heap_of(o), PS_CHUNK, LINE, &at)
		                       : perseas_alloc(tx, heap_of(o), 500, LINE, &at),
		                 0);
		trimmed(o, 0, 0);
		assert_int_equal(i < 2 ? perseas_free(tx, heap_of(o), at)
		                       : perseas_rollback_to(tx, savepoint),
		                 0);
		trimmed(o, 0, 0);
		assert_int_equal(i % 2 ? perseas_commit(tx, 0) : perseas_abort(tx), 0);
		trimmed(o, 0, FIRST);
	}
	next_finds(o, FIRST);
}

/* The transaction frees an object there, and may still abort. */
TEST(test_what_is_freed_there_keeps_it, struct owner *o)
{
	void *objects[FIRST + 1];
	perseas_tx_t *tx;

	fill(o, objects, FIRST + 1);
	tx = begin(o);
	assert_int_equal(perseas_free(tx, heap_of(o), objects[FIRST]), 0);
	trimmed(o, 0, 0);
	assert_int_equal(perseas_abort(tx), 0);
	trimmed(o, 0, 0);
	release(o, objects, FIRST, FIRST + 1);
	trimmed(o, 0, FIRST);
	next_finds(o, FIRST);
}

/* The transaction declared an object that another one freed: its abort restores the bytes. */
TEST(test_what_is_declared_there_keeps_it, struct owner *o)
{
	void *objects[FIRST + 1];
	perseas_tx_t *tx;

	fill(o, objects, FIRST + 1);
	tx = begin(o);
	assert_int_equal(perseas_set_range(tx, objects[FIRST], 100), 0);
	release(o, objects, FIRST, FIRST + 1);
	trimmed(o, 0, 0);
	memset(objects[FIRST], 1, 100);
	assert_int_equal(perseas_abort(tx), 0);
	trimmed(o, 0, FIRST);
	next_finds(o, FIRST);
}

TEST(test_others_go_on, struct owner *o)
{
	void *objects[MANY];
	perseas_tx_t *tx;

	shrinkable(o, objects);
	tx = begin(o);
	assert_int_equal(perseas_set_range(tx, objects[0], 100), 0);
	assert_int_equal(perseas_free(tx, heap_of(o), objects[1]), 0);
	trimmed(o, 0, ALL - FIRST);
	memset(objects[0], 3, 100);
	commit_finds(o, tx, 1);
	assert_int_equal(((uint8_t *)objects[0])[99], 3);
}

/* One transaction trims the heap while it is open, and then makes it grow. */
TEST(test_it_grows_again_in_the_same_transaction, struct owner *o)
{
	void *objects[MANY], *at;
	perseas_tx_t *tx;

	shrinkable(o, objects);
	tx = begin(o);
	trimmed(o, 0, ALL - FIRST);
	assert_int_equal(perseas_alloc(tx, heap_of(o), 900, POINT, &at), 0);
	memset(at, 9, 900);
	commit_finds(o, tx, FIRST + 1);
	assert_int_equal(((uint8_t *)at)[899], 9);
}

static int trim_within(void *arg, const struct perseas_object *object)
{
	struct owner *o = arg;
	uint64_t given = 1;

	(void)object;
	assert_int_equal(perseas_heap_trim(heap_of(o), 0, &given), 0);
	assert_int_equal(given, 0);
	return 0;
}

/* Somebody walks the heap: what is walked over stays where it is. */
TEST(test_a_walk_keeps_it, struct owner *o)
{
	void *objects[MANY];

	shrinkable(o, objects);
	assert_int_equal(perseas_heap_walk(heap_of(o), LINE, trim_within, o), 0);
	trimmed(o, 0, ALL - FIRST);
}

/* Another thread is about to open the heap, and has mapped its segments. */
TEST(test_who_opens_the_heap_keeps_it, struct owner *o)
{
	void *objects[MANY];

	shrinkable(o, objects);
	ps_segment_by_name(o->p, "h.heap.2")->heap_count++;
	trimmed(o, 0, 8);
	ps_segment_by_name(o->p, "h.heap.2")->heap_count--;
	ps_segment_by_name(o->p, "h.meta.1")->heap_count++;
	trimmed(o, 0, 4);
	ps_segment_by_name(o->p, "h.meta.1")->heap_count--;
	trimmed(o, 0, 2);
}

/* The segments of a heap that is not open are anybody's; those of one that is are not. */
TEST(test_its_segments_are_held_as_long_as_they_are_there, struct owner *o)
{
	void *objects[MANY], *addr;

	shrinkable(o, objects);
	trimmed(o, 0, ALL - FIRST);
	fill(o, objects, FIRST);
	assert_int_equal(figures(o).extents, 2);
	assert_int_equal(perseas_map(o->p, "h.heap.1", 0, &addr), 0);
	assert_int_equal(perseas_unmap(o->p, addr), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_segment_destroy(o->p, "h.heap.1"), PERSEAS_ECONFLICT);
}

/* --- roots and arguments --- */

/* The program freed the object, and left the root. */
TEST(test_a_root_that_was_left, struct owner *o)
{
	void *objects[FIRST + 1], *addr;
	perseas_tx_t *tx;

	fill(o, objects, FIRST + 1);
	put_root(o, "left", LINE, objects[FIRST]);
	release(o, objects, FIRST, FIRST + 1);
	assert_int_equal(perseas_root(heap_of(o), "left", LINE, &addr), PERSEAS_EOBJECT);
	assert_int_equal(perseas_heap_trim(heap_of(o), 0, NULL), 0);
	assert_int_equal(figures(o).extents, 1);
	assert_int_equal(perseas_root(heap_of(o), "left", LINE, &addr), PERSEAS_EOBJECT);
	assert_null(addr);
	assert_says(o, "given back");
	assert_int_equal(perseas_heap_check(heap_of(o)), PERSEAS_EHEAP);
	assert_says(o, "'left'");
	tx = begin(o);
	assert_int_equal(perseas_free(tx, heap_of(o), objects[FIRST]), PERSEAS_EOBJECT);
	assert_int_equal(perseas_root_set(tx, heap_of(o), "left", LINE, NULL), 0);
	commit_finds(o, tx, FIRST);
}

TEST(test_what_is_no_heap_is_refused)
{
	uint64_t given = 1;

	assert_int_equal(perseas_heap_trim(NULL, 0, &given), PERSEAS_EINVAL);
	assert_int_equal(given, 0);
}
