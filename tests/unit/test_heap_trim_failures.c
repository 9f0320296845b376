/*
 * test_heap_trim_failures.c - what becomes of the segments that a heap gives back when mirrors and
 * owners fail meanwhile, where memory has not come yet, and where another thread opens the heap.
 */
#include "trim_rig.h"

#include "../support/pager_direct.h"

#include <sys/syscall.h>

struct unit_fixture unit_fixture = { setup, owner_teardown };
struct unit_fixture unit_fixture_too = { setup_staged, owner_teardown };

/* --- mirrors and owners that fail --- */

/* W mirrors do not answer in time: it is gone here, and its names are not used before they do. */
TEST(test_it_is_gone_here_while_in_doubt, struct owner *o)
{
	void *objects[MANY], *at;
	perseas_tx_t *tx;
	uint64_t given;

	shrinkable(o, objects);
	tx = begin(o);
	owner_hold(o, DIRECT_HOLD_COMPLETIONS);
	assert_int_equal(perseas_heap_trim(heap_of(o), 0, &given), PERSEAS_EINDOUBT);
	assert_int_equal(given, (ALL - FIRST) * PS_CHUNK);
	assert_int_equal(figures(o).extents, 1);
	assert_on_mirrors(o, 8);
	assert_int_equal(perseas_reserve(tx, heap_of(o), PS_CHUNK, LINE, &at), PERSEAS_EBLOCKED);
	owner_hold(o, DIRECT_HOLD_NOTHING);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_int_equal(perseas_reserve(tx, heap_of(o), PS_CHUNK, LINE, &at), 0);
	assert_int_equal(perseas_commit(tx, 0), 0);
	assert_on_mirrors(o, 4);
	next_finds(o, FIRST + 1);
}

/* The next call makes the mirrors return the memory, when the trim is no longer in doubt. */
TEST(test_the_next_call_gives_back_what_was_in_doubt, struct owner *o)
{
	void *objects[MANY];

	shrinkable(o, objects);
	owner_hold(o, DIRECT_HOLD_COMPLETIONS);
	assert_int_equal(perseas_heap_trim(heap_of(o), 0, NULL), PERSEAS_EINDOUBT);
	trimmed(o, 0, 0);
	assert_on_mirrors(o, 8);
	owner_hold(o, DIRECT_HOLD_NOTHING);
	assert_int_equal(perseas_flush(o->p), 0);
	assert_on_mirrors(o, 8);
	trimmed(o, 0, 0);
	assert_on_mirrors(o, 2);
	next_finds(o, FIRST);
}

/* The commit that freed the objects is in doubt, so nothing is given back. */
TEST(test_what_is_in_doubt_frees_nothing, struct owner *o)
{
	void *objects[MANY];
	perseas_tx_t *tx;
	uint64_t given = 1;

	fill(o, objects, MANY);
	tx = begin(o);
	for (unsigned i = FIRST; i < MANY; i++)
		assert_int_equal(perseas_free(tx, heap_of(o), objects[i]), 0);
	owner_hold(o, DIRECT_HOLD_COMPLETIONS);
	assert_int_equal(perseas_commit(tx, 0), PERSEAS_EINDOUBT);
	assert_int_equal(perseas_heap_trim(heap_of(o), 0, &given), PERSEAS_EBLOCKED);
	assert_int_equal(given, 0);
	assert_int_equal(figures(o).extents, 4);
	owner_hold(o, DIRECT_HOLD_NOTHING);
	assert_int_equal(perseas_flush(o->p), 0);
	trimmed(o, 0, ALL - FIRST);
	next_finds(o, FIRST);
}

TEST(test_too_few_mirrors_give_nothing_back, struct owner *o)
{
	void *objects[MANY];
	uint64_t given = 1;

	shrinkable(o, objects);
	for (unsigned i = 0; i < 2; i++) {
		direct_crash(o->d, i);
		owner_keep(o, i, PERSEAS_MIRROR_DOWN);
	}
	assert_int_equal(perseas_heap_trim(heap_of(o), 0, &given), PERSEAS_EUNREACHABLE);
	assert_int_equal(given, 0);
	assert_int_equal(figures(o).extents, 4);
	checked(o);
	for (unsigned i = 0; i < 2; i++) {
		direct_start(o->d, i);
		owner_keep(o, i, PERSEAS_MIRROR_LIVE);
	}
	trimmed(o, 0, ALL - FIRST);
	next_finds(o, FIRST);
}

/* The owner dies with the announcement alone, and after each write of the record and its slot, on
 * each mirror or on all but one: the next finds all of the extents, or none, and goes on. */
