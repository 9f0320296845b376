/*
 * test_heap_refusals.c - a heap beside others: segments of the application that have its names,
 * transactions that free and set at the same time, walks whose objects go meanwhile, limits that
 * make no sense, and opens that fail.
 */
#include "heap_rig.h"

#include "../../client/core/deferred_stores.h"
#include "../../client/open/map.h"

static int setup(void **state)
{
	return setup_heap(state, 1, 0, true);
}

struct unit_fixture unit_fixture = { setup, owner_teardown };

/* --- between the store of metadata and the end --- */

/* Another transaction frees what is being committed, as soon as others can see it. */
struct between {
	struct ps_deferred_stores late;
	perseas_tx_t *frees;
	void *object;
	int rc;
};

static void between_apply(struct ps_deferred_stores *late, struct perseas_tx *tx)
{
	struct between *between = (struct between *)late;
	perseas_heap_t *heap = (perseas_heap_t *)(uintptr_t)tx->deferred->user;

	between->rc = perseas_free(between->frees, heap, between->object);
}

static void between_end(struct ps_deferred_stores *late, bool posted)
{
	(void)late;
	(void)posted;
}

TEST(test_a_free_of_what_is_being_committed, struct owner *o)
{
	static const struct ps_deferred_ops ops = { .apply = between_apply, .end = between_end };
	perseas_heap_t *heap = heap_of(o);
	struct between between = { .late = { .ops = &ops }, .frees = begin(o), .rc = 1 };
	perseas_tx_t *tx = begin(o), *second = begin(o);

	assert_int_equal(perseas_reserve(tx, heap, 40000, LINE, &between.object), 0);
	assert_null(tx->deferred->next);
	tx->deferred->next = &between.late;
	assert_int_equal(perseas_commit(tx, 0), 0);
	tx->deferred->next = NULL;
	assert_int_equal(between.rc, 0);
	assert_int_equal(perseas_free(second, heap, between.object), PERSEAS_EOBJECT);
	assert_int_equal(perseas_commit(between.frees, 0), 0);
	made(o, 40000, LINE);
	assert_int_equal(perseas_commit(second, 0), 0);
	next_finds(o, 1);
}

/* --- roots and frees --- */

TEST(test_a_free_beside_a_root, struct owner *o)
{
	perseas_heap_t *heap = heap_of(o);
	uint8_t *point = made(o, 10, POINT), *line = made(o, 40000, LINE);
	perseas_tx_t *sets = begin(o), *frees = begin(o);
	uint64_t savepoint;
	void *addr;

	assert_int_equal(perseas_root_set(sets, heap, "p", POINT, point), 0);
	assert_int_equal(perseas_root_set(sets, heap, "l", LINE, line), 0);
	assert_int_equal(perseas_free(frees, heap, point), PERSEAS_ECONFLICT);
	assert_says(o, "root 'p'");
	assert_int_equal(perseas_realloc(frees, heap, line, 10, LINE, &addr), PERSEAS_ECONFLICT);
	/* Its own it may free, and then has the root lead elsewhere. */
	assert_int_equal(perseas_free(sets, heap, line), 0);
	assert_int_equal(perseas_root_set(sets, heap, "l", LINE, NULL), 0);
	/* A root that is set anew keeps what it led to at a savepoint, as it can come back. */
	assert_int_equal(perseas_savepoint(sets, &savepoint), 0);
	assert_int_equal(perseas_root_set(sets, heap, "p", POINT, NULL), 0);
	assert_int_equal(perseas_free(frees, heap, point), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_rollback_to(sets, savepoint), 0);
	assert_int_equal(perseas_free(frees, heap, point), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_root_set(sets, heap, "p", POINT, NULL), 0);
	assert_int_equal(perseas_free(frees, heap, point), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_commit(sets, 0), 0);
	assert_int_equal(perseas_free(frees, heap, point), 0);
	assert_int_equal(perseas_commit(frees, 0), 0);
	next_finds(o, 0);
}

/* A root that was set anew protects its old object only if a savepoint can bring that back. */
TEST(test_a_free_beside_a_root_that_was_set_anew, struct owner *o)
{
	perseas_heap_t *heap = heap_of(o);
	uint8_t *first = made(o, 10, POINT), *second = made(o, 10, POINT);
	perseas_tx_t *sets = begin(o), *frees = begin(o);
	uint64_t outer, inner;

	assert_int_equal(perseas_root_set(sets, heap, "p", POINT, first), 0);
	assert_int_equal(perseas_root_set(sets, heap, "p", POINT, NULL), 0);
	assert_int_equal(perseas_savepoint(sets, &outer), 0);
	assert_int_equal(perseas_root_set(sets, heap, "p", POINT, second), 0);
	assert_int_equal(perseas_savepoint(sets, &inner), 0);
	assert_int_equal(perseas_root_set(sets, heap, "p", POINT, NULL), 0);
	assert_int_equal(perseas_free(frees, heap, first), 0);
	assert_int_equal(perseas_root_set(sets, heap, "p", POINT, first), PERSEAS_EOBJECT);
	assert_int_equal(perseas_free(frees, heap, second), PERSEAS_ECONFLICT);
	assert_int_equal(perseas_rollback_to(sets, outer), 0);
	assert_int_equal(perseas_free(frees, heap, second), 0);
	assert_int_equal(perseas_commit(sets, 0), 0);
	assert_int_equal(perseas_commit(frees, 0), 0);
	next_finds(o, 0);
}

