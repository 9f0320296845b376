/*
 * test_heap.c - what perseas_heap.h promises of one owner on sound mirrors: objects, roots, walks,
 * figures, and what is refused.
 */
#include "heap_rig.h"

/* Checked modes: none of what the heap does overlaps or is undeclared. */
static int setup(void **state)
{
	return setup_heap(state, 1, PERSEAS_CHECK_OVERLAP | PERSEAS_CHECK_WRITES, false);
}

static int setup_staged(void **state)
{
	return setup_heap(state, 1, PERSEAS_CHECK_OVERLAP | PERSEAS_CHECK_WRITES, true);
}

struct unit_fixture unit_fixture = { setup, owner_teardown };
struct unit_fixture unit_fixture_too = { setup_staged, owner_teardown };

TEST(test_objects_are_found_again, struct owner *o)
{
	perseas_tx_t *tx = begin(o);
	uint8_t *point = take(o, tx, 24, POINT), kept[24];
	struct perseas_object object;

	memcpy(kept, point, sizeof(kept));
	assert_int_equal(perseas_root_set(tx, heap_of(o), "first", POINT, point), 0);
	assert_root(o, "first", POINT, NULL);
	commit_finds(o, tx, 1);
	assert_root(o, "first", POINT, point);
	assert_memory_equal(point, kept, sizeof(kept));
	assert_int_equal(perseas_object(heap_of(o), point, &object), 0);
	assert_true(object.addr == point && object.size == 32 && object.type == POINT);
	assert_root(o, "other", POINT, NULL);
}

/* zalloc after somebody else had the memory. */
TEST(test_zalloc_gives_zeros, struct owner *o)
{
	uint8_t *old = made(o, 60, POINT);
	perseas_tx_t *tx;
	void *addr;

	drop(o, old);
	tx = begin(o);
	assert_int_equal(perseas_zalloc(tx, heap_of(o), 60, POINT, &addr), 0);
	assert_ptr_equal(addr, old);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(((uint8_t *)addr)[i], 0);
	commit_finds(o, tx, 1);
}

TEST(test_an_abort_takes_objects_back, struct owner *o)
{
	uint8_t *kept = made(o, 100, POINT), *gone;
	perseas_tx_t *tx = begin(o);

	gone = take(o, tx, 100, POINT);
	take(o, tx, 70000, LINE);
	assert_int_equal(perseas_free(tx, heap_of(o), kept), 0);
	assert_int_equal(perseas_root_set(tx, heap_of(o), "gone", POINT, gone), 0);
	assert_int_equal(perseas_abort(tx), 0);
	checked(o);
	tx = begin(o);
	assert_ptr_equal(take(o, tx, 100, POINT), gone);
	assert_int_equal(perseas_abort(tx), 0);
	next_finds(o, 1);
	assert_int_equal(figures(o).roots, 0);
}

/* Freed by a transaction that is open: it may be aborted yet. */
TEST(test_what_is_freed_is_used_again_only_after_the_commit, struct owner *o)
{
	uint8_t *freed = made(o, 100, POINT);
	perseas_tx_t *first = begin(o), *second = begin(o);

	assert_int_equal(perseas_free(first, heap_of(o), freed), 0);
	assert_ptr_not_equal(take(o, second, 100, POINT), freed);
	assert_ptr_not_equal(take(o, first, 100, POINT), freed);
	assert_int_equal(perseas_commit(first, 0), 0);
	assert_ptr_equal(take(o, second, 100, POINT), freed);
	assert_int_equal(perseas_commit(second, 0), 0);
	next_finds(o, 3);
}

/* The commit sends its bytes, and the abort restores them, before others get the memory. */
static void allocated_and_freed(struct owner *o, size_t size, bool commits)
{
	perseas_tx_t *first = begin(o), *second = begin(o);
	uint8_t *had = take(o, first, size, POINT), *other, kept[100];

	assert_int_equal(perseas_free(first, heap_of(o), had), 0);
	assert_int_equal(perseas_free(first, heap_of(o), had), PERSEAS_EOBJECT);
	other = take(o, second, size, POINT);
	assert_ptr_not_equal(other, had);
	memcpy(kept, other, sizeof(kept));
	assert_int_equal(commits ? perseas_commit(first, 0) : perseas_abort(first), 0);
	assert_memory_equal(other, kept, sizeof(kept));
	assert_ptr_equal(take(o, second, size, POINT), had);
	assert_int_equal(perseas_abort(second), 0);
	next_finds(o, 0);
}

TEST(test_what_a_transaction_had_leaves_it_only_at_its_end, struct owner *o)
{
	allocated_and_freed(o, 100, true);
	allocated_and_freed(o, 100, false);
	allocated_and_freed(o, 65536, true);
	allocated_and_freed(o, 65536, false);
}