TEST(test_an_owner_dies_at_each_step, struct owner *o)
{
	void *objects[MANY];
	bool seen[2] = { false, false };

	for (unsigned writes = 0; writes < 4; writes++)
		for (unsigned one = 0; one < 2; one++) {
			struct perseas_heap_stat stat;
			uint64_t given;
			int rc;

			fill(o, objects, MANY);
			release(o, objects, 0, MANY);
			assert_int_equal(figures(o).extents, 4);
			for (unsigned i = one; i < 3; i++)
				o->d->mirrors[i].writes_left = writes;
			rc = perseas_heap_trim(heap_of(o), 0, &given);
			assert_int_equal(given, (ALL - FIRST) * PS_CHUNK);
			owner_next(o);
			owner_keep_all(o);
			stat = figures(o);
			checked(o);
			assert_true(stat.extents == 1 || (rc && stat.extents == 4));
			seen[stat.extents == 1] = true;
			assert_on_mirrors(o, 2 * stat.extents);
			/* The seq that was announced is taken by others now. */
			for (uint8_t i = 0; i < 3; i++)
				assert_int_equal(owner_put(o, 0, 10, i), 0);
			owner_next(o);
			next_finds(o, 0);
			assert_int_equal(figures(o).extents, stat.extents);
			owner_keep_all(o);
		}
	assert_true(seen[0] && seen[1]);
}

/* --- memory that comes later --- */

/* Pages of objects cannot be read, and those of metadata on demand: a trim reads no object. */
TEST(test_what_is_not_here_goes_back, struct owner *o)
{
	void *objects[MANY];

	fill(o, objects, MANY);
	put_root(o, "r", LINE, objects[0]);
	release(o, objects, 1, MANY);
	o->options.recovery = PERSEAS_RECOVERY_ON_DEMAND;
	pager_direct_use(o->d);
	pager_gate.below = 2 * PAGER_GRANULE;
	owner_reopen(o);
	assert_int_equal(perseas_heap_trim(heap_of(o), 0, NULL), 0);
	pager_gate.below = UINT64_MAX;
	assert_int_equal(figures(o).extents, 1);
	assert_root(o, "r", LINE, objects[0]);
	fill(o, objects, FIRST);
	next_finds(o, 1 + FIRST);
}

/* --- transactions that go on meanwhile --- */

static struct owner *watched;

/* A tracked transaction begins and ends while memory is given back; neither waits for that. */
static void go_on(struct owner *o)
{
	const uint8_t was = o->bytes[0];
	perseas_tx_t *tx;

	assert_int_equal(perseas_begin(o->p, PERSEAS_TRACK, &tx), 0);
	o->bytes[0] = (uint8_t)(was + 1);
	assert_int_equal(perseas_abort(tx), 0);
	assert_int_equal(o->bytes[0], was);
}

/* The library's, too. */
int munmap(void *at, size_t size)
{
	struct owner *o = watched;
	const int rc = (int)syscall(SYS_munmap, at, size);

	watched = NULL;
	if (o)
		go_on(o);
	return rc;
}

static void begin_tracked(struct owner *o)
{
	owner_close(o);
	assert_int_equal(owner_open(o, PERSEAS_TAKEOVER | PERSEAS_TRACKED), 0);
	owner_map(o);
}

TEST(test_tracking_goes_on_while_it_is_given_back, struct owner *o)
{
	void *objects[MANY];

	begin_tracked(o);
	shrinkable(o, objects);
	watched = o;
	trimmed(o, 0, ALL - FIRST);
	assert_null(watched);
	next_finds(o, FIRST);
}

TEST(test_tracking_goes_on_while_it_is_unmapped, struct owner *o)
{
	void *other;

	begin_tracked(o);
	assert_int_equal(perseas_map(o->p, "other", SIZE, &other), 0);
	assert_int_equal(perseas_publish(o->p), 0);
	watched = o;
	assert_int_equal(perseas_unmap(o->p, other), 0);
	assert_null(watched);
}

/* --- an open that is slower than another --- */

static struct slower {
	struct owner *o;
	void (*on_wait)(struct direct *d);
} slower;

/* Another thread opens the heap while this one waits for metadata of the first extent, gives the
 * other extents back, and makes a segment that is none, and has the name of one. */
static void be_faster(struct direct *d)
{
	struct owner *o = slower.o;
	uint64_t given;
	void *at;

	if (o->p->is_admin_taken || !ps_segment_by_name(o->p, "h.heap.0")->heap_count) {
		slower.on_wait(d);
		return;
	}
	d->on_wait = slower.on_wait;
	pager_gate.below = UINT64_MAX;
	assert_int_equal(figures(o).extents, 4);
	/* The slower one holds the first extent, which stays. */
	assert_int_equal(perseas_heap_trim(heap_of(o), 0, &given), 0);
	assert_int_equal(given, (ALL - FIRST) * PS_CHUNK);
	assert_int_equal(perseas_map(o->p, "h.meta.1", PS_CHUNK, &at), 0);
	assert_int_equal(perseas_publish(o->p), 0);
}

/* The trim then finds no heap, but the heap is open. */
TEST(test_an_open_that_is_slower, struct owner *o)
{
	void *objects[MANY];

	shrinkable(o, objects);
	o->options.recovery = PERSEAS_RECOVERY_ON_DEMAND;
	pager_direct_use(o->d);
	owner_reopen(o);
	slower = (struct slower){ o, o->d->on_wait };
	o->d->on_wait = be_faster;
	pager_gate.below = 0;
	assert_int_equal(figures(o).extents, 1);
	assert_ptr_equal(o->d->on_wait, slower.on_wait);
	assert_int_equal(figures(o).objects, FIRST);
	checked(o);
	assert_int_equal(ps_segment_by_name(o->p, "h.heap.0")->heap_count, 1);
}