/* A root may roll back to any of several savepoints: its object there cannot be freed. */
TEST(test_a_root_comes_back_to_its_object, struct owner *o)
{
	perseas_heap_t *heap = heap_of(o);
	uint8_t *line = made(o, 100, LINE), *other = made(o, 100, LINE);
	perseas_tx_t *sets = begin(o), *frees = begin(o);
	uint64_t outer, inner;

	assert_int_equal(perseas_root_set(sets, heap, "q", LINE, other), 0);
	assert_int_equal(perseas_root_set(sets, heap, "r", LINE, line), 0);
	assert_int_equal(perseas_savepoint(sets, &outer), 0);
	assert_int_equal(perseas_root_set(sets, heap, "r", LINE, other), 0);
	assert_int_equal(perseas_savepoint(sets, &inner), 0);
	assert_int_equal(perseas_free(frees, heap, line), PERSEAS_ECONFLICT);
	assert_says(o, "root 'r'");
	assert_int_equal(perseas_commit(frees, 0), 0);
	assert_int_equal(perseas_rollback_to(sets, outer), 0);
	assert_int_equal(perseas_commit(sets, 0), 0);
	assert_root(o, "r", LINE, line);
	next_finds(o, 2);
}

/* --- walks --- */

struct clearing {
	struct owner *o;
	uint8_t *first, *others[3];
	unsigned told;
};

static int clear_others(void *arg, const struct perseas_object *object)
{
	struct clearing *clearing = arg;
	perseas_tx_t *tx;

	clearing->told++;
	if (object->addr != clearing->first)
		return 0;
	tx = begin(clearing->o);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(perseas_free(tx, heap_of(clearing->o), clearing->others[i]), 0);
	return perseas_commit(tx, 0);
}

TEST(test_a_walk_tells_of_nothing_that_it_freed, struct owner *o)
{
	struct clearing clearing = { .o = o };

	clearing.first = made(o, 100, POINT);
	clearing.others[0] = made(o, 100, POINT);
	made(o, 100, POINT);
	clearing.others[1] = made(o, 100, POINT);
	clearing.others[2] = made(o, 40000, POINT);
	assert_int_equal(perseas_heap_walk(heap_of(o), PERSEAS_ANY_TYPE, clear_others, &clearing),
	                 0);
	assert_int_equal(clearing.told, 2);
	next_finds(o, 2);
}

/* --- names and opens --- */

static bool is_wanted(void *arg)
{
	(void)arg;
	return true;
}

static void must_not(const struct ps_new_segments *birth, void *arg)
{
	(void)birth;
	(void)arg;
	fail_msg("a segment that was there already is made");
}

/* One segment is published and as large as the new one would be, and the other is a draft. */
TEST(test_a_birth_leaves_other_segments, struct owner *o)
{
	struct ps_new_segments birth = { .count = 2,
		                         .segments = { { "one", 4096, NULL },
		                                       { "two", 4096, NULL } },
		                         .is_wanted = is_wanted,
		                         .fill = must_not,
		                         .on_published = must_not };
	struct perseas_segment_info info;
	void *published, *draft;

	assert_int_equal(perseas_map(o->p, "two", 4096, &published), 0);
	memset(published, 5, 4096);
	assert_int_equal(perseas_publish(o->p), 0);
	assert_int_equal(ps_map_create_and_publish_segments(o->p, &birth), PERSEAS_EEXIST);
	assert_says(o, "'two'");
	assert_int_equal(perseas_segment(o->p, "one", &info), PERSEAS_ENOSEGMENT);
	assert_int_equal(perseas_map(o->p, "one", 4096, &draft), 0);
	memset(draft, 6, 4096);
	assert_int_equal(ps_map_create_and_publish_segments(o->p, &birth), PERSEAS_EEXIST);
	assert_int_equal(perseas_segment(o->p, "one", &info), 0);
	assert_false(info.published);
	assert_true(((uint8_t *)published)[4095] == 5 && ((uint8_t *)draft)[4095] == 6);
	assert_int_equal(perseas_publish(o->p), 0);
}