/* Bits of one word, some of them committed: each commit sends its own only. */
TEST(test_open_transactions_share_a_word, struct owner *o)
{
	perseas_tx_t *txs[3] = { begin(o), begin(o), begin(o) };
	uint8_t *objects[12], *old = made(o, 16, POINT);
	struct perseas_object object;

	for (unsigned i = 0; i < 12; i++)
		objects[i] = take(o, txs[i % 3], 16, POINT);
	assert_int_equal(perseas_free(txs[2], heap_of(o), old), 0);
	assert_int_equal(perseas_commit(txs[1], 0), 0);
	assert_int_equal(perseas_abort(txs[0]), 0);
	assert_int_equal(perseas_commit(txs[2], 0), 0);
	next_finds(o, 8);
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(perseas_object(heap_of(o), objects[i], &object),
		                 i % 3 ? 0 : PERSEAS_EOBJECT);
	assert_int_equal(perseas_object(heap_of(o), old, &object), PERSEAS_EOBJECT);
}

TEST(test_a_word_is_changed_many_times_by_one_transaction, struct owner *o)
{
	perseas_tx_t *tx = begin(o);
	uint8_t *points[80], *lines[80];

	for (unsigned i = 0; i < 80; i++) {
		points[i] = take(o, tx, 16, POINT);
		lines[i] = take(o, tx, 16, LINE);
	}
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(figures(o).objects, 160);
	tx = begin(o);
	for (unsigned i = 0; i < 80; i += 2) {
		assert_int_equal(perseas_free(tx, heap_of(o), points[i]), 0);
		assert_int_equal(perseas_free(tx, heap_of(o), lines[i + 1]), 0);
		take(o, tx, 16, POINT);
	}
	commit_finds(o, tx, 120);
}

static void refused(struct owner *o, perseas_tx_t *tx, void *addr, const char *why)
{
	assert_int_equal(perseas_free(tx, heap_of(o), addr), PERSEAS_EOBJECT);
	assert_says(o, why);
}

TEST(test_wild_and_double_frees_are_refused, struct owner *o)
{
	uint8_t *small = made(o, 100, POINT), *large = made(o, 60000, LINE);
	perseas_tx_t *tx = begin(o), *other = begin(o);

	refused(o, tx, small + 16, "begin elsewhere");
	refused(o, tx, small + 1, "begin elsewhere");
	refused(o, tx, small + 112, "freed already");
	refused(o, tx, large + 16, "inside of one");
	refused(o, tx, o->bytes, "outside");
	refused(o, tx, &small, "outside");
	refused(o, other, take(o, tx, 100, POINT), "another transaction");
	refused(o, other, take(o, tx, 30000, POINT), "another transaction");
	assert_int_equal(perseas_free(tx, heap_of(o), NULL), 0);
	assert_int_equal(perseas_free(tx, heap_of(o), small), 0);
	assert_int_equal(perseas_free(tx, heap_of(o), large), 0);
	refused(o, tx, small, "freed already");
	refused(o, other, small, "freed already");
	refused(o, other, large, "freed already");
	assert_int_equal(perseas_commit(tx, 0), 0);
	refused(o, other, small, "freed already");
	refused(o, other, large, "freed already");
	assert_int_equal(perseas_abort(other), 0);
	next_finds(o, 2);
}

TEST(test_the_next_owner_frees_what_it_has_not_seen, struct owner *o)
{
	uint8_t *small = made(o, 100, POINT), *large = made(o, 60000, LINE);
	perseas_tx_t *tx;

	owner_reopen(o);
	tx = begin(o);
	refused(o, tx, small + 112, "freed already");
	assert_int_equal(perseas_free(tx, heap_of(o), large), 0);
	assert_int_equal(perseas_free(tx, heap_of(o), small), 0);
	commit_finds(o, tx, 0);
	assert_int_equal(figures(o).free, figures(o).size);
}

TEST(test_sizes_are_rounded_up_by_little, struct owner *o)
{
	perseas_tx_t *tx = begin(o);
	struct perseas_object object;

	for (size_t size = 1; size <= 32768; size += size < 1100 ? 1 : 97) {
		void *addr;

		assert_int_equal(perseas_reserve(tx, heap_of(o), size, size % 3, &addr), 0);
		assert_int_equal((uintptr_t)addr % 16, 0);
		assert_int_equal(perseas_object(heap_of(o), addr, &object), 0);
		assert_true(object.size >= size && object.type == size % 3);
		assert_true(object.size <= size + 15 ||
		            object.size - size <= size / (size <= 8192 ? 7 : 1));
		assert_int_equal(perseas_free(tx, heap_of(o), addr), 0);
		if (size % 50 == 0) {
			assert_int_equal(perseas_abort(tx), 0);
			tx = begin(o);
		}
	}
	assert_int_equal(perseas_abort(tx), 0);
	next_finds(o, 0);
}

