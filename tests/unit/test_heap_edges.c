/*
 * test_heap_edges.c - a heap that grows, its roots, and what goes wrong around it: limits, commits
 * that are not sent, owners that are fenced, mirrors that are copied meanwhile, memory that is not
 * here yet, and metadata that is damaged.
 */
#include "heap_rig.h"

#include "../support/pager_direct.h"

static int setup_of(void **state, unsigned mirrors, uint32_t flags)
{
	struct owner *o = owner_new(mirrors);

	o->options.flags = flags;
	o->d->staged = true;
	return owner_setup_of(state, o);
}

static int setup(void **state)
{
	return setup_of(state, 1, PERSEAS_CHECK_OVERLAP | PERSEAS_CHECK_WRITES);
}

static int setup_three(void **state)
{
	return setup_of(state, 3, 0);
}

static int setup_plain(void **state)
{
	return setup_of(state, 1, 0);
}

struct unit_fixture unit_fixture = { setup, owner_teardown };

TEST(test_bad_arguments_are_refused, struct owner *o)
{
	struct perseas_heap_options options = PERSEAS_HEAP_OPTIONS_INIT;
	perseas_tx_t *tx = begin(o), *ended = begin(o);
	perseas_heap_t *heap = (perseas_heap_t *)o;
	void *addr = o;

	assert_int_equal(perseas_heap_open(o->p, "h", NULL, &heap), PERSEAS_ENOSEGMENT);
	assert_null(heap);
	options.flags = 4;
	assert_int_equal(perseas_heap_open(o->p, "h", &options, &heap), PERSEAS_EINVAL);
	options.flags = 0;
	options.size = 0;
	assert_int_equal(perseas_heap_open(o->p, "h", &options, &heap), PERSEAS_EINVAL);
	assert_int_equal(perseas_heap_open(o->p, ".h", NULL, &heap), PERSEAS_EINVAL);
	assert_int_equal(perseas_heap_open(o->p, NULL, NULL, &heap), PERSEAS_EINVAL);
	assert_int_equal(perseas_heap_open(NULL, "h", NULL, &heap), PERSEAS_EINVAL);
	heap = heap_of(o);
	assert_ptr_equal(heap, heap_of(o));
	assert_int_equal(perseas_alloc(tx, NULL, 1, 0, &addr), PERSEAS_EINVAL);
	assert_null(addr);
	assert_int_equal(perseas_alloc(NULL, heap, 1, 0, &addr), PERSEAS_EINVAL);
	assert_int_equal(perseas_alloc(tx, heap, 0, 0, &addr), PERSEAS_EINVAL);
	assert_int_equal(perseas_alloc(tx, heap, SIZE_MAX, 0, &addr), PERSEAS_EINVAL);
	assert_int_equal(perseas_alloc(tx, heap, 1, PERSEAS_ANY_TYPE, &addr), PERSEAS_EINVAL);
	assert_int_equal(perseas_alloc(tx, heap, 1, 0, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_root_set(tx, heap, "", 0, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_root(heap, NULL, 0, &addr), PERSEAS_EINVAL);
	assert_int_equal(perseas_heap_check(NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_heap_stat(heap, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_heap_walk(heap, 0, NULL, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_object(heap, heap, NULL), PERSEAS_EINVAL);
	assert_int_equal(perseas_commit(ended, 0), 0);
	assert_int_equal(perseas_alloc(ended, heap, 1, 0, &addr), PERSEAS_EENDED);
	assert_int_equal(perseas_free(ended, heap, &addr), PERSEAS_EENDED);
	assert_int_equal(perseas_root_set(ended, heap, "r", 0, NULL), PERSEAS_EENDED);
	assert_int_equal(perseas_abort(tx), 0);
	next_finds(o, 0);
}

/* The heap grows in the middle of transactions, and next to an unpublished segment of the
 * application. */
TEST(test_a_full_heap_grows, struct owner *o)
{
	struct perseas_segment_info info;
	perseas_tx_t *other = begin(o), *tx = begin(o);
	void *draft;

	take(o, other, 100, POINT);
	take(o, tx, 100, POINT);
	assert_int_equal(perseas_map(o->p, "draft", 100, &draft), 0);
	for (unsigned i = 0; i < 100; i++)
		made(o, 5000, LINE);
	assert_int_equal(perseas_segment(o->p, "draft", &info), 0);
	assert_false(info.published);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(perseas_abort(other), 0);
	assert_true(figures(o).extents == 4 && figures(o).size == 16 * PS_CHUNK);
	next_finds(o, 101);
	assert_int_equal(figures(o).extents, 4);
}

/* The heap grows up to its limit and no further; freed objects are used again. */
TEST(test_a_heap_grows_up_to_its_limit, struct owner *o)
{
	perseas_heap_t *heap;
	perseas_tx_t *tx = begin(o);
	void *objects[5];

	assert_int_equal(open_heap(o, "h", 2 * PS_CHUNK, 5 * PS_CHUNK, &heap), 0);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(perseas_reserve(tx, heap, PS_CHUNK, 0, &objects[i]), 0);
	assert_int_equal(perseas_reserve(tx, heap, 1, 0, &objects[0]), PERSEAS_ELIMIT);
	assert_int_equal(perseas_commit(tx, 0), 0);
	drop(o, objects[3]);
	assert_ptr_equal(reserved(o, 1, 0), objects[3]);
	next_finds(o, 5);
}

TEST(test_segments_of_a_heap_stay_mapped, struct owner *o)
{
	uint8_t *point = made(o, 10, POINT);
	void *addr;

	assert_int_equal(perseas_unmap(o->p, (void *)((uintptr_t)point & ~(uintptr_t)0xffff)),
	                 PERSEAS_ECONFLICT);
	assert_int_equal(perseas_map(o->p, "h.meta.0", 0, &addr), 0);
	assert_int_equal(perseas_unmap(o->p, addr), PERSEAS_ECONFLICT);
	next_finds(o, 1);
}

TEST(test_roots_have_types, struct owner *o)
{
	uint8_t *point = made(o, 10, POINT);
	perseas_tx_t *tx = begin(o);
	void *addr;

	assert_int_equal(perseas_root_set(tx, heap_of(o), "r", LINE, point), PERSEAS_EOBJECT);
	assert_int_equal(perseas_root_set(tx, heap_of(o), "r", POINT, point + 16), PERSEAS_EOBJECT);
	assert_int_equal(perseas_root_set(tx, heap_of(o), "r", POINT, point), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_int_equal(perseas_root(heap_of(o), "r", LINE, &addr), PERSEAS_EOBJECT);
	assert_null(addr);
	assert_root(o, "r", POINT, point);
	tx = begin(o);
	assert_int_equal(perseas_root_set(tx, heap_of(o), "r", POINT, NULL), 0);
	assert_int_equal(perseas_root_set(tx, heap_of(o), "none", POINT, NULL), 0);
	commit_finds(o, tx, 1);
	assert_int_equal(figures(o).roots, 0);
}

TEST(test_open_transactions_set_roots, struct owner *o)
{
	uint8_t *point = made(o, 10, POINT), *mine;
	perseas_tx_t *first = begin(o), *second = begin(o);

	mine = take(o, first, 10, POINT);
	assert_int_equal(perseas_root_set(first, heap_of(o), "a", POINT, mine), 0);
	assert_int_equal(perseas_root_set(second, heap_of(o), "a", POINT, point),
	                 PERSEAS_ECONFLICT);
	assert_int_equal(perseas_root_set(second, heap_of(o), "b", POINT, mine), PERSEAS_EOBJECT);
	assert_int_equal(perseas_root_set(second, heap_of(o), "b", POINT, point), 0);
	assert_int_equal(perseas_root_set(second, heap_of(o), "b", POINT, point), 0);
	assert_int_equal(perseas_commit(second, 0), 0);
	assert_int_equal(perseas_abort(first), 0);
	next_finds(o, 1);
	assert_root(o, "b", POINT, point);
	assert_root(o, "a", POINT, NULL);
}

TEST(test_roots_have_limits, struct owner *o)
{
	uint8_t *point = made(o, 10, POINT);
	perseas_tx_t *tx = begin(o);
	char name[PERSEAS_ROOT_NAME_MAX + 2];
	void *addr;

	for (unsigned i = 0; i <= PERSEAS_HEAP_ROOTS; i++) {
		snprintf(name, sizeof(name), "%039u", i);
		assert_int_equal(perseas_root_set(tx, heap_of(o), name, POINT, point),
		                 i < PERSEAS_HEAP_ROOTS ? 0 : PERSEAS_ELIMIT);
	}
	snprintf(name, sizeof(name), "%040u", 0);
	assert_int_equal(perseas_root_set(tx, heap_of(o), name, POINT, point), PERSEAS_EINVAL);
	commit_finds(o, tx, 1);
	assert_int_equal(figures(o).roots, PERSEAS_HEAP_ROOTS);
	drop(o, point);
	snprintf(name, sizeof(name), "%039u", 7);
	assert_int_equal(perseas_root(heap_of(o), name, POINT, &addr), PERSEAS_EOBJECT);
	assert_int_equal(perseas_heap_check(heap_of(o)), PERSEAS_EHEAP);
}

/* Objects or metadata that do not fit into the log leave nothing reserved. */
TEST(test_what_does_not_fit_changes_nothing, struct owner *o)
{
	perseas_tx_t *tx = begin(o);
	unsigned frees = 0;
	uint8_t *many[400];
	void *addr;

	assert_int_equal(perseas_alloc(tx, heap_of(o), 50000, POINT, &addr), PERSEAS_ETOOBIG);
	assert_int_equal(perseas_alloc(tx, heap_of(o), 32000, POINT, &addr), PERSEAS_ETOOBIG);
	/* Nor does the heap grow for what cannot be. */
	assert_int_equal(perseas_alloc(tx, heap_of(o), 1 << 30, POINT, &addr), PERSEAS_ETOOBIG);
	assert_int_equal(figures(o).extents, 1);
	assert_int_equal(perseas_commit(tx, 0), 0);
	checked(o);
	for (unsigned i = 0; i < 400; i++)
		many[i] = made(o, 2000, (uint64_t)i % 2);
	tx = begin(o);
	while (!perseas_alloc(tx, heap_of(o), 16, 100 + frees, &addr))
		frees++;
	assert_int_equal(perseas_free(tx, heap_of(o), many[0]), PERSEAS_ETOOBIG);
	commit_finds(o, tx, 400 + frees);
	assert_true(frees > 100);
}

/* Ranges that leave room for nothing but what is kept for the metadata. */
TEST(test_the_commit_of_a_full_transaction, struct owner *o)
{
	perseas_tx_t *tx;
	unsigned at = 0;

	o->options.ring_size = 1 << 20;
	owner_reopen(o);
	tx = begin(o);
	take(o, tx, 16, POINT);
	take(o, tx, 16, LINE);
	while (!perseas_set_range(tx, o->bytes + at, 1))
		at += 2;
	assert_in_range(at, 2000, SIZE - 1);
	commit_finds(o, tx, 2);
}

/* Many ranges became one, and a roll-back brings them back: there is room for all, and more. */
TEST(test_a_roll_back_to_many_ranges, struct owner *o)
{
	perseas_heap_t *heap = heap_of(o);
	uint8_t *object = made(o, 16, POINT);
	perseas_tx_t *tx = begin(o);
	const struct ps_cover *cover = &tx->cover;
	uint64_t savepoint;
	void *addr;

	for (unsigned i = 0; i < 63; i++)
		assert_int_equal(perseas_set_range(tx, o->bytes + 16 * i, 4), 0);
	assert_int_equal(perseas_savepoint(tx, &savepoint), 0);
	assert_int_equal(perseas_set_range(tx, o->bytes, 1024), 0);
	assert_int_equal(cover->span_count, 1);
	/* 31 types: an entry and a word each. */
	for (unsigned i = 0; i < 31; i++)
		assert_int_equal(perseas_reserve(tx, heap, 16, 100 + i, &addr), 0);
	assert_in_range(cover->extra_capacity, 62, 63);
	assert_int_equal(perseas_rollback_to(tx, savepoint), 0);
	assert_int_equal(cover->span_count, 63);
	assert_int_equal(perseas_root_set(tx, heap, "r", POINT, object), 0);
	for (unsigned i = 0; i < 60; i++) {
		assert_int_equal(perseas_set_range(tx, o->bytes + 1100 + 16 * i, 4), 0);
		assert_in_range(cover->span_count + cover->extra_capacity, 0,
		                cover->allocated_spans);
		assert_in_range(cover->span_count, 0, cover->span_capacity);
	}
	commit_finds(o, tx, 1);
}

/* Room that many transactions reserved is free again for a larger one. */
TEST(test_room_is_kept_until_the_end_only, struct owner *o)
{
	for (unsigned i = 0; i < 600; i++) {
		perseas_tx_t *tx = begin(o);

		take(o, tx, i < 599 ? 16 : 8000, POINT);
		assert_int_equal(i < 599 ? perseas_abort(tx) : perseas_commit(tx, 0), 0);
	}
	next_finds(o, 1);
}

/* A commit in doubt, and one behind it that is not sent: it may be tried again. */
TEST(test_a_commit_that_is_not_sent_changes_nothing, struct owner *o)
{
	perseas_tx_t *tx = begin(o), *behind = begin(o);
	uint8_t *old = made(o, 10, POINT);
	struct perseas_object object;

	take(o, tx, 10, POINT);
	take(o, behind, 10, POINT);
	assert_int_equal(perseas_free(behind, heap_of(o), old), 0);
	o->d->mirrors[0].hold = DIRECT_HOLD_COMPLETIONS;
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EINDOUBT);
	assert_int_equal(perseas_commit(behind, 0), PERSEAS_EBLOCKED);
	assert_int_equal(figures(o).objects, 2);
	checked(o);
	o->d->mirrors[0].hold = DIRECT_HOLD_NOTHING;
	direct_release(o->d, 0, 10);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(perseas_commit(behind, 0), 0);
	assert_int_equal(perseas_object(heap_of(o), old, &object), PERSEAS_EOBJECT);
	next_finds(o, 2);
}

/* The owner learns that it is fenced before it sends. */
TEST_WITH(test_a_fenced_owner_leaves_a_whole_heap, setup_plain, owner_teardown, struct owner *o)
{
	uint8_t *old = made(o, 10, POINT);
	perseas_tx_t *tx = begin(o);
	perseas_t *second;
	int sent, rc;

	take(o, tx, 10, POINT);
	assert_int_equal(perseas_free(tx, heap_of(o), old), 0);
	second = owner_rival(o);
	sent = owner_put(o, 0, 10, 1);
	direct_keep(o->d, o->p);
	rc = perseas_commit(tx, 0);
	perseas_close(second);
	assert_int_equal(sent, PERSEAS_EINDOUBT);
	assert_int_equal(rc, PERSEAS_EFENCED);
	assert_int_equal(figures(o).objects, 1);
	checked(o);
	next_finds(o, 1);
}

/* A mirror is copied whole during transactions, and then recovers the store with a stale one. */
TEST_WITH(test_a_copy_has_what_is_committed, setup_three, owner_teardown, struct owner *o)
{
	perseas_tx_t *kept, *dropped;
	uint8_t *old = made(o, 10, POINT);

	direct_crash(o->d, 2);
	made(o, 2000, LINE);
	memory_heap_lose(o->d->mirrors[2].memory, NULL);
	direct_start(o->d, 2);
	kept = begin(o);
	dropped = begin(o);
	take(o, kept, 10, POINT);
	take(o, dropped, 10, POINT);
	assert_int_equal(perseas_free(dropped, heap_of(o), old), 0);
	owner_keep(o, 2, PERSEAS_MIRROR_RESYNCING);
	take(o, kept, 3000, LINE);
	take(o, dropped, 3000, LINE);
	owner_keep(o, 2, PERSEAS_MIRROR_LIVE);
	assert_int_equal(perseas_abort(dropped), 0);
	assert_int_equal(perseas_commit(kept, 0), 0);
	assert_int_equal(figures(o).objects, 4);
	owner_die(o);
	direct_crash(o->d, 0);
	owner_reopen(o);
	checked(o);
	assert_int_equal(figures(o).objects, 4);
}

/* Only the first 128 KiB of each segment can be had, which is enough for the heap to go on. */
TEST_WITH(test_a_heap_is_used_before_it_is_here, setup_plain, owner_teardown, struct owner *o)
{
	perseas_heap_t *heap;
	perseas_tx_t *tx;
	uint8_t *last = NULL;
	void *addr;

	assert_int_equal(open_heap(o, "h", 256 * PS_CHUNK, 0, &heap), 0);
	tx = begin(o);
	for (unsigned i = 0; i < 256; i++)
		assert_int_equal(perseas_reserve(tx, heap, i % 7 ? 30000 : 70000, LINE, &addr), 0);
	assert_int_equal(perseas_root_set(tx, heap, "last", LINE, addr), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	last = addr;
	o->options.recovery = PERSEAS_RECOVERY_ON_DEMAND;
	pager_direct_use(o->d);
	pager_gate.below = 2 * PAGER_GRANULE;
	owner_reopen(o);
	heap = heap_of(o);
	tx = begin(o);
	assert_int_equal(perseas_reserve(tx, heap, 30000, POINT, &addr), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	pager_gate.below = UINT64_MAX;
	assert_root(o, "last", LINE, last);
	tx = begin(o);
	assert_int_equal(perseas_free(tx, heap, last), 0);
	assert_int_equal(perseas_root_set(tx, heap, "last", LINE, NULL), 0);
	commit_finds(o, tx, 256);
}

/* --- damage --- */

/* The owner stores a byte where no application should. */
static void flip(struct owner *o, uint64_t offset)
{
	perseas_tx_t *tx = begin(o);
	void *addr;
	uint8_t *at;

	assert_int_equal(perseas_map(o->p, "h.meta.0", 0, &addr), 0);
	at = (uint8_t *)addr + offset;
	assert_int_equal(perseas_set_range(tx, at, 1), 0);
	*at ^= 0x81;
	assert_int_equal(perseas_commit(tx, 0), 0);
}

/* Uses the heap as an application does: nothing may crash, and a check must find the damage. */
static int use(struct owner *o)
{
	perseas_heap_t *heap;
	perseas_tx_t *tx;
	void *addr;
	int rc = perseas_heap_open(o->p, "h", NULL, &heap);

	if (rc)
		return rc;
	rc = perseas_heap_check(heap);
	tx = begin(o);
	perseas_root(heap, "r", POINT, &addr);
	for (unsigned i = 0; i < 8; i++)
		perseas_alloc(tx, heap, 3000u << i % 4, POINT, &addr);
	perseas_free(tx, heap, (void *)((uintptr_t)addr & ~(uintptr_t)0xffff));
	assert_int_equal(perseas_commit(tx, 0), 0);
	return rc;
}

TEST(test_damaged_metadata_is_found, struct owner *o)
{
	const uint64_t bits = ps_heap_bitmaps_offset(2);
	const struct {
		uint64_t from, to;
	} parts[] = { { 0, 32 },
		      { PS_HEAP_ROOTS, PS_HEAP_ROOTS + 72 },
		      { PS_HEAP_ENTRIES, PS_HEAP_ENTRIES + 8 },
		      { bits + 8, bits + 12 },
		      { bits + 511, bits + 512 } };

	put_root(o, "r", POINT, made(o, 24, POINT));
	for (unsigned part = 0; part < sizeof(parts) / sizeof(parts[0]); part++) {
		for (uint64_t at = parts[part].from; at < parts[part].to; at++) {
			int rc;

			flip(o, at);
			owner_reopen(o);
			rc = use(o);
			/* Objects may be there, and a root may have another name. */
			assert_int_equal(rc, part == 3 || at / 2 == PS_HEAP_ROOTS / 2
			                             ? 0
			                             : PERSEAS_EHEAP);
			o = unit_begin_again();
			put_root(o, "r", POINT, made(o, 24, POINT));
		}
	}
}

TEST(test_another_version_is_refused, struct owner *o)
{
	perseas_heap_t *heap;

	made(o, 10, POINT);
	flip(o, offsetof(struct ps_heap_head, version));
	owner_reopen(o);
	assert_int_equal(perseas_heap_open(o->p, "h", NULL, &heap), PERSEAS_EHEAP);
	assert_says(o, "another version");
}

/* Two large objects in one place, and small ones inside of a large one. */
TEST(test_objects_in_one_place_are_found, struct owner *o)
{
	struct ps_heap_entry large = { .state = PS_CHUNK_LARGE, .span = 2 }, *entries;
	uint8_t *point = made(o, 10, POINT), *line = made(o, 10, LINE);
	struct perseas_object object;
	perseas_tx_t *tx;
	void *addr;

	assert_int_equal(perseas_map(o->p, "h.meta.0", 0, &addr), 0);
	entries = (struct ps_heap_entry *)((uint8_t *)addr + PS_HEAP_ENTRIES);
	tx = begin(o);
	assert_int_equal(perseas_set_range(tx, entries, sizeof(*entries)), 0);
	entries[0] = large;
	assert_int_equal(perseas_commit(tx, 0), 0);
	owner_reopen(o);
	assert_int_equal(perseas_object(heap_of(o), line, &object), 0);
	assert_int_equal(perseas_object(heap_of(o), point, &object), PERSEAS_EHEAP);
	owner_reopen(o);
	assert_int_equal(use(o), PERSEAS_EHEAP);
}

/* Entries that a large object covers count again once it is freed: a check looks at them, too. */
TEST(test_a_covered_entry_that_is_damaged_is_found, struct owner *o)
{
	reserved(o, 2, LINE);
	checked(o);
	flip(o,
	     PS_HEAP_ENTRIES + sizeof(struct ps_heap_entry) + offsetof(struct ps_heap_entry, zero));
	owner_reopen(o);
	assert_int_equal(use(o), PERSEAS_EHEAP);
}