TEST(test_limits_that_make_no_sense, struct owner *o)
{
	struct perseas_segment_info info;
	perseas_heap_t *heap;

	assert_int_equal(open_heap(o, "a", 0, 1, &heap), PERSEAS_EINVAL);
	assert_int_equal(open_heap(o, "a", 0, PS_CHUNK - 1, &heap), PERSEAS_EINVAL);
	assert_says(o, "options.most is 65535");
	assert_int_equal(open_heap(o, "a", 3 * PS_CHUNK, 2 * PS_CHUNK, &heap), PERSEAS_EINVAL);
	assert_int_equal(open_heap(o, "a", PS_CHUNK + 1, PS_CHUNK + 1, &heap), PERSEAS_EINVAL);
	assert_says(o, "options.first is 65537");
	assert_int_equal(open_heap(o, "a", PS_CHUNK, PS_CHUNK, &heap), 0);
	assert_int_equal(open_heap(o, "b", 0, 3 * PS_CHUNK + 5, &heap), 0);
	assert_int_equal(perseas_segment(o->p, "b.heap.0", &info), 0);
	assert_int_equal(info.size, 3 * PS_CHUNK);
}

/* The second extent is damaged: nothing of the heap stays held. */
TEST(test_a_failed_open_holds_nothing, struct owner *o)
{
	static const char *const names[] = { "h.meta.0", "h.heap.0", "h.meta.1" };
	perseas_heap_t *heap;
	perseas_tx_t *tx;
	void *addr;

	for (unsigned i = 0; i < 3; i++)
		made(o, 40000, POINT);
	tx = begin(o);
	assert_int_equal(perseas_map(o->p, "h.meta.1", 0, &addr), 0);
	assert_int_equal(perseas_set_range(tx, addr, 8), 0);
	memset(addr, 0, 8);
	assert_int_equal(perseas_commit(tx, 0), 0);
	owner_reopen(o);
	assert_int_equal(perseas_heap_open(o->p, "h", NULL, &heap), PERSEAS_EHEAP);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(perseas_map(o->p, names[i], 0, &addr), 0);
		assert_int_equal(perseas_unmap(o->p, addr), 0);
	}
}

TEST_WITH(test_no_object_is_of_every_type, NULL, NULL)
{
	struct ps_heap_entry run = { .state = PS_CHUNK_RUN, .span = 1, .type = UINT64_MAX };
	struct ps_heap_entry large = { .state = PS_CHUNK_LARGE, .span = 1, .type = UINT64_MAX };

	assert_non_null(ps_heap_entry_fault(&run, 0, 1));
	assert_non_null(ps_heap_entry_fault(&large, 0, 1));
	run.type--;
	large.type--;
	assert_null(ps_heap_entry_fault(&run, 0, 1));
	assert_null(ps_heap_entry_fault(&large, 0, 1));
}

/* Small ranges until there is no room for one more. */
static void fill_transaction(perseas_tx_t *tx, uint8_t *bytes, size_t size)
{
	int rc = 0;

	for (size_t at = 0; !rc && at < size; at += 16)
		rc = perseas_set_range(tx, bytes + at, 8);
	assert_int_equal(rc, PERSEAS_ETOOBIG);
}

static uint8_t *map_much(struct owner *o, size_t size)
{
	void *much;

	assert_int_equal(perseas_map(o->p, "much", size, &much), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	return much;
}

TEST(test_what_is_refused_takes_no_chunk, struct owner *o)
{
	enum { MUCH = 1 << 20 };
	uint8_t *much = map_much(o, MUCH);
	perseas_tx_t *tx;
	void *addr;

	made(o, 64, POINT);
	tx = begin(o);
	take(o, tx, 64, POINT);
	fill_transaction(tx, much, MUCH);
	assert_int_equal(perseas_alloc(tx, heap_of(o), 1024, LINE, &addr), PERSEAS_ETOOBIG);
	assert_int_equal(perseas_abort(tx), 0);
	reserved(o, 1, LINE);
	assert_int_equal(figures(o).extents, 1);
	next_finds(o, 2);
}

TEST(test_what_is_refused_takes_no_room, struct owner *o)
{
	enum { MUCH = 400 << 10, TIMES = 3000 };
	uint8_t *much = map_much(o, MUCH);
	perseas_tx_t *tx = begin(o);
	void *addr;

	assert_int_equal(perseas_set_range(tx, much, MUCH - 8), 0);
	for (unsigned i = 0; i < TIMES; i++)
		assert_int_equal(perseas_alloc(tx, heap_of(o), 200000, LINE, &addr),
		                 PERSEAS_ETOOBIG);
	take(o, tx, 50000, LINE);
	commit_finds(o, tx, 1);
}