static int sum(void *arg, const struct perseas_object *object)
{
	uint64_t *sums = arg;

	sums[0]++;
	sums[1] += object->size;
	sums[2] += object->type;
	return sums[0] == sums[3] ? 5 : 0;
}

TEST(test_a_walk_meets_the_objects_of_a_type, struct owner *o)
{
	perseas_tx_t *tx;
	uint64_t points[4] = { 0 }, all[4] = { 0 }, some[4] = { 0, 0, 0, 3 };

	for (unsigned i = 0; i < 10; i++)
		made(o, 100, i % 2 ? POINT : LINE);
	made(o, 40000, POINT);
	tx = begin(o);
	take(o, tx, 100, POINT);
	assert_int_equal(perseas_heap_walk(heap_of(o), POINT, sum, points), 0);
	assert_int_equal(perseas_heap_walk(heap_of(o), PERSEAS_ANY_TYPE, sum, all), 0);
	assert_int_equal(perseas_heap_walk(heap_of(o), PERSEAS_ANY_TYPE, sum, some), 5);
	assert_true(points[0] == 6 && points[1] == 5 * 112 + 65536 && points[2] == 6 * POINT);
	assert_true(all[0] == 11 && all[2] == 6 * POINT + 5 * LINE && some[0] == 3);
	assert_int_equal(perseas_abort(tx), 0);
}

TEST(test_figures_add_up, struct owner *o)
{
	struct perseas_heap_stat stat;
	uint8_t *gone = made(o, 1000, POINT);

	made(o, 100, POINT);
	made(o, 40000, LINE);
	drop(o, gone);
	stat = figures(o);
	assert_true(stat.objects == 2 && stat.large == 1 && stat.used == 112 + 65536);
	assert_true(stat.allocated == 3 && stat.freed == 1 && stat.extents == 2);
	assert_int_equal(stat.used + stat.gaps + stat.free, stat.size);
}

/* In place, to more and to less; and what does not come about. */
TEST(test_realloc_keeps_bytes, struct owner *o)
{
	uint8_t *old = made(o, 100, POINT), kept[100];
	perseas_tx_t *tx = begin(o);
	void *same, *more, *less;

	memcpy(kept, old, sizeof(kept));
	assert_int_equal(perseas_realloc(tx, heap_of(o), old, 110, POINT, &same), 0);
	assert_ptr_equal(same, old);
	memset(old, 0, 112);
	assert_int_equal(perseas_abort(tx), 0);
	assert_memory_equal(old, kept, sizeof(kept));
	tx = begin(o);
	assert_int_equal(perseas_realloc(tx, heap_of(o), old, 105, POINT, &same), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	checked(o);
	assert_int_equal(figures(o).objects, 1);
	tx = begin(o);
	assert_int_equal(perseas_realloc(tx, heap_of(o), old, 70000, LINE, &more), PERSEAS_EOBJECT);
	assert_int_equal(perseas_realloc(tx, heap_of(o), old, (size_t)1 << 30, POINT, &more),
	                 PERSEAS_ETOOBIG);
	assert_null(more);
	assert_int_equal(perseas_realloc(tx, heap_of(o), old, 70000, POINT, &more), 0);
	assert_memory_equal(more, kept, sizeof(kept));
	refused(o, tx, old, "freed already");
	assert_int_equal(perseas_realloc(tx, heap_of(o), more, (size_t)1 << 30, POINT, &less),
	                 PERSEAS_ETOOBIG);
	assert_int_equal(perseas_realloc(tx, heap_of(o), more, 50, POINT, &less), 0);
	assert_memory_equal(less, kept, 50);
	assert_int_equal(perseas_realloc(tx, heap_of(o), NULL, 50, LINE, &more), 0);
	commit_finds(o, tx, 2);
	assert_memory_equal(less, kept, 50);
	assert_int_equal(figures(o).large, 0);
}

/* The first commit is not awaited: the next one uses what it freed, and follows it on every
 * mirror. */
TEST(test_what_is_freed_is_used_again_once_it_is_posted, struct owner *o)
{
	uint8_t *old = made(o, 100, POINT);
	perseas_tx_t *tx = begin(o);

	assert_int_equal(perseas_free(tx, heap_of(o), old), 0);
	assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
	tx = begin(o);
	assert_ptr_equal(take(o, tx, 100, POINT), old);
	assert_int_equal(perseas_commit(tx, PERSEAS_NOWAIT), 0);
	assert_int_equal(perseas_flush(o->p), 0);
	next_finds(o, 1);
}

TEST(test_a_roll_back_takes_objects_back, struct owner *o)
{
	uint8_t *old = made(o, 100, POINT), *large = made(o, 70000, LINE), *before, *after[3];
	perseas_tx_t *tx = begin(o), *other = begin(o);
	struct perseas_object object;
	uint64_t savepoint;

	before = take(o, tx, 100, POINT);
	assert_int_equal(perseas_root_set(tx, heap_of(o), "a", POINT, before), 0);
	assert_int_equal(perseas_savepoint(tx, &savepoint), 0);
	after[0] = take(o, tx, 100, POINT);
	after[1] = take(o, tx, 40000, LINE);
	after[2] = take(o, tx, 300, LINE);
	assert_int_equal(perseas_free(tx, heap_of(o), after[2]), 0);
	assert_int_equal(perseas_free(tx, heap_of(o), before), 0);
	assert_int_equal(perseas_free(tx, heap_of(o), old), 0);
	assert_int_equal(perseas_free(tx, heap_of(o), large), 0);
	assert_int_equal(perseas_root_set(tx, heap_of(o), "a", POINT, after[0]), 0);
	assert_int_equal(perseas_root_set(tx, heap_of(o), "b", POINT, after[0]), 0);
	assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
	assert_int_equal(perseas_object(heap_of(o), before, &object), 0);
	refused(o, tx, after[0], "freed already");
	refused(o, tx, after[1], "freed already");
	/* No transaction gets the freed objects yet. */
	assert_ptr_not_equal(take(o, other, 100, POINT), after[0]);
	assert_ptr_not_equal(take(o, tx, 100, POINT), after[0]);
	assert_int_equal(perseas_root_set(other, heap_of(o), "b", POINT, old), 0);
	assert_int_equal(perseas_free(other, heap_of(o), large), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(perseas_commit(other, 0), 0);
	next_finds(o, 4);
	assert_root(o, "a", POINT, before);
	assert_int_equal(figures(o).roots, 2);
}

/* A transaction that takes objects back keeps room for those that stay, and for one more. */
TEST(test_a_roll_back_gives_room_back, struct owner *o)
{
	perseas_tx_t *tx = begin(o);
	uint64_t outer, savepoint;

	take(o, tx, 100, POINT);
	assert_int_equal(perseas_savepoint(tx, &outer), 0);
	for (unsigned i = 0; i < 300; i++) {
		assert_int_equal(perseas_savepoint(tx, &savepoint), 0);
		take(o, tx, i % 2 ? 100 : 16, i % 3 ? LINE : POINT);
		assert_int_equal(perseas_rollback_to(tx, i % 7 ? savepoint : outer), 0);
	}
	/* An object's word and its run's entry, of two objects. */
	assert_in_range(tx->deferred_store_count, 2, 4);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(perseas_savepoint(tx, &savepoint), 0);
		take(o, tx, 100, 100 + i);
		assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
		take(o, tx, 100, 100 + i);
	}
	commit_finds(o, tx, 9);
}

/* One savepoint is inside another, and a heap is first used after both. */
TEST(test_roll_backs_inside_others, struct owner *o)
{
	perseas_tx_t *tx;
	uint64_t outer, inner;
	uint8_t *first;

	heap_of(o);
	tx = begin(o);
	assert_int_equal(perseas_savepoint(tx, &outer), 0);
	first = take(o, tx, 100, POINT);
	assert_int_equal(perseas_savepoint(tx, &inner), 0);
	assert_int_equal(perseas_free(tx, heap_of(o), first), 0);
	take(o, tx, 100, LINE);
	assert_int_equal(perseas_rollback_to(tx, inner), 0);
	take(o, tx, 100, POINT);
	assert_int_equal(perseas_rollback_to(tx, inner), 0);
	refused(o, begin(o), first, "another transaction");
	assert_int_equal(perseas_rollback_to(tx, outer), 0);
	refused(o, tx, first, "freed already");
	take(o, tx, 100, POINT);
	commit_finds(o, tx, 1);
}

TEST(test_a_retry_begins_with_nothing, struct owner *o)
{
	uint8_t *old = made(o, 100, POINT), *gone;
	perseas_tx_t *tx = begin(o);

	gone = take(o, tx, 100, POINT);
	assert_int_equal(perseas_free(tx, heap_of(o), old), 0);
	assert_int_equal(perseas_retry(tx), 0);
	checked(o);
	assert_ptr_equal(take(o, tx, 100, POINT), gone);
	commit_finds(o, tx, 2);
}
